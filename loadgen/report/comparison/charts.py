"""What the page of a comparison draws: speedup, tokens per step against break-even, TPOT and throughput, by level."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from loadgen.core.comparison.arms import ArmLadder, ArmLevel, ArmsComparison
from loadgen.core.stats.bootstrap import Estimate
from loadgen.report.charts import LOG_LEVELS_FROM, Chart, Line, Mark, in_percent
from loadgen.report.words import variable_text

Value = TypeVar("Value")

_TONES = (0, 1, 2, 5)
_BASELINE_TONE = 4
_LIMIT_TONE = 3


def speedup_chart(comparison: ArmsComparison) -> Chart:
    """The speedup of mean TPOT of every arm with its interval, what was expected, and the line at which it is none."""
    levels = _levels(comparison)
    lines = []
    for tone, ladder in _toned(comparison.arms):
        speedups = [_at(ladder, level, _speedup) for level in levels]
        lines.append(_line(ladder.arm.label, speedups, tone))
        expected = tuple(_at(ladder, level, _expected_speedup) for level in levels)
        lines.append(Line(label=f"{ladder.arm.label}, expected", values=expected, tone=tone, dashed=True))
    lines.append(_no_gain(comparison, lines))
    marks = tuple(
        Mark(x=ladder.crossover.level, text=f"{ladder.crossover.level:.0f}")
        for ladder in comparison.arms
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
    )
    return [chart for chart in charts if chart.drawable]


def _no_gain(comparison: ArmsComparison, lines: Sequence[Line]) -> Line:
    """The line at 1; its band is how far the baseline may be from itself, as far up as the bands of the arms go."""
    levels = _levels(comparison)
    ones = tuple(1.0 for _ in levels)
    if comparison.again is None:
        return Line(label="no gain", values=ones, tone=_BASELINE_TONE)
    top = max((high for line in lines for high in line.high or () if high is not None), default=2.0)
    floors = [_at(comparison.again, level, _floor) for level in levels]
    return Line(
        label="no gain, and the baseline's distance from itself",
        values=ones,
        low=tuple(None if floor is None else 1 / floor for floor in floors),
        high=tuple(None if floor is None else min(floor, top) for floor in floors),
        tone=_BASELINE_TONE,
    )


def length_charts(comparison: ArmsComparison) -> list[Chart]:
    """For each arm the tokens that a step emits beside those that it has to."""
    levels = _levels(comparison)
    charts = []
    for place, (tone, ladder) in enumerate(_toned(comparison.arms)):
        needed = [_at(ladder, level, _break_even) for level in levels]
        expected = tuple(_at(ladder, level, _expected_break_even) for level in levels)
        lines = [
            Line(
                label="a step emits", values=tuple(_at(ladder, level, _tokens_per_step) for level in levels), tone=tone
            ),
            _line("has to emit", needed, _LIMIT_TONE),
            _line("has to by forced runs", [_at(ladder, level, _forced) for level in levels], _BASELINE_TONE),
            Line(label="expected to have to", values=expected, tone=_LIMIT_TONE, dashed=True),
        ]
        charts.append(_chart(comparison, f"arms-length-{place}", ladder.arm.label, "tokens per step", lines))
    return charts


def load_charts(comparison: ArmsComparison) -> list[Chart]:
    """TPOT and throughput of every arm, the baseline included."""
    levels = _levels(comparison)
    toned = [(_BASELINE_TONE, comparison.baseline), *_toned(comparison.arms)]

    def lines(value: Callable[[ArmLevel], float | None]) -> list[Line]:
        return [
            Line(label=ladder.arm.label, values=tuple(_at(ladder, level, value) for level in levels), tone=tone)
            for tone, ladder in toned
        ]

    return [
        _chart(comparison, "arms-tpot", "TPOT, mean", "ms", lines(_tpot_ms), choose_scale=True),
        _chart(comparison, "arms-tokens", "Throughput", "output tokens/s", lines(_tokens_per_s), choose_scale=True),
    ]


def pareto_chart(comparison: ArmsComparison) -> Chart:
    """What one user gets against what the server gives in all, a line an arm, its points the levels."""
    points = sorted(
        (level.output_tokens_per_s, 1 / level.tpot_s, place)
        for place, ladder in enumerate((comparison.baseline, *comparison.arms))
        for level in ladder.levels
        if level.output_tokens_per_s is not None and level.tpot_s is not None
    )
    toned = [(_BASELINE_TONE, comparison.baseline), *_toned(comparison.arms)]
    return Chart(
        id="arms-pareto",
        title="Speed for one user, against all that the server gives",
        kind="plain",
        unit="tokens/s",
        x=tuple(point[0] for point in points),
        lines=tuple(
            Line(label=ladder.arm.label, values=tuple(y if of == place else None for _, y, of in points), tone=tone)
            for place, (tone, ladder) in enumerate(toned)
        ),
        x_label="output tokens/s in all",
        height=300,
    )


def positions_chart(comparison: ArmsComparison) -> Chart:
    """Acceptance by draft token, a line an arm, at its lowest level that tells."""
    found = []
    for tone, ladder in _toned(comparison.arms):
        told = next(
            (each.told.acceptance_by_position for each in ladder.levels if each.told.acceptance_by_position), None
        )
        if told is not None:
            found.append((tone, ladder.arm.label, told))
    depth = max((len(told) for _, _, told in found), default=0)
    return Chart(
        id="arms-positions",
        title="Acceptance by draft token, of steps that drafted",
        kind="level",
        unit="%",
        x=tuple(float(place) for place in range(1, depth + 1)),
        lines=tuple(
            Line(label=label, values=(*in_percent(told), *(None for _ in range(depth - len(told)))), tone=tone)
            for tone, label, told in found
        ),
        x_label="draft token",
        height=300,
    )


def _levels(comparison: ArmsComparison) -> tuple[float, ...]:
    return tuple(level.level for level in comparison.baseline.levels)


def _toned(ladders: Sequence[ArmLadder]) -> list[tuple[int, ArmLadder]]:
    return [(_TONES[place % len(_TONES)], ladder) for place, ladder in enumerate(ladders)]


def _at(ladder: ArmLadder, level: float, value: Callable[[ArmLevel], Value | None]) -> Value | None:
    return next((value(found) for found in ladder.levels if found.level == level), None)


def _line(label: str, estimates: Sequence[Estimate | None], tone: int) -> Line:
    return Line(
        label=label,
        values=tuple(None if each is None else each.value for each in estimates),
        low=tuple(None if each is None else each.low for each in estimates),
        high=tuple(None if each is None else each.high for each in estimates),
        tone=tone,
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
    return Chart(
        id=name,
        title=title,
        kind="level",
        unit=unit,
        x=x,
        lines=tuple(line for line in lines if any(value is not None for value in line.values)),
        x_label=variable_text(comparison.variable),
        log_x=bool(x) and x[0] > 0 and x[-1] / x[0] >= LOG_LEVELS_FROM,
        choose_scale=choose_scale,
        marks=marks,
        height=height,
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
