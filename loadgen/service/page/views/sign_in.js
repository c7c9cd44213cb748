// Signing in with a key.

import { el, fill, heading } from "/page/elements.js";
import { Form } from "/page/form.js";
import { go } from "/page/router.js";
import { session, signIn } from "/page/session.js";

export const open = true;

/** An address of this page; anything else would lead a reader elsewhere. */
const safe = (next) => (next && /^\/(?![/\\])/.test(next) ? next : "/runs");

export const show = ({ main, query, titled }) => {
  const next = safe(query.get("next"));
  if (session() !== null) return go(next, { replace: true });
  const form = new Form({
    label: "Sign in",
    submit: async () => {
      await signIn(form.value("key"));
      await go(next, { replace: true });
    },
  });
  // Keepers of passwords want a name to put the key under.
  form.body.append(el("input", { type: "text", autocomplete: "username", value: "Loadgen", hidden: true, readonly: true }));
  form.add("key", {
    label: "Key",
    help: "Begins with lgk_. The browser keeps a session for twelve hours, never the key.",
    type: "password",
    attributes: { autocomplete: "current-password", spellcheck: "false" },
    required: "a key is needed",
    pointer: "/key",
  });
  fill(
    main,
    el(
      "div",
      { class: "narrow" },
      heading(titled("Sign in")),
      query.has("next") && el("p", { class: "note" }, "A key is needed for this page, or the session is over. You come back to it."),
      form.node,
    ),
  );
  form.focus("key");
};
