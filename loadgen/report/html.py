"""A run or a sweep as one HTML file that holds all it shows: no network, no framework, tables beside every chart."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from loadgen.core.metrics.summary import Analysis, Distribution, FailureSample, Finding, Summary, Sweep, SweepLevel
from loadgen.core.run import RunManifest
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.report import html_parts as parts
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


def run_html(analysis: Analysis, manifest: RunManifest) -> str:
    """The report of one run. Nothing in it is fetched; open it from a file."""
    summary = analysis.summary
    valid = summary.verdict.valid
    quantiles = quantile_chart(analysis)
    over_time = time_charts(summary)
    sections = [
        parts.section("figures", "Key figures", parts.figures(_run_figures(summary), doubtful=not valid), valid=valid),
        parts.section("latency", "Latency", _latency_table(summary) + parts.plots([quantiles], "latency"), valid=valid),
        parts.section("time", "Over time", _over_time(summary, over_time), valid=valid),
        parts.section("requests", "Requests and failures", _requests(analysis)),
    ]
    if summary.slo is not None:
        sections.append(parts.section("slo", "Service level", _slo(summary), valid=valid))
    if summary.speculation is not None:
        sections.append(parts.section("speculation", "Speculative decoding", _speculation(summary), valid=valid))
    sections.append(parts.section("setting", "Load and target", _setting(summary, manifest)))
    terms = [*(key for key, _ in shown_latencies(summary)), *_RUN_TERMS]
    sections.append(parts.section("definitions", "Definitions", _definitions(terms, summary.estimator)))
    sections.append(parts.raw_section())
    name = summary.name or f"{summary.target.model}, {load_text(summary)}"
    return parts.page(
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
            parts.section("figures", "Key figures", parts.figures(_sweep_figures(sweep))),
            parts.section("ladder", "Against the load", parts.plots(charts, "pair", table=False)),
            parts.section("levels", "Levels", _level_table(sweep)),
            parts.section("setting", "Target", _sweep_setting(sweep)),
            parts.section("definitions", "Definitions", _definitions(terms, sweep.levels[0].summary.estimator)),
        ]
    sections.append(parts.raw_section())
    name = sweep.name or f"sweep {sweep.sweep_id}"
    return parts.page(
        title=f"{name} · loadgen sweep",
        header=_sweep_header(sweep, name, bad),
        main="\n".join(sections),
        charts=charts,
        raw=asdict(sweep),
    )


# Header and verdict


def _run_header(summary: Summary, name: str) -> str:
    load = load_text(summary)
    interrupted = ", interrupted" if summary.interrupted else ""
    engine = " ".join(part for part in (summary.target.engine, summary.target.engine_version) if part)
    engine_text = f", {parts.foreign(engine)}" if engine else ""
    return f"""<header>
<p class="eyebrow">loadgen run {parts.foreign(summary.run_id)}, {parts.foreign(summary.started_at)}{interrupted}</p>
<h1>{parts.foreign(name)}</h1>
<p class="subtitle"><b>{parts.foreign(summary.target.model)}</b> at {parts.foreign(summary.target.url)}{engine_text}.
{parts.esc(load[0].upper() + load[1:])}.</p>
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
    return parts.verdict_box(words, kind, [_finding(finding) for finding in findings])


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _finding(finding: Finding, where: str = "") -> str:
    css = finding.severity if finding.severity in SEVERITIES else "info"
    advice = f'<p class="advice">{parts.foreign(finding.advice)}</p>' if finding.advice else ""
    return (
        f'<li><span><span class="tag {css}">{parts.esc(finding.severity)}</span></span>'
        f"<div><p>{parts.esc(where)}{parts.foreign(finding.evidence)}</p>{advice}</div></li>"
    )


