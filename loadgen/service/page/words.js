// What the service's words mean, for people.

import { el, foreign, link, tag } from "/page/elements.js";
import { counted, DASH, level, milliseconds, number } from "/page/format.js";
import { session } from "/page/session.js";

export const STATES = ["queued", "starting", "running", "finishing", "completed", "failed", "cancelled", "interrupted"];
export const ACTIVE = ["queued", "starting", "running", "finishing"];

const TONES = { failed: "invalid", interrupted: "warning", running: "busy", starting: "busy", finishing: "busy", completed: "done" };
const REASONS = {
  asked: "Somebody asked for its end. What was measured until then is kept.",
  time_limit: "It reached its time limit and was stopped in order. What was measured until then is kept.",
  shutdown: "The service was shut down while it was at work. What was measured until then is kept.",
  service_lost: "The service went away while it was at work. What was measured until then is kept.",
  child_lost: "The process that measured went away without saying why. Its log may tell.",
  configuration: "Something in the request is wrong, which was found when it began.",
  target: "The server could not be reached, or nothing completed.",
  storage: "Its files could not be written or read. What could be written until then is kept.",
  internal: "A fault of Loadgen. Its log tells more.",
};
const VARIABLES = { concurrency: "concurrency", request_rate_rps: "requests/s", "request-rate": "requests/s" };

export const isActive = (run) => ACTIVE.includes(run.state);
export const isAtWork = (run) => isActive(run) && run.state !== "queued";

/** The state as a small word; of a result that is not to be believed or not good enough, that too. */
export const stateTags = (run) => [
  tag(run.state, TONES[run.state] ?? "info"),
  run.valid === false && [" ", tag("invalid", "invalid")],
  run.gate_failed === true && [" ", tag("gate failed", "invalid")],
];

/** Why a run did not complete. */
export const reason = (run) => REASONS[run.reason] ?? null;

/** What people call a run. */
export const title = (run) => (run.name === null ? run.id : run.name);

/** Who asked for something: a key, by its name where it is the reader's own. */
export const asker = (id) => {
  if (id === "open") return "this machine";
  const mine = session();
  return ["key ", foreign(mine?.id === id ? mine.name : id)];
};

export const runLink = (run) => link(`/runs/${run.id}`, foreign(title(run)));

export const variable = (name) => VARIABLES[name] ?? name;

/** The server that a run is for. */
export const target = (run) =>
  run.target.profile
    ? el("span", {}, foreign(run.target.profile), " ", el("span", { class: "per" }, foreign(run.target.url)))
    : run.target.url
      ? foreign(run.target.url)
      : DASH;

const ofRun = (result) =>
  result.output_tokens_per_s === null
    ? DASH
    : `${number(result.output_tokens_per_s)} tokens/s, TTFT ${milliseconds(result.ttft_s?.p50)} ms`;
const ofSweep = (result) => `${counted(result.levels.length, "level")}${result.knee ? `, knee at ${level(result.knee.level)}` : ""}`;
const ofSearch = (result) => (result.level === null ? "none found" : `${variable(result.variable)} ${level(result.level)}`);
const ofExperiment = (result) => {
  const arms = (result.ladders ?? []).flatMap((ladder) => ladder.arms.filter((arm) => arm.compared && arm.levels.length > 0));
  const words = (arm, { speedup, level: at }) => `${arm.label} ${speedup.toFixed(2)}× at ${level(at)}`;
  return arms.length === 0 ? DASH : arms.map((arm) => words(arm, arm.levels[0])).join(", ");
};
const RESULTS = { run: ofRun, sweep: ofSweep, capacity: ofSearch, experiment: ofExperiment };

/** The result of a run in one line. */
export const result = (run) => {
  if (run.result === null || (run.kind === "sweep" && !run.result.levels)) return DASH;
  return RESULTS[run.kind](run.result);
};
