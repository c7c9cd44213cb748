// What a result came to: the verdict in words, what was found, tables and charts, as the service has them of the report.

import { charts, values } from "/page/charts.js";
import { details, el, facts, foreign, section, table, tag } from "/page/elements.js";

const doubt = ({ severity, advice, seen }) =>
  el(
    "li",
    {},
    el("span", {}, tag(severity, severity)),
    el(
      "div",
      {},
      seen.map(([where, evidence]) => el("p", {}, where && `At ${where}: `, foreign(evidence))),
      advice && el("p", { class: "advice" }, foreign(advice)),
    ),
  );

/** The headline, the answer, the doubts. */
export const verdict = (part, label = "Verdict") =>
  el(
    "section",
    { class: `verdict ${part.headline.kind}`, "aria-label": label },
    el("p", { class: "headline" }, part.headline.words),
    part.answer && el("p", { class: "answer" }, el("b", {}, "So run"), ", ", foreign(part.answer), "."),
    part.doubts.length > 0 && el("ul", { class: "findings" }, part.doubts.map(doubt)),
  );

/** A table of text: a title that begins with `<` heads words. */
export const textTable = (told, label) => {
  const columns = told.titles.map((title) => ({ title: title.replace(/^</, ""), text: title.startsWith("<"), label }));
  const about = Object.entries(told.about);
  return [
    told.caption && el("p", { class: "caption" }, foreign(told.caption)),
    about.length > 0 &&
      el(
        "dl",
        { class: "told" },
        about.map(([title, words]) => [el("dt", {}, title), el("dd", {}, words)]),
      ),
    table(
      told.caption || label,
      columns,
      told.rows.map((cells, place) => ({ cells: cells.map(foreign), marked: told.marked.includes(place) })),
    ),
  ];
};

/** The charts of a part: a first one that is higher than the others has a row to itself. */
const drawn = (found, signal) => {
  const alone = found.length > 1 && found[0].height > found[1].height ? 1 : 0;
  const rows = [found.slice(0, alone), found.slice(alone)].filter((row) => row.length > 0);
  return rows.map((row, place) => charts(row, signal, alone === 1 && place === 0 ? "stack" : "pair").node);
};

/** One part of a result under its verdict. */
export const rest = (part, signal) => {
  const [first, ...further] = part.tables;
  return [
    part.said.length > 0 &&
      section(
        "In words",
        part.said.map(([name, words]) => el("p", {}, name && [el("b", {}, foreign(name)), " "], foreign(words))),
      ),
    part.facts.length > 0 && section("Found", facts(part.facts.map(([name, value]) => [name, foreign(value)]))),
    part.charts.length > 0 && section("Charts", drawn(part.charts, signal), values(part.charts)),
    first && section(first[0], textTable(first[1], first[0])),
    further.length > 0 &&
      details(
        "Why: more tables",
        further.map(([title, each]) => [el("h3", {}, title), textTable(each, title)]),
      ),
    part.remarks.length > 0 &&
      section(
        "Stands on",
        el(
          "ul",
          { class: "remarks" },
          part.remarks.map((remark) => el("li", {}, foreign(remark))),
        ),
      ),
  ];
};