def _sweep_header(sweep: Sweep, name: str, bad: Sequence[SweepLevel]) -> str:
    if not sweep.levels:
        box, subtitle = parts.verdict_box("✗ Empty: no level has finished", "invalid", []), ""
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
            box = parts.verdict_box(f"✗ Invalid at {levels}: do not use those levels", "invalid", findings)
        elif findings:
            box = parts.verdict_box("✓ Valid, with doubts", "warning", findings)
        else:
            box = parts.verdict_box("✓ Valid at every level", "valid", [])
        target = sweep.levels[0].summary.target
        subtitle = (
            f'<p class="subtitle"><b>{parts.foreign(target.model)}</b> at {parts.foreign(target.url)}.'
            f" {len(sweep.levels)} levels of {parts.esc(variable_text(sweep.variable))}.</p>"
        )
    return f"""<header>
<p class="eyebrow">loadgen sweep {parts.foreign(sweep.sweep_id)}</p>
<h1>{parts.foreign(name)}</h1>
{subtitle}
{box}
</header>"""


# Key figures


def _run_figures(summary: Summary) -> list[parts.Figure]:
    latency, throughput, counts = summary.latency, summary.throughput, summary.requests

    def median(key: str, distribution: Distribution) -> parts.Figure:
        tail = next(
            (
                f"{name} {milliseconds(value)} ms"
                for name in ("p99", "p95", "p90")
                if (value := getattr(distribution, name)) is not None
            ),
            f"n = {distribution.n}",
        )
        return parts.Figure(
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
        parts.Figure(
            term="output_tokens_per_s",
            label="Output tokens",
            value=number(throughput.output_tokens_per_s),
            unit="/s",
            beside=f"{number(summary.concurrency.mean)} in flight on average",
        ),
        parts.Figure(
            term="requests_per_s",
            label="Requests completed",
            value=number(throughput.requests_per_s),
            unit="/s",
            beside=f"{number(summary.rate.sent_rps)}/s sent"
            + ("" if summary.rate.offered_rps is None else f" of {number(summary.rate.offered_rps)} offered"),
        ),
        parts.Figure(
            term="failed_ratio",
            label="Failed or dropped",
            value=percent(failed_share(summary)),
            beside=f"{counts.failed + counts.dropped} of {counts.planned}",
        ),
    ]
    if summary.slo is not None:
        figures.append(
            parts.Figure(
                term="attainment_ratio",
                label="SLO attained",
                value=percent(summary.slo.attainment_ratio),
                beside=f"{number(throughput.goodput_rps)} good requests/s",
            )
        )
    if summary.speculation is not None:
        figures.append(
            parts.Figure(
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


def _sweep_figures(sweep: Sweep) -> list[parts.Figure]:
    valid = [level for level in sweep.levels if level.summary.verdict.valid]
    figures = [
        parts.Figure(
            term="knee",
            label="Knee",
            value=DASH if sweep.knee is None else asked(sweep.knee.level),
            unit="" if sweep.knee is None else ("in flight" if sweep.variable == "concurrency" else "requests/s"),
            beside="none found" if sweep.knee is None else printable(sweep.knee.reason),
        )
    ]

    def best(
        label: str, term: str, unit: str, found: Sequence[tuple[float, float]], largest: bool, scale: float
    ) -> parts.Figure:
        if not found:
            return parts.Figure(term=term, label=label, value=DASH, beside="no valid level")
        value, level = (max if largest else min)(found)
        return parts.Figure(term=term, label=label, value=number(value * scale), unit=unit, beside=f"at {asked(level)}")

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


# Charts


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
    return f'{parts.plots(charts, "stack")}<p class="note">{parts.esc(note)}</p>'


# Tables


def _distribution_row(
    header: str, distribution: Distribution, text: Callable[[Distribution, str], str], css: str = ""
) -> str:
    cells = [parts.cell(str(distribution.n)), parts.cell(str(distribution.missing))]
    cells.extend(parts.cell(text(distribution, name)) for name in ("mean", *PERCENTILES, "max"))
    return f'<tr{css}><th scope="row">{header}</th>{"".join(cells)}</tr>'


def _plain_text(distribution: Distribution, name: str) -> str:
    return milliseconds(getattr(distribution, name))


def _latency_table(summary: Summary) -> str:
    rows = [
        _distribution_row(parts.term(key, LATENCY_LABELS[key]), found, _plain_text)
        for key, found in shown_latencies(summary)
    ]
    for key, found in adjusted_latencies(summary):
        header = f"{parts.esc(LATENCY_LABELS[key])}, {parts.term('error_adjusted', 'failed = ∞')}"
        rows.append(_distribution_row(header, found, adjusted_text, ' class="derived"'))
    titles = ["", "n", "missing", "mean", *(name.replace("_", ".") for name in PERCENTILES), "max"]
    caption = (
        f"Milliseconds. {parts.esc(population_text(summary))}. Percentiles: {parts.foreign(summary.estimator)};"
        " a dash means that the sample is too small for that percentile."
    )
    return parts.table(caption, parts.head(titles), rows, "Latency table", parts.FULL)


def _requests(analysis: Analysis) -> str:
    counts = analysis.summary.requests
    columns = ("planned", "sent", "completed", "failed", "cancelled", "dropped", "resent")
    row = "".join(parts.cell(str(getattr(counts, name))) for name in columns)
    table = parts.table(
        "Planned = completed + failed + cancelled + dropped."
        f" Output tokens: {parts.esc(token_source_text(analysis.summary))}.",
        parts.head(["", *columns]),
        [f'<tr><th scope="row">requests</th>{row}</tr>'],
        "Request counts",
    )
    if not analysis.failures:
        return table
    failures = parts.table(
        "Failures by kind, with the message of one of each.",
        parts.head(["kind", "HTTP", "n", "share of planned", "<example"]),
        [_failure_row(failure, counts.planned) for failure in analysis.failures],
        "Failures",
    )
    return f"{table}\n{failures}"


def _failure_row(failure: FailureSample, planned: int) -> str:
    status = DASH if failure.http_status is None else str(failure.http_status)
    example = f"<code>{parts.foreign(failure.example)}</code>" if failure.example else DASH
    return (
        f'<tr><th scope="row">{parts.esc(failure.kind)}</th>{parts.cell(status)}<td>{failure.count}</td>'
        f'{parts.cell(percent(failure.count / planned if planned else None))}<td class="text">{example}</td></tr>'
    )


def _level_table(sweep: Sweep) -> str:
    top = (
        '<tr><th class="group"></th><th colspan="2" scope="colgroup" class="group">throughput</th>'
        + "".join(
            f'<th colspan="3" scope="colgroup" class="group">{parts.term(key, LATENCY_LABELS[key])}, ms</th>'
            for key in ("ttft_s", "tpot_s", "e2el_s")
        )
        + '<th colspan="3" class="group"></th></tr>'
    )
    titles = [sweep.variable.removesuffix("_rps").replace("_", " "), "requests/s", "tokens/s"]
    titles += ["p50", "p95", "p99"] * 3 + ["in flight", "failed", "<verdict"]
    rows = [_level_row(sweep, level) for level in sweep.levels]
    return parts.table(
        "One row a level. A dash means too few values.", top + parts.head(titles), rows, "Level table", parts.FULL
    )


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
        f'<tr{row_class}><th scope="row">{parts.esc(asked(level.level))}</th>{"".join(map(parts.cell, cells))}'
        f'<td class="text">{" ".join(words) or "valid"}</td></tr>'
    )


# Facts


def _slo(summary: Summary) -> str:
    slo = summary.slo
    if slo is None:
        return ""
    limits = ", ".join(f"{LATENCY_LABELS.get(key, key)} ≤ {span(limit)}" for key, limit in slo.objectives.items())
    return parts.facts(
        [
            ("Objectives", parts.esc(limits)),
            ("Attained", parts.esc(f"{percent(slo.attainment_ratio)}: {slo.good} good of {slo.due} due")),
            ("Goodput", parts.esc(f"{number(summary.throughput.goodput_rps)} good requests/s")),
        ]
    )


def _speculation(summary: Summary) -> str:
    found = summary.speculation
    if found is None:
        return ""
    facts = [
        ("Acceptance length", parts.esc(number(found.acceptance_length))),
        ("Acceptance ratio", parts.esc(percent(found.acceptance_ratio))),
        ("Steps with a draft", parts.esc(number(found.steps))),
        ("Tokens drafted", parts.esc(number(found.drafted_tokens))),
        ("Tokens accepted", parts.esc(number(found.accepted_tokens))),
        ("Drafting coverage", parts.esc(percent(found.coverage_ratio))),
        ("Origin", parts.foreign(found.origin.replace("_", " "))),
        *(("Note", parts.foreign(note)) for note in found.notes),
    ]
    body = parts.facts(facts)
    if not found.acceptance_by_position:
        return body
    positions = found.acceptance_by_position
    table = parts.table(
        "Share of steps whose draft was accepted up to a position.",
        parts.head(["position", *(str(i + 1) for i in range(len(positions)))]),
        [f'<tr><th scope="row">accepted</th>{"".join(parts.cell(percent(p)) for p in positions)}</tr>'],
        "Acceptance by position",
    )
    return f'<div class="columns"><div>{body}</div><div>{table}</div></div>'


def _setting(summary: Summary, manifest: RunManifest) -> str:
    load = summary.load
    window = summary.window
    asked_for = [
        ("Load", parts.esc(load_text(summary))),
        ("Requests", parts.esc(DASH if load.num_requests is None else load.num_requests)),
        ("Duration", parts.esc(span(load.duration_s))),
        ("Warm-up", parts.esc(f"{summary.warmup_requests} requests")),
        ("Seed", parts.esc(load.seed)),
        (
            "Window",
            parts.esc(
                DASH
                if window is None
                else f"{span(window.start_s)} to {span(window.end_s)}, {window.kind.replace('_', ' ')}"
            ),
        ),
        ("Ended by", parts.foreign(manifest.ended_by or DASH)),
    ]
    client = summary.client
    measured_by = [
        ("Timing", parts.esc(timing_text(client.timing_source))),
        ("Workers", parts.esc(client.workers)),
        ("CPU", parts.esc(percent(client.cpu_ratio))),
        ("Read after stamp, p99", parts.esc(span(client.stamp_lag_p99_s))),
        ("Loop stall, p99", parts.esc(span(client.loop_stall_p99_s))),
        ("Coalesced events", parts.esc(percent(client.coalesced_ratio))),
        ("Version", parts.foreign(manifest.client_version or DASH)),
    ]
    groups = [
        ("Target", parts.json_facts(asdict(summary.target))),
        ("Load", parts.facts(asked_for)),
        ("Client", parts.facts(measured_by)),
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
            groups.append((title, parts.json_facts(values)))
    if manifest.notes:
        groups.append(("Notes", "".join(f"<p>{parts.foreign(note)}</p>" for note in manifest.notes)))
    columns = "".join(f"<div><h3>{parts.esc(title)}</h3>{body}</div>" for title, body in groups)
    return f'<div class="columns">{columns}</div>'


def _sweep_setting(sweep: Sweep) -> str:
    first = sweep.levels[0].summary
    client = [
        ("Timing", parts.esc(timing_text(first.client.timing_source))),
        ("Workers", parts.esc(first.client.workers)),
    ]
    groups = [("Target", parts.json_facts(asdict(first.target))), ("Client", parts.facts(client))]
    if first.labels:
        groups.append(("Labels", parts.json_facts(first.labels)))
    columns = "".join(f"<div><h3>{parts.esc(title)}</h3>{body}</div>" for title, body in groups)
    return f'<div class="columns">{columns}</div>'


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
        rows.append(f'<dt id="term-{term}">{parts.esc(label)}</dt><dd>{parts.esc(definition(term))}</dd>')
    needed = ", ".join(f"{least} for {name.replace('_', '.')}" for name, (_, least) in PERCENTILES.items())
    rows.append(f"<dt>Percentiles</dt><dd>{parts.foreign(estimator)}. Values needed: {needed}.</dd>")
    return f'<dl class="definitions">{"".join(rows)}</dl>'
