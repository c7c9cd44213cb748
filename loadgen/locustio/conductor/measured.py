"""What the levels of a ladder came to so far, as the page shows it: rows, charts, and whether to believe them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from loadgen.core.analysis.ladder import ATTAINMENT, knee_of
from loadgen.core.metrics.summary import Knee, Summary, Sweep, SweepLevel
from loadgen.core.run import LoadMode
from loadgen.report.charts import Chart, Line, ladder_charts, log_levels
from loadgen.report.verdict import has_doubts, sweep_doubts, sweep_headline
from loadgen.report.words import failed_share, knee_text

_SHOWN = ("ttft_s", "tpot_s", "icl_s", "e2el_s")
_TONES = (4, 0, 1, 2, 5, 6, 7)
_ARM, _REPEAT = "arm", "repeat"


class Measured:
    """Takes summaries as levels end. `asked` are the levels that are to come, `arms` in order, the baseline first."""

    def __init__(self, *, variable: str, asked: Sequence[float], arms: Sequence[str], attainment: float | None) -> None:
        self._variable, self._asked, self._arms = variable, tuple(asked), tuple(arms)
        self._attainment = ATTAINMENT if attainment is None else attainment
        self._summaries: list[Summary] = []

    def add(self, summary: Summary) -> None:
        """A level has ended."""
        self._summaries.append(summary)

    def as_json(self) -> dict[str, Any]:
        """Everything so far."""
        sweep = self._sweep()
        headline = sweep_headline(sweep)
        charts = self._arm_charts() if self._arms else ladder_charts(sweep)
        return {
            "rows": [_row(summary) for summary in self._summaries],
            "charts": [chart.as_json() for chart in charts if chart.drawable],
            "verdict": {"words": headline.words, "kind": headline.kind},
            "doubts": [asdict(doubt) for doubt in sweep_doubts(sweep)],
            "knee": None if self._arms else knee_text(sweep),
        }

    def _sweep(self) -> Sweep:
        levels = tuple(SweepLevel(level=_level(summary), summary=summary) for summary in self._summaries)
        found = knee_of(levels, self._variable, attainment_ratio=self._attainment)
        return Sweep(
            sweep_id="",
            name=None,
            variable=self._variable,
            asked=self._asked,
            levels=levels,
            knee=found if isinstance(found, Knee) else None,
            no_knee=None if isinstance(found, Knee) else found,
        )

    def _arm_charts(self) -> list[Chart]:
        """By arm. Several repeats are put together by the geometric mean; intervals come with the report."""

        def each(value: Callable[[Summary], float | None]) -> Callable[[str, float], float | None]:
            return lambda arm, level: _mean(value(one) for one in self._of(arm, level))

        return [
            self._chart("arms-speedup", "Speedup of TPOT so far", "×", self._speedup),
            self._chart("arms-ttft", "TTFT, p50", "ms", each(lambda one: _ms(one.latency.ttft_s.p50))),
            self._chart("arms-tpot", "TPOT, p50", "ms", each(lambda one: _ms(one.latency.tpot_s.p50))),
            self._chart("arms-tokens", "Throughput", "tokens/s", each(lambda one: one.throughput.output_tokens_per_s)),
            self._chart(
                "arms-acceptance",
                "Acceptance length",
                "tokens",
                each(lambda one: None if one.speculation is None else one.speculation.acceptance_length),
            ),
        ]

    def _of(self, arm: str, level: float) -> list[Summary]:
        return [one for one in self._summaries if one.labels.get(_ARM) == arm and _level(one) == level]

    def _speedup(self, arm: str, level: float) -> float | None:
        """The baseline's median TPOT over the arm's, repeat by repeat."""
        baseline = {one.labels.get(_REPEAT): one.latency.tpot_s.p50 for one in self._of(self._arms[0], level)}
        return _mean(
            base / own
            for one in self._of(arm, level)
            if (base := baseline.get(one.labels.get(_REPEAT))) and (own := one.latency.tpot_s.p50)
        )

    def _chart(self, name: str, title: str, unit: str, value: Callable[[str, float], float | None]) -> Chart:
        x = tuple(sorted({_level(summary) for summary in self._summaries}))
        return Chart(
            id=name,
            title=title,
            kind="level",
            unit=unit,
            x=x,
            lines=tuple(
                Line(label=arm, values=tuple(value(arm, level) for level in x), tone=_TONES[place % len(_TONES)])
                for place, arm in enumerate(self._arms)
            ),
            x_label="concurrency" if self._variable == "concurrency" else "requests/s asked for",
            log_x=log_levels(x),
        )


def variable_of(*, rates: bool) -> str:
    """What is varied, as a sweep calls it."""
    return "request_rate_rps" if rates else "concurrency"


def _level(summary: Summary) -> float:
    load = summary.load
    level = load.concurrency if load.mode is LoadMode.CONCURRENCY else load.request_rate_rps
    assert level is not None
    return level


def _row(summary: Summary) -> dict[str, Any]:
    verdict = summary.verdict
    return {
        "level": _level(summary),
        "arm": summary.labels.get(_ARM),
        "repeat": summary.labels.get(_REPEAT),
        "requests": msgspec.to_builtins(summary.requests),
        "failed_ratio": failed_share(summary),
        "requests_per_s": summary.throughput.requests_per_s,
        "output_tokens_per_s": summary.throughput.output_tokens_per_s,
        "latency": {name: msgspec.to_builtins(getattr(summary.latency, name)) for name in _SHOWN},
        "attainment_ratio": None if summary.slo is None else summary.slo.attainment_ratio,
        "acceptance_length": None if summary.speculation is None else summary.speculation.acceptance_length,
        "verdict": "invalid" if not verdict.valid else "doubts" if has_doubts(verdict.findings) else "valid",
    }


def _mean(values: Any) -> float | None:
    known = [math.log(value) for value in values if value]
    return math.exp(math.fsum(known) / len(known)) if known else None


def _ms(value_s: float | None) -> float | None:
    return None if value_s is None else value_s * 1e3
