"""What the page of a comparison draws: speedup, tokens per step against break-even, TPOT and throughput, by level."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Required, TypedDict, TypeVar

from loadgen.core.comparison.arms import ArmLadder, ArmLevel, ArmsComparison
from loadgen.core.stats.bootstrap import Estimate
from loadgen.report.charts import SHAPES, Chart, Line, Mark, band_top, in_percent, log_levels
from loadgen.report.words import variable_text

Value = TypeVar("Value")

_TONES = (0, 1, 2, 5, 6, 7)
_BASELINE_TONE = 4
_LIMIT_TONE = 3
_WHOLE_PERCENT = 100.0


class Look(TypedDict, total=False):
    """What tells an arm's line apart, as a line takes it."""

    tone: Required[int]
    shape: int | None


_BASELINE_LOOK: Look = {"tone": _BASELINE_TONE, "shape": None}


def speedup_chart(comparison: ArmsComparison) -> Chart:
    """The speedup of mean TPOT of every arm with its interval, what was expected, and the line at which it is none."""
    levels = _levels(comparison)
    lines = []
    for look, ladder in _looks(comparison.arms):
        speedups = [_at(ladder, level, _speedup) for level in levels]
        lines.append(_line(ladder.arm.label, speedups, look))
        expected = tuple(_at(ladder, level, _expected_speedup) for level in levels)
        lines.append(Line(label=f"{ladder.arm.label}, expected", values=expected, dashed=True, **look))
    lines.append(_no_gain(comparison))
    marks = tuple(
        Mark(x=ladder.crossover.level, text=f"{ladder.crossover.level:.0f}", tone=look["tone"])
        for look, ladder in _looks(comparison.arms)
        if ladder.crossover is not None and ladder.crossover.level is not None
    )
    return _chart(comparison, "arms-speedup", "Speedup of TPOT", "×", lines, marks=marks, height=340)


def document_charts(comparison: ArmsComparison) -> list[Chart]:
    """Those that a document wants, as far as there is something to draw."""
    charts = (
        speedup_chart(comparison),
        pareto_chart(comparison),
        positions_chart(comparison),
        *load_charts(comparison),
        *length_charts(comparison),
        *time_charts(comparison),
    )
    return [chart for chart in charts if chart.drawable]


def _no_gain(comparison: ArmsComparison) -> Line:
    """The line at 1; its band is how far the baseline may be from itself."""
    levels = _levels(comparison)
    ones = tuple(1.0 for _ in levels)
    if comparison.again is None:
        return Line(label="no gain", values=ones, **_BASELINE_LOOK)
    floors = [_at(comparison.again, level, _floor) for level in levels]
    return Line(
        label="no gain, and the baseline's distance from itself",
        values=ones,
        low=tuple(None if floor is None else 1 / floor for floor in floors),
        high=tuple(floors),
        **_BASELINE_LOOK,
    )


def length_charts(comparison: ArmsComparison) -> list[Chart]:
    """For each arm the tokens that a step emits beside those that it has to."""
    levels = _levels(comparison)
    charts = []
    for look, ladder in _looks(comparison.arms):
        needed = [_at(ladder, level, _break_even) for level in levels]
        expected = tuple(_at(ladder, level, _expected_break_even) for level in levels)
        lines = [
            Line(
                label="a step emits",
                values=tuple(_at(ladder, level, _tokens_per_step) for level in levels),
                **look,
            ),
            _line("has to emit", needed, {"tone": _LIMIT_TONE}),
            _line("has to by forced runs", [_at(ladder, level, _forced) for level in levels], {"tone": _BASELINE_TONE}),
            Line(label="expected to have to", values=expected, tone=_LIMIT_TONE, dashed=True),
        ]
        charts.append(_chart(comparison, f"arms-length-{ladder.arm.name}", ladder.arm.label, "tokens per step", lines))
    return charts


