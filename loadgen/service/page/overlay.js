// The charts of several results laid over one another.

import { title } from "/page/words.js";

/** Those charts that all have, each with the first line of each. */
export const overlaid = (runs, views) => {
  const [first, ...others] = views.map((view) => view?.parts[0]?.charts ?? []);
  return first
    .filter((chart) => others.every((charts) => charts.some((each) => each.id === chart.id && each.kind === chart.kind)))
    .filter((chart) => chart.kind !== "bars" && chart.kind !== "scatter")
    .map((chart) => merged([chart, ...others.map((charts) => charts.find((each) => each.id === chart.id))], runs));
};

const merged = (charts, runs) => {
  const [model] = charts;
  const x = [...new Set(charts.flatMap((chart) => chart.x))].sort((one, other) => one - other);
  const lines = charts.map((chart, place) => {
    const [line] = chart.lines;
    const at = new Map(chart.x.map((value, index) => [value, line.values[index]]));
    return {
      ...line,
      label: title(runs[place]),
      values: x.map((value) => at.get(value) ?? null),
      tone: place % 8,
      shape: place % 8,
      dashed: false,
      low: null,
      high: null,
    };
  });
  // Ladders and instants of different runs do not fall together: their lines are joined over the gaps.
  const kind = model.kind === "level" || model.kind === "time" ? "plain" : model.kind;
  return { ...model, title: `${model.title}: ${model.lines[0].label}`, kind, x, lines, marks: [], band: null, top: null, height: 260 };
};
