"""The page of one run."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from loadgen.core.analysis.gates import failed_gates
from loadgen.core.metrics.summary import Analysis, Distribution, FailureSample, Summary
from loadgen.core.run import RunManifest
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.report.charts import Chart, quantile_chart, time_charts
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
    value_cell,
    verdict_box,
)
from loadgen.report.html.server import server_section
from loadgen.report.html.speculation import speculation
from loadgen.report.speculation_charts import speculation_charts
from loadgen.report.verdict import run_doubts, run_headline
from loadgen.report.words import (
    DASH,
    LATENCY_LABELS,
    adjusted_latencies,
    adjusted_text,
    failed_share,
    first_upper,
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
)


def run_html(analysis: Analysis, manifest: RunManifest) -> str:
    """The report of one run. Nothing in it is fetched; open it from a file."""
    summary = analysis.summary
    valid = summary.verdict.valid
    quantiles = quantile_chart(analysis)
    over_time = time_charts(summary)
    drafts = [] if summary.speculation is None else speculation_charts(summary.speculation)
    sections = [
        section("figures", "Key figures", figure_list(_figures(summary), doubtful=not valid), valid=valid),
        section("latency", "Latency", _latency_table(summary) + plots([quantiles], "latency"), valid=valid),
        section("time", "Over time", _over_time(summary, over_time), valid=valid),
        section("requests", "Requests and failures", _requests(analysis)),
    ]
    if summary.slo is not None:
        sections.append(section("slo", "Service level", _slo(summary), valid=valid))
    sections.append(section("speculation", "Speculative decoding", speculation(summary, drafts), valid=valid))
    sections.append(section("server", "Server", server_section(summary.server), valid=valid))
    sections.append(section("setting", "Load and target", _setting(summary, manifest)))
    terms = [*(key for key, _ in shown_latencies(summary)), *RUN_TERMS]
    sections.append(section("definitions", "Definitions", definitions(terms, summary.estimator)))
    sections.append(raw_section())
    name = summary.name or f"{summary.target.model}, {load_text(summary)}"
    return page(
        title=f"{name} · loadgen run",
        header=_header(summary, manifest, name),
        main="\n".join(sections),
        charts=[quantiles, *over_time, *drafts],
        raw=asdict(summary),
    )


def _header(summary: Summary, manifest: RunManifest, name: str) -> str:
    load, verdict = load_text(summary), summary.verdict
    interrupted = ", interrupted" if summary.interrupted else ""
    engine = " ".join(part for part in (summary.target.engine, summary.target.engine_version) if part)
    engine_text = f", {foreign(engine)}" if engine else ""
    return f"""<header>
