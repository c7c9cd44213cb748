"""Facts of a data file as text for people."""

from io import StringIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadgen.core.traces.facts import Lengths, RateProfile, TraceFacts
from loadgen.core.units import duration_text

_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.:-=+*#"
_TEXT = {
    "real": "in the file",
    "invented": "not in the file: prompts would be invented, and acceptance measured on them means nothing",
    "borrowed": "from a prompts file",
}


def facts_text(facts: TraceFacts, *, width: int, color: bool, unicode: bool = True) -> str:
    """The facts as text of that width. `unicode` False keeps to ASCII for a terminal that has no more."""
    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, no_color=not color, color_system="auto" if color else None
    )
    console.print(Text.assemble((facts.name, "bold"), f"  {facts.format}"))
    rows = Table.grid(padding=(0, 2))
    for label, value in _lines(facts):
        rows.add_row(Text(label, style="dim"), Text(value))
    console.print(Padding(rows, (1, 0, 0, 0)))
    if facts.input_lengths or facts.output_lengths or facts.prompt_characters:
        console.print(Padding(_lengths_table(facts), (1, 0, 0, 0)))
    if facts.rate_profile is not None and facts.span_s:
        console.print(Padding(_profile_text(facts.rate_profile, _BARS if unicode else _PLAIN_BARS), (1, 0, 0, 0)))
    notes = [*facts.notes, *(f"{reason}, first: {message}" for reason, message in facts.first_dropped.items())]
    if notes:
        listed = Table.grid(padding=(0, 1))
        for note in notes:
            listed.add_row("•" if unicode else "*", Text(note))
        console.print(Padding(listed, (1, 0, 0, 0)))
    lines = (line.rstrip() for line in out.getvalue().splitlines())
    return "\n".join(lines) + "\n"


def _lines(facts: TraceFacts) -> list[tuple[str, str]]:
    dropped = ", ".join(f"{rows} {reason.replace('_', ' ')}" for reason, rows in facts.dropped.items())
    requests = str(facts.requests)
    if facts.sessions:
        named = f"{facts.sessions} sessions, the longest of {facts.longest_session} turns"
        requests += f" in {facts.conversations} conversations; {named}"
    lines = [
        ("rows", f"{facts.rows}, used {facts.used}" + (f"; left out: {dropped}" if dropped else "")),
        ("requests", requests),
        ("text", _TEXT[facts.text]),
    ]
    if facts.span_s is None:
        lines.append(("times", "none: for a concurrency or a rate, not for a replay"))
    else:
        rate = "" if facts.mean_rate_rps is None else f", mean rate {facts.mean_rate_rps:.3g} requests/s"
        lines.append(("times", f"over {duration_text(facts.span_s)}{rate}"))
        if facts.duplicate_timestamps:
            lines.append(
                ("", f"{facts.duplicate_timestamps} share another's time, up to {facts.largest_burst} at once")
            )
    if facts.sha256 is not None:
        lines.append(("sha256", facts.sha256))
    return lines


def _lengths_table(facts: TraceFacts) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("", style="dim")
    for name in ("total", "mean", "min", "p50", "p75", "p90", "p95", "p99", "max"):
        table.add_column(name, justify="right", header_style="dim")
    for label, lengths in (
        ("input tokens", facts.input_lengths),
        ("output tokens", facts.output_lengths),
        ("prompt characters", facts.prompt_characters),
    ):
        if lengths is not None:
            table.add_row(label, *_cells(lengths))
    return table


def _cells(lengths: Lengths) -> list[str]:
    values = (lengths.p50, lengths.p75, lengths.p90, lengths.p95, lengths.p99)
    cells = [str(lengths.total), f"{lengths.mean:.1f}", str(lengths.min)]
    return [*cells, *(f"{value:.0f}" for value in values), str(lengths.max)]


def _profile_text(profile: RateProfile, bars: str) -> Text:
    peak = max(profile.requests)
    line = "".join(
        bars[min(len(bars) - 1, count * len(bars) // (peak + 1))] if count else " " for count in profile.requests
    )
    scale = f"one column is {duration_text(profile.bin_s)}, the highest {peak / profile.bin_s:.3g} requests/s"
    return Text.assemble(("arrivals  ", "dim"), line, "\n", (f"          {scale}", "dim"))
