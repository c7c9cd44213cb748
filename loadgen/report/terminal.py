"""A run or a sweep as text for a terminal of a given width; without colour it is plain text for a file or a pipe."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadgen.core.metrics.summary import Analysis, Distribution, Finding, Summary, Sweep, SweepLevel, Verdict
from loadgen.core.run import RunManifest
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.report import text_parts
from loadgen.report.text_parts import bar
from loadgen.report.words import (
    DASH,
    LATENCY_LABELS,
    SEVERITIES,
    adjusted_latencies,
    adjusted_text,
    asked,
    data_facts,
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
    with_unit,
)

_COLOURS = {"invalid": "bold red", "warning": "yellow", "info": "dim"}


def run_text(analysis: Analysis, manifest: RunManifest | None = None, *, width: int = 100, color: bool = False) -> str:
    """One run: the verdict first, then what was asked, what came of it, and where the numbers come from.

    The manifest tells what was sent: rows of the data that were used and left out, and what was noted on the way.
    """
    summary = analysis.summary
    parts: list[RenderableType] = [
        _verdict(summary.verdict, _headline(summary)),
        text_parts.section("Run", text_parts.facts(_run_facts(summary))),
        text_parts.section("Requests", _requests(analysis, width - text_parts.INDENT)),
        text_parts.section("Latency, ms", _latency(summary, width - text_parts.INDENT)),
        text_parts.section("Throughput", text_parts.facts(_throughput_facts(summary))),
    ]
    if summary.slo is not None:
        parts.append(text_parts.section("SLO", text_parts.facts(_slo_facts(summary))))
    if summary.speculation is not None:
        parts.append(text_parts.section("Speculation", text_parts.facts(_speculation_facts(summary))))
    if manifest is not None and (rows := data_facts(manifest)):
        parts.append(text_parts.section("Data", text_parts.facts(rows)))
    return text_parts.rendered(parts, width, color)


def sweep_text(sweep: Sweep, manifest: RunManifest | None = None, *, width: int = 100, color: bool = False) -> str:
    """A ladder: doubts about any level first, then one row a level, the knee marked, then bars against the level.

    `manifest` is that of its first level, for what it says of the data.
    """
    title = printable(sweep.name) if sweep.name else f"sweep {printable(sweep.sweep_id)}"
    doubts = [(level, finding) for level in sweep.levels for finding in level.summary.verdict.findings]
    bad = [level for level in sweep.levels if not level.summary.verdict.valid]
    parts: list[RenderableType] = [_sweep_verdict(sweep, title, bad, doubts)]
    if sweep.levels:
        parts.append(
            text_parts.section(
                f"Levels of {variable_text(sweep.variable)}; latency in ms", _levels(sweep, width - text_parts.INDENT)
            )
        )
        parts.append(text_parts.section("Against the load", _bars(sweep, width - text_parts.INDENT)))
    if sweep.knee is not None:
        parts.append(text_parts.section("Knee", Text(f"{asked(sweep.knee.level)}: {printable(sweep.knee.reason)}")))
    if manifest is not None and (rows := data_facts(manifest)):
        parts.append(text_parts.section("Data", text_parts.facts(rows)))
    return text_parts.rendered(parts, width, color)


def _headline(summary: Summary) -> str:
    name = printable(summary.name) if summary.name else printable(summary.target.model)
    return f"{name}, {load_text(summary)}"


def _verdict(verdict: Verdict, title: str) -> RenderableType:
    first = Text("✓ VALID", style="bold green") if verdict.valid else Text("✗ INVALID", style="bold red")
    first.append(f"  {title}", style="bold" if verdict.valid else "bold red")
    if not verdict.valid:
        first.append("  Do not use these numbers.", style="bold red")
    ordered = sorted(verdict.findings, key=lambda finding: _rank(finding.severity))
    return Group(first, *(_finding(finding) for finding in ordered))


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _finding(finding: Finding, where: str = "") -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=7)
    grid.add_column(ratio=1, overflow="fold")
    text = Text()
    text.append(f"{where}{printable(finding.kind)}: {printable(finding.evidence)}")
    if finding.advice:
        text.append(f"\n{printable(finding.advice)}", style="dim")
    grid.add_row(Text(printable(finding.severity), style=_COLOURS.get(finding.severity, "")), text)
    return Padding(grid, (0, 0, 0, text_parts.INDENT))


def _sweep_verdict(
    sweep: Sweep, title: str, bad: list[SweepLevel], doubts: list[tuple[SweepLevel, Finding]]
) -> RenderableType:
    count = f"{len(sweep.levels)} level{'' if len(sweep.levels) == 1 else 's'} of {variable_text(sweep.variable)}"
    if not sweep.levels:
        return Text(f"✗ EMPTY  {title}: no level has finished", style="bold red")
    if bad:
        names = ", ".join(asked(level.level) for level in bad)
        first = Text(f"✗ INVALID at {names}  {title}, {count}  Do not use those levels.", style="bold red")
    else:
        first = Text("✓ VALID", style="bold green").append(f"  {title}, {count}", style="bold")
    target = sweep.levels[0].summary.target
    lines: list[RenderableType] = [first, Text(f"  {printable(target.model)} at {printable(target.url)}", style="dim")]
    grouped: dict[tuple[str, str], list[tuple[SweepLevel, Finding]]] = {}
    for level, finding in doubts:
        if finding.severity != "info":
            grouped.setdefault((finding.severity, finding.kind), []).append((level, finding))
    for key in sorted(grouped, key=lambda key: _rank(key[0])):
        found = grouped[key]
        levels = ", ".join(asked(level.level) for level, _ in found)
        lines.append(_finding(found[0][1], where=f"at {levels}, "))
    return Group(*lines)


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
    elif any(finding.severity == "warning" for finding in verdict.findings):
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
