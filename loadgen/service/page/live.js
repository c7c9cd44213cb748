// A run while it is at work: its events as they come, as counts, charts and a list.

import { chart, charts, line } from "/page/charts.js";
import { el, fill, foreign } from "/page/elements.js";
import { counted, instant, level, milliseconds, number, whole } from "/page/format.js";

const KINDS = ["state", "progress", "level_began", "level", "probe", "note", "server_starting", "cancel_asked"];
const LISTEN_AGAIN_MS = 3000;
const MOST_POINTS = 600;
const MOST_LINES = 200;

/**
 * Follows the events of a run from the first one on, and again behind the last one after a lost connection. `heard` gets
 * kind and data, `lost` and `found` tell of the connection, `ended` that there is nothing more, or that it was refused.
 */
export const follow = (run, signal, { heard, ended, lost, found }) => {
  let [source, last, waiting] = [null, 0, null];
  const listen = () => {
    source = new EventSource(`/v1/runs/${run.id}/events?after=${last}`);
    for (const kind of KINDS)
      source.addEventListener(kind, (event) => {
        last = Number(event.lastEventId);
        heard(kind, JSON.parse(event.data));
      });
    source.addEventListener("open", found);
    source.addEventListener("end", () => {
      source.close();
      ended();
    });
    source.addEventListener("error", again);
  };
  // A browser tries again by itself, unless the answer was no stream of events, such as a proxy's for a service that is
  // gone: then the reason is asked for, and this tries again.
  const again = () => {
    lost();
    if (source.readyState !== EventSource.CLOSED) return;
    ended();
    waiting = setTimeout(listen, LISTEN_AGAIN_MS);
  };
  signal.addEventListener("abort", () => {
    clearTimeout(waiting);
    source.close();
  });
  listen();
};

const inMs = (values) => values.map((value) => (value === null || value === undefined ? null : value * 1000));

/** What is known of a run's progress, as charts over time. */
export class Progress {
  constructor() {
    this.seen = [];
    this.begin = null;
  }

  add(data) {
    const at = new Date(data.at).getTime() / 1000;
    this.begin ??= at;
    this.seen.push({ ...data, x: Math.round((at - this.begin) * 10) / 10 });
    if (this.seen.length > MOST_POINTS) this.seen = this.seen.filter((_, place) => place % 2 === 1 || place === 0);
  }

  column(of) {
    return this.seen.map((each) => of(each) ?? null);
  }

  charts() {
    const x = this.seen.map((each) => each.x);
    const over = (id, title, unit, ...lines) => chart({ id, title, unit, kind: "time", x, x_label: "s", lines, height: 170 });
    return [
      over(
        "live-tokens",
        "Output tokens",
        "tokens/s",
        line(
          "arrived",
          this.column((each) => each.output_tokens_per_s),
          0,
        ),
      ),
      over(
        "live-flight",
        "In flight",
        "requests",
        line(
          "in flight",
          this.column((each) => each.in_flight),
          0,
        ),
      ),
      over(
        "live-ttft",
        "TTFT of what ended meanwhile",
        "ms",
        line("p50", inMs(this.column((each) => each.ttft_s?.p50)), 0),
        line("p99", inMs(this.column((each) => each.ttft_s?.p99)), 1, { dashed: true }),
      ),
      over(
        "live-tpot",
        "TPOT of what ended meanwhile",
        "ms",
        line("p50", inMs(this.column((each) => each.tpot_s?.p50)), 0),
        line("p99", inMs(this.column((each) => each.tpot_s?.p99)), 1, { dashed: true }),
      ),
    ];
  }
}

/** Progress in numbers, with a bar. */
export class Counts {
  constructor() {
    this.bar = el("progress", { max: "1", "aria-label": "Requests of this level that have ended" });
    this.words = el("p", { class: "counts" });
    this.title = el("p", { class: "eyebrow" });
    this.node = el("div", { class: "progress" }, this.title, this.bar, this.words);
  }

  tell(data) {
    const [ended, planned] = data.warming_up ? [data.warmup_ended, data.warmup_planned] : [data.ended, data.planned];
    this.bar.hidden = !planned;
    if (planned) this.bar.value = Math.min(1, ended / planned);
    fill(this.title, foreign(data.title ?? ""));
    const parts = [
      data.stopping ? "Stopping" : data.warming_up ? "Warming up" : "Measuring",
      planned ? `${whole(ended)} of ${counted(planned, "request")}` : counted(ended ?? 0, "request"),
      `${whole(data.in_flight)} in flight`,
      data.failed > 0 && `${whole(data.failed)} failed`,
      data.dropped > 0 && `${whole(data.dropped)} dropped`,
    ];
    fill(this.words, parts.filter(Boolean).join(", "));
  }
}

const SAID = {
  state: (data) => `Now ${data.state}`,
  level_began: (data) => `Begins: ${data.title}`,
  level: (data) =>
    `Done: ${[data.arm, `level ${level(data.level)}`].filter(Boolean).join(", ")}, ${number(data.output_tokens_per_s)} tokens/s, TTFT p50 ${milliseconds(data.ttft_s?.p50)} ms`,
  probe: (data) => `Level ${level(data.level)}: ${data.verdict}. ${data.why ?? ""}`,
  note: (data) => data.text,
  server_starting: (data) => `${data.title}: waiting for its server for ${number(data.waited_s)} s`,
  cancel_asked: () => "Its end was asked for",
};

/** What happened, the newest first. */
export class Log {
  constructor() {
    this.list = el("ol", { class: "log", reversed: true });
  }

  add(kind, data) {
    if (!(kind in SAID)) return;
    this.list.prepend(el("li", {}, el("time", { datetime: data.at }, instant(data.at, { seconds: true })), " ", foreign(SAID[kind](data))));
    while (this.list.childElementCount > MOST_LINES) this.list.lastElementChild.remove();
  }
}

/** Charts of a run under way, drawn once there are two points. */
export const liveCharts = (progress, place, signal) => {
  let drawn = null;
  let waiting = false;
  const draw = () => {
    waiting = false;
    if (signal.aborted || progress.seen.length < 2) return;
    if (drawn === null) {
      drawn = charts(progress.charts(), signal);
      fill(place, drawn.node);
    } else drawn.update(progress.charts());
  };
  return () => {
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  };
};
