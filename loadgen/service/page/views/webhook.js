// One webhook: where it goes, and what became of its latest messages.

import { get, remove } from "/page/api.js";
import { button, confirm, el, empty, facts, fill, foreign, heading, link, section, table, tag } from "/page/elements.js";
import { DASH, time } from "/page/format.js";
import { go } from "/page/router.js";
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

export const show = async ({ main, parameters: [id], signal, titled }) => {
  const path = `/v1/webhooks/${encodeURIComponent(id)}`;
  const webhook = await get(path, signal);
  const place = el("div", {});
  let shown = "";
  const look = async () => {
    const { items } = await get(`${path}/deliveries?limit=50`, signal);
    const text = JSON.stringify(items);
    if (text === shown) return;
    shown = text;
    fill(place, items.length > 0 ? table("Latest messages", COLUMNS, items.map(row)) : empty("Nothing was to be told yet."));
  };
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
      actions: [button("Remove", removed, { class: "act bad" })],
    }),
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
