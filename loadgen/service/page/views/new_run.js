// Asking for a run.

import { get, onceKey, post } from "/page/api.js";
import { button, el, fill, heading, speak } from "/page/elements.js";
import { Form } from "/page/form.js";
import { KINDS, known } from "/page/request_facts.js";
import { RequestFields } from "/page/request_form.js";
import { go } from "/page/router.js";

/** The request that a run was made of. */
const requestOf = (run) => ({
  kind: run.kind,
  target: run.target.profile ? { profile: run.target.profile } : run.target,
  options: run.options,
  baseline_id: run.baseline_id,
  time_limit_s: run.time_limit_s,
});

const parsedLabels = (text) =>
  Object.fromEntries(
    text
      .split(",")
      .map((pair) => pair.trim())
      .filter(Boolean)
      .map((pair) => [pair.split("=")[0].trim(), pair.slice(pair.indexOf("=") + 1).trim()]),
  );

export const show = async ({ main, query, signal, titled }) => {
  const [facts, from] = await Promise.all([
    known(signal),
    query.has("from") ? get(`/v1/runs/${encodeURIComponent(query.get("from"))}`, signal) : null,
  ]);
  const given = from === null ? { kind: query.get("kind") in KINDS ? query.get("kind") : "run" } : requestOf(from);
  const keys = new Map();
  const body = () => {
    const request = fields.read();
    if (form.value("name")) request.name = form.value("name");
    if (form.value("labels")) request.labels = parsedLabels(form.value("labels"));
    return request;
  };
  const start = async () => {
    const asked = body();
    const text = JSON.stringify(asked);
    if (!keys.has(text)) keys.set(text, onceKey());
    const run = await post("/v1/runs", asked, { "Idempotency-Key": keys.get(text) });
    await go(`/runs/${run.id}`);
  };
  const check = () =>
    form.attempt(async () => {
      await post("/v1/runs/check", body());
      speak("Nothing is wrong with it.");
      checked.textContent = "Nothing is wrong with it";
      setTimeout(() => (checked.textContent = "Check only"), 2500);
    });
  const checked = button("Check only", check);
  const form = new Form({ label: "Start", submit: start, otherwise: "all", extra: [checked] });
  const fields = new RequestFields(form, facts, given);
  const naming = el("div", { class: "fields" });
  fields.box.before(naming);
  form.add("name", { label: "Name", value: from?.name ?? "", optional: true, pointer: "/name", size: "small" }, naming);
  form.add(
    "labels",
    {
      label: "Labels",
      value: Object.entries(from?.labels ?? {})
        .map((pair) => pair.join("="))
        .join(", "),
      help: "As team=search, gpu=h100.",
      optional: true,
      pointer: "/labels",
      size: "small",
    },
    naming,
  );
  fill(main, heading(titled("New run")), form.node);
};
