"""A run or a sweep as one HTML file that holds all it shows: no network, no framework, tables beside every chart.

Text from a server, a data set or a user reaches the page only through `_esc` or `_data`; on top of that the page's
content security policy names its own style and script by hash, so that nothing else could run or load.
"""

import base64
import hashlib
import html
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from string import Template
from typing import Any

from loadgen import __version__
from loadgen.core.metrics.summary import Analysis, Distribution, FailureSample, Finding, Summary, Sweep, SweepLevel
from loadgen.core.run import RunManifest
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.report.charts import Chart, ladder_charts, quantile_chart, time_charts
from loadgen.report.words import (
    DASH,
    LATENCY_LABELS,
    SEVERITIES,
    adjusted_latencies,
    adjusted_text,
    asked,
    definition,
    failed_share,
    load_text,
    milliseconds,
    number,
    percent,
    population_text,
    printable,
    shown_latencies,
    span,
    timing_text,
    token_source_text,
    variable_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One key figure: a defined term, its value with a unit, and what stands beside it."""

    term: str
    label: str
    value: str
    unit: str = ""
    beside: str = ""


def run_html(analysis: Analysis, manifest: RunManifest) -> str:
    """The report of one run. Nothing in it is fetched; open it from a file."""
    summary = analysis.summary
    valid = summary.verdict.valid
    quantiles = quantile_chart(analysis)
    over_time = time_charts(summary)
    sections = [
        _section("figures", "Key figures", _figures(_run_figures(summary), doubtful=not valid), valid=valid),
        _section("latency", "Latency", _latency_table(summary) + _plots([quantiles], "latency"), valid=valid),
        _section("time", "Over time", _over_time(summary, over_time), valid=valid),
        _section("requests", "Requests and failures", _requests(analysis)),
    ]
    if summary.slo is not None:
        sections.append(_section("slo", "Service level", _slo(summary), valid=valid))
    if summary.speculation is not None:
        sections.append(_section("speculation", "Speculative decoding", _speculation(summary), valid=valid))
    sections.append(_section("setting", "Load and target", _setting(summary, manifest)))
    terms = [*(key for key, _ in shown_latencies(summary)), *_RUN_TERMS]
    sections.append(_section("definitions", "Definitions", _definitions(terms, summary.estimator)))
    sections.append(_raw_section())
    name = summary.name or f"{summary.target.model}, {load_text(summary)}"
    return _page(
        title=f"{name} · loadgen run",
        header=_run_header(summary, name),
        main="\n".join(sections),
        charts=[quantiles, *over_time],
        raw=asdict(summary),
    )


def sweep_html(sweep: Sweep) -> str:
    """The report of a ladder: curves against the level, a row a level, and where the knee lies."""
    charts = ladder_charts(sweep)
    bad = [level for level in sweep.levels if not level.summary.verdict.valid]
    sections = []
    if sweep.levels:
        terms = ["ttft_s", "tpot_s", "e2el_s", *_RUN_TERMS]
        sections = [
            _section("figures", "Key figures", _figures(_sweep_figures(sweep))),
            _section("ladder", "Against the load", _plots(charts, "pair", table=False)),
            _section("levels", "Levels", _level_table(sweep)),
            _section("setting", "Target", _sweep_setting(sweep)),
            _section("definitions", "Definitions", _definitions(terms, sweep.levels[0].summary.estimator)),
        ]
    sections.append(_raw_section())
    name = sweep.name or f"sweep {sweep.sweep_id}"
    return _page(
        title=f"{name} · loadgen sweep",
        header=_sweep_header(sweep, name, bad),
        main="\n".join(sections),
        charts=charts,
        raw=asdict(sweep),
    )


# The page


def _page(*, title: str, header: str, main: str, charts: Iterable[Chart], raw: Mapping[str, Any]) -> str:
    style = _resource("vendor/uplot/uPlot.min.css") + "\n" + _resource("page/page.css")
    licence = _resource("vendor/uplot/LICENSE").replace("*/", "* /")
    script = f"/*\n{licence}*/\n{_resource('vendor/uplot/uPlot.iife.min.js')}\n{_resource('page/page.js')}"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    return Template(_resource("page/page.html")).substitute(
        policy=policy,
        version=_esc(__version__),
        title=_esc(title),
        style=style,
        header=header,
        main=main,
        charts=_data([chart.as_json() for chart in charts if chart.drawable]),
        raw=_data(raw, indent=2),
        script=script,
    )


def _resource(name: str) -> str:
    return resources.files("loadgen.report").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _esc(text: object) -> str:
    return html.escape(printable(str(text)), quote=True)


def _foreign(text: object) -> str:
    """Text from outside in a line of ours: escaped, and isolated so that its direction stays its own."""
    return f"<bdi>{_esc(text)}</bdi>"


def _data(value: object, indent: int | None = None) -> str:
    """JSON for a script element: strict, ASCII, and without a character that could end the element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, indent=indent)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _section(name: str, title: str, body: str, *, valid: bool = True) -> str:
    tag = "" if valid else ' <span class="tag invalid">invalid measurement</span>'
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{_esc(title)}{tag}</h2>\n{body}\n</section>'


