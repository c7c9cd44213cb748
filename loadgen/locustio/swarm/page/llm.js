(() => {
  "use strict";
  const POLL_MS = 1000;
  const DASH = "\u2014";
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
  const at = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const there = (value) => value !== null && value !== undefined;

  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const number = (value) => {
    if (!there(value)) return DASH;
    const size = Math.abs(value);
    if (size === 0) return "0";
    return size >= 99.95 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : size >= 0.9995 ? value.toFixed(2) : value.toPrecision(3);
  };
  const ms = (seconds) => number(there(seconds) ? seconds * 1e3 : null);
  const percent = (ratio) => (there(ratio) ? number(ratio * 100) + "%" : DASH);
  const plain = (value) => String(Number(value.toPrecision(10)));

  /* Charts: one uPlot each, made when it first has something to draw, and given new data from then on. */
  const plots = new Map();
  const axis = (more) => ({ stroke: () => css("--soft"), font: FONT, ...more });
  const sameLines = (chart, known) => known && known.labels === chart.lines.map((line) => line.label).join("\n") && known.log === chart.log_x;

  const make = (chart, host) => {
    const byLevel = chart.kind === "level";
    const range = (u, low, high) => {
      if (chart.log_x) return [low / 1.12, high * 1.12];
      if (chart.kind === "plain") return [0, (high || 1) * 1.06];
      const room = (high - low || high || 1) * 0.05;
      return byLevel ? [low - room, high + room] : [low, Math.max(high, low + 1)];
    };
    return new uPlot(
      {
        width: Math.max(host.clientWidth, 160),
        height: chart.height || 220,
        padding: [8, 12, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: { x: { time: false, range, ...(chart.log_x ? { distr: 3, log: 2 } : {}) }, y: { range: (u, low, high) => [0, (high || 1) * 1.06] } },
        axes: [
          axis({ grid: { show: false }, ticks: { stroke: () => css("--strong-hair"), width: 1, size: 4 }, size: 26, label: chart.x_label, labelSize: 18, labelFont: FONT, ...(byLevel ? { splits: (u) => [...new Set(u.data[0])], filter: (u, splits) => splits, values: (u, splits) => splits.map(plain) } : {}) }),
          axis({ grid: { stroke: () => css("--hair"), width: 1 }, ticks: { show: false }, size: 52, values: (u, splits) => splits.map(plain) }),
        ],
        series: [{}, ...chart.lines.map((line) => ({ label: line.label, stroke: () => css("--tone-" + line.tone), width: 1.75, dash: line.dashed ? [5, 4] : undefined, spanGaps: true, points: { show: chart.kind !== "time", size: 6, fill: () => css("--paper") } }))],
        hooks: { drawClear: [intervals(chart.id)], draw: [marks(chart.id)] },
      },
      columns(chart),
      host,
    );
  };
  const columns = (chart) => [chart.x, ...chart.lines.map((line) => line.values)];
  const shown = new Map();
  const intervals = (id) => (u) => {
    const chart = shown.get(id);
    u.ctx.save();
    u.ctx.globalAlpha = 0.16;
    for (const line of chart.lines) {
      if (!line.low || !line.high) continue;
      const known = [...chart.x.keys()].filter((k) => there(line.low[k]) && there(line.high[k]));
      u.ctx.fillStyle = css("--tone-" + line.tone);
      u.ctx.beginPath();
      for (const k of known) u.ctx.lineTo(u.valToPos(chart.x[k], "x", true), u.valToPos(line.high[k], "y", true));
      for (const k of known.reverse()) u.ctx.lineTo(u.valToPos(chart.x[k], "x", true), u.valToPos(line.low[k], "y", true));
      u.ctx.fill();
    }
    u.ctx.restore();
  };
  const marks = (id) => (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.font = FONT.replace("12px", 11 * devicePixelRatio + "px");
    ctx.textBaseline = "top";
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const mark of shown.get(id).marks || []) {
      const x = u.valToPos(mark.x, "x", true);
      const right = x > bbox.left + bbox.width * 0.8;
      ctx.strokeStyle = ctx.fillStyle = css(mark.bad ? "--bad" : "--soft");
      ctx.textAlign = right ? "right" : "left";
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(mark.text, x + (right ? -5 : 5) * devicePixelRatio, bbox.top);
    }
    ctx.restore();
  };

  const legend = (chart) =>
    element("ul", { class: "legend" }, ...chart.lines.map((line) => {
      const swatch = element("span", { class: line.dashed ? "swatch dashed" : "swatch", "aria-hidden": "true" });
      swatch.style.borderColor = "var(--tone-" + line.tone + ")";
      return element("li", {}, swatch, line.label);
    }));

  const draw = (chart, into) => {
    shown.set(chart.id, chart);
    const known = plots.get(chart.id);
    if (sameLines(chart, known)) {
      known.plot.setData(columns(chart));
      return;
    }
    known?.figure.remove();
    const host = element("div", { class: "plot", id: "plot-" + chart.id, role: "img", "aria-label": `Chart: ${chart.title} in ${chart.unit}, ${chart.lines.map((line) => line.label).join(", ")}, by ${chart.x_label}` });
    const caption = element("figcaption", {}, element("h3", {}, chart.title), element("span", { class: "per" }, chart.unit), legend(chart));
    const figure = element("figure", {}, caption, host);
    into.append(figure);
    const plot = make(chart, host);
    host.dataset.drawn = "yes";
    plots.set(chart.id, { plot, figure, host, labels: chart.lines.map((line) => line.label).join("\n"), log: chart.log_x });
  };
  const keep = (charts, into) => {
    const names = new Set(charts.map((chart) => chart.id));
    for (const [name, { figure }] of plots) {
      if (into.contains(figure) && !names.has(name)) {
        figure.remove();
        plots.delete(name);
      }
    }
    for (const chart of charts) draw(chart, into);
    const order = charts.map((chart) => plots.get(chart.id).figure);
    if (order.some((figure, k) => into.children[k] !== figure)) into.append(...order);
  };

  const overTime = (id, title, unit, tone, series, name) => ({
    id, title, unit, kind: "time", x_label: "seconds into the level", height: 180,
    x: series.map((point) => point.t_s), lines: [{ label: title, values: series.map((point) => point[name]), tone, dashed: false }],
  });

  /* The rest of the page. */
  const WORDS = { idle: "no ladder yet", starting: "starting", running: "running", stopping: "stopping in order", ended: "ended" };
  const sayNow = (state) => {
    const { level, progress, phase } = state;
    at("phase").textContent = WORDS[phase];
    at("phase").className = "tag " + (phase === "running" ? "valid" : phase === "stopping" ? "warning" : "");
    const words = [];
    if (level) {
      words.push(level.title);
      if (level.said) words.push(level.said);
      if (progress.warming_up) words.push("warming up");
      else if (there(progress.ended)) words.push(`${progress.ended}${there(progress.planned) ? " of " + progress.planned : ""} requests`);
      if (progress.in_flight) words.push(`${progress.in_flight} in flight`);
      if (progress.failed) words.push(`${progress.failed} failed`);
      if (progress.dropped) words.push(`${progress.dropped} dropped`);
    }
    if (there(state.silent_s) && state.silent_s > 5) words.push(`nothing heard for ${state.silent_s.toFixed(0)} s`);
    if (state.ended) words.push(state.ended.interrupted ? "stopped; what was measured is saved" : `exit code ${state.ended.code}`);
    if (state.ended?.path) words.push("saved in " + state.ended.path.split("/").pop());
    const said = words.join(" \u00b7 ");
    if (at("now").textContent !== said) at("now").textContent = said;
    at("share").hidden = !level || !progress.planned;
    at("share").value = progress.planned ? Math.min(1, progress.ended / progress.planned) : 0;
    at("error").hidden = !state.ended?.error && !state.ended?.failed_gates?.length;
    at("error").textContent = [state.ended?.error, ...(state.ended?.failed_gates || [])].filter(Boolean).join("; ");
    at("links").hidden = !state.has_report;
    at("notes").hidden = !state.notes.length;
    at("notes").replaceChildren(...state.notes.map((note) => element("li", {}, note)));
  };

  const sayVerdict = (state) => {
    const place = at("verdict");
    place.hidden = !state.rows?.length;
    if (place.hidden) return;
    place.className = "verdict " + state.verdict.kind;
    const items = state.doubts.map((doubt) =>
      element("li", {}, element("span", {}, element("span", { class: "tag " + doubt.severity }, doubt.severity)),
        element("div", {}, ...doubt.seen.map(([where, evidence]) => element("p", {}, (where ? `At ${where}: ` : "") + evidence)),
          element("p", { class: "advice" }, doubt.advice))));
    place.replaceChildren(element("p", {}, state.verdict.words + (state.phase === "ended" ? "" : ", so far")), ...(items.length ? [element("ul", { class: "findings" }, ...items)] : []));
  };

  const TAGS = { valid: "valid", doubts: "warning", invalid: "invalid" };
  const LATENCIES = [["ttft_s", "TTFT"], ["tpot_s", "TPOT"], ["e2el_s", "E2E"]];
  const cell = (words) => element("td", words === DASH ? { class: "absent" } : {}, words);
  const sayLevels = (state) => {
    const rows = state.rows || [];
    at("levels").hidden = !rows.length;
    at("nothing").hidden = rows.length > 0;
    if (!rows.length) return;
    const arms = rows.some((row) => there(row.arm));
    const titles = [...(arms ? ["arm", "repeat"] : []), "level", "requests", "failed", "requests/s", "tokens/s",
      ...LATENCIES.flatMap(([, label]) => [`${label} p50`, "p95", "p99"]), "acceptance", "measurement"];
    const table = at("levels").querySelector("table");
    table.tHead.replaceChildren(element("tr", {}, ...titles.map((title) => element("th", title === "measurement" ? { scope: "col", class: "text" } : { scope: "col" }, title))));
    table.tBodies[0].replaceChildren(...rows.map((row) => {
      const head = element("th", { scope: "row" }, plain(row.level));
      const first = arms ? [cell(row.arm ?? DASH), cell(row.repeat ?? DASH), head] : [head];
      const latencies = LATENCIES.flatMap(([name]) => ["p50", "p95", "p99"].map((which) => cell(ms(row.latency[name][which]))));
      return element("tr", row.verdict === "invalid" ? { class: "bad" } : {}, ...first,
        cell(String(row.requests.completed)), cell(percent(row.failed_ratio)), cell(number(row.requests_per_s)), cell(number(row.output_tokens_per_s)),
        ...latencies, cell(number(row.acceptance_length)),
        element("td", { class: "text" }, element("span", { class: "tag " + TAGS[row.verdict] }, row.verdict)));
    }));
  };

  const sayWorkers = (state) => {
    const workers = state.workers || [];
    at("workers").hidden = !workers.length;
    if (!workers.length) return;
    const table = at("workers").querySelector("table");
    const titles = ["worker", "state", "machine", "clock ahead, ms", "within, ms"];
    table.tHead.replaceChildren(element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title))));
    table.tBodies[0].replaceChildren(...workers.map((worker) => element("tr", {}, element("th", { scope: "row" }, worker.worker),
      cell(worker.present ? "connected" : "lost"), cell(worker.here ? "this one" : "another"), cell(ms(worker.clock_ahead_s)), cell(ms(worker.clock_within_s)))));
  };

  const show = (state) => {
    sayNow(state);
    sayVerdict(state);
    const series = state.series;
    at("live").hidden = series.length < 2 || state.phase === "ended";
    if (!at("live").hidden)
      keep([overTime("live-tokens", "output tokens", "tokens/s", 0, series, "output_tokens_per_s"), overTime("live-flight", "in flight", "requests", 2, series, "in_flight")], at("live-plots"));
    keep(state.charts || [], at("ladder-plots"));
    at("knee").hidden = !state.knee || (state.rows || []).length < 2;
    at("knee").textContent = "Knee: " + state.knee;
    sayLevels(state);
    sayWorkers(state);
  };

  const poll = async () => {
    try {
      const answer = await fetch("state", { cache: "no-store" });
      if (answer.ok) show(await answer.json());
    } catch {
      at("phase").textContent = "not reached";
      at("now").textContent = "Locust does not answer; this page keeps trying";
    }
    setTimeout(poll, POLL_MS);
  };
  new ResizeObserver(() => {
    for (const { plot, host } of plots.values()) plot.setSize({ width: Math.max(host.clientWidth, 160), height: plot.height });
  }).observe(at("content"));
  poll();
})();
