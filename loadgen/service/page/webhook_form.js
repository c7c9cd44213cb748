// What can be said of a webhook when it is made and later: where it goes and what it is told of.

const KINDS = [
  ["run.completed", "a run completed"],
  ["run.failed", "a run failed"],
  ["run.cancelled", "a run was cancelled"],
  ["run.interrupted", "a run was interrupted"],
  ["capacity.regression", "a capacity is lower than before"],
  ["capacity.improvement", "a capacity is higher than before"],
  ["schedule.missed", "a schedule was missed"],
  ["schedule.busy", "a schedule was skipped: its server was in use"],
  ["schedule.refused", "a schedule was refused"],
];

/** Adds the fields `url` and `kinds`, as they are in `given`. */
export const addReceiver = (form, given = {}) => {
  form.add("url", {
    label: "URL",
    type: "url",
    value: given.url ?? "",
    pointer: "/url",
    required: "a webhook needs a URL",
    help: "Its host has to be one of those that --webhook-host lists.",
    attributes: { placeholder: "https://hooks.example.org/loadgen", inputmode: "url" },
  });
  form.add("kinds", {
    label: "Is told when",
    type: "choices",
    options: KINDS,
    value: given.kinds ?? [],
    pointer: "/kinds",
    required: "a webhook has to be told of something",
  });
};
