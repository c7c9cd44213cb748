// One run: live while it is at work, then what it came to.

import { get, getIfThere, post } from "/page/api.js";
import { button, confirm, details, el, facts, fill, foreign, heading, json, link, section, speak, tag } from "/page/elements.js";
import { between, span, time } from "/page/format.js";
import { figures, levelTable } from "/page/levels.js";
import { Counts, Log, Progress, follow, liveCharts } from "/page/live.js";
import { show as showAgain } from "/page/router.js";
import { may } from "/page/session.js";
import { rest, verdict } from "/page/view_parts.js";
import { asker, isActive, isAtWork, reason, stateTags, target, title } from "/page/words.js";

const LOOK_AGAIN_MS = 3000;

const stop = async (run) => {
  const words = isAtWork(run) ? "It is stopped in order: what it measured so far is kept." : "It has not begun yet, and will not.";
  if (!(await confirm("Cancel this run?", words, "Cancel the run"))) return;
  await post(`/v1/runs/${run.id}/cancel`).catch((fault) => {
    if (fault.status !== 409) throw fault;
  });
  await showAgain();
};

const actions = (run) => {
  const done = run.state === "completed" && !run.files_removed;
  return [
    may("run") && isActive(run) && run.cancel_asked_at === null && button("Cancel", () => stop(run), { class: "act bad" }),
    may("run") && !isActive(run) && el("a", { class: "act", href: `/runs/new?from=${run.id}` }, "Run again"),
    done && ["run", "sweep"].includes(run.kind) && el("a", { class: "act", href: `/compare?run=${run.id}` }, "Compare"),
    may("run") &&
      done &&
      run.valid &&
      run.kind !== "experiment" &&
      el("a", { class: "act", href: `/baselines?run=${run.id}` }, "Make a baseline"),
  ].filter(Boolean);
};

const about = (run) => [
  facts([
    ["Server", run.kind === "experiment" ? null : target(run)],
    ["Asked for", [time(run.created_at), " by ", asker(run.created_by)]],
    ["Began", run.started_at && time(run.started_at, { seconds: true })],
    [
      "Ended",
      run.ended_at && [time(run.ended_at, { seconds: true }), `, after ${span(between(run.started_at ?? run.created_at, run.ended_at))}`],
    ],
    ["Time limit", run.time_limit_s && span(run.time_limit_s)],
    ["Schedule", run.schedule_id && link(`/schedules/${run.schedule_id}`, "by its schedule")],
    [
      "Labels",
      Object.keys(run.labels).length > 0 ? Object.entries(run.labels).map(([name, value]) => [tag(`${name}=${value}`), " "]) : null,
    ],
  ]),
  details("Options", json("Options", run.options)),
];

const waiting = (run) => {
  if (run.waiting === null) return null;
  const before = run.waiting.runs;
  const words = run.waiting.position > 0 ? `${run.waiting.position} before it in the queue.` : "It is the next one.";
  return el(
    "section",
    { class: "verdict info", "aria-label": "Waiting" },
    el("p", { class: "headline" }, "Waiting for its turn"),
    el(
      "p",
      { class: "answer" },
      words,
      before.length > 0 && [
        " Its server is taken by ",
        before.slice(0, 5).map((id, place) => [place > 0 && ", ", link(`/runs/${id}`, id)]),
        ".",
      ],
    ),
  );
};

/** What is to be said of a run that ended otherwise than it should. */
const trouble = (run) => {
  const words = reason(run);
  if (run.state === "completed" && !run.message) return null;
  if (run.state === "completed")
    return el(
      "section",
      { class: "verdict invalid", "aria-label": "Gates" },
      el("p", { class: "headline" }, run.gate_failed ? "A gate failed" : "To be said of it"),
      el("p", { class: "answer" }, foreign(run.message)),
    );
  const log =
    run.started_at &&
    el("p", { class: "answer" }, el("a", { href: `/v1/runs/${run.id}/log`, target: "_blank", rel: "noopener" }, "What its process wrote"));
  return el(
    "section",
    { class: `verdict ${run.state === "failed" ? "invalid" : "warning"}`, "aria-label": "What happened" },
    el("p", { class: "headline" }, { failed: "It failed", cancelled: "It was cancelled", interrupted: "It was interrupted" }[run.state]),
    words && el("p", { class: "answer" }, words),
    run.message && el("p", { class: "answer" }, foreign(run.message)),
    run.state !== "cancelled" && log,
  );
};

