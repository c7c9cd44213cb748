// Levels of a ladder and the figures of a run, from the main figures that the service keeps of each.

import { el, foreign, table, tag } from "/page/elements.js";
import { DASH, level, milliseconds, number, percent, whole } from "/page/format.js";
import { variable } from "/page/words.js";

const COLUMNS = [
  { title: "Level", text: true },
  { title: "Requests" },
  { title: "Failed" },
  { title: "Requests/s" },
  { title: "Output tokens/s" },
  { title: "TTFT p50, ms" },
  { title: "TTFT p99, ms" },
  { title: "TPOT p50, ms" },
  { title: "TPOT p99, ms" },
  { title: "E2EL p50, ms" },
  { title: "Good" },
];

const row = (found) => ({
  cells: [
    [found.arm && [foreign(found.arm), ", "], level(found.level), found.valid === false && [" ", tag("invalid", "invalid")]],
    whole(found.requests?.completed),
    whole(found.requests?.failed),
    number(found.requests_per_s),
    number(found.output_tokens_per_s),
    milliseconds(found.ttft_s?.p50),
    milliseconds(found.ttft_s?.p99),
    milliseconds(found.tpot_s?.p50),
    milliseconds(found.tpot_s?.p99),
    milliseconds(found.e2el_s?.p50),
    percent(found.slo_attainment_ratio),
  ],
  marked: found.knee === true,
});

/** A row a level; the one of the knee stands out. */
export const levelTable = (levels, { by = null, knee = null } = {}) => {
  const columns = [{ ...COLUMNS[0], title: by === null ? "Level" : variable(by) }, ...COLUMNS.slice(1)];
  return table(
    "Levels",
    columns,
    levels.map((found) => row({ ...found, knee: knee !== null && found.level === knee })),
  );
};

const figure = (label, value, unit, beside) =>
  el(
    "div",
    {},
    el("dt", {}, label),
    el(
      "dd",
      { class: `value ${value === DASH ? "absent" : ""}` },
      value,
      value !== DASH && unit && [" ", el("span", { class: "unit" }, unit)],
    ),
    beside && el("dd", { class: "beside" }, beside),
  );

/** The main figures of a run, large. */
export const figures = (found) =>
  el(
    "dl",
    { class: `figures ${found.valid === false ? "doubtful" : ""}` },
    figure("Output", number(found.output_tokens_per_s), "tokens/s"),
    figure(
      "Completed",
      number(found.requests_per_s),
      "requests/s",
      `${whole(found.requests.completed)} of ${whole(found.requests.planned)}`,
    ),
    figure("TTFT, median", milliseconds(found.ttft_s.p50), "ms", `p99 ${milliseconds(found.ttft_s.p99)} ms`),
    figure("TPOT, median", milliseconds(found.tpot_s.p50), "ms", `p99 ${milliseconds(found.tpot_s.p99)} ms`),
    figure("E2EL, median", milliseconds(found.e2el_s.p50), "ms", `p99 ${milliseconds(found.e2el_s.p99)} ms`),
    found.slo_attainment_ratio !== null && figure("Met the objectives", percent(found.slo_attainment_ratio)),
    found.acceptance_length !== null && figure("Acceptance length", number(found.acceptance_length), "tokens"),
    found.requests.failed > 0 && figure("Failed", whole(found.requests.failed), "requests"),
  );
