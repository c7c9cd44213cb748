"""The knee of a ladder of runs."""

from dataclasses import replace

import pytest

from loadgen.core.analysis.ladder import ATTAINMENT, DEFAULT_LADDER, knee_of, levels_asked, sweep_of
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import Knee, Slo, SweepLevel, Throughput, Verdict
from tests.core.analysis.factory import answered, manifest, summarised

SUMMARY = summarised([answered(0)])
RATE = "request_rate_rps"


def level(
    at: float, rps: float | None, *, attained: float | None = None, valid: bool = True, requests: int = 100
) -> SweepLevel:
    throughput = Throughput(requests_per_s=rps, output_tokens_per_s=None, input_tokens_per_s=None, goodput_rps=None)
    slo = None if attained is None else Slo(objectives={"ttft_s": 0.5}, attainment_ratio=attained, good=0, due=1)
    counts = replace(SUMMARY.requests, planned=requests, completed=requests)
    load = replace(SUMMARY.load, concurrency=round(at))
    verdict = Verdict(valid=valid)
    summary = replace(SUMMARY, load=load, requests=counts, throughput=throughput, slo=slo, verdict=verdict)
    return SweepLevel(level=at, summary=summary)


def knee_at(levels: list[SweepLevel], variable: str = "concurrency", *, attainment_ratio: float = ATTAINMENT) -> Knee:
    """The knee that must be there."""
    knee = knee_of(levels, variable, attainment_ratio=attainment_ratio)
    assert isinstance(knee, Knee), knee
    return knee


def test_knee_where_throughput_stops_to_follow_and_why() -> None:
    """From 4 to 8 slots double the load brings 11 percent: the knee is 4, in any order of levels."""
    levels = [level(8, 40), level(1, 10), level(2, 19), level(4, 36), level(16, 41)]
    knee = knee_at(levels)
    assert knee.level == 4
    assert knee.reason.startswith("concurrency 8 is 100% more load for +11% requests/s (36 to 40)")


def test_a_rate_that_is_still_followed_has_no_knee() -> None:
    """The knee lies above what was tried: no level is named, but how far it was tried is."""
    assert knee_of([level(1, 1), level(2, 2), level(4, 4)], RATE) == "none up to 4: throughput still rises"


@pytest.mark.parametrize("levels", [[], [level(1, 1)], [level(1, 1), level(2, 2, valid=False)]])
def test_a_knee_takes_two_levels(levels: list[SweepLevel]) -> None:
    """Said so."""
    assert knee_of(levels, "concurrency") == "none: it takes two levels that are valid"


def test_levels_of_few_requests_make_no_knee() -> None:
    """The throughput of one request a level is noise; so is that of eight slots which had nine requests to share."""
    few = "none: it takes two levels that are valid and have 10 requests or more, one for each slot at least"
    assert knee_of([level(c, 5, requests=1) for c in (1, 2, 4)], "concurrency") == few
    assert knee_of([level(c, 5, requests=1, attained=1.0) for c in (1, 2, 4)], "concurrency") == few
    assert knee_of([level(1, 10), level(32, 10, requests=31)], "concurrency") == few
    assert knee_at([level(1, 10), level(32, 10, requests=32)]).level == 1


def test_falling_throughput_is_past_the_knee() -> None:
    """Overload that lowers throughput."""
    knee = knee_at([level(5, 5), level(10, 10), level(20, 8)], RATE)
    assert knee.level == 10
    assert "20 requests/s is 100% more load for -20%" in knee.reason


def test_an_invalid_level_makes_no_knee() -> None:
    """A client at its limit flattens throughput, too: such a level is left out, as is one without completions."""
    levels = [level(1, 10), level(2, 20), level(4, 20, valid=False), level(8, None)]
    assert knee_of(levels, "concurrency") == "none up to 2: throughput still rises"


def test_with_objectives_the_highest_level_that_meets_them() -> None:
    """Met up to 4, missed at 8; that 16 met them again by luck does not count."""
    levels = [level(at, 10, attained=share) for at, share in ((2, 1.0), (4, 0.995), (8, 0.9), (16, 0.99))]
    knee = knee_at(levels)
    assert knee.level == 4
    assert knee.reason == (
        "The highest level at which 99% of requests met the objectives; at concurrency 8 only 90% did."
    )
    lower = knee_at(levels, attainment_ratio=0.9)
    assert lower.level == 16
    assert "the limit lies above" in lower.reason


@pytest.mark.parametrize("attained", [0.5, 0.0])
def test_objectives_that_no_level_meets(attained: float) -> None:
    """No level is recommended, and the first that missed them is named."""
    levels = [level(1, 10, attained=attained), level(2, 20, attained=1.0)]
    assert knee_of(levels, "concurrency") == (
        f"none: 99% of requests are to meet the objectives; at concurrency 1 already only {attained * 100:g}% did"
    )


def test_a_level_that_mostly_failed_is_past_the_knee() -> None:
    """Five of two hundred completed: that is no lack of requests."""
    broken = level(4, 0.5)
    counts = replace(SUMMARY.requests, planned=200, completed=5, failed=195)
    broken = replace(broken, summary=replace(broken.summary, requests=counts))
    assert knee_at([level(1, 10), level(2, 20), broken]).level == 2


def test_levels_that_were_asked_for() -> None:
    """As resolved options have them; nothing is made up for a run of another command."""
    assert levels_asked({"concurrency": [1, 8], "request_rate": None}) == (1, 8)
    assert levels_asked({"concurrency": None, "request_rate": [0.5]}) == (0.5,)
    assert levels_asked({"concurrency": None, "request_rate": None}) == DEFAULT_LADDER
    assert levels_asked({}) == levels_asked({"concurrency": 4}) == ()


def test_a_ladder_is_put_together_from_its_runs() -> None:
    """Levels keep the number that was asked for, whole where it was whole; what never ran is in `asked` alone."""
    told = manifest(name="n", options={"concurrency": [1, 2, 4], "request_rate": None})
    runs = [(replace(told, load=replace(told.load, concurrency=c)), level(c, c).summary) for c in (1, 2)]
    sweep = sweep_of("s", runs)
    assert (sweep.name, sweep.variable, sweep.asked) == ("n", "concurrency", (1, 2, 4))
    assert [repr(one.level) for one in sweep.levels] == ["1", "2"]
    assert sweep.no_knee == "none up to 2: throughput still rises"
    with pytest.raises(StoreError, match=r"manifest\.json: field 'load'"):
        sweep_of("s", [(replace(told, load=replace(told.load, concurrency=None)), runs[0][1])])
