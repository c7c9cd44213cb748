"""What the page of a comparison draws: speedup, tokens per step against break-even, TPOT and throughput, by level."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from loadgen.core.comparison.arms import ArmLadder, ArmLevel, ArmsComparison
from loadgen.core.stats.bootstrap import Estimate
from loadgen.report.charts import LOG_LEVELS_FROM, Chart, Line, Mark
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
    lines.append(Line(label="no gain", values=tuple(1.0 for _ in levels), tone=_BASELINE_TONE))
    marks = tuple(
        Mark(x=ladder.crossover.level, text=f"{ladder.crossover.level:.0f}")
        for ladder in comparison.arms
        if ladder.crossover is not None and ladder.crossover.level is not None
    )
    return _chart(comparison, "arms-speedup", "Speedup of TPOT", "×", lines, marks=marks, height=340)


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
