(() => {
  "use strict";
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const spoken = document.getElementById("spoken");
  for (const details of document.querySelectorAll("details.values")) {
    const names = details.dataset.charts.split(" ");
    const shown = charts.filter((chart) => names.includes(chart.id));
    details.hidden = shown.length === 0;
    details.addEventListener("toggle", () => {
      const box = details.querySelector(".wide");
      if (details.open && !box.hasChildNodes()) box.append(loadgenCharts.table(shown));
    });
  }

  const say = (words) => (spoken.textContent = words);
  const live = charts.map((chart) => loadgenCharts.mount(chart, document.getElementById("plot-" + chart.id).closest("figure"), say));
  const fit = () => live.forEach((one) => one.fit());
  new ResizeObserver(fit).observe(document.querySelector("main"));
  const repaint = () => live.forEach((one) => one.redraw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not(.values, .raw-json, [open])")];
    for (const details of folded) details.open = true;
    document.documentElement.dataset.printing = "yes";
    live.forEach((one) => one.shrink(700));
    repaint();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.printing;
    for (const details of folded) details.open = false;
    fit();
    repaint();
  });

  const raw = document.querySelector(".raw-json");
  const source = document.getElementById("raw").textContent;
  raw.addEventListener("toggle", () => {
    if (raw.open) raw.querySelector("pre").textContent = source;
  });
  const copy = document.querySelector("button.copy");
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source);
      copy.textContent = "Copied";
    } catch {
      raw.open = true;
      copy.textContent = "Select it below";
    }
    setTimeout(() => (copy.textContent = "Copy as JSON"), 2500);
  });
})();
