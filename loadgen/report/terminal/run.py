"""A run as text."""

from rich.console import Group, RenderableType
from rich.text import Text

from loadgen.core.metrics.summary import Analysis, Distribution, Summary
from loadgen.core.run import RunManifest
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.report import text_parts
from loadgen.report.server import server_facts
from loadgen.report.terminal.frame import ending, verdict_block
from loadgen.report.terminal.speculation import speculation
from loadgen.report.text_parts import INDENT
from loadgen.report.verdict import run_doubts, run_headline
from loadgen.report.words import (
    DASH,
    LATENCY_LABELS,
    adjusted_latencies,
    adjusted_text,
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
    with_unit,
)


def run_text(analysis: Analysis, manifest: RunManifest | None = None, *, width: int = 100, color: bool = False) -> str:
    """One run: the verdict first, then what was asked, what came of it, and where the numbers come from.

    The manifest tells what was sent: rows of the data that were used and left out, and what was noted on the way.
    """
    summary = analysis.summary
    parts: list[RenderableType] = [
        verdict_block(run_headline(summary.verdict), _title(summary), run_doubts(summary.verdict)),
        text_parts.section("Run", text_parts.facts(_run_facts(summary))),
        text_parts.section("Requests", _requests(analysis, width - INDENT)),
        text_parts.section("Latency, ms", _latency(summary, width - INDENT)),
        text_parts.section("Throughput", text_parts.facts(_throughput_facts(summary))),
    ]
    if summary.slo is not None:
        parts.append(text_parts.section("SLO", text_parts.facts(_slo_facts(summary))))
    parts.append(text_parts.section("Speculation", speculation(summary, width - INDENT)))
    parts.append(text_parts.section("Server", text_parts.facts(server_facts(summary.server))))
    parts.extend(ending([summary], manifest))
    return text_parts.rendered(parts, width, color)


def _title(summary: Summary) -> str:
    name = printable(summary.name) if summary.name else printable(summary.target.model)
    return f"{name}, {load_text(summary)}"


def _run_facts(summary: Summary) -> list[tuple[str, str]]:
    target, window = summary.target, summary.window
    engine = " ".join(part for part in (target.engine, target.engine_version) if part)
    server = f"{target.model} at {target.url}, {target.endpoint}" + (f", {engine}" if engine else "")
    rows = [("Target", printable(server)), ("Load", load_text(summary) + _seed_text(summary))]
    if window is not None:
        measured = f"{span(window.end_s - window.start_s)}, from {span(window.start_s)}"
        warm = f", after {summary.warmup_requests} warm-up requests" if summary.warmup_requests else ""
        rows.append(("Measured", f"{measured} ({window.kind.replace('_', ' ')}){warm}"))
    started = f"{printable(summary.started_at)}, run {printable(summary.run_id)}"
    rows.append(("Started", started + (", interrupted" if summary.interrupted else "")))
    if summary.labels:
        rows.append(("Labels", ", ".join(f"{printable(k)}={printable(v)}" for k, v in summary.labels.items())))
    rows.append(("Output tokens", token_source_text(summary)))
    rows.append(("Timing", _timing_text(summary)))
    return rows


def _seed_text(summary: Summary) -> str:
    return f", seed {summary.load.seed}"


def _timing_text(summary: Summary) -> str:
    client = summary.client
    workers = f"{client.workers} worker{'' if client.workers == 1 else 's'}"
    text = f"{timing_text(client.timing_source)}; {workers}, CPU {percent(client.cpu_ratio)}"
    if client.stamp_lag_p99_s is not None:
        text += f", read {span(client.stamp_lag_p99_s)} after the stamp at p99"
    return text