def _term(key: str, label: str) -> str:
    """A label that leads to its definition."""
    return f'<a href="#term-{key}" title="{_esc(definition(key))}">{_esc(label)}</a>'


# Header and verdict


def _run_header(summary: Summary, name: str) -> str:
    load = load_text(summary)
    interrupted = ", interrupted" if summary.interrupted else ""
    engine = " ".join(part for part in (summary.target.engine, summary.target.engine_version) if part)
    engine_text = f", {_foreign(engine)}" if engine else ""
    return f"""<header>
<p class="eyebrow">loadgen run {_foreign(summary.run_id)}, {_foreign(summary.started_at)}{interrupted}</p>
<h1>{_foreign(name)}</h1>
<p class="subtitle"><b>{_foreign(summary.target.model)}</b> at {_foreign(summary.target.url)}{engine_text}.
{_esc(load[0].upper() + load[1:])}.</p>
{_verdict(summary)}
</header>"""


def _verdict(summary: Summary) -> str:
    verdict = summary.verdict
    findings = sorted(verdict.findings, key=lambda finding: _rank(finding.severity))
    if not verdict.valid:
        words, kind = "✗ Invalid: do not use these numbers", "invalid"
    elif any(finding.severity == "warning" for finding in findings):
        words, kind = "✓ Valid, with doubts", "warning"
    else:
        words, kind = "✓ Valid", "valid"
    return _verdict_box(words, kind, [_finding(finding) for finding in findings])


def _verdict_box(words: str, kind: str, findings: Sequence[str]) -> str:
    listed = f'<ul class="findings">{"".join(findings)}</ul>' if findings else ""
    return f'<section class="verdict {kind}" aria-label="Verdict"><p>{_esc(words)}</p>{listed}</section>'


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _finding(finding: Finding, where: str = "") -> str:
    css = finding.severity if finding.severity in SEVERITIES else "info"
    advice = f'<p class="advice">{_foreign(finding.advice)}</p>' if finding.advice else ""
    return (
        f'<li><span><span class="tag {css}">{_esc(finding.severity)}</span></span>'
        f"<div><p>{_esc(where)}{_foreign(finding.evidence)}</p>{advice}</div></li>"
    )


def _sweep_header(sweep: Sweep, name: str, bad: Sequence[SweepLevel]) -> str:
    if not sweep.levels:
        box, subtitle = _verdict_box("✗ Empty: no level has finished", "invalid", []), ""
    else:
        doubts: dict[tuple[str, str], list[tuple[float, Finding]]] = {}
        for level in sweep.levels:
            for finding in level.summary.verdict.findings:
                if finding.severity != "info":
                    doubts.setdefault((finding.severity, finding.kind), []).append((level.level, finding))
        findings = [
            _finding(found[0][1], where=f"At {', '.join(asked(at) for at, _ in found)}: ")
            for _, found in sorted(doubts.items(), key=lambda item: _rank(item[0][0]))
        ]
        if bad:
            levels = ", ".join(asked(level.level) for level in bad)
            box = _verdict_box(f"✗ Invalid at {levels}: do not use those levels", "invalid", findings)
        elif findings:
            box = _verdict_box("✓ Valid, with doubts", "warning", findings)
        else:
            box = _verdict_box("✓ Valid at every level", "valid", [])
        target = sweep.levels[0].summary.target
        subtitle = (
            f'<p class="subtitle"><b>{_foreign(target.model)}</b> at {_foreign(target.url)}.'
            f" {len(sweep.levels)} levels of {_esc(variable_text(sweep.variable))}.</p>"
        )
    return f"""<header>
<p class="eyebrow">loadgen sweep {_foreign(sweep.sweep_id)}</p>
<h1>{_foreign(name)}</h1>
{subtitle}
{box}
</header>"""


