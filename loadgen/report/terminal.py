"""A run or a sweep as text for a terminal of a given width; without colour it is plain text for a file or a pipe."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadgen.core.analysis.gates import failed_gates
from loadgen.core.metrics.summary import Analysis, Distribution, Summary, Sweep, SweepLevel
from loadgen.core.run import RunManifest
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.report import text_parts
from loadgen.report.text_parts import INDENT, bar
from loadgen.report.verdict import (
    Doubt,
    Headline,
    has_doubts,
    run_doubts,
    run_headline,
    sweep_doubts,
    sweep_headline,
)
from loadgen.report.words import (
    DASH,
    LATENCY_LABELS,
    adjusted_latencies,
    adjusted_text,
    asked,
    data_facts,
    failed_share,
    knee_text,
    levels_text,
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
    with_unit,
)

_HEADLINES = {"valid": "bold green", "warning": "bold yellow", "invalid": "bold red"}
_COLOURS = {"invalid": "bold red", "warning": "yellow", "info": "dim"}


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
    if summary.speculation is not None:
        parts.append(text_parts.section("Speculation", text_parts.facts(_speculation_facts(summary))))
    parts.extend(_ending([summary], manifest))
    return text_parts.rendered(parts, width, color)


def sweep_text(sweep: Sweep, manifest: RunManifest | None = None, *, width: int = 100, color: bool = False) -> str:
    """A ladder: doubts about any level first, then one row a level, the knee marked, then bars against the level.

    `manifest` is that of its first level, for what it says of the data.
    """
    title = printable(sweep.name) if sweep.name else f"sweep {printable(sweep.sweep_id)}"
    beneath = ""
    if sweep.levels:
        target = sweep.levels[0].summary.target
        title, beneath = f"{title}, {levels_text(sweep)}", f"{printable(target.model)} at {printable(target.url)}"
    parts: list[RenderableType] = [verdict_block(sweep_headline(sweep), title, sweep_doubts(sweep), beneath)]
    if sweep.levels:
        parts.append(
            text_parts.section(
                f"Levels of {variable_text(sweep.variable)}; latency in ms", _levels(sweep, width - INDENT)
            )
        )
        parts.append(text_parts.section("Against the load", _bars(sweep, width - INDENT)))
        parts.append(text_parts.section("Knee", Text(knee_text(sweep))))
    parts.extend(_ending([level.summary for level in sweep.levels], manifest))
    return text_parts.rendered(parts, width, color)


def _ending(summaries: Sequence[Summary], manifest: RunManifest | None) -> Iterable[RenderableType]:
    """What stands at the end: the data that was used, and the gates that failed."""
    if manifest is None:
        return
    if rows := data_facts(manifest):
        yield text_parts.section("Data", text_parts.facts(rows))
    if failed := failed_gates(summaries, manifest.options):
        yield text_parts.section(
            "Gates", Group(*(Text(f"failed: {gate.evidence}", style="bold red") for gate in failed))
        )


def _title(summary: Summary) -> str:
    name = printable(summary.name) if summary.name else printable(summary.target.model)
    return f"{name}, {load_text(summary)}"


def verdict_block(headline: Headline, title: str, doubts: Iterable[Doubt], beneath: str = "") -> RenderableType:
    """What every report begins with: the verdict, what it is a report of, and the doubts."""
    first = Text(headline.words, style=_HEADLINES[headline.kind]).append(f"  {title}", style="bold")
    lines = [Text(f"  {beneath}", style="dim")] if beneath else []
    return Group(first, *lines, *(_doubt(doubt) for doubt in doubts))


def _doubt(doubt: Doubt) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=7)
    grid.add_column(ratio=1, overflow="fold")
    text = Text()
    for where, evidence in doubt.seen:
        at = f" at {where}" if where else ""
        text.append(f"{printable(doubt.kind)}{at}: {printable(evidence)}\n")
    text.append(printable(doubt.advice), style="dim")
    text.rstrip()
    grid.add_row(Text(printable(doubt.severity), style=_COLOURS.get(doubt.severity, "")), text)
    return Padding(grid, (0, 0, 0, INDENT))


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
    notes = f"{population_text(summary)}. Percentiles: {printable(summary.estimator)}; {DASH} means too few values."
    if left_out:
        notes += f" No room here for {', '.join(left_out)}."
    return Group(table, Text(notes, style="dim"))


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


def _speculation_facts(summary: Summary) -> list[tuple[str, str]]:
    speculation = summary.speculation
    if speculation is None:
        return []
    rows = [
        (
            "Acceptance",
            f"length {number(speculation.acceptance_length)}, ratio {percent(speculation.acceptance_ratio)}",
        ),
        (
            "Counted",
            f"{number(speculation.steps)} steps with a draft, {number(speculation.drafted_tokens)} tokens drafted,"
            f" {number(speculation.accepted_tokens)} accepted, coverage {percent(speculation.coverage_ratio)}",
        ),
        ("Origin", printable(speculation.origin).replace("_", " ")),
    ]
    if speculation.acceptance_by_position:
        by_position = "  ".join(f"{i}: {percent(p)}" for i, p in enumerate(speculation.acceptance_by_position, start=1))
        rows.insert(1, ("By position", by_position))
    rows.extend(("Note", printable(note)) for note in speculation.notes)
    return rows


def _levels(sweep: Sweep, room: int) -> RenderableType:
    titles = (
        ">level",
        ">req/s",
        ">out tok/s",
        ">TTFT p50",
        ">p95",
        ">TPOT p50",
        ">p95",
        ">E2EL p50",
        ">p95",
        ">failed",
    )
    rows = []
    for level in sweep.levels:
        summary, latency = level.summary, level.summary.latency
        cells = [
            asked(level.level),
            number(summary.throughput.requests_per_s),
            number(summary.throughput.output_tokens_per_s),
            milliseconds(latency.ttft_s.p50),
            milliseconds(latency.ttft_s.p95),
            milliseconds(latency.tpot_s.p50),
            milliseconds(latency.tpot_s.p95),
            milliseconds(latency.e2el_s.p50),
            milliseconds(latency.e2el_s.p95),
            percent(failed_share(summary)),
        ]
        rows.append([*map(Text, cells), _mark(sweep, level)])
    table, _ = text_parts.table((*titles, ""), rows, room, leave_out=(8, 6, 1, 4, 7))
    return table


def _mark(sweep: Sweep, level: SweepLevel) -> Text:
    mark = Text()
    if sweep.knee is not None and sweep.knee.level == level.level:
        mark.append("◀ knee", style="bold cyan")
    verdict = level.summary.verdict
    if not verdict.valid:
        mark.append(" ✗ invalid" if mark else "✗ invalid", style="bold red")
    elif has_doubts(verdict.findings):
        mark.append(" ! doubts" if mark else "! doubts", style="yellow")
    return mark


def _bars(sweep: Sweep, room: int) -> RenderableType:
    """Two bars a level, each scaled to its own largest value: output tokens/s and TTFT p50."""
    speeds = [level.summary.throughput.output_tokens_per_s for level in sweep.levels]
    waits = [level.summary.latency.ttft_s.p50 for level in sweep.levels]
    cells = max(6, min(36, (room - 30) // 2))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    for _ in range(2):
        grid.add_column(width=cells, no_wrap=True)
        grid.add_column(justify="right", no_wrap=True)
    grid.add_row("", Text("output tokens/s", style="dim"), "", Text("TTFT p50, ms", style="dim"), "")
    for level, speed, wait in zip(sweep.levels, speeds, waits, strict=True):
        grid.add_row(
            asked(level.level),
            Text(bar(speed, speeds, cells), style="cyan"),
            number(speed),
            Text(bar(wait, waits, cells), style="magenta"),
            milliseconds(wait),
        )
    return grid