def load_charts(comparison: ArmsComparison) -> list[Chart]:
    """TPOT and throughput of every arm, the baseline included, its second start dashed."""
    tpot, rate = _lines_of(comparison, _tpot_ms), _lines_of(comparison, _tokens_per_s)
    return [
        _chart(comparison, "arms-tpot", "TPOT, mean", "ms", tpot, choose_scale=True),
        _chart(comparison, "arms-tokens", "Throughput", "output tokens/s", rate, choose_scale=True),
    ]


def time_charts(comparison: ArmsComparison) -> list[Chart]:
    """For the baseline and each arm, where the time of a request goes in the server: shares of it, stacked."""
    return [
        replace(
            _chart(
                comparison,
                f"arms-time-{ladder.arm.name}",
                f"{ladder.arm.label}: time in the server",
                "% of a request's time",
                _shares(ladder, _levels(comparison)),
            ),
            stacked=True,
            top=_WHOLE_PERCENT,
        )
        for ladder in (comparison.baseline, *comparison.arms)
    ]


def _shares(ladder: ArmLadder, levels: Sequence[float]) -> list[Line]:
    """Decode beneath prefill beneath the queue, named from the top as they lie; without what is nothing everywhere."""
    shares = [
        (label, tone, tuple(_at(ladder, level, share) for level in levels))
        for label, tone, share in (
            ("decode", 0, _decode_percent),
            ("prefill", 1, _prefill_percent),
            ("queue", _LIMIT_TONE, _queue_percent),
        )
    ]
    told = zip(*(values for _, _, values in shares), strict=True)
    low = tuple(None if all(value is None for value in of_level) else 0.0 for of_level in told)
    lines: list[Line] = []
    for label, tone, values in shares:
        high = tuple(
            None if begin is None else min(_WHOLE_PERCENT, begin + (value or 0.0))
            for begin, value in zip(low, values, strict=True)
        )
        if any(values):
            lines.insert(0, Line(label=label, values=values, tone=tone, shape=None, low=low, high=high))
        low = high
    return lines


def pareto_chart(comparison: ArmsComparison) -> Chart:
    """What one user gets against what a GPU gives in all, else the server, a line an arm, its points the levels."""
    everyone, per_gpu = _everyone(comparison), comparison.per_gpu
    points = sorted(
        (level.output_tokens_per_s / (ladder.arm.gpus or 1 if per_gpu else 1), 1 / level.tpot_s, place)
        for place, (_, ladder) in enumerate(everyone)
        for level in ladder.levels
        if level.output_tokens_per_s is not None and level.tpot_s is not None
    )
    return Chart(
        id="arms-pareto",
        title=f"Speed for one user, against all that a {'GPU' if per_gpu else 'server'} gives",
        kind="plain",
        unit="tokens/s",
        x=tuple(point[0] for point in points),
        lines=tuple(
            replace(line, values=tuple(y if of == place else None for _, y, of in points))
            for place, (line, _) in enumerate(everyone)
        ),
        x_label=f"output tokens/s per {'GPU' if per_gpu else 'server'}",
        height=300,
    )


def positions_chart(comparison: ArmsComparison) -> Chart:
    """Acceptance by draft token, a line an arm, at its lowest level that tells."""
    found = []
    for look, ladder in _looks(comparison.arms):
        told = next(
            (each.told.acceptance_by_position for each in ladder.levels if each.told.acceptance_by_position), None
        )
        if told is not None:
            found.append((look, ladder.arm.label, told))
    depth = max((len(told) for _, _, told in found), default=0)
    return Chart(
        id="arms-positions",
        title="Acceptance by draft token, of steps that drafted",
        kind="level",
        unit="%",
        x=tuple(float(place) for place in range(1, depth + 1)),
        lines=tuple(
            Line(label=label, values=(*in_percent(told), *(None for _ in range(depth - len(told)))), **look)
            for look, label, told in found
        ),
        x_label="draft token",
        height=300,
    )


def _levels(comparison: ArmsComparison) -> tuple[float, ...]:
    return tuple(level.level for level in comparison.baseline.levels)


