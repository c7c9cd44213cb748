// Draws charts, which are told as columns of numbers, into figures that are there already.
const loadgenCharts = (() => {
  "use strict";
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
  const DASH = "\u2014";

  const text = (value) => {
    if (value === null || value === undefined) return DASH;
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 99.95) return value.toFixed(0);
    if (size >= 9.995) return value.toFixed(1);
    if (size >= 0.9995) return value.toFixed(2);
    return size >= 1e-4 ? value.toPrecision(3) : value.toExponential(1);
  };
  const plain = (value) => String(Number(value.toPrecision(10)));
  const percentile = (x) => "p" + plain(Number((100 * (1 - 10 ** -x)).toPrecision(x > 2 ? 5 : 4)));
  const day = (x) => new Date(x * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  const POSITIONS = { quantile: percentile, time: (x) => plain(x) + " s", date: day };
  const position = (chart, x) => (POSITIONS[chart.kind] ?? plain)(x);

  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const svg = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  const linear = (chart) => (u, low, high) => {
    if (chart.top) return [0, chart.top];
    const ends = chart.lines.flatMap((line, i) => (line.high && u.series[i + 1].show ? line.high : []));
    const top = Math.max(high ?? 0, ...ends.map((value) => value ?? 0));
    return top > 0 ? [0, top * 1.06] : [0, 1];
  };
  const logarithmic = (u, low, high) => {
    if (low === null || low === undefined || low <= 0) return [1, 10];
    return uPlot.rangeLog(low, high, 10, false);
  };

  const decades = (u, axis, low, high) => {
    const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const steps = to - from > 2 ? [1] : [1, 2, 5];
    const splits = [];
    for (let power = from; power <= to; power++) for (const step of steps) splits.push(step * 10 ** power);
    return splits.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  };

  const spread = (chart) => {
    const [first, last] = [chart.x[0], chart.x[chart.x.length - 1]];
    const alone = chart.kind === "date" ? 43200 : 1;
    const gap = chart.x.length > 1 ? (chart.kind === "bars" ? chart.x[1] - first : (last - first) * 0.05 || alone) : alone;
    return [first - gap, last + gap];
  };
  const xScale = (chart) => {
    if (chart.kind === "time") return { time: false };
    if (chart.kind === "date") return { time: true, range: () => spread(chart) };
    if (chart.kind === "plain") return { time: false, range: (u, low, high) => [0, (high || 1) * 1.06] };
    if (chart.kind === "bars" || chart.kind === "scatter") return { time: false, range: () => spread(chart) };
    if (chart.kind === "quantile") return { time: false, range: (u, low, high) => [0, Math.max(high || 0, 1.02)] };
    const [first, last] = [chart.x[0], chart.x[chart.x.length - 1]];
    if (chart.log_x) return { time: false, distr: 3, log: 2, range: () => [first / 1.12, last * 1.12] };
    const room = (last - first || last || 1) * 0.05;
    return { time: false, range: () => [first - room, last + room] };
  };

  // Labels by the distance of ticks in seconds, and beneath them what changes less often: day and year.
  const dated = (apart, label, year, day) => [apart, label, year, null, day, null, null, null, 1];
  const DATES = [
    dated(28 * 86400, "{MMM}", "\n{YYYY}", null),
    dated(86400, "{D} {MMM}", "\n{YYYY}", null),
    dated(60, "{HH}:{mm}", "\n{D} {MMM} {YYYY}", "\n{D} {MMM}"),
    dated(1, "{HH}:{mm}:{ss}", "\n{D} {MMM} {YYYY}", "\n{D} {MMM}"),
  ];
  const ticks = (chart) => {
    if (chart.kind === "date") return { size: 40, space: 84, values: DATES };
    if (chart.kind === "quantile")
      return {
        splits: (u) => [0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999].map((p) => -Math.log10(1 - p)).filter((x) => x <= u.scales.x.max),
        values: (u, splits) => thinned(u, splits, 34).map((x) => (x === null ? "" : percentile(x))),
      };
    if (chart.kind === "level" || (chart.kind === "bars" && chart.x.every(Number.isInteger)))
      return {
        splits: () => [...new Set(chart.x)],
        filter: (u, splits) => splits,
        values: (u, splits) => thinned(u, splits, 26).map((x) => (x === null ? "" : plain(x))),
      };
    return { values: (u, splits) => splits.map((x) => plain(x) + (chart.kind === "time" ? " s" : "")) };
  };
  const thinned = (u, splits, apart) => {
    let before = -Infinity;
    return splits.map((x) => {
      const at = u.valToPos(x, "x");
      if (at - before < apart) return null;
      before = at;
      return x;
    });
  };

  const drawBand = (chart) => (u) => {
    if (!chart.band) return;
    const { ctx, bbox } = u;
    const edge = (x) => Math.min(Math.max(u.valToPos(x, "x", true), bbox.left), bbox.left + bbox.width);
    const [from, to] = chart.band.map(edge);
    ctx.save();
    ctx.fillStyle = css("--band");
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
    ctx.restore();
  };
  const drawIntervals = (chart) => (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.globalAlpha = chart.stacked ? 0.5 : 0.16;
    // Ends beyond the axis lie on its limit: joined to one far beyond, a band would fill all that lies before it.
    const { min, max } = u.scales.y;
    const within = (value) => u.valToPos(Math.min(Math.max(value, min), max), "y", true);
    chart.lines.forEach((line, i) => {
      if (!line.low || !u.series[i + 1].show) return;
      const known = [...chart.x.keys()].filter((k) => line.low[k] !== null && line.high[k] !== null);
      ctx.fillStyle = css("--tone-" + line.tone);
      if (known.length === 1) {
        const [k] = known;
        const [top, end] = [within(line.high[k]), within(line.low[k])];
        ctx.fillRect(u.valToPos(chart.x[k], "x", true) - 5 * devicePixelRatio, top, 10 * devicePixelRatio, end - top);
        return;
      }
      ctx.beginPath();
      for (const k of known) ctx.lineTo(u.valToPos(chart.x[k], "x", true), within(line.high[k]));
      for (const k of known.reverse()) ctx.lineTo(u.valToPos(chart.x[k], "x", true), within(line.low[k]));
      ctx.fill();
    });
    ctx.restore();
  };
  const drawMarks = (chart) => (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.font = FONT.replace("12px", 11 * devicePixelRatio + "px");
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    ctx.lineJoin = "round";
    const px = devicePixelRatio;
    const rows = [];
    const label = (words, at, colour) => {
      const width = ctx.measureText(words).width;
      const from = at + 5 * px + width > bbox.left + bbox.width ? at - 5 * px - width : at + 5 * px;
      let row = rows.findIndex((taken) => taken.every(([low, high]) => from > high || from + width < low));
      if (row < 0) row = rows.push([]) - 1;
      rows[row].push([from - 4 * px, from + width + 4 * px]);
      const top = bbox.top + (2 + 14 * row) * px;
      ctx.setLineDash([]);
      ctx.strokeStyle = css("--paper");
      ctx.lineWidth = 4 * px;
      ctx.strokeText(words, from, top);
      ctx.fillStyle = colour;
      ctx.fillText(words, from, top);
    };
    const places = chart.marks.map((mark) => {
      const colour = css(mark.bad ? "--bad" : mark.tone === null ? "--soft" : "--tone-" + mark.tone);
      return { ...mark, colour, at: u.valToPos(mark.x, "x", true) };
    });
    for (const { at, colour } of places) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = px;
      ctx.setLineDash([3 * px, 3 * px]);
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
    }
    for (const { text: words, at, colour } of places.sort((a, b) => a.at - b.at)) label(words, at, colour);
    if (chart.top)
      chart.lines.forEach((line, i) => {
        if (!line.high || !u.series[i + 1].show || u.scales.y.distr === 3) return;
        line.high.forEach((high, k) => {
          if (high > chart.top) label("\u2191 " + text(high), u.valToPos(chart.x[k], "x", true), css("--tone-" + line.tone));
        });
      });
    ctx.restore();
  };

  const arm = [[-0.5, -1.5], [0.5, -1.5], [0.5, -0.5], [1.5, -0.5], [1.5, 0.5], [0.5, 0.5]];
  const plus = [...arm, ...arm.map(([right, down]) => [-right, -down])];
  const corners = [
    null,
    [[-1, -1], [1, -1], [1, 1], [-1, 1]],
    [[0, -1.3], [1.2, 0.9], [-1.2, 0.9]],
    [[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]],
    [[0, 1.3], [1.2, -0.9], [-1.2, -0.9]],
    plus,
    plus.map(([right, down]) => [0.75 * (right - down), 0.75 * (right + down)]),
    [...Array(10).keys()].map((k) => [(k % 2 ? 0.7 : 1.7) * Math.sin((Math.PI * k) / 5), (k % 2 ? -0.7 : -1.7) * Math.cos((Math.PI * k) / 5)]),
  ];
  const pointed = (chart) =>
    chart.kind === "level" || chart.kind === "plain" || (chart.kind !== "bars" && chart.kind !== "scatter" && chart.x.length <= 40);
  const point = (ctx, line, x, y) => {
    const size = 2.75 * devicePixelRatio;
    ctx.setLineDash([]);
    ctx.lineWidth = 1.25 * devicePixelRatio;
    ctx.strokeStyle = css("--tone-" + line.tone);
    ctx.fillStyle = css("--paper");
    ctx.beginPath();
    if (!line.shape) ctx.arc(x, y, size, 0, 2 * Math.PI);
    else for (const [right, down] of corners[line.shape]) ctx.lineTo(x + right * size, y + down * size);
    ctx.closePath();
    ctx.fill();
    ctx.stroke();
  };
  const joined = (chart) => chart.kind === "quantile" || chart.kind === "plain";
  const drawPoints = (chart) => (u) => {
    if (!pointed(chart)) return;
    const { ctx } = u;
    ctx.save();
    chart.lines.forEach((line, i) => {
      if (!u.series[i + 1].show) return;
      const values = u.data[i + 1];
      const there = (k) => values[k] !== null && values[k] !== undefined;
      const alone = (k) => (joined(chart) ? values.every((_, other) => other === k || !there(other)) : !there(k - 1) && !there(k + 1));
      values.forEach((value, k) => {
        if (!there(k) || (line.shape === null && !alone(k))) return;
        point(ctx, line, u.valToPos(u.data[0][k], "x", true), u.valToPos(value, "y", true));
      });
    });
    ctx.restore();
  };

  const drawn = (chart, place) => {
    if (chart.kind === "scatter") return { paths: () => null, points: { show: true, size: 4 } };
    if (chart.kind !== "bars") return {};
    const [share, align] = chart.lines.length > 1 ? [0.36, place === 0 ? -1 : 1] : [0.8, 0];
    return { paths: uPlot.paths.bars({ size: [share, 48], align }), fill: () => css("--tone-" + chart.lines[place].tone), width: 0, points: { show: false } };
  };

  const columns = (chart, log) => {
    const usable = (value) => (value === null || (log && value <= 0) ? null : value);
    return [chart.x, ...chart.lines.map((line) => (chart.stacked ? line.high : line.values).map(usable))];
  };
  const build = (chart, log, host) => {
    const figure = host.closest("figure");
    const named = !(chart.kind in POSITIONS) ? { label: chart.x_label, labelSize: 18, labelGap: 2, labelFont: FONT } : {};
    const options = {
      width: Math.max(host.clientWidth, 160),
      height: chart.height,
      padding: [8, 12, 0, 0],
      legend: { show: false },
      cursor: {
        drag: { x: chart.kind === "time", y: false },
        sync: chart.kind === "time" ? { key: "time" } : undefined,
        points: { size: 7 },
        y: false,
      },
      scales: { x: xScale(chart), y: log ? { distr: 3, range: logarithmic } : { range: linear(chart) } },
      axes: [
        { stroke: () => css("--soft"), font: FONT, grid: { show: false }, ticks: { stroke: () => css("--strong-hair"), width: 1, size: 4 }, gap: 4, size: 26, ...named, ...ticks(chart) },
        { stroke: () => css("--soft"), font: FONT, grid: { stroke: () => css("--hair"), width: 1 }, ticks: { show: false }, gap: 6, size: 52, ...(log ? { splits: decades, filter: (u, splits) => splits } : {}), values: (u, splits) => splits.map(plain) },
      ],
      series: [
        {},
        ...chart.lines.map((line, i) => ({
          label: line.label,
          stroke: () => css("--tone-" + line.tone),
          width: 1.75,
          dash: line.dashed ? [5, 4] : undefined,
          spanGaps: joined(chart),
          points: { show: false },
          ...drawn(chart, i),
        })),
      ],
      hooks: {
        drawClear: [drawBand(chart), drawIntervals(chart)],
        draw: [drawPoints(chart), drawMarks(chart)],
        setLegend: [(u) => read(chart, figure, u.cursor.idx)],
      },
    };
    const plot = new uPlot(options, columns(chart, log), host);
    host.dataset.drawn = "yes";
    return plot;
  };

  const read = (chart, figure, index) => {
    const readings = figure.querySelectorAll(".reading");
    chart.lines.forEach((line, i) => {
      readings[i].textContent = index === null || index === undefined ? "" : text(line.values[index]);
    });
    figure.querySelector(".at").textContent =
      index === null || index === undefined ? "" : "at " + position(chart, chart.x[index]);
  };

  const swatch = (chart, line) => {
    const mark = svg("svg", { viewBox: "0 0 20 8", "aria-hidden": "true" });
    const stroke = svg("line", { x1: 0, x2: 20, y1: 4, y2: 4, "stroke-dasharray": line.dashed ? "5 3" : "none" });
    stroke.style.stroke = "var(--tone-" + line.tone + ")";
    mark.append(stroke);
    if (pointed(chart) && line.shape !== null) {
      const shape =
        line.shape === 0
          ? svg("circle", { cx: 10, cy: 4, r: 3 })
          : svg("polygon", { points: corners[line.shape].map(([right, down]) => [10 + 3 * right, 4 + 3 * down].join()).join(" ") });
      shape.style.stroke = stroke.style.stroke;
      mark.append(shape);
    }
    return mark;
  };

  // A chart as a picture for documents: what is drawn, under its title, unit and legend, on light paper.
  const picture = (chart, plot) => {
    const [px, drawing] = [devicePixelRatio, plot.ctx.canvas];
    const [edge, width] = [12 * px, drawing.width];
    const canvas = element("canvas");
    const ctx = canvas.getContext("2d");
    const font = (size, weight) => (ctx.font = weight + FONT.replace("12px", size * px + "px"));
    font(12, "");
    const rows = [[]];
    let at = edge;
    for (const line of chart.lines.filter((_, i) => plot.series[i + 1].show)) {
      const room = ctx.measureText(line.label).width + 46 * px;
      if (at + room > width + edge && rows.at(-1).length) {
        rows.push([]);
        at = edge;
      }
      rows.at(-1).push([at, line]);
      at += room;
    }
    const head = (30 + 18 * rows.length) * px;
    canvas.width = width + 2 * edge;
    canvas.height = head + drawing.height + edge;
    ctx.fillStyle = css("--paper");
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.textBaseline = "middle";
    ctx.fillStyle = css("--ink");
    font(14, "600 ");
    ctx.fillText(chart.title, edge, 16 * px);
    font(12, "");
    ctx.textAlign = "right";
    ctx.fillStyle = css("--soft");
    ctx.fillText(chart.unit, width + edge, 16 * px);
    ctx.textAlign = "left";
    rows.forEach((row, place) => {
      const y = (38 + 18 * place) * px;
      for (const [x, line] of row) {
        ctx.strokeStyle = css("--tone-" + line.tone);
        ctx.lineWidth = 2 * px;
        ctx.setLineDash(line.dashed ? [5 * px, 3 * px] : []);
        ctx.beginPath();
        ctx.moveTo(x, y);
        ctx.lineTo(x + 24 * px, y);
        ctx.stroke();
        if (pointed(chart) && line.shape !== null) point(ctx, line, x + 12 * px, y);
        ctx.fillStyle = css("--soft");
        ctx.fillText(line.label, x + 30 * px, y);
      }
    });
    ctx.drawImage(drawing, edge, head);
    return canvas;
  };
  const save = (chart, canvas) =>
    canvas.toBlob((picture) => {
      const link = element("a", { href: URL.createObjectURL(picture), download: chart.id.replace(/^arms-/, "") + ".png" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });

  const table = (shown) => {
    const head = element("tr", {}, element("th", { scope: "col" }, shown[0].x_label));
    for (const chart of shown)
      for (const line of chart.lines)
        head.append(element("th", { scope: "col" }, (shown.length > 1 ? chart.title + ": " : "") + line.label + ", " + chart.unit));
    const body = element("tbody");
    shown[0].x.forEach((x, i) => {
      const row = element("tr", {}, element("th", { scope: "row" }, position(shown[0], x)));
      for (const chart of shown) for (const line of chart.lines) row.append(element("td", {}, text(line.values[i])));
      body.append(row);
    });
    return element("table", {}, element("thead", {}, head), body);
  };
  // Draws a chart into its figure. `say` gets what the arrow keys lead to. The chart may get other values of as many lines.
  const mount = (given, figure, say) => {
    const chart = { ...given };
    const host = figure.querySelector(".plot");
    const legend = figure.querySelector(".legend");
    const state = { log: chart.log_y, plot: null, index: null };
    const hidden = new Set();
    const draw = () => {
      if (state.plot) state.plot.destroy();
      state.plot = build(chart, state.log, host);
      for (const i of hidden) state.plot.setSeries(i + 1, { show: false });
    };
    chart.lines.forEach((line, i) => {
      const button = element("button", { type: "button", "aria-pressed": "true" });
      button.append(swatch(chart, line), line.label, element("span", { class: "reading" }));
      button.addEventListener("click", () => {
        const show = hidden.delete(i) || !hidden.add(i);
        button.setAttribute("aria-pressed", String(show));
        state.plot.setSeries(i + 1, { show });
      });
      legend.append(element("li", {}, button));
    });
    const scale = figure.querySelector(".scale");
    if (scale) {
      const name = () => (scale.textContent = state.log ? "linear scale" : "logarithmic scale");
      scale.hidden = false;
      scale.addEventListener("click", () => {
        state.log = !state.log;
        name();
        draw();
      });
      name();
    }
    const keep = figure.querySelector(".save");
    keep.hidden = false;
    keep.addEventListener("click", async () => {
      document.documentElement.dataset.printing = "yes";
      state.plot.redraw(false, true);
      await null; // uPlot draws in a microtask of its own
      save(chart, picture(chart, state.plot));
      delete document.documentElement.dataset.printing;
      state.plot.redraw(false, true);
    });
    host.addEventListener("keydown", (event) => {
      const last = chart.x.length - 1;
      const from = state.index === null ? -1 : state.index;
      const to = { ArrowLeft: Math.max(from - 1, 0), ArrowRight: Math.min(from + 1, last), Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      state.index = to;
      state.plot.setCursor({ left: state.plot.valToPos(chart.x[to], "x"), top: 10 });
      const values = chart.lines.map((line) => line.label + " " + text(line.values[to]) + " " + chart.unit);
      say(position(chart, chart.x[to]) + ": " + values.join(", "));
    });
    draw();
    const resize = (width) => state.plot.setSize({ width, height: chart.height });
    return {
      fit: () => resize(Math.max(host.clientWidth, 160)),
      shrink: (width) => resize(Math.min(host.clientWidth, width)),
      redraw: () => state.plot.redraw(false, true),
      update: (next) => state.plot.setData(columns(Object.assign(chart, next), state.log)),
      destroy: () => state.plot.destroy(),
    };
  };
  return { mount, table };
})();
