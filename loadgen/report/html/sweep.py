"""The page of a ladder of runs."""

from collections.abc import Sequence
from dataclasses import asdict

from loadgen.core.analysis.gates import failed_gates
from loadgen.core.metrics.summary import Distribution, Sweep, SweepLevel
from loadgen.core.run import RunManifest
from loadgen.report.charts import ladder_charts
from loadgen.report.html.page import (
    FULL,
    RUN_TERMS,
    Figure,
    data_table,
    definitions,
    esc,
    fact_list,
    figure_list,
    foreign,
    head_row,
    json_facts,
    page,
    plots,
    raw_section,
    section,
    term_link,
    text_table,
    value_cell,
    verdict_box,
)
from loadgen.report.ladder import server_levels, sweep_name
from loadgen.report.verdict import has_doubts, sweep_doubts, sweep_headline
from loadgen.report.words import (
    DASH,
    LATENCY_LABELS,
    asked,
    failed_share,
    levels_text,
    milliseconds,
    number,
    percent,
    printable,
    timing_text,
)


def sweep_html(sweep: Sweep, manifest: RunManifest | None = None) -> str:
    """The report of a ladder: curves against the level, a row a level, and where the knee lies.

    `manifest` is that of its first level, for the gates.
    """
    charts = ladder_charts(sweep)
    sections = []
    if sweep.levels:
        terms = ["ttft_s", "tpot_s", "e2el_s", *RUN_TERMS]
        sections = [
            section("figures", "Key figures", figure_list(_figures(sweep))),
            section("ladder", "Against the load", plots(charts, "pair", table=False)),
            section("levels", "Levels", _level_table(sweep) + _server_table(sweep)),
            section("setting", "Target", _setting(sweep)),
            section("definitions", "Definitions", definitions(terms, sweep.levels[0].summary.estimator)),
        ]
    sections.append(raw_section())
    name = sweep_name(sweep)
    return page(
        title=f"{name} · loadgen sweep",
        header=_header(sweep, manifest, name),
        main="\n".join(sections),
        charts=charts,
        raw=asdict(sweep),
    )


def _header(sweep: Sweep, manifest: RunManifest | None, name: str) -> str:
    subtitle, summaries = "", [level.summary for level in sweep.levels]
    if summaries:
        target = summaries[0].target
        server = f"<b>{foreign(target.model)}</b> at {foreign(target.url)}"
        subtitle = f'<p class="subtitle">{server}. {esc(levels_text(sweep))}.</p>'
    gates = () if manifest is None else failed_gates(summaries, manifest.options)
    return f"""<header>
<p class="eyebrow">loadgen sweep {foreign(sweep.sweep_id)}</p>
<h1>{foreign(name)}</h1>
{subtitle}
{verdict_box(sweep_headline(sweep), sweep_doubts(sweep), gates)}
</header>"""


def _figures(sweep: Sweep) -> list[Figure]:
    valid = [level for level in sweep.levels if level.summary.verdict.valid]
    figures = [
        Figure(
            term="knee",
            label="Knee",
            value=DASH if sweep.knee is None else asked(sweep.knee.level),
            unit="" if sweep.knee is None else ("in flight" if sweep.variable == "concurrency" else "requests/s"),
            beside=printable(sweep.no_knee or "none found") if sweep.knee is None else printable(sweep.knee.reason),
        )
    ]

    def best(
        label: str, term: str, unit: str, found: Sequence[tuple[float, float]], largest: bool, scale: float
    ) -> Figure:
        if not found:
            return Figure(term=term, label=label, value=DASH, beside="no valid level")
        value, level = (max if largest else min)(found)
        return Figure(term=term, label=label, value=number(value * scale), unit=unit, beside=f"at {asked(level)}")

    def values(pick: str, group: str, part: str | None = None) -> list[tuple[float, float]]:
        found = []
        for level in valid:
            value = getattr(getattr(level.summary, group), pick)
            value = value if part is None else getattr(value, part)
            if value is not None:
                found.append((value, level.level))
        return found

    tokens = values("output_tokens_per_s", "throughput")
    figures.append(best("Most output tokens", "output_tokens_per_s", "/s", tokens, True, 1.0))
    for key in ("ttft_s", "tpot_s"):
        label = f"Lowest {LATENCY_LABELS[key]}, median"
        figures.append(best(label, key, "ms", values(key, "latency", "p50"), False, 1e3))
    return figures


def _level_table(sweep: Sweep) -> str:
    top = (
        '<tr><td class="group"></td><th colspan="2" scope="colgroup" class="group">throughput</th>'
        + "".join(
            f'<th colspan="3" scope="colgroup" class="group">{term_link(key, LATENCY_LABELS[key])}, ms</th>'
            for key in ("ttft_s", "tpot_s", "e2el_s")
        )
        + '<td colspan="3" class="group"></td></tr>'
    )
    titles = [sweep.variable.removesuffix("_rps").replace("_", " "), "requests/s", "tokens/s"]
    titles += ["p50", "p95", "p99"] * 3 + ["in flight", "failed", "<verdict"]
    rows = [_level_row(sweep, level) for level in sweep.levels]
    return data_table(
        "One row a level. A dash means too few values.", top + head_row(titles), rows, "Level table", FULL
    )


def _server_table(sweep: Sweep) -> str:
    table = server_levels(sweep)
    return "" if table is None else text_table(table, "Drafts and server by level")


def _level_row(sweep: Sweep, level: SweepLevel) -> str:
    summary = level.summary
    cells = [number(summary.throughput.requests_per_s), number(summary.throughput.output_tokens_per_s)]
    for key in ("ttft_s", "tpot_s", "e2el_s"):
        distribution: Distribution = getattr(summary.latency, key)
        cells.extend(milliseconds(value) for value in (distribution.p50, distribution.p95, distribution.p99))
    cells.extend((number(summary.concurrency.mean), percent(failed_share(summary))))
    at_knee = sweep.knee is not None and sweep.knee.level == level.level
    words = ["knee"] if at_knee else []
    if not summary.verdict.valid:
        words.append('<span class="tag invalid">invalid</span>')
    elif has_doubts(summary.verdict.findings):
        words.append('<span class="tag warning">doubts</span>')
    css = " ".join(name for name, on in (("knee", at_knee), ("bad", not summary.verdict.valid)) if on)
    row_class = f' class="{css}"' if css else ""
    return (
        f'<tr{row_class}><th scope="row">{esc(asked(level.level))}</th>{"".join(map(value_cell, cells))}'
        f'<td class="text">{" ".join(words) or "valid"}</td></tr>'
    )


def _setting(sweep: Sweep) -> str:
    first = sweep.levels[0].summary
    client = [("Timing", esc(timing_text(first.client.timing_source))), ("Workers", esc(first.client.workers))]
    groups = [("Target", json_facts(asdict(first.target))), ("Client", fact_list(client))]
    if first.labels:
        groups.append(("Labels", json_facts(first.labels)))
    columns = "".join(f"<div><h3>{esc(title)}</h3>{body}</div>" for title, body in groups)
    return f'<div class="columns">{columns}</div>'
