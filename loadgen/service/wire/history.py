"""Capacities over time."""

from typing import Any, Literal

from loadgen.service.wire.common import Instant, View


class CapacityPoint(View):
    """One capacity test. `verdict` holds it against those before it.

    An unchanged one would lie in `expected_low` to `expected_high`.
    """

    run_id: str
    at: Instant
    name: str | None
    labels: dict[str, str]
    variable: str
    level: float | None
    low: float | None
    high: float | None
    attainment_ratio: float | None
    requests_per_s: float | None
    output_tokens_per_s: float | None
    valid: bool
    verdict: Literal["too_few", "no_change", "regression", "improvement", "invalid"]
    compared_with: int
    expected: float | None
    expected_low: float | None
    expected_high: float | None
    ratio: float | None


class CapacitySeries(View):
    """Capacity tests of the same server with the same options."""

    series: str
    tests: int
    latest: CapacityPoint
    target: dict[str, str]
    options: dict[str, Any]


class SeriesList(View):
    """All of them, that of the latest test first."""

    items: list[CapacitySeries]


class CapacityBaseline(View):
    """The capacity of the baseline that tests of a series are held against, with the levels that it lies between."""

    name: str
    run_id: str
    level: float
    low: float | None
    high: float | None


class PointList(View):
    """The results of one, ascending. `baseline` is that of the schedule of the latest one, else of that one itself."""

    items: list[CapacityPoint]
    baseline: CapacityBaseline | None
