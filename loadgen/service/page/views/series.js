// The capacity tests of one server with the same options, over time.

import { get, getIfThere } from "/page/api.js";
import { capacityText, changeTag, changeText, historyChart, seriesName } from "/page/capacities.js";
import { charts } from "/page/charts.js";
import { details, el, fill, foreign, heading, json, link, section, table } from "/page/elements.js";
import { number, percent, time } from "/page/format.js";

const COLUMNS = [
  { title: "Test", text: true },
  { title: "Capacity", text: true },
  { title: "Change", text: true },
  { title: "Expected" },
  { title: "Met the objectives" },
  { title: "Requests/s" },
  { title: "Output tokens/s" },
];

const row = (point) => [
  link(`/runs/${point.run_id}`, time(point.at)),
  capacityText(point),
  changeTag(point),
  number(point.expected),
  percent(point.attainment_ratio),
  number(point.requests_per_s),
  number(point.output_tokens_per_s),
];

/** The baseline that the latest test was held against, with its capacity. */
const baselineOf = async (point, signal) => {
  const run = await getIfThere(`/v1/runs/${point.run_id}`, signal);
  const held = run?.result?.comparison;
  return held?.level ? { name: held.baseline, level: held.level } : null;
};

export const show = async ({ main, parameters: [id], signal, titled }) => {
  const [{ items: points }, { items: all }] = await Promise.all([
    get(`/v1/history/capacity/${encodeURIComponent(id)}`, signal),
    get("/v1/history/capacity", signal),
  ]);
  const series = all.find((each) => each.series === id);
  const latest = points.at(-1);
  const baseline = await baselineOf(latest, signal);
  const name = series ? seriesName(series) : id;
  const kind = { regression: "invalid", improvement: "", no_change: "" }[latest.verdict] ?? "warning";
  fill(
    main,
    heading(foreign(titled(name)), { eyebrow: "capacity" }),
    series &&
      el(
        "p",
        { class: "subtitle" },
        foreign(series.target.profile ?? series.target.url ?? ""),
        series.options.slo && [", ", foreign(series.options.slo)],
        ".",
      ),
    el(
      "section",
      { class: `verdict ${kind}`, "aria-label": "Latest test" },
      el("p", { class: "headline" }, capacityText(latest), " ", changeTag(latest)),
      el("p", { class: "answer" }, changeText(latest)),
    ),
    section(
      "Over time",
      el(
        "p",
        { class: "caption" },
        "Band: where a test without a change would lie, by the tests before it. Vertical lines: changes, and tests that were not valid.",
      ),
      charts([historyChart(points, baseline)], signal, "stack").node,
    ),
    section("Tests", table("Tests, the latest first", COLUMNS, [...points].reverse().map(row))),
    series && details("Options of these tests", json("Options", series.options)),
  );
};