const links = (run) =>
  el(
    "p",
    { class: "links" },
    el("a", { href: `/v1/runs/${run.id}/report`, target: "_blank", rel: "noopener" }, "The whole report"),
    el("a", { href: `/v1/runs/${run.id}/summary`, download: `${run.id}-summary.json` }, "Summary as JSON"),
    el("a", { href: `/v1/runs/${run.id}/records`, download: true }, "Records"),
    el("a", { href: `/v1/runs/${run.id}/archive`, download: true }, "All files"),
  );

const against = (run) => {
  const held = run.result?.comparison;
  if (!held) return null;
  const words =
    held.failed.length > 0 ? held.failed.map((each) => el("p", {}, foreign(each))) : el("p", {}, "No gate of the baseline failed.");
  return section("Against the baseline", el("p", { class: "caption" }, foreign(held.baseline)), words);
};

const figuresOf = (run) => {
  const result = run.result;
  if (result === null) return null;
  if (run.kind === "run" && result.ttft_s) return figures(result);
  if (run.kind === "sweep" && result.levels?.length > 0)
    return section("Levels", levelTable(result.levels, { by: result.variable, knee: result.knee?.level ?? null }));
  return null;
};

/** Whether its process came so far as to say what it measured. */
const hasView = (run) => !run.files_removed && run.result !== null && (run.kind !== "experiment" || run.result.ladders !== undefined);

const ended = async (run, place, signal) => {
  const view = hasView(run) ? await getIfThere(`/v1/runs/${run.id}/view`, signal) : null;
  const parts = view?.parts ?? [];
  const single = parts.length === 1;
  fill(
    place,
    trouble(run),
    parts.map((part) => [
      part.title && el("p", { class: "subtitle" }, foreign(part.title), "."),
      verdict(part, single ? "Verdict" : `Verdict: ${part.title}`),
    ]),
    run.files_removed && el("p", { class: "note" }, "Its files were removed when their time was over; these figures are what is left."),
    view !== null && links(run),
    figuresOf(run),
    against(run),
    parts.map((part) => [!single && el("h2", {}, foreign(part.title)), rest(part, signal)]),
  );
};

/** Follows a run that has not ended; when it ends, the page shows that. */
const live = (run, place, signal, onChange) => {
  const [counts, log, progress, levels] = [new Counts(), new Log(), new Progress(), []];
  const drawing = el("div", {}, el("p", { class: "state" }, "Charts come with the first requests."));
  const table = el("div", {});
  const redraw = liveCharts(progress, drawing, signal);
  const connection = document.getElementById("connection");
  const say = (words) => {
    fill(connection, words);
    connection.hidden = !words;
  };
  signal.addEventListener("abort", () => say(""));
  const heard = (kind, data) => {
    log.add(kind, data);
    if (kind === "progress") {
      counts.tell(data);
      progress.add(data);
      redraw();
    }
    if (kind === "level" && data.requests) {
      levels.push(data);
      fill(table, section("Levels so far", levelTable(levels)));
    }
    if (kind === "state" || kind === "cancel_asked") onChange();
  };
  fill(
    place,
    waiting(run),
    el("section", { hidden: run.state === "queued" }, el("h2", { class: "unseen" }, "Progress"), counts.node, drawing),
    table,
    details("What happened", log.list),
  );
  follow(run, signal, {
    heard,
    ended: onChange,
    lost: () => say("The connection to the service is lost. Trying again…"),
    found: () => say(""),
  });
};

export const show = async ({ main, parameters: [id], signal, titled }) => {
  let run = await get(`/v1/runs/${encodeURIComponent(id)}`, signal);
  const [head, place, facts] = [el("div", {}), el("div", {}), el("div", {})];
  titled(title(run));
  const drawHead = () =>
    fill(head, heading(foreign(title(run)), { eyebrow: `${run.kind} ${run.id}`, beside: stateTags(run), actions: actions(run) }));
  const draw = async () => {
    drawHead();
    fill(facts, section("About it", about(run)));
    if (!isActive(run)) await ended(run, place, signal);
  };
  const look = async () => {
    const before = run;
    run = await get(`/v1/runs/${run.id}`, signal);
    if (before.state === run.state && before.cancel_asked_at === run.cancel_asked_at) return;
    speak(`The run is ${run.state}`);
    if (before.state === "queued" && isActive(run)) await showAgain();
    else await draw();
  };
  const quietly = () => look().catch((fault) => fault.status === 401 && showAgain());
  fill(main, head, place, facts);
  await draw();
  if (!isActive(run)) return;
  live(run, place, signal, quietly);
  const timer = setInterval(quietly, LOOK_AGAIN_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
};
