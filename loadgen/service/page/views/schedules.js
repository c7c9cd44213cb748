// All schedules, and when each is due.

import { get } from "/page/api.js";
import { el, empty, fill, foreign, heading, link, table, tag } from "/page/elements.js";
import { DASH, fromNow, instant, time, ZONE } from "/page/format.js";
import { may } from "/page/session.js";

/** `elsewhere`: some of them go by clocks that are not the reader's. */
const columns = (elsewhere) =>
  [
    { title: "Schedule", text: true },
    { title: "When", text: true },
    elsewhere && { title: "Next, its time", text: true },
    { title: elsewhere ? `Next, here (${ZONE})` : "Next", text: true },
    { title: "What", text: true },
    { title: "Last" },
  ].filter(Boolean);

const row = (schedule, elsewhere) =>
  [
    [link(`/schedules/${schedule.id}`, foreign(schedule.name)), schedule.paused && [" ", tag("paused", "warning")]],
    [foreign(schedule.words), " ", el("span", { class: "per" }, foreign(schedule.time_zone))],
    elsewhere && (schedule.next_at === null ? DASH : instant(schedule.next_at, { zone: schedule.time_zone, weekday: true })),
    schedule.next_at === null
      ? DASH
      : [time(schedule.next_at, { weekday: true }), " ", el("span", { class: "per" }, fromNow(schedule.next_at))],
    [schedule.request.kind, " ", foreign(schedule.request.target?.profile ?? schedule.request.target?.url ?? "")],
    schedule.last_at === null ? DASH : time(schedule.last_at),
  ].filter(Boolean);

export const show = async ({ main, signal, titled }) => {
  const { items } = await get("/v1/schedules", signal);
  const make = may("run") && el("a", { class: "act first", href: "/schedules/new" }, "New schedule");
  const elsewhere = items.some((schedule) => schedule.time_zone !== ZONE);
  const shown =
    items.length > 0
      ? table(
          "Schedules",
          columns(elsewhere),
          items.map((schedule) => row(schedule, elsewhere)),
        )
      : empty("Nothing is scheduled.", may("run") && link("/schedules/new", "Make a schedule"));
  fill(main, heading(titled("Schedules"), { actions: [make].filter(Boolean) }), shown);
};
