// One webhook: where it goes, and what became of its latest messages.

import { get, patch, remove } from "/page/api.js";
import { button, confirm, el, empty, facts, fill, foreign, heading, link, section, speak, table, tag, tried } from "/page/elements.js";
import { DASH, time } from "/page/format.js";
import { Form } from "/page/form.js";
import { go, show as showAgain } from "/page/router.js";
import { addReceiver } from "/page/webhook_form.js";
import { asker } from "/page/words.js";

const LOOK_AGAIN_MS = 5000;
const STATES = { waiting: ["waiting", "busy"], delivered: ["delivered", "done"], given_up: ["given up", "invalid"] };
const COLUMNS = [
  { title: "Happened", text: true },
  { title: "What", text: true },
  { title: "Run", text: true },
  { title: "Message", text: true },
  { title: "Attempts" },
  { title: "What went wrong", text: true },
  { title: "Next attempt" },
];

const row = (message) => [
  time(message.created_at, { seconds: true }),
  message.kind,
  message.run_id === null ? DASH : link(`/runs/${message.run_id}`, message.run_id),
  tag(...(STATES[message.state] ?? [message.state])),
  String(message.attempts),
  message.last_error === null ? DASH : foreign(message.last_error),
  message.next_at === null ? DASH : time(message.next_at, { seconds: true }),
];

const edited = ({ main, titled }, path, webhook) => {
  const home = `/webhooks/${webhook.id}`;
  const form = new Form({
    label: "Save",
    submit: async () => {
      await patch(path, { url: form.value("url"), kinds: form.value("kinds") });
      await go(home);
    },
    otherwise: "url",
    extra: [el("a", { class: "act", href: home }, "Go back")],
  });
  addReceiver(form, webhook);
  fill(main, heading(titled(`Change ${webhook.name}`)), form.node);
};

export const show = async (context) => {
  const {
    main,
    parameters: [id],
    query,
    signal,
    titled,
  } = context;
  const path = `/v1/webhooks/${encodeURIComponent(id)}`;
  const webhook = await get(path, signal);
  if (query.has("edit")) {
    edited(context, path, webhook);
    return;
  }
  const place = el("div", {});
  let shown = "";
  const look = async () => {
    const { items } = await get(`${path}/deliveries?limit=50`, signal);
    const text = JSON.stringify(items);
    if (text === shown) return;
    shown = text;
    fill(place, items.length > 0 ? table("Latest messages", COLUMNS, items.map(row)) : empty("Nothing was to be told yet."));
  };
  const refused = el("div", {});
  const setPaused = (paused, words) =>
    tried(refused, async () => {
      await patch(path, { paused });
      speak(words);
      await showAgain();
    });
  const removed = async () => {
    const words = "What is still to be delivered is not delivered any more. What was delivered is forgotten here.";
    if (!(await confirm(`Remove the webhook ${webhook.name}?`, words, "Remove the webhook"))) return;
    await remove(path);
    await go("/webhooks");
  };
  await look();
  fill(
    main,
    heading(foreign(titled(webhook.name)), {
      eyebrow: "webhook",
      beside: webhook.paused && tag("paused", "warning"),
      actions: [
        webhook.paused ? button("Resume", setPaused(false, "It goes on")) : button("Pause", setPaused(true, "It is paused")),
        el("a", { class: "act", href: `/webhooks/${webhook.id}?edit=1` }, "Change"),
        button("Remove", removed, { class: "act bad" }),
      ],
    }),
    refused,
    facts([
      ["Goes to", foreign(webhook.url)],
      ["Is told of", webhook.kinds.join(", ")],
      ["Signed with", ["the secret in ", el("code", {}, webhook.secret_env)]],
      ["Made", [time(webhook.created_at), " by ", asker(webhook.created_by)]],
    ]),
    section("Latest messages", place),
  );
  const timer = setInterval(() => document.hidden || look().catch(() => {}), LOOK_AGAIN_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
};
