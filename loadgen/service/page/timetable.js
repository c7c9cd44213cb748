// The fields of a timetable, and what it comes to in words and instants.

import { post } from "/page/api.js";
import { el, fill, foreign, table } from "/page/elements.js";
import { fromNow, instant, ZONE } from "/page/format.js";

/** The next instants, by the schedule's clocks and the reader's. */
export const dueTable = (due, zone) => {
  const elsewhere = zone !== ZONE;
  const columns = [{ title: `In ${zone}`, text: true }, elsewhere && { title: `Here, ${ZONE}`, text: true }, { title: "That is" }].filter(
    Boolean,
  );
  const row = (each) =>
    [instant(each, { zone, weekday: true }), elsewhere && instant(each, { weekday: true }), fromNow(each)].filter(Boolean);
  return table("Next times", columns, due.items.map(row), { full: false });
};

/** Adds the fields; under them stands what they say, as they are written. */
export const addTimetable = (form, given) => {
  const said = el("div", { class: "said", role: "status" });
  let asked = 0;
  let waiting;
  const look = async () => {
    const mine = (asked += 1);
    const [cron, zone] = [form.value("cron"), form.value("time_zone") || "UTC"];
    try {
      const due = await post("/v1/schedules/check", { cron, time_zone: zone });
      if (mine === asked)
        fill(said, el("p", {}, el("b", {}, foreign(due.words)), ", by the clocks of ", foreign(zone), "."), dueTable(due, zone));
    } catch (fault) {
      if (mine === asked)
        fill(said, el("p", { class: "error" }, (fault.errors ?? []).map((each) => each.detail).join("; ") || fault.message));
    }
  };
  const changed = () => {
    clearTimeout(waiting);
    waiting = setTimeout(look, 250);
  };
  const zones = el(
    "datalist",
    { id: "zones" },
    ["UTC", ...Intl.supportedValuesOf("timeZone")].map((zone) => el("option", { value: zone })),
  );
  form.add("cron", {
    label: "When, as cron",
    value: given.cron ?? "0 3 * * *",
    help: "Minute, hour, day of month, month, day of week: 30 2 * * 1-5 is at 2:30 from Monday to Friday.",
    pointer: "/cron",
    required: "a timetable is needed",
    size: "small",
    attributes: { class: "code", spellcheck: "false" },
    changed,
  });
  form.add("time_zone", {
    label: "Time zone",
    value: given.time_zone ?? ZONE ?? "UTC",
    help: "Of the IANA list, such as Europe/Berlin.",
    pointer: "/time_zone",
    size: "small",
    attributes: { list: "zones" },
    changed,
  });
  form.body.append(zones, said);
  look();
};
