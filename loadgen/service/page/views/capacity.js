// Capacity tests over time: one row for each server and set of options.

import { get } from "/page/api.js";
import { el, empty, fill, foreign, heading, link, table } from "/page/elements.js";
import { time } from "/page/format.js";
import { may } from "/page/session.js";
import { capacityText, changeTag, seriesName } from "/page/capacities.js";

const COLUMNS = [
  { title: "Test", text: true },
  { title: "Server", text: true },
  { title: "Objectives", text: true },
  { title: "Latest capacity", text: true },
  { title: "Change", text: true },
  { title: "Tests" },
  { title: "Latest" },
];

const row = (series) => [
  link(`/capacity/${series.series}`, foreign(seriesName(series))),
  foreign(series.target.profile ?? series.target.url ?? ""),
  foreign(series.options.slo ?? ""),
  capacityText(series.latest),
  changeTag(series.latest),
  String(series.tests),
  time(series.latest.at),
];

export const show = async ({ main, signal, titled }) => {
  const { items } = await get("/v1/history/capacity", signal);
  const make = may("run") && el("a", { class: "act first", href: "/schedules/new?kind=capacity" }, "Schedule a capacity test");
  const shown =
    items.length > 0
      ? table("Capacity tests", COLUMNS, items.map(row))
      : empty("No capacity was searched for yet.", may("run") && link("/runs/new?kind=capacity", "Search for one now"));
  fill(
    main,
    heading(titled("Capacity"), { actions: [make].filter(Boolean) }),
    el("p", { class: "subtitle" }, "The highest load that met its objectives, test by test, each held against those before it."),
    shown,
  );
};
