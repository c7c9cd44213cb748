// The fields of a request for a run, which the form of a schedule has, too.

import { details, el, fill } from "/page/elements.js";
import { BY_URL, COMMON, EXPERIMENT, KINDS, LOADS, SHOWN } from "/page/request_facts.js";
import { asWritten, minutes, parsed, put } from "/page/request_text.js";
import { dump } from "/page/vendor/js-yaml.mjs";

const asText = (value) => (Array.isArray(value) ? value.join(",") : String(value ?? ""));

export class RequestFields {
  /** Adds the fields to a form. `at` is the pointer of the request within the body; `given` a request to begin with. */
  constructor(form, facts, given = {}, { at = "" } = {}) {
    Object.assign(this, { form, facts, at, given, options: { ...(given.options ?? {}) } });
    this.kind = given.kind ?? "run";
    this.choice = el(
      "fieldset",
      { class: "kinds" },
      el("legend", {}, "What to do"),
      Object.entries(KINDS).map((kind) => this.radio(...kind)),
    );
    this.place = el("div", { class: "fields" });
    this.load = el("div", { class: "fields" });
    this.more = el("div", { class: "fields" });
    this.box = details("All other options, baseline and limits", this.more);
    form.body.append(this.choice, this.place, this.load, this.box);
    this.drawTarget();
    this.draw();
  }

  radio(kind, words) {
    const changed = () => {
      this.keep();
      this.kind = kind;
      this.draw();
    };
    const input = el("input", { type: "radio", name: "kind", value: kind, checked: kind === this.kind, change: changed });
    return el("label", {}, input, el("span", {}, el("b", {}, kind), ` ${words}`));
  }

  drawTarget() {
    const { form, facts, given, place } = this;
    const named = facts.targets.items.map(({ name, url }) => [name, `${name} (${url})`]);
    const shown = () => {
      const byUrl = form.value("profile") === BY_URL;
      form.fields.get("url").node.hidden = !byUrl;
    };
    form.add(
      "profile",
      {
        label: "Server",
        type: "select",
        options: [[BY_URL, "by its URL"], ...named],
        value: given.target?.profile ?? BY_URL,
        changed: shown,
        pointer: `${this.at}/target/profile`,
      },
      place,
    );
    form.add(
      "url",
      {
        label: "URL",
        type: "url",
        value: given.target?.profile ? "" : (given.target?.url ?? ""),
        help: `Its base, with or without /v1. Hosts that are allowed: ${facts.targets.allowed_hosts.join(", ")}.`,
        attributes: { placeholder: "http://127.0.0.1:8000", inputmode: "url" },
        pointer: [`${this.at}/target/url`, `${this.at}/target`],
      },
      place,
    );
    shown();
  }

  /** What the command line says of an option; nothing where that is no more than the label of its field. */
  help(name, label = null) {
    const words = this.facts.options[this.kind].properties?.[name]?.description ?? "";
    return words === `${label}.` ? "" : words;
  }

  addOption(name, label, into, more = {}) {
    const unset = this.facts.options[this.kind].properties?.[name]?.default;
    const placeholder = unset === null || unset === undefined ? null : asText(unset);
    this.form.add(
      `option:${name}`,
      {
        label,
        help: this.help(name, label),
        value: asText(this.options[name]),
        attributes: { placeholder },
        pointer: `${this.at}/options/${name}`,
        ...more,
      },
      into,
    );
  }

  /** Draws the fields of the kind that is chosen now. */
  draw() {
    for (const name of [...this.form.fields.keys()].filter((each) => /^option:|^(all|baseline|limit|by|level)$/.test(each)))
      this.form.drop(name);
    fill(this.load);
    fill(this.more);
    const experiment = this.kind === "experiment";
    this.place.hidden = experiment;
    if (this.kind === "capacity")
      this.addOption("slo", "Objectives (SLO)", this.load, { required: "objectives are what a capacity is searched for" });
    if (!experiment) this.drawLoad();
    for (const [name, label] of SHOWN[this.kind]) this.addOption(name, label, this.load, { optional: true, size: "small" });
    this.drawMore(experiment);
  }