def _requests(analysis: Analysis, room: int) -> RenderableType:
    counts = analysis.summary.requests
    line = (
        f"{counts.planned} planned, {counts.sent} sent: {counts.completed} completed, {counts.failed} failed,"
        f" {counts.cancelled} cancelled, {counts.dropped} dropped"
        f" ({percent(failed_share(analysis.summary))} failed or dropped)"
    )
    if counts.resent:
        line += f"; {counts.resent} sent again on a fresh connection"
    if not analysis.failures:
        return Text(line)
    rows = [
        [
            Text(printable(failure.kind)),
            Text(DASH if failure.http_status is None else str(failure.http_status)),
            Text(str(failure.count)),
            Text(percent(failure.count / counts.planned if counts.planned else None)),
            Text(printable(failure.example) if failure.example else DASH),
        ]
        for failure in analysis.failures
    ]
    table, _ = text_parts.table(("failure", ">HTTP", ">n", ">share", "for example"), rows, room, stretch=4)
    return Group(Text(line), Text(""), table)


def _latency(summary: Summary, room: int) -> RenderableType:
    numbers = ("n", "missing", "mean", *PERCENTILES)
    rows = [
        [Text(LATENCY_LABELS[key]), *(Text(_cell(found, name)) for name in numbers)]
        for key, found in shown_latencies(summary)
    ]
    plain = len(rows)
    rows.extend(
        [Text(f"{LATENCY_LABELS[key]}, failed = ∞"), *(Text(_adjusted_cell(found, name)) for name in numbers)]
        for key, found in adjusted_latencies(summary)
    )
    table, left_out = text_parts.table(
        ("", *(f">{name.replace('_', '.')}" for name in numbers)),
        rows,
        room,
        leave_out=(5, 6, 9, 2, 3),
        styles=[""] * plain + ["dim"] * (len(rows) - plain),
    )
    notes = [f"{population_text(summary)}. Percentiles: {printable(summary.estimator)}; {DASH} means too few values."]
    if left_out:
        notes.append(text_parts.left_out_text(left_out))
    return Group(table, *(Text(note, style="dim") for note in notes))


def _cell(distribution: Distribution, name: str) -> str:
    value = getattr(distribution, name)
    return str(value) if name in ("n", "missing") else milliseconds(value)


def _adjusted_cell(distribution: Distribution, name: str) -> str:
    return _cell(distribution, name) if name in ("n", "missing") else adjusted_text(distribution, name)


def _throughput_facts(summary: Summary) -> list[tuple[str, str]]:
    throughput, tokens = summary.throughput, summary.tokens
    rows = [
        (
            "Requests",
            f"{with_unit(number(throughput.requests_per_s), 'completed/s')}"
            f" (offered {number(summary.rate.offered_rps)}, sent {number(summary.rate.sent_rps)})",
        ),
        (
            "Tokens",
            f"{with_unit(number(throughput.output_tokens_per_s), 'output/s')},"
            f" {with_unit(number(throughput.input_tokens_per_s), 'input/s')}"
            f" ({number(tokens.output)} output and {number(tokens.input)} input in all)",
        ),
        ("In flight", f"{number(summary.concurrency.mean)} on average, {summary.concurrency.peak} at most"),
    ]
    steady = summary.steady_state
    if steady is not None:
        rows.append(
            (
                "Steady part",
                f"{span(steady.start_s)} to {span(steady.end_s)}:"
                f" {with_unit(number(steady.output_tokens_per_s), 'output tokens/s')},"
                f" {with_unit(number(steady.requests_per_s), 'requests/s')},"
                f" {number(steady.concurrency_mean)} in flight",
            )
        )
    return rows


def _slo_facts(summary: Summary) -> list[tuple[str, str]]:
    slo = summary.slo
    if slo is None:
        return []
    limits = ", ".join(
        f"{LATENCY_LABELS.get(key, printable(key))} ≤ {span(limit)}" for key, limit in slo.objectives.items()
    )
    return [
        ("Objectives", limits),
        ("Attained", f"{percent(slo.attainment_ratio)}: {slo.good} good of {slo.due} due"),
        ("Goodput", with_unit(number(summary.throughput.goodput_rps), "good requests/s")),
    ]
