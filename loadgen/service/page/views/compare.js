// Runs beside one another: the first is the baseline of the others.

import { get, getIfThere } from "/page/api.js";
import { charts, values } from "/page/charts.js";
import { button, details, el, empty, failure, fill, foreign, heading, link, loading, section, table, tag } from "/page/elements.js";
import { time } from "/page/format.js";
import { gatesOf, ratios } from "/page/ratios.js";
import { overlaid } from "/page/overlay.js";
import { go } from "/page/router.js";
import { may } from "/page/session.js";
import { result, runLink, stateTags, target, title } from "/page/words.js";

const MOST_LISTED = 25;

const addressOf = (ids, gates = []) =>
  `/compare?${new URLSearchParams([...ids.map((id) => ["run", id]), ...gates.map((gate) => ["gate", gate])])}`;

const compared = async (baseline, run, gates, place, signal) => {
  fill(place, loading("the comparison"));
  const query = new URLSearchParams([["baseline", baseline.id], ["candidate", run.id], ...gates.map((gate) => ["gate", gate])]);
  try {
    const found = await get(`/v1/compare?${query}`, signal);
    fill(place, gatesOf(found), ratios(found));
  } catch (fault) {
    if (signal.aborted) return;
    if (fault.detail === undefined) throw fault;
    const detail = fault.errors.length > 0 ? fault.errors.map((each) => each.detail).join("; ") : fault.detail;
    fill(
      place,
      failure("These two are not compared", detail, [0, 503].includes(fault.status) ? () => compared(baseline, run, gates, place, signal) : null),
    );
  }
};

const legend = (runs, gates) => {
  const ids = runs.map((run) => run.id);
  const first = (id) => go(addressOf([id, ...ids.filter((each) => each !== id)], gates));
  const without = (id) =>
    go(
      addressOf(
        ids.filter((each) => each !== id),
        gates,
      ),
    );
  const rows = runs.map((run, place) => [
    [runLink(run), place === 0 && [" ", tag("baseline")]],
    run.kind,
    stateTags(run),
    target(run),
    result(run),
    el(
      "span",
      { class: "row-actions" },
      place > 0 && button("Use as baseline", () => first(run.id), { "aria-label": `Use ${title(run)} as baseline` }),
      runs.length > 1 && button("Remove", () => without(run.id), { "aria-label": `Remove ${title(run)}` }),
    ),
  ]);
  const columns = [
    { title: "Run", text: true },
    { title: "Kind", text: true },
    { title: "State", text: true },
    { title: "Server", text: true },
    { title: "Result", text: true },
    { label: "Actions" },
  ];
  return table("Compared runs", columns, rows);
};

const gateForm = (ids, gates) => {
  const box = el(
    "textarea",
    { id: "gates", rows: 2, spellcheck: "false", class: "code", "aria-describedby": "gates-help" },
    gates.join("\n"),
  );
  const judge = (event) => {
    event.preventDefault();
    go(
      addressOf(
        ids,
        box.value
          .split("\n")
          .map((line) => line.trim())
          .filter(Boolean),
      ),
    );
  };
  return el(
    "form",
    { class: "gates", submit: judge },
    el("label", { for: "gates" }, "What fails a run, one a line"),
    box,
    el("p", { class: "help", id: "gates-help" }, "Such as tpot_s.p99 > 1.05x or attainment_ratio < 0.99."),
    el("button", { class: "act" }, "Judge"),
  );
};

/** Runs to choose from: those that are complete and have levels to compare. */
const picker = async (chosen, signal) => {
  const { items } = await get("/v1/runs?state=completed&limit=100", signal);
  const kinds = new Set(chosen.map((run) => (run.kind === "experiment" ? "experiment" : "run")));
  const fits = (run) =>
    run.kind !== "capacity" && !run.files_removed && (kinds.size === 0 || kinds.has(run.kind === "experiment" ? "experiment" : "run"));
  const open = items.filter((run) => fits(run) && !chosen.some((each) => each.id === run.id)).slice(0, MOST_LISTED);
  if (open.length === 0) {
    const words = chosen.length === 0 ? "No run is completed yet that could be compared." : "There is no other run to compare.";
    return empty(words, may("run") && link("/runs/new", "Start one"));
  }
  const ids = chosen.map((run) => run.id);
  const rows = open.map((run) => [
    runLink(run),
    run.kind,
    target(run),
    result(run),
    time(run.created_at),
    el(
      "a",
      { class: "act", href: addressOf([...ids, run.id]), "aria-label": `Add ${title(run)}` },
      chosen.length === 0 ? "Take as baseline" : "Add",
    ),
  ]);
  const columns = [
    { title: "Run", text: true },
    { title: "Kind", text: true },
    { title: "Server", text: true },
    { title: "Result", text: true },
    { title: "Asked for" },
    { label: "Add" },
  ];
  return table("Runs to choose from", columns, rows);
};

export const show = async ({ main, query, signal, titled }) => {
  const ids = [...new Set(query.getAll("run"))];
  const gates = query.getAll("gate");
  const runs = await Promise.all(ids.map((id) => get(`/v1/runs/${encodeURIComponent(id)}`, signal)));
  const head = heading(titled("Compare"));
  const choice = await picker(runs, signal);
  if (runs.length < 2) {
    const words = runs.length === 0 ? "Choose the run that the others are held against." : "Choose what to hold against it.";
    fill(main, head, runs.length > 0 && legend(runs, gates), el("p", { class: "subtitle" }, words), choice);
    return;
  }
  const views = await Promise.all(ids.map((id) => getIfThere(`/v1/runs/${encodeURIComponent(id)}/view`, signal)));
  const overlay = overlaid(runs, views);
  const [baseline, ...others] = runs;
  const places = others.map(() => el("div", {}));
  fill(
    main,
    head,
    legend(runs, gates),
    others.map((run, place) => section([foreign(title(run)), " against ", foreign(title(baseline))], places[place])),
    section("Gates", gateForm(ids, gates)),
    overlay.length > 0 && section("Over one another", charts(overlay, signal).node, values(overlay)),
    details("Add another run", choice),
  );
  await Promise.all(others.map((run, place) => compared(baseline, run, gates, places[place], signal)));
};
