// A form whose fields have a label, help and their own errors; what the API finds wrong goes to the field it means.

import { Choices } from "/page/choices.js";
import { el, fill, link } from "/page/elements.js";
import { signInAddress } from "/page/router.js";

let count = 0;

const control = (id, described, { type = "text", options = [], value = "", attributes = {} }) => {
  const common = { id, name: id, "aria-describedby": described, ...attributes };
  if (type === "select") {
    const shown = options.map(([key, label]) => el("option", { value: key, selected: key === value }, label));
    return el("select", common, shown);
  }
  if (type === "textarea") return el("textarea", { rows: 6, spellcheck: "false", ...common }, value);
  return el("input", { type, value, ...common });
};

class Field {
  constructor(id, name, given) {
    Object.assign(this, { name, label: given.label, pointers: [given.pointer ?? []].flat(), required: given.required ?? null });
    this.control = control(id, `${id}-help ${id}-error`, given);
    this.error = el("p", { class: "error", id: `${id}-error` });
    const help = el("p", { class: "help", id: `${id}-help` }, given.help ?? "");
    const label = el("label", { for: id }, given.label, given.optional === true && el("span", { class: "per" }, " optional"));
    this.node = el("div", { class: `field ${given.size ?? ""}` }, label, this.control, help, this.error);
    if (given.changed) this.control.addEventListener(given.type === "select" ? "change" : "input", () => given.changed(this.value));
  }

  get value() {
    return this.control.value.trim();
  }

  fail(text) {
    fill(this.error, text);
    if (text) this.control.setAttribute("aria-invalid", "true");
    else this.control.removeAttribute("aria-invalid");
  }
}

/** What is wrong with fields, found before anything is sent: {pointer, detail}. */
export class FieldErrors extends Error {
  constructor(errors) {
    super("Some fields are not right");
    Object.assign(this, { errors, detail: this.message });
  }
}

export class Form {
  /** `label` is on the button; `submit` does it, and what it throws is shown. `otherwise` gets errors of no field. */
  constructor({ label, submit, otherwise = null, extra = [] }) {
    Object.assign(this, { fields: new Map(), submit, otherwise });
    this.summary = el("div", { class: "verdict invalid", role: "alert", tabindex: "-1", hidden: true });
    this.body = el("div", { class: "fields" });
    this.go = el("button", { class: "act first" }, label);
    this.node = el(
      "form",
      { novalidate: true, submit: (event) => this.send(event) },
      this.summary,
      this.body,
      el("div", { class: "actions" }, this.go, extra),
    );
  }

  /** A field, shown at the end or within another element. */
  add(name, given, into = this.body) {
    const id = `field-${(count += 1)}-${name}`;
    const field = given.type === "choices" ? new Choices(id, name, given) : new Field(id, name, given);
    this.fields.set(name, field);
    into.append(field.node);
    return field;
  }

  /** Takes a field away. */
  drop(name) {
    this.fields.get(name)?.node.remove();
    this.fields.delete(name);
  }

  value(name) {
    return this.fields.get(name)?.value ?? "";
  }

  set(name, value) {
    const field = this.fields.get(name);
    if (field) field.control.value = value;
  }

  focus(name) {
    this.fields.get(name).control.focus();
  }

  async send(event) {
    event.preventDefault();
    if (this.busy) return;
    await this.attempt(this.submit);
  }

  /** Does something with the form, one at a time, and shows what goes wrong. */
  async attempt(act) {
    this.clear();
    this.busy = true;
    this.go.setAttribute("aria-disabled", "true");
    try {
      this.check();
      await act();
    } catch (fault) {
      if (fault.detail === undefined) throw fault;
      this.show(fault);
    } finally {
      this.busy = false;
      this.go.removeAttribute("aria-disabled");
    }
  }

  check() {
    const lacking = [...this.fields.values()].filter((field) => field.required && field.value.length === 0);
    if (lacking.length > 0) throw new FieldErrors(lacking.map((field) => ({ pointer: field.pointers[0], detail: field.required })));
  }

  clear() {
    this.summary.hidden = true;
    for (const field of this.fields.values()) field.fail("");
  }

  /** The field that a pointer means: the one of the longest pointer before it. */
  meant(pointer) {
    const leading = (field) =>
      Math.max(-1, ...field.pointers.filter((each) => pointer === each || pointer.startsWith(`${each}/`)).map((each) => each.length));
    const best = [...this.fields.values()].sort((one, other) => leading(other) - leading(one))[0];
    if (best && leading(best) >= 0) return best;
    return this.fields.get(this.otherwise) ?? null;
  }

  show(fault) {
    const byField = new Map();
    const items = [];
    for (const { pointer, detail } of fault.errors ?? []) {
      const field = this.meant(pointer);
      const rest =
        field && field.pointers.includes(pointer) ? "" : `${pointer.replace(/^\/(request\/)?(options\/)?/, "").replaceAll("/", ".")}: `;
      const text = `${rest}${detail}`;
      if (field === null) {
        items.push(el("li", {}, text));
        continue;
      }
      byField.set(field, [...(byField.get(field) ?? []), text]);
      const jump = (event) => {
        event.preventDefault();
        field.control.focus();
      };
      items.push(el("li", {}, el("a", { href: `#${field.control.id}`, click: jump }, field.label), `: ${text}`));
    }
    for (const [field, texts] of byField) field.fail(texts.join("; "));
    const over = fault.status === 401 && location.pathname !== "/sign-in";
    fill(
      this.summary,
      el("p", { class: "headline" }, over ? "The session is over" : fault.detail),
      over &&
        el(
          "p",
          { class: "answer" },
          link(signInAddress(), "Sign in again"),
          "; what is written here is lost with that, so copy it before.",
        ),
      items.length > 0 && el("ul", {}, items),
    );
    this.summary.hidden = false;
    const [only] = byField.keys();
    if (byField.size === 1 && items.length === 1) only.control.focus();
    else this.summary.focus();
  }
}