<p class="eyebrow">loadgen run {foreign(summary.run_id)}, {foreign(summary.started_at)}{interrupted}</p>
<h1>{foreign(name)}</h1>
<p class="subtitle"><b>{foreign(summary.target.model)}</b> at {foreign(summary.target.url)}{engine_text}.
{esc(first_upper(load))}.</p>
{verdict_box(run_headline(verdict), run_doubts(verdict), failed_gates([summary], manifest.options))}
</header>"""


def _figures(summary: Summary) -> list[Figure]:
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
        coverage = summary.speculation.coverage_ratio
        figures.append(
            Figure(
                term="tokens_per_step",
                label="Tokens per step",
                value=number(summary.speculation.tokens_per_step),
                unit="tokens",
                beside="" if coverage is None else f"{percent(coverage)} of the decode steps drafted",
            )
        )
    return figures


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
    return f'{plots(charts, "stack")}<p class="note">{esc(note)}</p>'


def _distribution_row(
    header: str, distribution: Distribution, text: Callable[[Distribution, str], str], css: str = ""
) -> str:
    cells = [value_cell(str(distribution.n)), value_cell(str(distribution.missing))]
    cells.extend(value_cell(text(distribution, name)) for name in ("mean", *PERCENTILES, "max"))
    return f'<tr{css}><th scope="row">{header}</th>{"".join(cells)}</tr>'


def _plain_text(distribution: Distribution, name: str) -> str:
    return milliseconds(getattr(distribution, name))


def _latency_table(summary: Summary) -> str:
    rows = [
        _distribution_row(term_link(key, LATENCY_LABELS[key]), found, _plain_text)
        for key, found in shown_latencies(summary)
    ]
    for key, found in adjusted_latencies(summary):
        header = f"{esc(LATENCY_LABELS[key])}, {term_link('error_adjusted', 'failed = ∞')}"
        rows.append(_distribution_row(header, found, adjusted_text, ' class="derived"'))
    titles = ["", "n", "missing", "mean", *(name.replace("_", ".") for name in PERCENTILES), "max"]
    caption = (
        f"Milliseconds. {esc(population_text(summary))}. Percentiles: {foreign(summary.estimator)}; a dash means that"
        " the sample is too small for that percentile."
    )
    return data_table(caption, head_row(titles), rows, "Latency table", FULL)


def _requests(analysis: Analysis) -> str:
    counts = analysis.summary.requests
    columns = ("planned", "sent", "completed", "failed", "cancelled", "dropped", "resent")
    row = "".join(value_cell(str(getattr(counts, name))) for name in columns)
    table = data_table(
        "Planned = completed + failed + cancelled + dropped."
        f" Output tokens: {esc(token_source_text(analysis.summary))}.",
        head_row(["", *columns]),
        [f'<tr><th scope="row">requests</th>{row}</tr>'],
        "Request counts",
    )
    if not analysis.failures:
        return table
    failures = data_table(
        "Failures by kind, with the message of one of each.",
        head_row(["kind", "HTTP", "n", "share of planned", "<example"]),
        [_failure_row(failure, counts.planned) for failure in analysis.failures],
        "Failures",
    )
    return f"{table}\n{failures}"


def _failure_row(failure: FailureSample, planned: int) -> str:
    status = DASH if failure.http_status is None else str(failure.http_status)
    example = f"<code>{foreign(failure.example)}</code>" if failure.example else DASH
    return (
        f'<tr><th scope="row">{esc(failure.kind)}</th>{value_cell(status)}<td>{failure.count}</td>'
        f'{value_cell(percent(failure.count / planned if planned else None))}<td class="text">{example}</td></tr>'
    )


def _slo(summary: Summary) -> str:
    slo = summary.slo
    if slo is None:
        return ""
    limits = ", ".join(f"{LATENCY_LABELS.get(key, key)} ≤ {span(limit)}" for key, limit in slo.objectives.items())
    return fact_list(
        [
            ("Objectives", esc(limits)),
            ("Attained", esc(f"{percent(slo.attainment_ratio)}: {slo.good} good of {slo.due} due")),
            ("Goodput", esc(f"{number(summary.throughput.goodput_rps)} good requests/s")),
        ]
    )


def _setting(summary: Summary, manifest: RunManifest) -> str:
    load = summary.load
    window = summary.window
    asked_for = [
        ("Load", esc(load_text(summary))),
        ("Requests", esc(DASH if load.num_requests is None else load.num_requests)),
        ("Duration", esc(span(load.duration_s))),
        ("Warm-up", esc(f"{summary.warmup_requests} requests")),
        ("Seed", esc(load.seed)),
        (
            "Window",
            esc(
                DASH
                if window is None
                else f"{span(window.start_s)} to {span(window.end_s)}, {window.kind.replace('_', ' ')}"
            ),
        ),
        ("Ended by", foreign(manifest.ended_by or DASH)),
    ]
    client = summary.client
    measured_by = [
        ("Timing", esc(timing_text(client.timing_source))),
        ("Workers", esc(client.workers)),
        ("CPU", esc(percent(client.cpu_ratio))),
        ("Read after stamp, p99", esc(span(client.stamp_lag_p99_s))),
        ("Loop stall, p99", esc(span(client.loop_stall_p99_s))),
        ("Coalesced events", esc(percent(client.coalesced_ratio))),
        ("Version", foreign(manifest.client_version or DASH)),
    ]
    groups = [
        ("Target", json_facts(asdict(summary.target))),
        ("Load", fact_list(asked_for)),
        ("Client", fact_list(measured_by)),
    ]
    for title, values in (
        ("Options", manifest.options),
        ("Data", manifest.data),
        ("Server, as it answered", _told(manifest)),
        ("Host of the client", manifest.host),
        ("Labels", summary.labels),
        ("Body of the first request", manifest.first_request or {}),
    ):
        if values:
            groups.append((title, json_facts(values)))
    if manifest.notes:
        groups.append(("Notes", "".join(f"<p>{foreign(note)}</p>" for note in manifest.notes)))
    columns = "".join(f"<div><h3>{esc(title)}</h3>{body}</div>" for title, body in groups)
    return f'<div class="columns">{columns}</div>'


def _told(manifest: RunManifest) -> dict[str, object]:
    """What the server told, but for its configuration, which has a place of its own."""
    elsewhere = ("configuration", "configuration_page", "speculation", "pages")
    return {key: value for key, value in manifest.server.items() if key not in elsewhere}
