// All schedules, and when each is due.

import { get } from "/page/api.js";
import { el, empty, fill, foreign, heading, link, table, tag } from "/page/elements.js";
import { DASH, fromNow, instant, time, ZONE } from "/page/format.js";
import { may } from "/page/session.js";

const COLUMNS = [
  { title: "Schedule", text: true },
  { title: "When", text: true },
  { title: "Next, its time", text: true },
  { title: `Next, here (${ZONE})`, text: true },
  { title: "Last" },
  { title: "What", text: true },
];

const row = (schedule) => [
  [link(`/schedules/${schedule.id}`, foreign(schedule.name)), schedule.paused && [" ", tag("paused", "warning")]],
  [foreign(schedule.words), " ", el("span", { class: "per" }, foreign(schedule.time_zone))],
  schedule.next_at === null ? DASH : instant(schedule.next_at, { zone: schedule.time_zone, weekday: true }),
  schedule.next_at === null
    ? DASH
    : [time(schedule.next_at, { weekday: true }), " ", el("span", { class: "per" }, fromNow(schedule.next_at))],
  schedule.last_at === null ? DASH : time(schedule.last_at),
  [schedule.request.kind, " ", foreign(schedule.request.target?.profile ?? schedule.request.target?.url ?? "")],
];

export const show = async ({ main, signal, titled }) => {
  const { items } = await get("/v1/schedules", signal);
  const make = may("run") && el("a", { class: "act first", href: "/schedules/new" }, "New schedule");
  const shown =
    items.length > 0
      ? table("Schedules", COLUMNS, items.map(row))
      : empty("Nothing is scheduled.", may("run") && link("/schedules/new", "Make a schedule"));
  fill(main, heading(titled("Schedules"), { actions: [make].filter(Boolean) }), shown);
};
