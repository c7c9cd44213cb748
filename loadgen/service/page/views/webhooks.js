// Webhooks: who is told of what; a secret for one, shown once.

import { get, post } from "/page/api.js";
import { button, el, empty, fill, foreign, heading, link, section, table, tag } from "/page/elements.js";
import { time } from "/page/format.js";
import { Form } from "/page/form.js";
import { go } from "/page/router.js";
import { shownOnce } from "/page/secret.js";
import { addReceiver } from "/page/webhook_form.js";

const SECRET_BYTES = 32;
const COLUMNS = [
  { title: "Webhook", text: true },
  { title: "Goes to", text: true },
  { title: "Told of", text: true },
  { title: "Made" },
];

const row = (webhook) => [
  [link(`/webhooks/${webhook.id}`, foreign(webhook.name)), webhook.paused && [" ", tag("paused", "warning")]],
  foreign(webhook.url),
  webhook.kinds.join(", "),
  time(webhook.created_at),
];

/** A secret as Standard Webhooks has it. It is made here and sent nowhere: the service reads its own from a variable. */
const madeUp = () => `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(SECRET_BYTES))))}`;

const makeForm = (fresh) => {
  const secret = () => {
    const words = [
      "Copy it now: it was made in this browser, is sent nowhere, and is shown this once. ",
      "Give it to the receiver, and to the service in an environment variable that --allow-env names, before it starts.",
    ];
    const told = shownOnce("The new secret", "A secret for a webhook", words, madeUp());
    fill(fresh, told);
    told.focus();
  };
  const form = new Form({
    label: "Make the webhook",
    submit: async () => {
      const names = ["name", "url", "secret_env", "kinds"];
      const made = await post("/v1/webhooks", Object.fromEntries(names.map((name) => [name, form.value(name)])));
      await go(`/webhooks/${made.id}`);
    },
    extra: [button("Make a secret", secret)],
  });
  form.add("name", { label: "Name", pointer: "/name", required: "a webhook needs a name", size: "small" });
  form.add("secret_env", {
    label: "Variable of its secret",
    pointer: "/secret_env",
    required: "a webhook needs the name of a variable",
    help: "The environment variable of the service that holds whsec_…; never the secret itself.",
    size: "small",
    attributes: { placeholder: "LOADGEN_WEBHOOK_SECRET", class: "code", spellcheck: "false" },
  });
  addReceiver(form);
  return form.node;
};

export const show = async ({ main, signal, titled }) => {
  const { items } = await get("/v1/webhooks", signal);
  const fresh = el("div", {});
  fill(
    main,
    heading(titled("Webhooks")),
    el("p", { class: "subtitle" }, "Addresses that are told what happened, by signed messages, until they have them."),
    items.length > 0 ? table("Webhooks", COLUMNS, items.map(row)) : empty("There is no webhook yet."),
    section("New webhook", fresh, makeForm(fresh)),
  );
};
