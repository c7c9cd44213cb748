// Steps through a list that is paged by cursor, the newest first.

import { button, el, fill, speak } from "/page/elements.js";

export class Pages {
  /** `look` shows the page behind the cursor of now; `what` is what a step is told to be of. */
  constructor(what, look) {
    Object.assign(this, { what, look, cursors: [null], node: el("div", { class: "pages" }) });
  }

  /** Behind what the page begins that is shown; null for the first one. */
  get cursor() {
    return this.cursors.at(-1);
  }

  /** Goes back to the first page, without showing it. */
  begin() {
    this.cursors = [null];
  }

  /** Buttons to the pages beside the one that is shown; `next` is the cursor that came with it. */
  draw(next) {
    const pressed = this.node.contains(document.activeElement) ? document.activeElement.textContent : null;
    const turn = (cursors, words) => () => {
      this.cursors = cursors;
      this.look().then(() => speak(words));
    };
    const newer = this.cursors.length > 1 && button("Newer", turn(this.cursors.slice(0, -1), `Newer ${this.what}`));
    const older = next !== null && button("Older", turn([...this.cursors, next], `Older ${this.what}`));
    fill(this.node, newer, older);
    if (pressed === null) return;
    const buttons = [...this.node.children];
    (buttons.find((each) => each.textContent === pressed) ?? buttons[0])?.focus();
  }
}
