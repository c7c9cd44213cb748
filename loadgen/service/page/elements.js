// Elements by name. Whatever comes from outside is given as a string, and a string only ever becomes text.

/** An element. Attributes that are null or false are left out, true is an empty one, functions listen. */
export const el = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...present(children));
  return made;
};

const present = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

/** Replaces what an element holds. */
export const fill = (element, ...children) => element.replaceChildren(...present(children));

// A direction that a text begins and does not end would go on behind it: its marks are shown as what they are, no letters.
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text from outside within a line of ours: its direction stays its own. */
export const foreign = (text) => el("bdi", {}, String(text).replace(DIRECTIONS, "\ufffd"));

/** A link to another place of the page. */
export const link = (href, ...children) => el("a", { href }, ...children);

/** A button that does something here. */
export const button = (label, act, attributes = {}) => el("button", { type: "button", class: "act", click: act, ...attributes }, label);

/** A small word in a frame. */
export const tag = (word, kind = "info") => el("span", { class: `tag ${kind}` }, word);

/** Says something to a screen reader. */
export const speak = (text) => {
  document.getElementById("spoken").textContent = text;
};

/** The heading of a page, with what can be done there. */
export const heading = (title, { eyebrow = null, beside = null, actions = [] } = {}) =>
  el(
    "div",
    { class: "heading" },
    el("div", {}, eyebrow && el("p", { class: "eyebrow" }, eyebrow), el("h1", { tabindex: "-1" }, title, beside && [" ", beside])),
    actions.length > 0 && el("div", { class: "actions" }, actions),
  );

/** A section under a heading of its own. */
export const section = (title, ...children) => el("section", {}, el("h2", {}, title), ...children);

/** Facts in two columns; those without a value are left out. */
export const facts = (rows) =>
  el(
    "dl",
    { class: "facts" },
    rows.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
  );

/**
 * A table that scrolls by itself. Columns are {title, text, label}: `text` holds words, `label` names a column without
 * a title. Rows are lists of cells, or {cells, marked, key}. The cell in column `named` is what a row is called.
 */
export const table = (label, columns, rows, { full = true, named = 0 } = {}) => {
  const classOf = (column) => (column.text ? "text" : null);
  const head = columns.map((column) =>
    column.title
      ? el("th", { scope: "col", class: classOf(column) }, column.title)
      : el("td", {}, el("span", { class: "unseen" }, column.label ?? "")),
  );
  const body = rows.map((row) => {
    const { cells, marked = false, key = null } = Array.isArray(row) ? { cells: row } : row;
    const made = cells.map((cell, place) =>
      place === named ? el("th", { scope: "row", class: "text" }, cell) : el("td", { class: classOf(columns[place]) }, cell),
    );
    return el("tr", { class: marked ? "marked" : null, "data-key": key }, made);
  });
  return el(
    "div",
    { class: "wide", tabindex: "0", role: "region", "aria-label": label },
    el("table", { class: full ? "full" : null }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)),
  );
};

/** While something is fetched. */
export const loading = (what) => el("p", { class: "state loading", role: "status" }, `Loading ${what}…`);

/** Where there is nothing yet, and what could be done about it. */
export const empty = (text, ...actions) => el("div", { class: "state" }, el("p", {}, text), actions.length > 0 && el("p", {}, actions));

/** What went wrong, and a way to try again. */
export const failure = (title, detail, again = null) =>
  el(
    "div",
    { class: "verdict invalid", role: "alert" },
    el("p", { class: "headline" }, title),
    el("p", { class: "answer" }, detail),
    again && el("p", { class: "answer" }, button("Try again", again)),
  );

/** Does something when asked, and says in `place` what the service has against it. */
export const tried = (place, act) => async () => {
  try {
    await act();
  } catch (fault) {
    if (fault.detail === undefined) throw fault;
    const details = new Set([fault.detail, ...fault.errors.map((each) => each.detail)]);
    fill(place, failure("The service does not do that", [...details].join(": ")));
  }
};

/** Text to be looked at when wanted. */
export const details = (title, ...children) => el("details", {}, el("summary", {}, title), ...children);

/** A value as indented JSON. */
export const json = (label, value) => el("pre", { tabindex: "0", "aria-label": label }, JSON.stringify(value, null, 2));

/** Asks before something that cannot be undone. Resolves to whether it shall be done. */
export const confirm = (question, detail, doIt) =>
  new Promise((resolve) => {
    const title = el("h2", { id: "question" }, question);
    const no = el("button", { class: "act", value: "no" }, "Go back");
    const yes = el("button", { class: "act bad", value: "yes" }, doIt);
    const form = el("form", { method: "dialog" }, title, el("p", {}, detail), el("div", { class: "actions" }, no, yes));
    const dialog = el("dialog", { "aria-labelledby": "question" }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
    no.focus();
  });
