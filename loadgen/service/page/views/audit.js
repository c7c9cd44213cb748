// The audit log: who changed what, the newest first, by kind and page by page.

import { get, withQuery } from "/page/api.js";
import { el, empty, failure, fill, foreign, heading, link, loading, speak, table } from "/page/elements.js";
import { counted, DASH, time } from "/page/format.js";
import { Pages } from "/page/paging.js";
import { note } from "/page/router.js";
import { asker } from "/page/words.js";

const AT_ONCE = 50;
const ACTIONS = {
  "baseline.make": "baseline made",
  "baseline.remove": "baseline removed",
  import: "document taken in",
  "key.make": "key made",
  "key.revoke": "key revoked",
  "schedule.change": "schedule changed",
  "schedule.make": "schedule made",
  "schedule.pause": "schedule paused",
  "schedule.remove": "schedule removed",
  "schedule.resume": "schedule resumed",
  "session.open": "session opened",
  "webhook.change": "webhook changed",
  "webhook.make": "webhook made",
  "webhook.remove": "webhook removed",
};
const COLUMNS = [
  { title: "When", text: true },
  { title: "Who", text: true },
  { title: "From", text: true },
  { title: "What", text: true },
  { title: "Which", text: true },
  { title: "More", text: true },
];

const more = ({ name, ...rest }) =>
  Object.entries(rest)
    .map(([key, value]) => `${key.replaceAll("_", " ")}: ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join("; ");

class AuditLog {
  /** `names` are those of keys and schedules by their ids. */
  constructor({ action, names, signal }) {
    Object.assign(this, { action, names, signal, place: el("div", {}, loading("the log")) });
    this.pages = new Pages("changes", () => this.look());
  }

  bar() {
    const chosen = (event) => {
      this.action = event.target.value;
      this.pages.begin();
      note(withQuery("/audit", { action: this.action }));
      this.look({ tell: true });
    };
    const options = [
      el("option", { value: "" }, "all"),
      Object.entries(ACTIONS).map(([value, words]) => el("option", { value, selected: value === this.action }, words)),
    ];
    return el(
      "div",
      { class: "filters", role: "search", "aria-label": "Filters" },
      el("label", {}, "What", el("select", { change: chosen }, options)),
    );
  }

  async look({ tell = false } = {}) {
    const asked = { action: this.action, before: this.pages.cursor, limit: AT_ONCE };
    this.asked = asked;
    let page;
    try {
      page = await get(withQuery("/v1/audit", asked), this.signal);
    } catch (fault) {
      if (this.signal.aborted || this.asked !== asked) return;
      fill(
        this.place,
        failure("The log cannot be shown", fault.detail ?? String(fault), () => this.look()),
      );
      return;
    }
    if (this.asked !== asked) return;
    fill(this.place, page.items.length > 0 ? this.table(page.items) : this.nothing());
    this.pages.draw(page.next);
    if (tell) speak(counted(page.items.length, "change") + (page.next ? " and more" : ""));
  }

  table(items) {
    const row = (line) => [
      time(line.at, { seconds: true }),
      this.names.has(line.actor) ? foreign(this.names.get(line.actor)) : asker(line.actor),
      line.address === null ? DASH : foreign(line.address),
      ACTIONS[line.action] ?? line.action,
      line.subject === null ? DASH : foreign(line.detail.name ?? this.names.get(line.subject) ?? line.subject),
      foreign(more(line.detail)),
    ];
    return table("Changes, the newest first", COLUMNS, items.map(row));
  }

  nothing() {
    if (!this.action) return empty("Nothing was changed yet.");
    return empty("Nothing of this kind was changed.", link("/audit", "Show all"));
  }
}

export const show = async ({ main, query, signal, titled }) => {
  const named = await Promise.all(["/v1/keys", "/v1/schedules"].map((path) => get(path, signal)));
  const names = new Map(named.flatMap(({ items }) => items.map((each) => [each.id, each.name])));
  const log = new AuditLog({ action: query.get("action") ?? "", names, signal });
  fill(
    main,
    heading(titled("Audit")),
    el("p", { class: "subtitle" }, "Who made, changed or removed keys, schedules, baselines and webhooks, and who signed in."),
    log.bar(),
    log.place,
    log.pages.node,
  );
  await log.look();
};
