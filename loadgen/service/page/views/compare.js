// Runs beside one another: the first is the baseline of the others.

import { get, getIfThere } from "/page/api.js";
import { charts, values } from "/page/charts.js";
import { button, details, el, empty, failure, fill, foreign, heading, link, loading, section, table, tag } from "/page/elements.js";
import { DASH, milliseconds, number, percent, time } from "/page/format.js";
import { overlaid } from "/page/overlay.js";
import { go } from "/page/router.js";
import { result, runLink, stateTags, target, title } from "/page/words.js";

const HEADLINES = ["ttft_s.p50", "ttft_s.p99", "tpot_s.p50", "tpot_s.p99", "e2el_s.p50", "e2el_s.p99", "output_tokens_per_s", "requests_per_s", "goodput_rps", "attainment_ratio", "error_ratio", "acceptance_length"];
const NAMES = {
  ttft_s: "TTFT",
  ttft_from_due_s: "TTFT from due",
  ttfo_s: "TTFO",
  tpot_s: "TPOT",
  icl_s: "ICL",
  itl_s: "ITL",
  e2el_s: "E2EL",
  e2el_from_due_s: "E2EL from due",
  output_tokens_per_s: "output tokens/s",
  input_tokens_per_s: "input tokens/s",
  requests_per_s: "requests/s",
  goodput_rps: "goodput, requests/s",
  attainment_ratio: "SLO attainment",
  error_ratio: "failed or dropped",
  acceptance_length: "acceptance length",
  acceptance_ratio: "acceptance ratio",
  tokens_per_step: "tokens per step",
};
const COLUMNS = [{ title: "Metric", text: true }, { title: "Baseline" }, { title: "This" }, { title: "Ratio" }, { title: "95% interval" }, { title: "", label: "Claim", text: true }];
const MOST_LISTED = 25;

const addressOf = (ids, gates = []) => `/compare?${new URLSearchParams([...ids.map((id) => ["run", id]), ...gates.map((gate) => ["gate", gate])])}`;

const nameOf = (metric) => {
  const [name, statistic] = metric.split(".");
  return `${NAMES[name] ?? name}${statistic ? ` ${statistic}` : ""}${isTime(metric) ? ", ms" : ""}`;
};
const isTime = (metric) => /_s(\.|$)/.test(metric) && !/_per_s(\.|$)/.test(metric);
const shown = (metric, value) => (isTime(metric) ? milliseconds(value) : /_ratio$/.test(metric) ? percent(value) : number(value));
const lowerIsBetter = (metric) => isTime(metric) || metric === "error_ratio";

/** What the whole interval says; nothing without one. */
const claim = (metric, { low, high }) => {
  if (low === null || high === null) return "";
  if (low <= 1 && high >= 1) return el("span", { class: "per" }, "~ unclear");
  const better = high < 1 === lowerIsBetter(metric);
  return el("span", { class: better ? "good" : "worse" }, better ? "✓ better" : "✗ worse");
};

const row = ([metric, pair]) => [
  nameOf(metric),
  shown(metric, pair.baseline),
  shown(metric, pair.candidate),
  pair.ratio === null ? DASH : `${pair.ratio.toFixed(2)}×`,
  pair.low === null ? DASH : `${pair.low.toFixed(2)} to ${pair.high.toFixed(2)}`,
  claim(metric, pair),
];

const candidate = (found) => {
  const metrics = Object.entries(found.metrics);
  const main = metrics.filter(([metric]) => HEADLINES.includes(metric));
  const others = metrics.filter(([metric]) => !HEADLINES.includes(metric));
  const label = `${found.name} at ${found.at}`;
  return [
    el("h3", {}, foreign(found.arm ? `${found.arm} at ${found.at}` : found.at), found.valid === false && [" ", tag("invalid", "invalid")]),
    found.differences.length > 0 && el("p", { class: "caption warned" }, "The workloads differ: ", found.differences.map((each) => foreign(`${each.what ?? each.name}: ${JSON.stringify(each.baseline)}, ${JSON.stringify(each.candidate)}. `))),
    table(label, COLUMNS, main.map(row)),
    found.notes.map((note) => el("p", { class: "note" }, foreign(note))),
    others.length > 0 && details("All other metrics", table(`${label}, other metrics`, COLUMNS, others.map(row))),
  ];
};

const gatesOf = (found) => {
  if (found.gates.length === 0) return null;
  const failed = found.gates.filter((gate) => gate.failed);
  return el(
    "section",
    { class: `verdict ${failed.length > 0 ? "invalid" : ""}`, "aria-label": "Gates" },
    el("p", { class: "headline" }, failed.length > 0 ? `${failed.length} of ${found.gates.length} gates failed` : "All gates are kept"),
    failed.length > 0 && el("ul", {}, failed.map((gate) => el("li", {}, foreign(`${gate.gate} at ${gate.at}: ${gate.evidence}`)))),
  );
};

const compared = async (baseline, run, gates, place, signal) => {
  fill(place, loading("the comparison"));
  const query = new URLSearchParams([["baseline", baseline.id], ["candidate", run.id], ...gates.map((gate) => ["gate", gate])]);
  try {
    const found = await get(`/v1/compare?${query}`, signal);
    const unmatched = found.unmatched.map((each) => el("p", { class: "note" }, foreign(`Only ${each.name} has ${each.at}.`)));
    fill(place, gatesOf(found), found.candidates.map(candidate), unmatched);
  } catch (fault) {
    if (signal.aborted) return;
    if (fault.detail === undefined) throw fault;
    const detail = fault.errors.length > 0 ? fault.errors.map((each) => each.detail).join("; ") : fault.detail;
    fill(place, failure("These two are not compared", detail, fault.status === 0 ? () => compared(baseline, run, gates, place, signal) : null));
  }
};

const legend = (runs, gates) => {
  const ids = runs.map((run) => run.id);
  const first = (id) => go(addressOf([id, ...ids.filter((each) => each !== id)], gates));
  const without = (id) => go(addressOf(ids.filter((each) => each !== id), gates));
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
  const columns = [{ title: "Run", text: true }, { title: "Kind", text: true }, { title: "State", text: true }, { title: "Server", text: true }, { title: "Result", text: true }, { label: "Actions", text: true }];
  return table("Compared runs", columns, rows);
};

const gateForm = (ids, gates) => {
  const box = el("textarea", { id: "gates", rows: 2, spellcheck: "false", class: "code", "aria-describedby": "gates-help" }, gates.join("\n"));
  const judge = (event) => {
    event.preventDefault();
    go(addressOf(ids, box.value.split("\n").map((line) => line.trim()).filter(Boolean)));
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
  const fits = (run) => run.kind !== "capacity" && !run.files_removed && (kinds.size === 0 || kinds.has(run.kind === "experiment" ? "experiment" : "run"));
  const open = items.filter((run) => fits(run) && !chosen.some((each) => each.id === run.id)).slice(0, MOST_LISTED);
  if (open.length === 0) return empty("There is no other run to compare.", link("/runs/new", "Start one"));
  const ids = chosen.map((run) => run.id);
  const rows = open.map((run) => [runLink(run), run.kind, target(run), result(run), time(run.created_at), el("a", { class: "act", href: addressOf([...ids, run.id]), "aria-label": `Add ${title(run)}` }, chosen.length === 0 ? "Take as baseline" : "Add")]);
  const columns = [{ title: "Run", text: true }, { title: "Kind", text: true }, { title: "Server", text: true }, { title: "Result", text: true }, { title: "Asked for" }, { label: "Add" }];
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
