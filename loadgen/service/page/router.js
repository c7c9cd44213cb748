// Addresses of the page, each with its view; reload and the browser's back and forward lead to the same.

import { empty, failure, fill, heading, link, loading, speak } from "/page/elements.js";
import { forget, session } from "/page/session.js";

const FAULTS = {
  0: "The service does not answer",
  403: "This key may not do that",
  404: "There is no such thing",
};

let routes = [];
let leave = () => {};
let arrived = () => {};
let first = true;

const found = (path) => {
  for (const [pattern, view] of routes) {
    const match = pattern.exec(path);
    if (match) return decoded(view, match.slice(1));
  }
  return [null, []];
};

const decoded = (view, parts) => {
  try {
    return [view, parts.map(decodeURIComponent)];
  } catch {
    return [null, []]; // a percent sign that stands for no character
  }
};

/** Goes to an address of the page; `replace` leaves no step behind for the way back. */
export const go = (address, { replace = false } = {}) => {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  return show();
};

/** Changes what stands behind the question mark without going anywhere. */
export const note = (address) => history.replaceState(null, "", address);

/** Where to sign in, and from there back to here. */
export const signInAddress = () => {
  const here = location.pathname + location.search;
  return here === "/" || location.pathname === "/sign-in" ? "/sign-in" : `/sign-in?next=${encodeURIComponent(here)}`;
};

const focusHeading = (main) => {
  if (!first) scrollTo(0, 0);
  if (!first && !main.contains(document.activeElement)) (main.querySelector("h1") ?? main).focus({ preventScroll: true });
  first = false;
};

/** Shows what belongs to the address of now. */
export const show = async () => {
  leave();
  const main = document.getElementById("content");
  const ending = new AbortController();
  leave = () => ending.abort();
  const [view, parameters] = found(location.pathname);
  const titled = (title) => {
    document.title = `${title} · Loadgen`;
    return title;
  };
  if (view === null) {
    arrived(location.pathname);
    fill(main, heading(titled("Not found")), empty("No page has this address.", link("/runs", "All runs")));
    focusHeading(main);
    return;
  }
  if (session() === null && view.open !== true) {
    go(signInAddress(), { replace: true });
    return;
  }
  arrived(location.pathname);
  fill(main, loading("the page"));
  const context = { main, parameters, query: new URLSearchParams(location.search), signal: ending.signal, titled };
  try {
    await view.show(context);
  } catch (fault) {
    if (ending.signal.aborted) return;
    onFault(main, fault);
  }
  if (!ending.signal.aborted) {
    focusHeading(main);
    if (!main.querySelector('[role="alert"]')) speak(document.title.replace(" · Loadgen", ""));
  }
};

const onFault = (main, fault) => {
  if (fault.status === 401) {
    forget();
    go(signInAddress(), { replace: true });
    return;
  }
  if (fault.status === undefined) console.error(fault);
  const title = FAULTS[fault.status] ?? "Something went wrong";
  fill(main, failure(title, fault.detail ?? "A fault of this page; its console says more.", show));
};

/** Whether a click means a step within the page. */
const within = (event, anchor) =>
  event.button === 0 &&
  !event.defaultPrevented &&
  !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) &&
  anchor.origin === location.origin &&
  !anchor.hasAttribute("download") &&
  !anchor.target &&
  !anchor.getAttribute("href").startsWith("#") &&
  found(anchor.pathname)[0] !== null;

/** Takes over the links and the history of the document. `onArrival` is told the path of each page shown. */
export const start = (table, onArrival) => {
  routes = table;
  arrived = onArrival;
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest("a[href]");
    if (anchor && within(event, anchor)) {
      event.preventDefault();
      go(anchor.pathname + anchor.search);
    }
  });
  addEventListener("popstate", show);
  return show();
};
