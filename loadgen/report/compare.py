"""Runs side by side, for a terminal and as Markdown for a pull request."""

import re
from collections.abc import Collection, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from loadgen.core.comparison.metric_pair import (
    GUIDELLM_TIMES,
    MetricPair,
    is_share,
    is_time,
    name_of,
)
from loadgen.core.comparison.side_by_side import Candidate, SideBySide
from loadgen.core.metrics.catalogue import CATALOGUE, Better
from loadgen.report import text_parts
from loadgen.report.text_parts import INDENT
from loadgen.report.words import DASH, LATENCY_LABELS, milliseconds, number, percent, printable

_LABELS = {
    "guidellm.time_per_output_token_s": "GuideLLM's TPOT",
    "guidellm.inter_token_latency_s": "GuideLLM's ITL",
    "requests_per_s": "requests/s",
    "output_tokens_per_s": "output tokens/s",
    "input_tokens_per_s": "input tokens/s",
    "goodput_rps": "goodput, requests/s",
    "attainment_ratio": "SLO attainment",
    "error_ratio": "failed or dropped",
    "acceptance_length": "acceptance length",
    "acceptance_ratio": "acceptance ratio",
    "tokens_per_step": "tokens per step",
}
_HEADLINES = frozenset(
    f"{name}.{statistic}"
    for name in ("ttft_s", "tpot_s", "e2el_s", *GUIDELLM_TIMES)
    for statistic in ("mean", "p50", "p99")
)
_MOST_PERCENT = 200  # beyond it a factor reads better
_BETTER, _WORSE, _UNCLEAR = "✓ better", "✗ worse", "~ unclear"
_LEGEND = "An interval has 95% confidence; it takes records, and requests enough."
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&])")


def compare_text(found: SideBySide, *, width: int = 100, color: bool = False) -> str:
    """A section a candidate and level: the metrics that matter most, and all that a gate names; then the gates."""
    parts: list[RenderableType] = [Text(f"Against {printable(found.baseline.name)}", style="bold")]
    if found.invalid:
        parts.append(
            Text(f"✗ Invalid: {printable(', '.join(map(str, found.invalid)))}; do not use it", style="bold red")
        )
    parts += [Text(f"! only {printable(each.name)} has {each.at}", style="yellow") for each in found.unmatched]
    named = {gate.metric for gate in found.gates}
    for each in found.candidates:
        lines = [*_remarks(each), *(printable(f"{name}: {values}") for name, values in _differences(each))]
        body = [_table(each, named, width - INDENT), *(Text(line, style="dim") for line in lines)]
        parts.append(text_parts.section(f"{printable(each.name)} at {each.at}", Group(*body)))
    if found.gates:
        parts.append(text_parts.section("Gates", Group(*_gate_lines(found))))
    parts += [Text(""), Text(_LEGEND, style="dim")]
    return text_parts.rendered(parts, width, color)


def _table(candidate: Candidate, named: Collection[str], room: int) -> RenderableType:
    rows = [
        [Text(cell) for cell in (_label(metric), *_cells(metric, candidate.metrics[metric]))]
        for metric in _shown(candidate, named)
    ]
    if not rows:
        return Text("nothing that both have")
    table, _ = text_parts.table(("", ">baseline", ">candidate", ">change", ""), rows, room)
    return table


def _shown(candidate: Candidate, named: Collection[str]) -> list[str]:
    """The metrics that matter most, and those that somebody named."""
    return [
        metric for metric in candidate.metrics if metric in _HEADLINES or metric in named or name_of(metric) == metric
    ]


def _gate_lines(found: SideBySide) -> Iterator[Text]:
    for gate in found.gates:
        mark, style = ("✗ failed", "bold red") if gate.failed else ("✓ passed", "green")
        yield Text(f"{mark}: {printable(gate.candidate)} at {gate.at}: {gate.evidence}", style=style)


def _label(metric: str) -> str:
    name = name_of(metric)
    label = LATENCY_LABELS.get(name) or _LABELS[name]
    return label if name == metric else f"{label} {metric.rpartition('.')[2]}, ms"


def _cells(metric: str, pair: MetricPair) -> tuple[str, str, str, str]:
    return _value(metric, pair.baseline), _value(metric, pair.candidate), _change(metric, pair), _mark(metric, pair)


def _value(metric: str, value: float | None) -> str:
    return milliseconds(value) if is_time(metric) else percent(value) if is_share(metric) else number(value)