def _looks(ladders: Sequence[ArmLadder]) -> list[tuple[Look, ArmLadder]]:
    """Each arm with its colour and the shape of its points: a shape of its own up to eight, a pair up to 24."""
    return [
        ({"tone": _TONES[place % len(_TONES)], "shape": place % len(SHAPES)}, ladder)
        for place, ladder in enumerate(ladders)
    ]


def _everyone(comparison: ArmsComparison) -> list[tuple[Line, ArmLadder]]:
    """The baseline, the arms, and the baseline's second start, each with its line yet without values."""
    looks = [(_BASELINE_LOOK, comparison.baseline), *_looks(comparison.arms)]
    lines = [(Line(label=ladder.arm.label, values=(), **look), ladder) for look, ladder in looks]
    if comparison.again is not None:
        again = Line(label=comparison.again.arm.label, values=(), dashed=True, **_BASELINE_LOOK)
        lines.append((again, comparison.again))
    return lines


def _lines_of(comparison: ArmsComparison, value: Callable[[ArmLevel], float | None]) -> list[Line]:
    """A value of every arm by level."""
    levels = _levels(comparison)
    return [
        replace(line, values=tuple(_at(ladder, level, value) for level in levels))
        for line, ladder in _everyone(comparison)
    ]


def _at(ladder: ArmLadder, level: float, value: Callable[[ArmLevel], Value | None]) -> Value | None:
    return next((value(found) for found in ladder.levels if found.level == level), None)


def _line(label: str, estimates: Sequence[Estimate | None], look: Look) -> Line:
    return Line(
        label=label,
        values=tuple(None if each is None else each.value for each in estimates),
        low=tuple(None if each is None else each.low for each in estimates),
        high=tuple(None if each is None else each.high for each in estimates),
        **look,
    )


def _chart(
    comparison: ArmsComparison,
    name: str,
    title: str,
    unit: str,
    lines: Iterable[Line],
    *,
    marks: tuple[Mark, ...] = (),
    choose_scale: bool = False,
    height: int = 230,
) -> Chart:
    x = _levels(comparison)
    shown = tuple(line for line in lines if any(value is not None for value in line.values))
    return Chart(
        id=name,
        title=title,
        kind="level",
        unit=unit,
        x=x,
        lines=shown,
        x_label=variable_text(comparison.variable),
        log_x=log_levels(x),
        choose_scale=choose_scale,
        marks=marks,
        height=height,
        top=band_top(shown),
    )


def _speedup(level: ArmLevel) -> Estimate | None:
    return None if level.gain is None else level.gain.verdict.speedup


def _floor(level: ArmLevel) -> float | None:
    if level.gain is None:
        return None
    itself = level.gain.verdict.speedup
    return max(itself.high, 1 / itself.low)


def _forced(level: ArmLevel) -> Estimate | None:
    needed = None if level.explanation is None else level.explanation.needed
    return None if needed is None else needed.length


def _break_even(level: ArmLevel) -> Estimate | None:
    return None if level.gain is None else level.gain.break_even_length


def _expected_speedup(level: ArmLevel) -> float | None:
    return None if level.expected is None else level.expected.speedup


def _expected_break_even(level: ArmLevel) -> float | None:
    return None if level.expected is None else level.expected.break_even_length


def _tokens_per_step(level: ArmLevel) -> float | None:
    return level.tokens_per_step


def _tpot_ms(level: ArmLevel) -> float | None:
    return None if level.tpot_s is None else level.tpot_s * 1e3


def _tokens_per_s(level: ArmLevel) -> float | None:
    return level.output_tokens_per_s


def _queue_percent(level: ArmLevel) -> float | None:
    return in_percent([level.told.queue_ratio])[0]


def _prefill_percent(level: ArmLevel) -> float | None:
    return in_percent([level.told.prefill_ratio])[0]


def _decode_percent(level: ArmLevel) -> float | None:
    return in_percent([level.told.decode_ratio])[0]