# Key figures


def _run_figures(summary: Summary) -> list[Figure]:
    latency, throughput, counts = summary.latency, summary.throughput, summary.requests

    def median(key: str, distribution: Distribution) -> Figure:
        tail = next(
            (
                f"{name} {milliseconds(value)} ms"
                for name in ("p99", "p95", "p90")
                if (value := getattr(distribution, name)) is not None
            ),
            f"n = {distribution.n}",
        )
        return Figure(
            term=key,
            label=f"{LATENCY_LABELS[key]}, median",
            value=milliseconds(distribution.p50),
            unit="ms",
            beside=tail,
        )

    figures = [
        median("ttft_s", latency.ttft_s),
        median("tpot_s", latency.tpot_s),
        median("e2el_s", latency.e2el_s),
        Figure(
            term="output_tokens_per_s",
            label="Output tokens",
            value=number(throughput.output_tokens_per_s),
            unit="/s",
            beside=f"{number(summary.concurrency.mean)} in flight on average",
        ),
        Figure(
            term="requests_per_s",
            label="Requests completed",
            value=number(throughput.requests_per_s),
            unit="/s",
            beside=f"{number(summary.rate.sent_rps)}/s sent"
            + ("" if summary.rate.offered_rps is None else f" of {number(summary.rate.offered_rps)} offered"),
        ),
        Figure(
            term="failed_ratio",
            label="Failed or dropped",
            value=percent(failed_share(summary)),
            beside=f"{counts.failed + counts.dropped} of {counts.planned}",
        ),
    ]
    if summary.slo is not None:
        figures.append(
            Figure(
                term="attainment_ratio",
                label="SLO attained",
                value=percent(summary.slo.attainment_ratio),
                beside=f"{number(throughput.goodput_rps)} good requests/s",
            )
        )
    if summary.speculation is not None:
        figures.append(
            Figure(
                term="acceptance_length",
                label="Acceptance length",
                value=number(summary.speculation.acceptance_length),
                unit="tokens",
                beside=f"from {printable(summary.speculation.origin).replace('_', ' ')}"
                if summary.speculation.acceptance_ratio is None
                else f"{percent(summary.speculation.acceptance_ratio)} of drafted tokens accepted",
            )
        )
    return figures


