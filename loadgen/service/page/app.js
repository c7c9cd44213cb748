// Begins: asks who is there, draws the bar, and shows the page of the address.

import { button, el, failure, fill, foreign } from "/page/elements.js";
import { go, start } from "/page/router.js";
import { load, may, session, signOut } from "/page/session.js";
import * as audit from "/page/views/audit.js";
import * as baselines from "/page/views/baselines.js";
import * as capacity from "/page/views/capacity.js";
import * as compare from "/page/views/compare.js";
import * as keys from "/page/views/keys.js";
import * as newRun from "/page/views/new_run.js";
import * as run from "/page/views/run.js";
import * as runs from "/page/views/runs.js";
import * as schedule from "/page/views/schedule.js";
import * as schedules from "/page/views/schedules.js";
import * as series from "/page/views/series.js";
import * as signIn from "/page/views/sign_in.js";
import * as webhook from "/page/views/webhook.js";
import * as webhooks from "/page/views/webhooks.js";

const ROUTES = [
  [/^\/(?:runs)?$/, runs],
  [/^\/runs\/new$/, newRun],
  [/^\/runs\/([^/]+)$/, run],
  [/^\/compare$/, compare],
  [/^\/schedules$/, schedules],
  [/^\/schedules\/([^/]+)$/, schedule],
  [/^\/capacity$/, capacity],
  [/^\/capacity\/([^/]+)$/, series],
  [/^\/baselines$/, baselines],
  [/^\/webhooks$/, webhooks],
  [/^\/webhooks\/([^/]+)$/, webhook],
  [/^\/keys$/, keys],
  [/^\/audit$/, audit],
  [/^\/sign-in$/, signIn],
];

const PAGES = [
  ["/runs", "Runs"],
  ["/compare", "Compare"],
  ["/schedules", "Schedules"],
  ["/capacity", "Capacity"],
  ["/baselines", "Baselines"],
  ["/webhooks", "Webhooks", "admin"],
  ["/keys", "Keys", "admin"],
  ["/audit", "Audit", "admin"],
];

const leave = async () => {
  await signOut();
  go("/sign-in");
};

/** The bar as it is on that page, for whoever is signed in. */
const drawBar = (path) => {
  const here = path === "/" ? "/runs" : path;
  const shown = session() === null ? [] : PAGES.filter(([, , scope]) => scope === undefined || may(scope));
  const current = (address) => (here === address ? "page" : here.startsWith(`${address}/`) ? "true" : null);
  fill(
    document.getElementById("pages"),
    shown.map(([address, title]) => el("a", { href: address, "aria-current": current(address) }, title)),
  );
  // Where the bar is wider than its window, the page that is shown is in sight.
  document.querySelector("#pages [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center", behavior: "instant" });
  const who = session();
  fill(
    document.getElementById("who"),
    who !== null && !who.open && [el("span", { class: "name" }, "Key ", foreign(who.name)), button("Sign out", leave)],
    who !== null && who.open && el("span", { class: "name" }, "no key needed here"),
  );
};

const begin = async () => {
  try {
    await load();
  } catch (fault) {
    fill(
      document.getElementById("content"),
      failure("The service does not answer", fault.detail ?? "", () => location.reload()),
    );
    return;
  }
  await start(ROUTES, drawBar);
};

begin();
