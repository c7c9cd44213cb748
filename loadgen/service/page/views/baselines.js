// Baselines: what runs are held against.

import { get, post, remove } from "/page/api.js";
import { button, confirm, el, empty, fill, foreign, heading, link, section, table } from "/page/elements.js";
import { DASH, time } from "/page/format.js";
import { Form } from "/page/form.js";
import { show as showAgain, go } from "/page/router.js";
import { may } from "/page/session.js";
import { result, title } from "/page/words.js";

const COLUMNS = [
  { title: "Baseline", text: true },
  { title: "Kind", text: true },
  { title: "Run", text: true },
  { title: "Gates", text: true },
  { title: "Made" },
];

const row = (baseline) => {
  const removed = async () => {
    if (
      !(await confirm(
        `Remove the baseline ${baseline.name}?`,
        "The run stays. Schedules that are held against it cannot run any more.",
        "Remove the baseline",
      ))
    )
      return;
    await remove(`/v1/baselines/${baseline.id}`);
    await showAgain();
  };
  return [
    foreign(baseline.name),
    baseline.kind,
    link(`/runs/${baseline.run_id}`, baseline.run_id),
    baseline.gates.length === 0 ? DASH : baseline.gates.map((gate, place) => [place > 0 && el("br"), el("code", {}, gate)]),
    time(baseline.created_at),
    ...(may("run") ? [button("Remove", removed, { "aria-label": `Remove the baseline ${baseline.name}` })] : []),
  ];
};

const makeForm = (runs, chosen) => {
  const form = new Form({
    label: "Make the baseline",
    submit: async () => {
      const gates = form
        .value("gates")
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean);
      await post("/v1/baselines", { name: form.value("name"), run_id: form.value("run"), gates });
      await go("/baselines");
    },
  });
  const options = runs.map((run) => [run.id, `${title(run)}: ${run.kind}, ${result(run)}`]);
  form.add("run", {
    label: "Run",
    type: "select",
    options,
    value: chosen,
    pointer: "/run_id",
    help: "Completed, valid, and with its files.",
  });
  form.add("name", { label: "Name", pointer: "/name", required: "a baseline needs a name", size: "small" });
  form.add("gates", {
    label: "Gates",
    type: "textarea",
    attributes: { rows: 3, class: "code" },
    pointer: "/gates",
    optional: true,
    help: "One a line: what fails a run that is held against it, such as tpot_s.p99 > 1.05x. A capacity needs none: it fails when it is for certain lower.",
  });
  return form.node;
};

export const show = async ({ main, query, signal, titled }) => {
  const [{ items }, { items: runs }] = await Promise.all([get("/v1/baselines", signal), get("/v1/runs?state=completed&limit=100", signal)]);
  const fitting = runs.filter((run) => run.valid && !run.files_removed && run.kind !== "experiment");
  const columns = may("run") ? [...COLUMNS, { label: "Actions" }] : COLUMNS;
  fill(
    main,
    heading(titled("Baselines")),
    el("p", { class: "subtitle" }, "A run, sweep or capacity that later ones are held against, with the gates that fail them."),
    items.length > 0 ? table("Baselines", columns, items.map(row)) : empty("There is no baseline yet."),
    may("run") &&
      section(
        "New baseline",
        fitting.length > 0
          ? makeForm(fitting, query.get("run") ?? fitting[0].id)
          : empty("It is made of a run that is completed and valid.", link("/runs/new", "Start one")),
      ),
  );
};
