// All runs, the newest first: filtered, paged, chosen for a comparison.

import { get, withQuery } from "/page/api.js";
import { button, el, empty, failure, fill, heading, link, loading, speak, table } from "/page/elements.js";
import { between, counted, DASH, span, time } from "/page/format.js";
import { Pages } from "/page/paging.js";
import { go, note } from "/page/router.js";
import { may } from "/page/session.js";
import { result, runLink, stateTags, STATES, target } from "/page/words.js";
import { KINDS } from "/page/request_facts.js";

const AT_ONCE = 50;
const LOOK_AGAIN_MS = 5000;
const COLUMNS = [
  { label: "Choose", text: true },
  { title: "Run", text: true },
  { title: "Kind", text: true },
  { title: "State", text: true },
  { title: "Server", text: true },
  { title: "Result", text: true },
  { title: "Asked for" },
  { title: "Took" },
];
const FILTERS = ["state", "kind", "name", "target", "since", "until"];

/** A day of the reader's calendar as an instant; the end of it is the beginning of the next. */
const dayAsInstant = (day, days = 0) => {
  if (!day) return "";
  const [year, month, date] = day.split("-").map(Number);
  return new Date(year, month - 1, date + days).toISOString();
};

class RunList {
  constructor({ query, signal }) {
    Object.assign(this, { signal, chosen: new Set(), place: el("div", {}), shown: "" });
    this.filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
    this.compare = button("Compare", () => go(withChosen([...this.chosen])), { hidden: true });
    this.pages = new Pages("runs", () => this.look());
  }

  select(name, label, values) {
    const options = [
      el("option", { value: "" }, "all"),
      values.map((value) => el("option", { value, selected: this.filters[name] === value }, value)),
    ];
    return el("label", {}, label, el("select", { change: (event) => this.filter(name, event.target.value) }, options));
  }

  input(name, label, type) {
    let waiting;
    const typed = (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.filter(name, event.target.value.trim()), 300);
    };
    return el("label", {}, label, el("input", { type, value: this.filters[name], input: typed }));
  }

  bar() {
    return el(
      "div",
      { class: "filters", role: "search", "aria-label": "Filters" },
      this.select("state", "State", STATES),
      this.select("kind", "Kind", Object.keys(KINDS)),
      this.input("name", "Name", "search"),
      this.input("target", "Server", "search"),
      this.input("since", "From", "date"),
      this.input("until", "Until", "date"),
    );
  }

  filter(name, value) {
    this.filters[name] = value;
    this.pages.begin();
    note(withQuery("/runs", this.filters));
    this.look({ tell: true });
  }

  get filtered() {
    return Object.values(this.filters).some(Boolean);
  }

  async look({ tell = false } = {}) {
    const asked = {
      ...this.filters,
      since: dayAsInstant(this.filters.since),
      until: dayAsInstant(this.filters.until, 1),
      cursor: this.pages.cursor,
      limit: AT_ONCE,
    };
    this.asked = asked;
    let page;
    try {
      page = await get(withQuery("/v1/runs", asked), this.signal);
    } catch (fault) {
      if (fault.name === "AbortError" || this.asked !== asked) return;
      if (fault.status === 401) throw fault;
      this.shown = "";
      fill(
        this.place,
        failure("The runs cannot be shown", fault.detail ?? String(fault), () => this.look()),
      );
      return;
    }
    if (this.asked !== asked || this.signal.aborted) return;
    if (tell) speak(counted(page.items.length, "run") + (page.next ? " and more" : ""));
    const text = JSON.stringify(page);
    if (text !== this.shown) this.draw(page);
    this.shown = text;
  }

  draw({ items, next }) {
    const focused = document.activeElement?.closest?.("tr")?.dataset.key;
    const name = document.activeElement?.tagName;
    if (items.length > 0)
      fill(
        this.place,
        table(
          "Runs",
          COLUMNS,
          items.map((run) => this.row(run)),
          { named: 1 },
        ),
      );
    else if (this.filtered) fill(this.place, empty("No run is like that.", link("/runs", "Show all")));
    else fill(this.place, empty("There is no run yet.", may("run") && link("/runs/new", "Start the first one")));
    if (focused) this.place.querySelector(`tr[data-key="${CSS.escape(focused)}"] ${name.toLowerCase()}`)?.focus();
    this.pages.draw(next);
  }

  row(run) {
    const choose = (event) => {
      this.chosen[event.target.checked ? "add" : "delete"](run.id);
      this.compare.hidden = this.chosen.size < 2;
      this.compare.textContent = `Compare ${this.chosen.size}`;
    };
    const comparable = run.state === "completed" && run.kind !== "capacity";
    const box =
      comparable &&
      el("input", { type: "checkbox", "aria-label": `Choose ${run.name ?? run.id}`, checked: this.chosen.has(run.id), change: choose });
    const took = between(run.started_at, run.ended_at);
    const cells = [
      box || "",
      runLink(run),
      run.kind,
      stateTags(run),
      target(run),
      result(run),
      time(run.created_at),
      took === null ? DASH : span(took),
    ];
    return { cells, key: run.id };
  }
}

const withChosen = (ids) => `/compare?${new URLSearchParams(ids.map((id) => ["run", id]))}`;

export const show = async ({ main, query, signal, titled }) => {
  const list = new RunList({ query, signal });
  const actions = [list.compare, may("run") && el("a", { class: "act first", href: "/runs/new" }, "New run")].filter(Boolean);
  fill(list.place, loading("runs"));
  fill(main, heading(titled("Runs"), { actions }), list.bar(), list.place, list.pages.node);
  await list.look();
  const timer = setInterval(() => document.hidden || list.look().catch(() => {}), LOOK_AGAIN_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
};