def _sweep_figures(sweep: Sweep) -> list[Figure]:
    valid = [level for level in sweep.levels if level.summary.verdict.valid]
    figures = [
        Figure(
            term="knee",
            label="Knee",
            value=DASH if sweep.knee is None else asked(sweep.knee.level),
            unit="" if sweep.knee is None else ("in flight" if sweep.variable == "concurrency" else "requests/s"),
            beside="none found" if sweep.knee is None else printable(sweep.knee.reason),
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


def _figures(figures: Iterable[Figure], *, doubtful: bool = False) -> str:
    cells = []
    for figure in figures:
        unit = f' <span class="unit">{_esc(figure.unit)}</span>' if figure.unit and figure.value != DASH else ""
        absent = " absent" if figure.value == DASH else ""
        beside = f'<dd class="beside">{_esc(figure.beside)}</dd>' if figure.beside else ""
        cells.append(
            f"<div><dt>{_term(figure.term, figure.label)}</dt>"
            f'<dd class="value{absent}">{_esc(figure.value)}{unit}</dd>{beside}</div>'
        )
    return f'<dl class="figures{" doubtful" if doubtful else ""}">{"".join(cells)}</dl>'


# Charts


def _plots(charts: Sequence[Chart], layout: str, *, table: bool = True) -> str:
    """Charts in a layout; with `table`, the same values as one table, for charts that no table of the page covers."""
    drawn = f'<div class="plots {layout}">{"".join(_plot(chart) for chart in charts)}</div>'
    if not table:
        return drawn
    names = " ".join(chart.id for chart in charts)
    return (
        f'{drawn}<details class="values" data-charts="{_esc(names)}" hidden><summary>The values as a table</summary>'
        '<div class="wide" tabindex="0" role="region" aria-label="Values of the chart"></div></details>'
    )


def _plot(chart: Chart) -> str:
    caption = f'<h3>{_esc(chart.title)}</h3><span class="per">{_esc(chart.unit)}</span>'
    if not chart.drawable:
        return f'<figure><figcaption>{caption}</figcaption><p class="nothing">There is no value to draw.</p></figure>'
    scale = '<button type="button" class="scale" hidden></button>' if chart.choose_scale else ""
    lines = ", ".join(line.label for line in chart.lines)
    spoken = f"Chart: {chart.title} in {chart.unit}, {lines}, by {chart.x_label}. Arrow keys read it point by point."
    return (
        f'<figure><figcaption>{caption}{scale}<ul class="legend"></ul><span class="per at"></span></figcaption>'
        f'<div class="plot" id="plot-{chart.id}" role="img" tabindex="0" aria-label="{_esc(spoken)}"></div>'
        "</figure>"
    )


def _over_time(summary: Summary, charts: Sequence[Chart]) -> str:
    if not charts or summary.time_series is None:
        return '<p class="nothing">There is no series to draw.</p>'
    note = f"Bins of {span(summary.time_series.step_s)}; the last may be partly filled."
    if summary.window is not None:
        window = summary.window
        note += f" Shaded: the measured window, {span(window.start_s)} to {span(window.end_s)}."
    if summary.steady_state is not None:
        steady = summary.steady_state
        note += (
            f" Concurrency was steady from {span(steady.start_s)} to {span(steady.end_s)}:"
            f" {number(steady.output_tokens_per_s)} output tokens/s, {number(steady.requests_per_s)} requests/s."
        )
    note += " Drag across a chart to enlarge a span, double-click to go back."
    return f'{_plots(charts, "stack")}<p class="note">{_esc(note)}</p>'


# Tables

_FULL = ' class="full"'


def _table(caption: str, head: str, rows: Iterable[str], label: str, css: str = "") -> str:
    """A table that scrolls by itself when the window is narrow; the caption stands outside so that it does not."""
    return (
        f'<p class="caption">{caption}</p><div class="wide" tabindex="0" role="region" aria-label="{_esc(label)}">'
        f"<table{css}><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _head(titles: Iterable[str]) -> str:
    cells = "".join(
        f'<th scope="col" class="text">{_esc(title[1:])}</th>'
        if title.startswith("<")
        else f'<th scope="col">{_esc(title)}</th>'
        for title in titles
    )
    return f"<tr>{cells}</tr>"


def _cell(text: str) -> str:
    return f'<td class="absent">{DASH}</td>' if text == DASH else f"<td>{_esc(text)}</td>"


def _distribution_row(
    header: str, distribution: Distribution, text: Callable[[Distribution, str], str], css: str = ""
) -> str:
    cells = [_cell(str(distribution.n)), _cell(str(distribution.missing))]
    cells.extend(_cell(text(distribution, name)) for name in ("mean", *PERCENTILES, "max"))
    return f'<tr{css}><th scope="row">{header}</th>{"".join(cells)}</tr>'


def _plain_text(distribution: Distribution, name: str) -> str:
    return milliseconds(getattr(distribution, name))


def _latency_table(summary: Summary) -> str:
    rows = [
        _distribution_row(_term(key, LATENCY_LABELS[key]), found, _plain_text)
        for key, found in shown_latencies(summary)
    ]
    for key, found in adjusted_latencies(summary):
        header = f"{_esc(LATENCY_LABELS[key])}, {_term('error_adjusted', 'failed = ∞')}"
        rows.append(_distribution_row(header, found, adjusted_text, ' class="derived"'))
    titles = ["", "n", "missing", "mean", *(name.replace("_", ".") for name in PERCENTILES), "max"]
    caption = (
        f"Milliseconds. {_esc(population_text(summary))}. Percentiles: {_foreign(summary.estimator)}; a dash means that"
        " the sample is too small for that percentile."
    )
    return _table(caption, _head(titles), rows, "Latency table", _FULL)


def _requests(analysis: Analysis) -> str:
    counts = analysis.summary.requests
    columns = ("planned", "sent", "completed", "failed", "cancelled", "dropped", "resent")
    row = "".join(_cell(str(getattr(counts, name))) for name in columns)
    table = _table(
        "Planned = completed + failed + cancelled + dropped."
        f" Output tokens: {_esc(token_source_text(analysis.summary))}.",
        _head(["", *columns]),
        [f'<tr><th scope="row">requests</th>{row}</tr>'],
        "Request counts",
    )
    if not analysis.failures:
        return table
    failures = _table(
        "Failures by kind, with the message of one of each.",
        _head(["kind", "HTTP", "n", "share of planned", "<example"]),
        [_failure_row(failure, counts.planned) for failure in analysis.failures],
        "Failures",
    )
    return f"{table}\n{failures}"


def _failure_row(failure: FailureSample, planned: int) -> str:
    status = DASH if failure.http_status is None else str(failure.http_status)
    example = f"<code>{_foreign(failure.example)}</code>" if failure.example else DASH
    return (
        f'<tr><th scope="row">{_esc(failure.kind)}</th>{_cell(status)}<td>{failure.count}</td>'
        f'{_cell(percent(failure.count / planned if planned else None))}<td class="text">{example}</td></tr>'
    )


def _level_table(sweep: Sweep) -> str:
    top = (
        '<tr><th class="group"></th><th colspan="2" scope="colgroup" class="group">throughput</th>'
        + "".join(
            f'<th colspan="3" scope="colgroup" class="group">{_term(key, LATENCY_LABELS[key])}, ms</th>'
            for key in ("ttft_s", "tpot_s", "e2el_s")
        )
        + '<th colspan="3" class="group"></th></tr>'
    )
    titles = [sweep.variable.removesuffix("_rps").replace("_", " "), "requests/s", "tokens/s"]
    titles += ["p50", "p95", "p99"] * 3 + ["in flight", "failed", "<verdict"]
    rows = [_level_row(sweep, level) for level in sweep.levels]
    return _table("One row a level. A dash means too few values.", top + _head(titles), rows, "Level table", _FULL)


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
    elif any(finding.severity == "warning" for finding in summary.verdict.findings):
        words.append('<span class="tag warning">doubts</span>')
    css = " ".join(name for name, on in (("knee", at_knee), ("bad", not summary.verdict.valid)) if on)
    row_class = f' class="{css}"' if css else ""
    return (
        f'<tr{row_class}><th scope="row">{_esc(asked(level.level))}</th>{"".join(map(_cell, cells))}'
        f'<td class="text">{" ".join(words) or "valid"}</td></tr>'
    )


# Facts


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    """A list of facts; the values are HTML already."""
    return f'<dl class="facts">{"".join(f"<dt>{_esc(label)}</dt><dd>{value}</dd>" for label, value in rows)}</dl>'


def _slo(summary: Summary) -> str:
    slo = summary.slo
    if slo is None:
        return ""
    limits = ", ".join(f"{LATENCY_LABELS.get(key, key)} ≤ {span(limit)}" for key, limit in slo.objectives.items())
    return _facts(
        [
            ("Objectives", _esc(limits)),
            ("Attained", _esc(f"{percent(slo.attainment_ratio)}: {slo.good} good of {slo.due} due")),
            ("Goodput", _esc(f"{number(summary.throughput.goodput_rps)} good requests/s")),
        ]
    )


def _speculation(summary: Summary) -> str:
    found = summary.speculation
    if found is None:
        return ""
    facts = [
        ("Acceptance length", _esc(number(found.acceptance_length))),
        ("Acceptance ratio", _esc(percent(found.acceptance_ratio))),
        ("Steps with a draft", _esc(number(found.steps))),
        ("Tokens drafted", _esc(number(found.drafted_tokens))),
        ("Tokens accepted", _esc(number(found.accepted_tokens))),
        ("Drafting coverage", _esc(percent(found.coverage_ratio))),
        ("Origin", _foreign(found.origin.replace("_", " "))),
        *(("Note", _foreign(note)) for note in found.notes),
    ]
    body = _facts(facts)
    if not found.acceptance_by_position:
        return body
    positions = found.acceptance_by_position
    table = _table(
        "Share of steps whose draft was accepted up to a position.",
        _head(["position", *(str(i + 1) for i in range(len(positions)))]),
        [f'<tr><th scope="row">accepted</th>{"".join(_cell(percent(p)) for p in positions)}</tr>'],
        "Acceptance by position",
    )
    return f'<div class="columns"><div>{body}</div><div>{table}</div></div>'


def _setting(summary: Summary, manifest: RunManifest) -> str:
    load = summary.load
    window = summary.window
    asked_for = [
        ("Load", _esc(load_text(summary))),
        ("Requests", _esc(DASH if load.num_requests is None else load.num_requests)),
        ("Duration", _esc(span(load.duration_s))),
        ("Warm-up", _esc(f"{summary.warmup_requests} requests")),
        ("Seed", _esc(load.seed)),
        (
            "Window",
            _esc(
                DASH
                if window is None
                else f"{span(window.start_s)} to {span(window.end_s)}, {window.kind.replace('_', ' ')}"
            ),
        ),
        ("Ended by", _foreign(manifest.ended_by or DASH)),
    ]
    client = summary.client
    measured_by = [
        ("Timing", _esc(timing_text(client.timing_source))),
        ("Workers", _esc(client.workers)),
        ("CPU", _esc(percent(client.cpu_ratio))),
        ("Read after stamp, p99", _esc(span(client.stamp_lag_p99_s))),
        ("Loop stall, p99", _esc(span(client.loop_stall_p99_s))),
        ("Coalesced events", _esc(percent(client.coalesced_ratio))),
        ("Version", _foreign(manifest.client_version or DASH)),
    ]
    groups = [
        ("Target", _json_facts(asdict(summary.target))),
        ("Load", _facts(asked_for)),
        ("Client", _facts(measured_by)),
    ]
    for title, values in (
        ("Options", manifest.options),
        ("Data", manifest.data),
        ("Server, as it told", {**manifest.server, **summary.server}),
        ("Host of the client", manifest.host),
        ("Labels", summary.labels),
        ("Body of the first request", manifest.first_request or {}),
    ):
        if values:
            groups.append((title, _json_facts(values)))
    if manifest.notes:
        groups.append(("Notes", "".join(f"<p>{_foreign(note)}</p>" for note in manifest.notes)))
    columns = "".join(f"<div><h3>{_esc(title)}</h3>{body}</div>" for title, body in groups)
    return f'<div class="columns">{columns}</div>'


def _sweep_setting(sweep: Sweep) -> str:
    first = sweep.levels[0].summary
    client = [("Timing", _esc(timing_text(first.client.timing_source))), ("Workers", _esc(first.client.workers))]
    groups = [("Target", _json_facts(asdict(first.target))), ("Client", _facts(client))]
    if first.labels:
        groups.append(("Labels", _json_facts(first.labels)))
    columns = "".join(f"<div><h3>{_esc(title)}</h3>{body}</div>" for title, body in groups)
    return f'<div class="columns">{columns}</div>'


def _json_facts(values: Mapping[str, Any]) -> str:
    return _facts((printable(str(key)), _json_value(value)) for key, value in values.items())


def _json_value(value: object) -> str:
    if value is None:
        return DASH
    if isinstance(value, str | int | float):
        return _foreign(value if isinstance(value, str) else json.dumps(value, allow_nan=False))
    return f"<code>{_foreign(json.dumps(value, allow_nan=False, ensure_ascii=False))}</code>"


# Definitions and data

_RUN_TERMS = (
    "output_tokens_per_s",
    "requests_per_s",
    "failed_ratio",
    "attainment_ratio",
    "acceptance_length",
    "knee",
    "error_adjusted",
)
_TERM_LABELS = {
    "output_tokens_per_s": "Output tokens/s",
    "requests_per_s": "Requests/s",
    "failed_ratio": "Failed or dropped",
    "attainment_ratio": "SLO attained",
    "acceptance_length": "Acceptance length",
    "knee": "Knee",
    "error_adjusted": "failed = ∞",
}


def _definitions(terms: Iterable[str], estimator: str) -> str:
    rows = []
    for term in terms:
        label = LATENCY_LABELS.get(term) or _TERM_LABELS[term]
        rows.append(f'<dt id="term-{term}">{_esc(label)}</dt><dd>{_esc(definition(term))}</dd>')
    needed = ", ".join(f"{least} for {name.replace('_', '.')}" for name, (_, least) in PERCENTILES.items())
    rows.append(f"<dt>Percentiles</dt><dd>{_foreign(estimator)}. Values needed: {needed}.</dd>")
    return f'<dl class="definitions">{"".join(rows)}</dl>'


def _raw_section() -> str:
    return _section(
        "data",
        "Data",
        '<div class="raw"><details class="raw-json"><summary>The summary as JSON</summary>'
        '<pre tabindex="0" aria-label="Summary as JSON"></pre></details>'
        '<button type="button" class="copy" hidden>Copy as JSON</button></div>',
    )
