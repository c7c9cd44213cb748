// A secret that is shown once.

import { button, el } from "/page/elements.js";

/** A box with it, to be focused once it is in the document. `words` say what is to be done with it. */
export const shownOnce = (label, headline, words, secret) => {
  const copied = async (event) => {
    try {
      await navigator.clipboard.writeText(secret);
      event.target.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
    }
  };
  const code = el("code", { class: "secret" }, secret);
  return el(
    "section",
    { class: "verdict", tabindex: "-1", "aria-label": label },
    el("p", { class: "headline" }, headline),
    el("p", { class: "answer" }, words),
    el("p", { class: "answer" }, code, " ", button("Copy", copied)),
  );
};
