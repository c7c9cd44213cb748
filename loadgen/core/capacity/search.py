"""Which level is tried next: twice the last while the objectives are met, then the middle of what is left."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.core.capacity.probe import Probe, Rule, Verdict
from loadgen.core.stats.proportion import NORMAL_QUANTILE, fewest_for

TURNOVERS = 10
"""A run lasts at least this many times as long as a request, so that most of it is in the steady state."""

GROWTH = 2
"""Each further run at a level is this many times as long as the one before it."""

INVALID_MOST = 1
"""So many invalid runs at a level are made up for by another one; one more ends the search."""

RATE_DIGITS = 3
"""Rates are tried with so many significant digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched: the highest level of `variable` from `start` to `most` that passes by the rule.

    `variable` is `concurrency` (whole numbers) or `request_rate_rps`. The search ends when the lowest level that failed
    is no more than `precision_ratio` above the highest that passed.
    """

    variable: str
    start: float
    most: float
    precision_ratio: float
    rule: Rule

    @property
    def whole(self) -> bool:
        """Whether levels are whole numbers."""
        return self.variable == "concurrency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The next run: its level, which run at that level it is (from 1), and how many times as long as the first."""

    level: float
    repeat: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """The last probe of the highest level that passed and of the lowest that failed; None for one that there is not."""

    passed: Probe | None
    failed: Probe | None


def search_of(options: Mapping[str, Any]) -> Search:
    """The search that resolved options stand for, as a run's manifest holds them."""
    whole = options["variable"] == "concurrency"
    return Search(
        variable="concurrency" if whole else "request_rate_rps",
        start=int(options["start"]) if whole else options["start"],
        most=int(options["most"]) if whole else options["most"],
        precision_ratio=options["precision"],
        rule=Rule(
            attainment_ratio=options["slo_attainment"],
            repeats=options["repeats"],
            further_repeats=options["further_repeats"],
            allow_invalid=options["allow_invalid"],
        ),
    )


def next_step(search: Search, probes: Sequence[Probe]) -> Step | None:
    """What is to be run after these probes, in the order in which they were run; None when the search is over."""
    if not probes:
        return _first(search.start)
    last = probes[-1]
    if last.verdict is Verdict.CUT_SHORT:
        return None
    if last.verdict in (Verdict.UNDECIDED, Verdict.INVALID):
        return _again(search, [probe for probe in probes if probe.level == last.level])
    level = _next_level(search, bracket_of(probes))
    return None if level is None else _first(level)


def bracket_of(probes: Sequence[Probe]) -> Bracket:
    """Between which levels the capacity lies, by what decided them."""
    failed = min(_with(probes, Verdict.FAIL), key=lambda probe: probe.level, default=None)
    passed = max(_with(probes, Verdict.PASS), key=lambda probe: probe.level, default=None)
    return Bracket(passed=passed, failed=failed)


def requests_needed(search: Search, in_flight: float, *, gap_variation: float = 0.0) -> int:
    """Requests of a level's first run.

    Enough to pass if all are good, `TURNOVERS` for each that is in flight, and so many that the rate at which arrivals
    were drawn lies within the search's precision of the one that was asked for: `gap_variation` is the standard
    deviation of the gaps between them over their mean, 1 for Poisson arrivals, 0 in a closed loop.
    """
    return max(
        fewest_for(search.rule.attainment_ratio),
        math.ceil(TURNOVERS * in_flight),
        math.ceil((NORMAL_QUANTILE * gap_variation / search.precision_ratio) ** 2),
    )


def _with(probes: Sequence[Probe], verdict: Verdict) -> list[Probe]:
    return [probe for probe in probes if probe.verdict is verdict]


def _first(level: float) -> Step:
    return Step(level=level, repeat=1, length=1)


def _again(search: Search, at_level: Sequence[Probe]) -> Step | None:
    """Another run at a level: longer than the last valid one once the usual number of them is reached."""
    invalid = len(_with(at_level, Verdict.INVALID))
    if invalid > INVALID_MOST:
        return None
    further = max(0, len(at_level) - invalid + 1 - search.rule.repeats)
    return Step(level=at_level[-1].level, repeat=len(at_level) + 1, length=GROWTH**further)


def _next_level(search: Search, bracket: Bracket) -> float | None:
    if bracket.passed is None:
        return None
    low = bracket.passed.level
    if bracket.failed is None:
        return min(2 * low, search.most) if low < search.most else None
    high = bracket.failed.level
    if high <= low * (1 + search.precision_ratio) or (search.whole and high - low <= 1):
        return None
    middle = math.sqrt(low * high)
    if search.whole:
        return min(max(round(middle), low + 1), high - 1)
    rounded = float(f"{middle:.{RATE_DIGITS}g}")
    return rounded if low < rounded < high else None
