(() => {
  "use strict";
  const board = JSON.parse(document.getElementById("board").textContent);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const colour = (name) => (/^[a-z]+$/.test(name) && css(name)) || name;
  const PALETTE = ["blue", "orange", "green", "purple", "red", "yellow", "grey"].map(css).concat(["#12755f", "#c2318a", "#4a7fb5"]);
  const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // Values as Grafana writes them.
  const digits = (value, decimals) => {
    if (decimals !== null && decimals !== undefined) return value.toFixed(decimals);
    const size = Math.abs(value);
    return String(Number(size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toPrecision(3)));
  };
  const scaled = (value, decimals, steps) => {
    const size = Math.abs(value);
    const [factor, unit] = steps.find(([least]) => size >= least) || steps[steps.length - 1];
    return digits(value / factor, decimals) + unit;
  };
  const seconds = [[604800, " weeks"], [86400, " days"], [3600, " h"], [60, " min"], [1, " s"], [1e-3, " ms"], [1e-6, " µs"]];
  const thousands = [[1e6, " M"], [1e3, " K"], [1, ""]];
  const written = (value, unit, decimals) => {
    if (value === null || value === undefined) return "–";
    if (unit === "bool_yes_no") return value ? "Yes" : "No";
    if (value === 0) return { s: "0 s", percentunit: "0%", reqps: "0 req/s", x: "0x" }[unit] || "0";
    if (unit === "s") return scaled(value, decimals, seconds);
    if (unit === "percentunit") return digits(value * 100, decimals) + "%";
    if (unit === "x") return digits(value, decimals ?? 2) + "x";
    if (unit === "reqps") return scaled(value, decimals, thousands) + " req/s";
    return Math.abs(value) < 1 ? digits(value, decimals) : scaled(value, decimals, thousands);
  };
  const mapped = (defaults, value) => {
    for (const mapping of defaults.mappings || []) {
      const found = mapping.type === "value" ? mapping.options[String(value)] : null;
      if (found) return { text: found.text, color: colour(found.color) };
    }
    return null;
  };
  const threshold = (defaults, value) => {
    const steps = (defaults.thresholds?.steps || []).filter((step) => step.value === null || value >= step.value);
    return colour(steps.length ? steps[steps.length - 1].color : "blue");
  };
  const days = board.to - board.from > 172800;
  const clock = (at) => {
    const when = new Date(at * 1000).toISOString();
    return days ? when.slice(5, 10) : when.slice(11, board.to - board.from > 1200 ? 16 : 19);
  };

  const xAxis = { stroke: () => css("soft"), font: FONT, grid: { stroke: () => css("hair"), width: 1 }, ticks: { show: false }, gap: 4, size: 20, space: days ? 56 : 70 };
  const yAxis = (unit) => ({ stroke: () => css("soft"), font: FONT, grid: { stroke: () => css("hair"), width: 1 }, ticks: { show: false }, gap: 5, size: 62, space: 26, values: (u, splits) => splits.map((value) => written(value, unit)) });
  const overTime = { time: true, range: () => [board.from, board.to] };
  // An arm has its colour in every panel where no two lines are of the same one.
  const arms = [...new Set(board.panels.flatMap((panel) => (panel.type === "barchart" && panel.data ? panel.data.bars.map((bar) => bar.label) : [])))].sort();
  const coloured = (lines) => {
    const names = [...new Set(lines.map((line) => line.label))].sort();
    const armOf = (label) => arms.findIndex((arm) => label.split(/[ ,]+/).includes(arm));
    const byArm = names.every((name) => armOf(name) >= 0) && new Set(names.map(armOf)).size === names.length;
    const place = (label) => (byArm ? armOf(label) : names.indexOf(label)) % PALETTE.length;
    return lines.map((line) => ({ ...line, stroke: line.color ? colour(line.color) : PALETTE[place(line.label)] }));
  };
  // Lines that one colour stands for are told apart by their dashes, so that arms under one quantile are.
  const dashed = (lines) => {
    const seen = {};
    return lines.map((line) => {
      const place = (seen[line.stroke] = (seen[line.stroke] ?? -1) + 1);
      return { ...line, dash: line.lineStyle?.dash || [undefined, [6, 3], [2, 3], [8, 3, 2, 3]][place % 4] };
    });
  };
  const legend = (lines) => {
    const list = element("ul", { class: "legend" });
    for (const line of lines) {
      const mark = element("i");
      const [on, off] = line.dash || [1, 0];
      mark.style.background = line.dash ? `repeating-linear-gradient(90deg, ${line.stroke} 0 ${on}px, transparent ${on}px ${on + off}px)` : line.stroke;
      list.append(element("li", {}, mark, line.label));
    }
    return list;
  };
  const marked = (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    for (const mark of board.marks) {
      const [from, to] = [mark.from, mark.to].map((at) => Math.min(Math.max(u.valToPos(at, "x", true), bbox.left), bbox.left + bbox.width));
      ctx.fillStyle = ctx.strokeStyle = colour(mark.color);
      ctx.globalAlpha = 0.05;
      ctx.fillRect(from, bbox.top, to - from, bbox.height);
      ctx.globalAlpha = 0.55;
      ctx.setLineDash([3, 3]);
      for (const at of [from, to]) {
        ctx.beginPath();
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
        ctx.stroke();
      }
    }
    ctx.restore();
  };
  const plot = (host, options, data) => {
    new uPlot({ width: host.clientWidth, height: host.clientHeight, padding: [6, 12, 0, 0], legend: { show: false }, cursor: { show: false }, ...options }, data, host);
  };

  const draw = {
    timeseries(panel, figure) {
      const lines = dashed(coloured(panel.data.lines));
      const host = element("div", { class: "plot" });
      figure.append(host, legend(lines));
      const { min, max, unit } = panel.defaults;
      const range = (u, low, high) => {
        const [floor, top] = [min ?? low ?? 0, max ?? high ?? 1];
        return [floor, max ?? (top > floor ? floor + (top - floor) * 1.08 : floor + 1)];
      };
      const pointed = panel.drawing.drawStyle === "points" || panel.drawing.showPoints === "always";
      const sole = (k, values) => values[k] !== null && (values[k - 1] ?? null) === null && (values[k + 1] ?? null) === null;
      plot(host, {
        scales: { x: overTime, y: { range } },
        axes: [{ ...xAxis, values: (u, splits) => splits.map(clock) }, yAxis(unit)],
        series: [{}, ...lines.map((line) => ({
          stroke: line.stroke, width: line.lineWidth ?? panel.drawing.lineWidth ?? 1.5, dash: line.dash,
          spanGaps: panel.drawing.spanNulls === true || typeof panel.drawing.spanNulls === "number",
          paths: panel.drawing.lineInterpolation === "stepAfter" ? uPlot.paths.stepped({ align: 1 }) : undefined,
          points: { show: true, size: 5, fill: line.stroke, filter: (u, k) => u.data[0].map((_, at) => at).filter((at) => pointed ? u.data[k][at] !== null : sole(at, u.data[k])) },
        }))],
        hooks: { drawClear: [marked] },
      }, [panel.data.x, ...lines.map((line) => line.values)]);
    },

    stat(panel, figure) {
      const { lines, latest, course } = panel.data;
      const { unit, decimals } = panel.defaults;
      const host = element("div", { class: lines.length > 1 ? "stat many" : "stat" });
      figure.append(host);
      lines.forEach((line, place) => {
        const value = latest[place];
        const word = mapped(panel.defaults, value);
        const shown = element("span", {}, word ? word.text : written(value, unit, decimals));
        if (lines.length > 1) shown.append(element("small", {}, line.label));
        shown.style.color = word ? word.color : threshold(panel.defaults, value);
        host.append(shown);
      });
      if (!course || lines.length > 1) return;
      const canvas = element("canvas");
      host.append(canvas);
      [canvas.width, canvas.height] = [canvas.clientWidth, canvas.clientHeight];
      const values = lines[0].values;
      const most = Math.max(...values.map((value) => value ?? 0)) || 1;
      const ctx = canvas.getContext("2d");
      const at = (k) => [(k / (values.length - 1 || 1)) * canvas.width, canvas.height - ((values[k] ?? 0) / most) * (canvas.height - 3)];
      ctx.beginPath();
      values.forEach((_, k) => ctx.lineTo(...at(k)));
      ctx.strokeStyle = ctx.fillStyle = threshold(panel.defaults, latest[0]);
      ctx.globalAlpha = 0.45;
      ctx.stroke();
      ctx.lineTo(canvas.width, canvas.height);
      ctx.lineTo(0, canvas.height);
      ctx.globalAlpha = 0.1;
      ctx.fill();
    },

    heatmap(panel, figure) {
      const { x, bounds, rows } = panel.data;
      const host = element("div", { class: "plot" });
      figure.append(host);
      const held = rows.map((row) => row.some((count) => count > 0));
      const [first, last] = [held.indexOf(true), held.lastIndexOf(true)];
      const edges = bounds.map((bound, k) => [k ? bounds[k - 1] : bound / 1.25, bound]);
      const most = Math.max(...rows.flat());
      const step = x.length > 1 ? Math.min(...x.slice(1).map((at, k) => at - x[k])) : 1;
      const paint = (u) => {
        const { ctx } = u;
        ctx.save();
        rows.forEach((row, k) => row.forEach((count, i) => {
          if (!(count > 0)) return;
          const [left, right] = [x[i] - step, x[i]].map((at) => Math.round(u.valToPos(at, "x", true)));
          const [top, bottom] = [edges[k][1], edges[k][0]].map((at) => Math.round(u.valToPos(at, "y", true)));
          const share = Math.sqrt(count / most);
          ctx.fillStyle = `hsl(${32 - 18 * share} ${80 + 10 * share}% ${92 - 58 * share}%)`;
          ctx.fillRect(left, top, Math.max(right - left - 1, 1), Math.max(bottom - top - 1, 1));
        }));
        ctx.restore();
      };
      const low = edges[Math.max(first - 1, 0)][0];
      const high = edges[Math.min(last + 1, edges.length - 1)][1];
      const round = [1, 2, 5].flatMap((step) => [-4, -3, -2, -1, 0, 1, 2].map((power) => step * 10 ** power)).sort((a, b) => a - b);
      plot(host, {
        scales: { x: overTime, y: { distr: 3, range: () => [low, high] } },
        axes: [{ ...xAxis, values: (u, splits) => splits.map(clock) }, { ...yAxis("s"), splits: () => round.filter((value) => value >= low && value <= high), filter: (u, splits) => splits }],
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: { draw: [paint] },
      }, [x, x.map(() => high)]);
    },

    barchart(panel, figure) {
      const { groups, bars } = panel.data;
      const lines = coloured(bars);
      const host = element("div", { class: "plot" });
      figure.append(host, legend(lines));
      const { unit, min } = panel.defaults;
      const share = 0.72 / bars.length;
      const label = (line, place) => (u) => {
        const { ctx } = u;
        ctx.save();
        ctx.font = FONT;
        ctx.textAlign = "center";
        ctx.fillStyle = css("ink");
        line.values.forEach((value, k) => {
          const text = written(value, unit);
          const room = (u.bbox.width / groups.length) * share;
          if (value === null || value === undefined || ctx.measureText(text).width > room) return;
          ctx.fillText(text, u.valToPos(k - 0.36 + share * (place + 0.5), "x", true), u.valToPos(value, "y", true) - 4);
        });
        ctx.restore();
      };
      const each = (place) => ({ unit: 1, values: (u) => u.data[0].map((k) => k - 0.36 + share * place) });
      plot(host, {
        scales: { x: { time: false, range: () => [-0.5, groups.length - 0.5] }, y: { range: (u, low, high) => [Math.min(min ?? 0, low ?? 0), (high || 1) * 1.15] } },
        axes: [{ ...xAxis, grid: { show: false }, splits: () => groups.map((_, k) => k), values: () => groups, filter: (u, splits) => splits }, yAxis(unit)],
        series: [{}, ...lines.map((line, place) => ({
          stroke: line.stroke, fill: line.stroke + "cc", width: 0, points: { show: false },
          paths: uPlot.paths.bars({ disp: { x0: each(place), size: { unit: 1, values: (u) => u.data[0].map(() => share * 0.94) } } }),
        }))],
        hooks: { draw: lines.map(label) },
      }, [groups.map((_, k) => k), ...lines.map((line) => line.values)]);
    },

    table(panel, figure) {
      const { heads, units, rows } = panel.data;
      const numbers = units.map((unit) => unit !== null);
      const cell = (name, place, text) => element(name, numbers[place] ? { class: "of-numbers" } : {}, text);
      const body = rows.map((row) => element("tr", {}, ...row.map((value, place) =>
        cell("td", place, typeof value === "number" ? written(value, units[place]) : value ?? "–"))));
      figure.append(element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head, place) => cell("th", place, head)))), element("tbody", {}, ...body)));
    },

    "state-timeline"(panel, figure) {
      const { x, lines, step_s } = panel.data;
      const host = element("div", { class: "states" });
      figure.append(host);
      const whole = board.to - board.from;
      for (const line of lines) {
        const spans = [];
        line.values.forEach((value, k) => {
          const before = spans[spans.length - 1];
          if (value === null) return;
          if (before && before.value === value && x[k] - before.to <= step_s * 1.5) before.to = x[k];
          else spans.push({ value, from: x[k], to: x[k] });
        });
        const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        for (const span of spans) {
          const [left, width] = [span.from - board.from, span.to - span.from + step_s].map((part) => (100 * part) / whole);
          const word = mapped(panel.defaults, span.value) || { text: written(span.value, panel.defaults.unit), color: css("grey") };
          const band = document.createElementNS("http://www.w3.org/2000/svg", "rect");
          for (const [key, at] of Object.entries({ x: left + "%", width: Math.max(width, 0.4) + "%", y: 0, height: "100%", fill: word.color, "fill-opacity": 0.75 })) band.setAttribute(key, at);
          svg.append(band);
          if (width < 7) continue;
          const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
          for (const [key, at] of Object.entries({ x: left + 0.8 + "%", y: "50%", dy: "0.35em", fill: "#ffffff", "font-size": 11 })) text.setAttribute(key, at);
          text.append(word.text);
          svg.append(text);
        }
        host.append(element("div", {}, element("label", {}, line.label), svg));
      }
      host.append(element("footer", {}, element("span", {}, clock(board.from)), element("span", {}, clock(board.to))));
    },
  };

  const words = (text) => text.split("**").map((part, place) => (place % 2 ? element("b", {}, part) : part));
  const main = document.querySelector("main");
  for (const panel of board.panels) {
    const { x, y, w, h } = panel.gridPos;
    const area = `${y + 1} / ${x + 1} / span ${h} / span ${w}`;
    if (panel.type === "row") {
      const head = element("h2", {}, panel.title);
      head.style.gridArea = area;
      main.append(head);
      continue;
    }
    const figure = element("figure", { class: "of-" + panel.type, "data-title": panel.title });
    figure.style.gridArea = area;
    main.append(figure);
    if (panel.type === "text") {
      figure.append(...words(panel.data.text));
      continue;
    }
    figure.append(element("figcaption", {}, panel.title));
    if (panel.data === null) figure.append(element("p", { class: "nothing" }, "no traffic"));
    else draw[panel.type](panel, figure);
  }
  document.querySelector("h1").append(board.title);
  const chosen = document.querySelector(".variables");
  for (const [label, value] of Object.entries(board.variables)) chosen.append(label + " ", element("b", {}, value));
  document.querySelector(".span").append(`${clock(board.from)} to ${clock(board.to)} UTC`);
  document.documentElement.dataset.drawn = "yes";
})();
