// Ratios of one run to another, level by level, and what may be claimed of them.

import { details, el, foreign, table, tag } from "/page/elements.js";
import { DASH, milliseconds, number, percent } from "/page/format.js";

const HEADLINES = [
  "ttft_s.p50",
  "ttft_s.p99",
  "tpot_s.p50",
  "tpot_s.p99",
  "e2el_s.p50",
  "e2el_s.p99",
  "output_tokens_per_s",
  "requests_per_s",
  "goodput_rps",
  "attainment_ratio",
  "error_ratio",
  "acceptance_length",
];
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
const COLUMNS = [
  { title: "Metric", text: true },
  { title: "Baseline" },
  { title: "This" },
  { title: "Ratio" },
  { title: "95% interval" },
  { title: "", label: "Claim", text: true },
];

const nameOf = (metric) => {
  const [name, statistic] = metric.split(".");
  return `${NAMES[name] ?? name}${statistic ? ` ${statistic}` : ""}${isTime(metric) ? ", ms" : ""}`;
};
const isTime = (metric) => /_s(\.|$)/.test(metric) && !/_per_s(\.|$)/.test(metric);
const shown = (metric, value) => (isTime(metric) ? milliseconds(value) : /_ratio$/.test(metric) ? percent(value) : number(value));
const lowerIsBetter = (metric) => isTime(metric) || metric === "error_ratio";

const CLAIMS = { better: ["✓", "good"], worse: ["✗", "worse"], unclear: ["~", "per"] };

/** What the whole interval says; nothing without one. `short` leaves the word to those who listen. */
const claim = (metric, { low, high }, { short = false } = {}) => {
  if (low === null || high === null) return "";
  const word = low <= 1 && high >= 1 ? "unclear" : high < 1 === lowerIsBetter(metric) ? "better" : "worse";
  const [mark, tone] = CLAIMS[word];
  return el("span", { class: tone }, mark, " ", short ? el("span", { class: "unseen" }, word) : word);
};

const row = ([metric, pair]) => [
  nameOf(metric),
  shown(metric, pair.baseline),
  shown(metric, pair.candidate),
  pair.ratio === null ? DASH : `${pair.ratio.toFixed(2)}×`,
  pair.low === null ? DASH : `${pair.low.toFixed(2)} to ${pair.high.toFixed(2)}`,
  claim(metric, pair),
];

const SHORT = ["ttft_s.mean", "tpot_s.mean", "e2el_s.mean", "output_tokens_per_s", "requests_per_s"];

/** The ratios of all levels of a ladder, or of all arms at them. */
const ladder = (candidates) => {
  const columns = [{ title: "At", text: true }, ...SHORT.map((metric) => ({ title: nameOf(metric).replace(/, ms$/, "") }))];
  const cell = (metric, pair) => {
    if (!pair || pair.ratio === null) return DASH;
    const within = pair.low === null ? "" : ` [${pair.low.toFixed(2)}, ${pair.high.toFixed(2)}]`;
    return [`${pair.ratio.toFixed(2)}×${within} `, claim(metric, pair, { short: true })];
  };
  const rows = candidates.map((found) => [
    [foreign(found.arm ? `${found.arm} at ${found.at}` : found.at), found.valid === false && [" ", tag("invalid", "invalid")]],
    ...SHORT.map((metric) => cell(metric, found.metrics[metric])),
  ]);
  return [
    el(
      "p",
      { class: "caption" },
      "Ratios to the baseline, with 95% intervals where there are requests enough: ✓ better, ✗ worse, ~ unclear.",
    ),
    table("Ratios by level", columns, rows),
  ];
};

const candidate = (found) => {
  const metrics = Object.entries(found.metrics);
  const main = metrics.filter(([metric]) => HEADLINES.includes(metric));
  const others = metrics.filter(([metric]) => !HEADLINES.includes(metric));
  const label = `${found.name} at ${found.at}`;
  return [
    el("h3", {}, foreign(found.arm ? `${found.arm} at ${found.at}` : found.at), found.valid === false && [" ", tag("invalid", "invalid")]),
    found.differences.length > 0 &&
      el(
        "p",
        { class: "caption warned" },
        "The workloads differ: ",
        found.differences.map((each) =>
          foreign(`${each.what ?? each.name}: ${JSON.stringify(each.baseline)}, ${JSON.stringify(each.candidate)}. `),
        ),
      ),
    table(label, COLUMNS, main.map(row)),
    found.notes.map((note) => el("p", { class: "note" }, foreign(note))),
    others.length > 0 && details("All other metrics", table(`${label}, other metrics`, COLUMNS, others.map(row))),
  ];
};

/** How the gates ended. */
export const gatesOf = (found) => {
  if (found.gates.length === 0) return null;
  const failed = found.gates.filter((gate) => gate.failed);
  return el(
    "section",
    { class: `verdict ${failed.length > 0 ? "invalid" : ""}`, "aria-label": "Gates" },
    el("p", { class: "headline" }, failed.length > 0 ? `${failed.length} of ${found.gates.length} gates failed` : "All gates are kept"),
    failed.length > 0 &&
      el(
        "ul",
        {},
        failed.map((gate) => el("li", {}, foreign(`${gate.gate} at ${gate.at}: ${gate.evidence}`))),
      ),
  );
};

/** All that a comparison says of one candidate. */
export const ratios = ({ candidates, unmatched }) => {
  const each = candidates.map(candidate);
  return [
    candidates.length > 1 ? [ladder(candidates), details("Level by level", each)] : each,
    unmatched.map((place) => el("p", { class: "note" }, foreign(`Only ${place.name} has ${place.at}.`))),
  ];
};
