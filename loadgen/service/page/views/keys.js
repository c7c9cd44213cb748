// Keys: given out, shown once, revoked.

import { get, post, remove } from "/page/api.js";
import { button, confirm, el, empty, fill, foreign, heading, link, section, table, tag } from "/page/elements.js";
import { DASH, level, span, time } from "/page/format.js";
import { Form, FieldErrors } from "/page/form.js";
import { show as showAgain, signInAddress } from "/page/router.js";
import { shownOnce } from "/page/secret.js";
import { session } from "/page/session.js";

const SCOPES = [
  ["read", "read: sees everything"],
  ["run", "run: also starts, stops and schedules"],
  ["admin", "admin: also gives out keys"],
];
const LIMITS = [
  ["concurrency", "Most requests in flight", 1],
  ["rate_rps", "Most requests a second", 1],
  ["run_time_s", "Longest run, minutes", 60],
];
const COLUMNS = [
  { title: "Key", text: true },
  { title: "Scope", text: true },
  { title: "Limits", text: true },
  { title: "Made" },
  { title: "Used" },
  { title: "State", text: true },
  { label: "Actions" },
];

const standing = (key) => {
  if (key.revoked_at !== null) return tag("revoked");
  if (key.expires_at !== null && new Date(key.expires_at) < new Date()) return tag("over");
  return [tag("good", "done"), key.expires_at !== null && [" until ", time(key.expires_at)]];
};

const limitsOf = ({ limits }) =>
  [
    limits.concurrency && `${level(limits.concurrency)} in flight`,
    limits.rate_rps && `${level(limits.rate_rps)} requests/s`,
    limits.run_time_s && span(limits.run_time_s),
  ]
    .filter(Boolean)
    .join(", ") || DASH;

const row = (key, report) => {
  const revoke = async () => {
    if (
      !(await confirm(
        `Revoke the key ${key.name}?`,
        "Whoever uses it is let in no more, at once. This cannot be undone.",
        "Revoke the key",
      ))
    )
      return;
    try {
      await remove(`/v1/keys/${key.id}`);
      await showAgain();
    } catch (fault) {
      report(fault);
    }
  };
  const mine = session()?.id === key.id;
  return [
    [foreign(key.name), mine && [" ", tag("yours")]],
    key.scope,
    limitsOf(key),
    time(key.created_at),
    key.used_at === null ? "never" : time(key.used_at),
    standing(key),
    key.revoked_at === null ? button("Revoke", revoke, { "aria-label": `Revoke the key ${key.name}` }) : "",
  ];
};

const positive = (form, name, times) => {
  const text = form.value(name);
  if (!text) return null;
  const found = Number(text) * times;
  if (!(found > 0)) throw new FieldErrors([{ pointer: `/${name}`, detail: "expected a number above 0" }]);
  return found;
};

const makeForm = (first, made) => {
  const form = new Form({
    label: "Make the key",
    submit: async () => {
      const limits = Object.fromEntries(
        LIMITS.map(([name, , times]) => [name, positive(form, name, times)]).filter(([, value]) => value !== null),
      );
      const body = { name: form.value("name"), scope: form.value("scope"), expires_in_s: positive(form, "expires_in_s", 86400) };
      if (Object.keys(limits).length > 0) body.limits = limits;
      made(await post("/v1/keys", body), body.name);
    },
  });
  form.add("name", { label: "Name", pointer: "/name", required: "a key needs a name", help: "Who or what uses it.", size: "small" });
  form.add("scope", {
    label: "Scope",
    type: "select",
    options: first ? SCOPES.slice(-1) : SCOPES,
    value: first ? "admin" : "read",
    pointer: "/scope",
    size: "small",
  });
  form.add("expires_in_s", {
    label: "Good for, days",
    pointer: "/expires_in_s",
    optional: true,
    help: "Without it, until it is revoked.",
    size: "small",
  });
  for (const [name, label] of LIMITS) form.add(name, { label, pointer: [`/limits/${name}`, `/${name}`], optional: true, size: "small" });
  return form.node;
};

export const show = async ({ main, signal, titled }) => {
  const [fresh, list, trouble] = [el("div", {}), el("div", {}), el("div", { role: "alert" })];
  const report = (fault) => fill(trouble, el("p", { class: "error" }, fault.detail ?? String(fault)));
  const { items: before } = await get("/v1/keys", signal);
  const draw = (items) => {
    fill(
      list,
      items.length > 0
        ? table(
            "Keys",
            COLUMNS,
            items.map((key) => row(key, report)),
          )
        : empty(
            "There is no key: whoever reaches this service on this machine may do everything. With the first key, which has the scope admin, that ends.",
          ),
    );
  };
  const made = async (key, name) => {
    const words = "Copy it now: it is shown this once, and kept only as a digest.";
    const told = shownOnce("The new key", ["The key ", foreign(name)], words, key.key);
    fill(fresh, told);
    told.focus();
    // With the first key this page needs one itself: then the list is for whoever signs in with it.
    const found = await get("/v1/keys", signal).catch((fault) => (fault.status === 401 ? null : Promise.reject(fault)));
    if (found === null) fill(list, el("p", { class: "state" }, link(signInAddress(), "Sign in with it"), " to go on here."));
    else draw(found.items);
  };
  draw(before);
  fill(main, heading(titled("Keys")), fresh, trouble, list, section("New key", makeForm(before.length === 0, made)));
};
