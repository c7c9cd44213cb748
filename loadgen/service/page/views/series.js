// The capacity tests of one server with the same options, over time.

import { get } from "/page/api.js";
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

/** What the chart shows, in words. */
const caption = (baseline, variable) =>
  el(
    "p",
    { class: "caption" },
    "Band: where a test without a change would lie, by the tests before it. Vertical lines: changes, and tests that were not valid.",
    baseline !== null && [
      " Level line: the baseline ",
      link(`/runs/${baseline.run_id}`, foreign(baseline.name)),
      `, ${capacityText({ ...baseline, variable, valid: true })}, which tests are held against.`,
    ],
  );

export const show = async ({ main, parameters: [id], signal, titled }) => {
  const [{ items: points, baseline }, { items: all }] = await Promise.all([
    get(`/v1/history/capacity/${encodeURIComponent(id)}`, signal),
    get("/v1/history/capacity", signal),
  ]);
  const series = all.find((each) => each.series === id);
  const latest = points.at(-1);
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
    section("Over time", caption(baseline, latest.variable), charts([historyChart(points, baseline)], signal, "stack").node),
    section("Tests", table("Tests, the latest first", COLUMNS, [...points].reverse().map(row))),
    series && details("Options of these tests", json("Options", series.options)),
  );
};
