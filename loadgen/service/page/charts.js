// Charts as reports have them, by the reports' own code: columns of numbers become a figure with a legend.

import { el, fill, speak } from "/page/elements.js";

const figure = (chart) => {
  const lines = chart.lines.map((line) => line.label).join(", ");
  const spoken = `Chart: ${chart.title} in ${chart.unit}, ${lines}, by ${chart.x_label}. Arrow keys read it point by point.`;
  return el(
    "figure",
    {},
    el(
      "figcaption",
      {},
      el("h3", {}, chart.title),
      el("span", { class: "per" }, chart.unit),
      chart.choose_scale && el("button", { type: "button", class: "scale", hidden: true }),
      el("button", { type: "button", class: "save", hidden: true }, "save as PNG", el("span", { class: "unseen" }, `: ${chart.title}`)),
      el("ul", { class: "legend" }),
      el("span", { class: "per at" }),
    ),
    el("div", { class: "plot", role: "img", tabindex: "0", "aria-label": spoken }),
  );
};

/** Charts in a layout, `pair` or `stack`; they are drawn once they are in the document. `signal` ends them. */
export const charts = (found, signal, layout = "pair") => {
  const figures = found.map(figure);
  const drawn = el("div", { class: `plots ${layout}` }, figures);
  const mounted = [];
  const draw = () => found.forEach((chart, place) => mounted.push(loadgenCharts.mount(chart, figures[place], speak)));
  const fit = new ResizeObserver(() => {
    if (mounted.length === 0) draw();
    else mounted.forEach((one) => one.fit());
  });
  fit.observe(drawn);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => mounted.forEach((one) => one.redraw());
  scheme.addEventListener("change", repaint);
  signal.addEventListener("abort", () => {
    fit.disconnect();
    scheme.removeEventListener("change", repaint);
    mounted.forEach((one) => one.destroy());
  });
  return { node: drawn, update: (charts) => mounted.forEach((one, place) => one.update(charts[place])) };
};

/** The same values as a table, made when it is opened. */
export const values = (found) => {
  const box = el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Values of the charts" });
  const made = (event) =>
    event.target.open &&
    fill(
      box,
      found.map((chart) => [el("h3", {}, chart.title), loadgenCharts.table([chart])]),
    );
  return el("details", { toggle: made }, el("summary", {}, "The values as tables"), box);
};

/** A chart of lines: what is not said is as a level chart has it. */
export const chart = (given) => ({
  kind: "level",
  log_x: false,
  log_y: false,
  choose_scale: false,
  band: null,
  marks: [],
  height: 220,
  top: null,
  ...given,
});

/** A line of it. */
export const line = (label, values, tone, more = {}) => ({
  label,
  values,
  tone,
  dashed: false,
  shape: null,
  low: null,
  high: null,
  ...more,
});
