// Capacities in words, and over time.

import { chart, line } from "/page/charts.js";
import { tag } from "/page/elements.js";
import { DASH, level, number } from "/page/format.js";
import { variable } from "/page/words.js";

const CHANGES = {
  too_few: ["too few tests yet", "info"],
  no_change: ["no change", "done"],
  regression: ["lower", "invalid"],
  improvement: ["higher", "busy"],
  invalid: ["invalid test", "warning"],
};
const COUNTED = new Set(["regression", "improvement", "invalid"]);

export const seriesName = (series) => series.latest.name ?? series.target.profile ?? series.target.url ?? series.series;

/** A capacity with the levels that it lies between. */
export const capacityText = (point) => {
  if (point.level === null) return point.valid ? "not even the first level" : DASH;
  const [low, high] = [point.low, point.high].map((each) => (each === null ? null : level(each)));
  const between = low === null && high === null ? "" : ` [${low ?? "below"}, ${high ?? "or more"}]`;
  return `${variable(point.variable)} ${level(point.level)}${between}`;
};

/** Whether it is another than before. */
export const changeTag = (point) => tag(...(CHANGES[point.verdict] ?? [point.verdict, "info"]));

/** How far from what was expected, in words. */
export const changeText = (point) => {
  if (point.expected === null) return `Tests before it: ${point.compared_with}; 4 are needed to tell a change.`;
  const lies = `${level(point.expected)} was expected, ${number(point.expected_low)} to ${number(point.expected_high)} without a change`;
  const ratio = point.ratio === null ? "" : `; this is ${number(point.ratio)} times that`;
  return `Of ${point.compared_with} tests before it: ${lies}${ratio}.`;
};

/** The tests of a series as a chart: what was found, what those before it led to expect, and a baseline if there is one. */
export const historyChart = (points, baseline) => {
  const column = (of) => points.map((point) => of(point) ?? null);
  const valid = (of) => column((point) => (point.valid ? of(point) : null));
  const lines = [
    line(
      "capacity",
      valid((point) => point.level),
      0,
      { shape: 0 },
    ),
    line(
      "expected, by those before",
      column((point) => point.expected),
      4,
      { dashed: true, low: column((point) => point.expected_low), high: column((point) => point.expected_high) },
    ),
  ];
  // Beneath the others, which it would hide where they are level with it.
  if (baseline !== null)
    lines.unshift(
      line(
        `baseline ${baseline.name}: ${level(baseline.level)}`,
        points.map(() => baseline.level),
        2,
      ),
    );
  return chart({
    id: "capacity-history",
    title: "Capacity",
    unit: variable(points[0].variable),
    kind: "date",
    x: points.map((point) => new Date(point.at).getTime() / 1000),
    x_label: "date",
    lines: lines.filter((each) => each.values.some((value) => value !== null)),
    marks: points
      .filter((point) => COUNTED.has(point.verdict))
      .map((point) => ({
        x: new Date(point.at).getTime() / 1000,
        text: CHANGES[point.verdict][0],
        bad: point.verdict !== "improvement",
        tone: point.verdict === "improvement" ? 2 : null,
      })),
    height: 320,
  });
};
