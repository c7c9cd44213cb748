// Numbers, times and words as people read them.

export const DASH = "\u2014";

/** A number with as many digits as it is worth. */
export const number = (value) => {
  if (value === null || value === undefined) return DASH;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 99.95) return Math.round(value).toLocaleString("en");
  if (size >= 9.995) return value.toFixed(1);
  return size >= 0.9995 ? value.toFixed(2) : value.toPrecision(3);
};

/** A whole number. */
export const whole = (value) => (value === null || value === undefined ? DASH : value.toLocaleString("en"));

/** A level as it was asked for. */
export const level = (value) => (value === null || value === undefined ? DASH : String(Number(value.toPrecision(10))));

/** Seconds as milliseconds. */
export const milliseconds = (value) => (value === null || value === undefined ? DASH : number(value * 1000));

/** A share of 1 as a percentage. */
export const percent = (value) => (value === null || value === undefined ? DASH : `${number(value * 100)}%`);

/** A length of time in its two largest units. */
export const span = (seconds) => {
  if (seconds === null || seconds === undefined) return DASH;
  if (seconds < 10) return `${number(Math.max(seconds, 0))} s`;
  const whole = Math.round(seconds);
  const parts = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count} ${unit}`).join(" ");
};

const DATE = { year: "numeric", month: "short", day: "numeric" };
const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

/** An instant by the clocks of the reader, or of a time zone. */
export const instant = (text, { zone = undefined, seconds = false, weekday = false } = {}) => {
  if (!text) return DASH;
  const more = { ...(seconds ? { second: "2-digit" } : {}), ...(weekday ? { weekday: "short" } : {}) };
  return new Intl.DateTimeFormat("en-GB", { ...DATE, ...TIME, ...more, timeZone: zone }).format(new Date(text));
};

/** An instant as an element that tells the exact one. */
export const time = (text, options = {}) => {
  if (!text) return DASH;
  const made = document.createElement("time");
  made.dateTime = text;
  made.title = text;
  made.textContent = instant(text, options);
  return made;
};

/** How long ago, or in what time. */
export const fromNow = (text) => {
  const seconds = (new Date(text).getTime() - Date.now()) / 1000;
  const words = Math.abs(seconds) < 60 ? "less than a minute" : span(Math.round(Math.abs(seconds) / 60) * 60);
  return seconds < 0 ? `${words} ago` : `in ${words}`;
};

/** The time zone of the reader. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Seconds between two instants. */
export const between = (from, to) => (!from || !to ? null : (new Date(to) - new Date(from)) / 1000);

/** A count with its word. */
export const counted = (count, one, many = `${one}s`) => `${whole(count)} ${count === 1 ? one : many}`;
