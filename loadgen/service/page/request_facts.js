// What the fields of a request need to know: kinds, options with their help, servers, baselines.

import { get } from "/page/api.js";

/** What each kind of a run is. */
export const KINDS = {
  run: "one load, measured once",
  sweep: "a ladder of loads, one after the other",
  capacity: "the highest load that meets objectives",
  experiment: "arms against a baseline, such as speculative decoding",
};

export const BY_URL = "";
export const LOADS = [
  ["concurrency", "requests in flight"],
  ["request_rate", "requests a second"],
];
export const COMMON = [
  ["input_tokens", "Input tokens"],
  ["output_tokens", "Output tokens"],
];
export const SHOWN = {
  run: [["num_requests", "Requests"], ["duration", "Duration"], ...COMMON, ["slo", "Objectives (SLO)"]],
  sweep: [["num_requests", "Requests a level"], ["duration", "Duration of a level"], ...COMMON, ["slo", "Objectives (SLO)"]],
  capacity: [["start", "First level"], ["max", "Highest level"], ["slo_attainment", "Share that must meet them"], ...COMMON],
  experiment: [],
};
export const EXPERIMENT = `name: does it pay
workload:
  synthetic: {input_tokens: 128, output_tokens: 64}
  ignore_eos: true
load:
  concurrency: [1, 8, 32]
level:
  num_requests: 100
arms:
  baseline: {url: "http://127.0.0.1:8000"}
  eagle3: {url: "http://127.0.0.1:8001"}
baseline: baseline
repeats: 2
`;

/** Fetches what the fields need to know. */
export const known = async (signal) => {
  const [targets, baselines, ...schemas] = await Promise.all([
    get("/v1/targets", signal),
    get("/v1/baselines", signal),
    ...Object.keys(KINDS).map((kind) => get(`/v1/options/${kind}`, signal)),
  ]);
  const options = Object.fromEntries(schemas.map((each) => [each.kind, each.json_schema]));
  return { targets, baselines: baselines.items, options };
};