  drawLoad() {
    const { form, options } = this;
    if (this.kind === "capacity") {
      this.addOption("variable", "What is raised", this.load, {
        type: "select",
        options: [
          ["concurrency", LOADS[0][1]],
          ["request-rate", LOADS[1][1]],
        ],
        value: options.variable ?? "concurrency",
        size: "small",
      });
      return;
    }
    const many = this.kind === "sweep";
    const by = options.request_rate === undefined ? "concurrency" : "request_rate";
    const explain = () =>
      fill(document.getElementById(level.control.getAttribute("aria-describedby").split(" ")[0]), this.help(form.value("by")));
    form.add("by", { label: "Load", type: "select", options: LOADS, value: by, changed: () => explain(), size: "small" }, this.load);
    const level = form.add(
      "level",
      {
        label: many ? "Levels" : "How many",
        help: this.help(by),
        value: asText(options[by]),
        attributes: { placeholder: many ? "1,2,4,8,16" : "1" },
        pointer: [`${this.at}/options/concurrency`, `${this.at}/options/request_rate`],
        required: many ? "a ladder needs its levels" : null,
        size: "small",
      },
      this.load,
    );
  }

  drawMore(experiment) {
    const { form, given, facts, kind } = this;
    const rest = this.rest();
    const yaml = Object.keys(rest).length > 0 ? dump(rest) : experiment ? EXPERIMENT : "";
    const names = Object.keys(facts.options[kind].properties ?? {}).sort();
    form.add(
      "all",
      {
        label: experiment ? "The experiment, as YAML or JSON" : "Other options, as YAML or JSON",
        type: "textarea",
        value: yaml,
        help: experiment
          ? "What a file of loadgen experiment run holds, with the servers of its arms by URL."
          : `A line an option, such as "ignore_eos: true". There are: ${names.join(", ")}.`,
        attributes: { rows: experiment ? 18 : 5, class: "code" },
        pointer: `${this.at}/options`,
      },
      experiment ? this.load : this.more,
    );
    const fitting = facts.baselines.filter((each) => each.kind === kind);
    if (fitting.length > 0) {
      const options = [["", "none"], ...fitting.map(({ id, name }) => [id, name])];
      form.add(
        "baseline",
        {
          label: "Baseline",
          type: "select",
          options,
          value: given.baseline_id ?? "",
          help: "What the result is held against, with the gates of that baseline.",
          pointer: `${this.at}/baseline_id`,
        },
        this.more,
      );
    }
    form.add(
      "limit",
      {
        label: "Time limit, minutes",
        value: given.time_limit_s ? String(given.time_limit_s / 60) : "",
        help: "The run is stopped in order after it.",
        pointer: `${this.at}/time_limit_s`,
        size: "small",
        optional: true,
      },
      this.more,
    );
    if (!experiment && yaml) this.box.open = true;
  }

  /** The options that have no field of their own. */
  rest() {
    const fields = [
      ...SHOWN[this.kind].map(([name]) => name),
      ...(this.kind === "experiment" ? [] : ["concurrency", "request_rate", "variable", "slo"]),
    ];
    return Object.fromEntries(Object.entries(this.options).filter(([name]) => !fields.includes(name)));
  }

  /** Takes over what is written, so that another kind can begin with it. */
  keep() {
    try {
      const { options } = this.read();
      const same = Object.fromEntries(
        COMMON.concat([["slo"]]).flatMap(([name]) => (options[name] === undefined ? [] : [[name, options[name]]])),
      );
      this.options = same;
    } catch {
      this.options = {};
    }
  }

  /** The request as the API takes it. Throws FieldErrors. */
  read() {
    const { form, kind } = this;
    const options = parsed(form.value("all"), `${this.at}/options`);
    for (const [name, field] of form.fields) {
      if (!name.startsWith("option:") || !field.value) continue;
      put(options, name.slice("option:".length), asWritten(field.value), `${this.at}/options`);
    }
    if (form.value("level")) put(options, form.value("by"), asWritten(form.value("level")), `${this.at}/options`);
    const request = { kind, options };
    if (kind !== "experiment")
      request.target = form.value("profile") === BY_URL ? { url: form.value("url") } : { profile: form.value("profile") };
    if (form.value("baseline")) request.baseline_id = form.value("baseline");
    if (form.value("limit")) request.time_limit_s = minutes(form.value("limit"), `${this.at}/time_limit_s`);
    return request;
  }
}
