"""The knee of a ladder of runs."""

from dataclasses import replace

import pytest

from loadgen.core.analysis.ladder import knee_of
from loadgen.core.metrics.summary import Slo, SweepLevel, Throughput, Verdict
from tests.core.analysis.factory import answered, summarised

SUMMARY = summarised([answered(0)])


def level(at: float, rps: float | None, *, attained: float | None = None, valid: bool = True) -> SweepLevel:
    throughput = Throughput(requests_per_s=rps, output_tokens_per_s=None, input_tokens_per_s=None, goodput_rps=None)
    slo = None if attained is None else Slo(objectives={"ttft_s": 0.5}, attainment_ratio=attained, good=0, due=1)
    return SweepLevel(level=at, summary=replace(SUMMARY, throughput=throughput, slo=slo, verdict=Verdict(valid=valid)))


def test_knee_where_throughput_stops_to_follow_and_why() -> None:
    """From 4 to 8 slots double the load brings 11 percent: the knee is 4, in any order of levels."""
    levels = [level(8, 40), level(1, 10), level(2, 19), level(4, 36), level(16, 41)]
    knee = knee_of(levels, "concurrency")
    assert knee is not None
    assert knee.level == 4
    assert knee.reason.startswith("concurrency 8 is 100% more load for +11% requests/s (36 to 40)")


def test_a_rate_that_is_still_followed_has_no_knee() -> None:
    """The knee lies above what was tried: no level is named."""
    assert knee_of([level(1, 1), level(2, 2), level(4, 4)], "request_rate_rps") is None
    assert knee_of([level(1, 1)], "request_rate_rps") is None
    assert knee_of([], "request_rate_rps") is None


def test_falling_throughput_is_past_the_knee() -> None:
    """Overload that lowers throughput."""
    knee = knee_of([level(5, 5), level(10, 10), level(20, 8)], "request_rate_rps")
    assert knee is not None
    assert knee.level == 10
    assert "20 requests/s is 100% more load for -20%" in knee.reason


def test_an_invalid_level_makes_no_knee() -> None:
    """A client at its limit flattens throughput, too: such a level is left out, as is one without completions."""
    levels = [level(1, 10), level(2, 20), level(4, 20, valid=False), level(8, None)]
    assert knee_of(levels, "concurrency") is None


def test_with_objectives_the_highest_level_that_meets_them() -> None:
    """Met up to 4, missed at 8; that 16 met them again by luck does not count."""
    levels = [level(at, 10, attained=share) for at, share in ((2, 1.0), (4, 0.995), (8, 0.9), (16, 0.99))]
    knee = knee_of(levels, "concurrency")
    assert knee is not None
    assert knee.level == 4
    assert knee.reason == (
        "The highest level at which 99 % of requests met the objectives; at concurrency 8 only 90 % did."
    )
    lower = knee_of(levels, "concurrency", attainment_ratio=0.9)
    assert lower is not None
    assert lower.level == 16
    assert "the limit lies above" in lower.reason


@pytest.mark.parametrize("attained", [0.5, 0.0])
def test_objectives_that_no_level_meets(attained: float) -> None:
    """No level is recommended."""
    assert knee_of([level(1, 10, attained=attained), level(2, 20, attained=1.0)], "concurrency") is None
