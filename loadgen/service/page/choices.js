// Several of a list, as check boxes under one legend: a field of a form.

import { el, fill } from "/page/elements.js";

export class Choices {
  /** `options` are pairs of a value and its words; the value of the field is a list, `value` what it is at first. */
  constructor(id, name, { label, options, pointer, required = null, value: chosen = [] }) {
    Object.assign(this, { name, label, pointers: [pointer].flat(), required });
    this.boxes = options.map(([value]) => el("input", { type: "checkbox", name, value, checked: chosen.includes(value) }));
    [this.control] = this.boxes;
    this.control.id = id;
    this.error = el("p", { class: "error", id: `${id}-error` });
    this.node = el(
      "fieldset",
      { class: "field choices", "aria-describedby": `${id}-error` },
      el("legend", {}, label),
      el(
        "div",
        { class: "boxes" },
        options.map(([, words], place) => el("label", {}, this.boxes[place], el("span", {}, words))),
      ),
      this.error,
    );
  }

  get value() {
    return this.boxes.filter((box) => box.checked).map((box) => box.value);
  }

  fail(text) {
    fill(this.error, text);
    if (text) this.control.setAttribute("aria-invalid", "true");
    else this.control.removeAttribute("aria-invalid");
  }
}
