// One schedule: what it does, when, what became of it; and the form that makes or changes one.

import { get, post, put, remove, withQuery } from "/page/api.js";
import {
  button,
  confirm,
  details,
  el,
  empty,
  facts,
  fill,
  foreign,
  heading,
  json,
  link,
  section,
  speak,
  table,
  tag,
  tried,
} from "/page/elements.js";
import { DASH, instant, span, time } from "/page/format.js";
import { Form } from "/page/form.js";
import { KINDS, known } from "/page/request_facts.js";
import { RequestFields } from "/page/request_form.js";
import { go, show as showAgain } from "/page/router.js";
import { may } from "/page/session.js";
import { addTimetable, dueTable } from "/page/timetable.js";
import { asker, result, runLink, stateTags, target } from "/page/words.js";

const OUTCOMES = {
  run: "ran",
  missed: "missed: nobody was there in time",
  busy: "skipped: its server was in use",
  refused: "refused: it may not be any more",
};

const edited = async ({ main, signal, titled, query }, schedule) => {
  const facts = await known(signal);
  const given = schedule ?? { request: { kind: query.get("kind") in KINDS ? query.get("kind") : "capacity" } };
  const save = async () => {
    const request = fields.read();
    request.name = form.value("name");
    const body = {
      name: form.value("name"),
      cron: form.value("cron"),
      time_zone: form.value("time_zone") || "UTC",
      request,
      misfire_grace_s: Math.round(Number(form.value("grace")) * 60),
      when_busy: form.value("when_busy"),
      paused: schedule?.paused ?? false,
    };
    const saved = schedule ? await put(`/v1/schedules/${schedule.id}`, body) : await post("/v1/schedules", body);
    await go(`/schedules/${saved.id}`);
  };
  const form = new Form({
    label: schedule ? "Save" : "Make the schedule",
    submit: save,
    otherwise: "all",
    extra: [el("a", { class: "act", href: schedule ? `/schedules/${schedule.id}` : "/schedules" }, "Go back")],
  });
  form.add("name", { label: "Name", value: given.name ?? "", pointer: "/name", required: "a schedule needs a name" });
  addTimetable(form, given);
  form.add("when_busy", {
    label: "If its server is in use then",
    type: "select",
    options: [
      ["skip", "skip this time"],
      ["queue", "wait in the queue"],
    ],
    value: given.when_busy ?? "skip",
    pointer: "/when_busy",
    size: "small",
  });
  form.add("grace", {
    label: "Late by at most, minutes",
    value: String((given.misfire_grace_s ?? 600) / 60),
    help: "An instant at which the service was not there still counts for so long.",
    pointer: "/misfire_grace_s",
    size: "small",
  });
  const fields = new RequestFields(form, facts, given.request, { at: "/request" });
  fill(main, heading(titled(schedule ? `Change ${schedule.name}` : "New schedule")), form.node);
};

const actions = (schedule, refused) => {
  if (!may("run")) return [];
  const act = (path, words) =>
    tried(refused, async () => {
      await post(`/v1/schedules/${schedule.id}/${path}`);
      speak(words);
      await showAgain();
    });
  const runNow = tried(refused, async () => {
    const run = await post(`/v1/schedules/${schedule.id}/run`);
    await go(`/runs/${run.id}`);
  });
  const removed = async () => {
    if (!(await confirm("Remove this schedule?", "Runs that it led to stay.", "Remove the schedule"))) return;
    await remove(`/v1/schedules/${schedule.id}`);
    await go("/schedules");
  };
  return [
    button("Run now", runNow, { class: "act first" }),
    schedule.paused ? button("Resume", act("resume", "It goes on")) : button("Pause", act("pause", "It is paused")),
    el("a", { class: "act", href: `/schedules/${schedule.id}?edit=1` }, "Change"),
    button("Remove", removed, { class: "act bad" }),
  ];
};

const decided = (firings, zone) => {
  if (firings.length === 0) return empty("It was not due yet.");
  const columns = [
    { title: "Due", text: true },
    { title: "What became of it", text: true },
    { title: "Run", text: true },
  ];
  const rows = firings.map((each) => [
    instant(each.due_at, { zone, weekday: true }),
    OUTCOMES[each.outcome] ?? each.outcome,
    each.run_id === null ? DASH : link(`/runs/${each.run_id}`, each.run_id),
  ]);
  return table("Times at which it was due", columns, rows);
};

const results = (runs) => {
  if (runs.length === 0) return empty("It has no run yet.");
  const columns = [{ title: "Run", text: true }, { title: "State", text: true }, { title: "Result", text: true }, { title: "Asked for" }];
  return table(
    "Its latest runs",
    columns,
    runs.map((run) => [runLink(run), stateTags(run), result(run), time(run.created_at)]),
  );
};

export const show = async (context) => {
  const {
    main,
    parameters: [id],
    query,
    signal,
    titled,
  } = context;
  if (id === "new") return edited(context, null);
  const path = `/v1/schedules/${encodeURIComponent(id)}`;
  const schedule = await get(path, signal);
  if (query.has("edit") && may("run")) return edited(context, schedule);
  const [due, firings, runs] = await Promise.all([
    get(`${path}/next`, signal),
    get(`${path}/firings?limit=20`, signal),
    get(withQuery("/v1/runs", { schedule_id: schedule.id, limit: 20 }), signal),
  ]);
  const refused = el("div", {});
  const capacity = schedule.request.kind === "capacity" && link("/capacity", "Capacities over time");
  fill(
    main,
    heading(foreign(titled(schedule.name)), {
      eyebrow: "schedule",
      beside: schedule.paused && tag("paused", "warning"),
      actions: actions(schedule, refused),
    }),
    refused,
    el("p", { class: "subtitle" }, el("b", {}, foreign(schedule.words)), ", by the clocks of ", foreign(schedule.time_zone), "."),
    section("Next times", schedule.paused ? empty("It is paused, so it is not due.") : dueTable(due, schedule.time_zone)),
    section("Latest runs", results(runs.items), capacity && el("p", { class: "links" }, capacity)),
    section("Times at which it was due", decided(firings.items, schedule.time_zone)),
    section(
      "About it",
      facts([
        ["What", schedule.request.kind],
        ["Server", schedule.request.target ? target(schedule.request) : null],
        ["If its server is in use", schedule.when_busy === "skip" ? "skips this time" : "waits in the queue"],
        ["Late by at most", span(schedule.misfire_grace_s)],
        ["Cron", el("code", {}, schedule.cron)],
        ["Made", [time(schedule.created_at), " by ", asker(schedule.created_by)]],
      ]),
      details("Its request", json("Request", schedule.request)),
    ),
  );
};