def _change(metric: str, pair: MetricPair) -> str:
    """`↑ +5.2% [+3.1, +7.4]`, of a share `↓ -0.4 points`; a dash where a value is missing."""
    if is_share(metric) and pair.baseline is not None and pair.candidate is not None:
        return f"{_arrow(pair.candidate, pair.baseline)} {(pair.candidate - pair.baseline) * 100:+.1f} points"
    if pair.ratio is None:
        return DASH
    if (pair.ratio - 1) * 100 > _MOST_PERCENT:
        ends = () if pair.low is None or pair.high is None else (pair.low, pair.high)
        text = f"{pair.ratio:#.3g}×" + (f" [{ends[0]:#.3g}, {ends[1]:#.3g}]" if ends else "")
    else:
        text = f"{_percent(pair.ratio)}%"
        if pair.low is not None and pair.high is not None:
            text += f" [{_percent(pair.low)}, {_percent(pair.high)}]"
    return f"{_arrow(pair.ratio, 1)} {text}"


def _arrow(candidate: float, baseline: float) -> str:
    return "↑" if candidate > baseline else "↓" if candidate < baseline else "="


def _percent(ratio: float) -> str:
    change = (ratio - 1) * 100
    return f"{change:+.{1 if abs(change) < 99.95 else 0}f}"


def _mark(metric: str, pair: MetricPair) -> str:
    """Better or worse where an interval says so; nothing without one."""
    if pair.low is None or pair.high is None:
        return ""
    if pair.low <= 1 <= pair.high:
        return _UNCLEAR if pair.low < pair.high else ""
    lower_is_better = CATALOGUE[name_of(metric)].better is Better.LOWER
    return _BETTER if (pair.high < 1) == lower_is_better else _WORSE


def _remarks(candidate: Candidate) -> Iterator[str]:
    """What a reader has to know, in whole lines of our own words."""
    yield from candidate.notes
    by_reason: dict[str, list[str]] = {}
    for name, why in candidate.withheld.items():
        by_reason.setdefault(why, []).append(name)
    yield from (f"{', '.join(names)} not compared: {why}" for why, names in by_reason.items())


def _differences(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Each setting that differs, with the two values."""
    for each in candidate.differences:
        yield each.setting, f"{each.candidate}, at the baseline {each.baseline}"


def compare_markdown(found: SideBySide) -> str:
    """A compact table a candidate and level, everything else folded away; names cannot add markup of their own."""
    lines = [f"### {_verdict(found)} against {_code(found.baseline.name)}", ""]
    lines += [f"- **✗ invalid measurement**: {_code(each.name)} at {each.at}" for each in found.invalid]
    for gate in found.gates:
        mark = "✗" if gate.failed else "✓"
        lines.append(f"- {mark} {_code(gate.candidate)} at {gate.at}: {_escaped(gate.evidence)}")
    lines += [f"- only {_code(each.name)} has {each.at}" for each in found.unmatched]
    named = {gate.metric for gate in found.gates}
    for each in found.candidates:
        lines += ["", f"**{_code(each.name)} at {each.at}**", "", *_rows(each, _shown(each, named))]
    lines += ["", "<details><summary>All metrics and notes</summary>"]
    for each in found.candidates:
        lines += ["", f"**{_code(each.name)} at {each.at}**", "", *_rows(each, list(each.metrics)), ""]
        lines += [f"- {_escaped(line)}" for line in _remarks(each)]
        lines += [f"- {_code(name)}: {_code(values)}" for name, values in _differences(each)]
    lines += ["", _LEGEND, "", "</details>", ""]
    return "\n".join(lines)


def _verdict(found: SideBySide) -> str:
    if not found.gates:
        return "Comparison"
    return "✗ Gates failed" if found.failed else "✓ Gates passed"


def _rows(candidate: Candidate, metrics: Sequence[str]) -> Iterator[str]:
    if not metrics:
        yield "Nothing that both have."
        return
    yield "| | baseline | candidate | change | |"
    yield "| --- | ---: | ---: | ---: | --- |"
    for metric in metrics:
        cells = (_label(metric), *_cells(metric, candidate.metrics[metric]))
        yield f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _code(text: str) -> str:
    """Text from outside as code, in which nothing is markup, a mention or a link, and which ends where it ends."""
    plain = printable(text).replace("`", "'").strip()
    return f"`{plain}`" if plain else DASH


def _escaped(text: str) -> str:
    """Words of ours, with what Markdown or HTML would take for markup behind a backslash."""
    return _MARKDOWN.sub(r"\\\1", text)
