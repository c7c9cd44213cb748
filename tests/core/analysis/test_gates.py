"""Gates on runs and ladders."""

from dataclasses import replace

import pytest

from loadgen.core.analysis.gates import failed_gates
from loadgen.core.metrics.summary import Slo, Summary
from loadgen.core.run import Load, LoadMode
from tests.core.analysis.factory import answered, summarised

SUMMARY = summarised([answered(0)])


def run(*, good: int = 0, due: int = 0, failed: int = 0, dropped: int = 0, concurrency: int = 1) -> Summary:
    """A run of a hundred requests; with objectives when something was due or good."""
    ratio = good / due if due else None
    return replace(
        SUMMARY,
        load=Load(mode=LoadMode.CONCURRENCY, concurrency=concurrency),
        requests=replace(SUMMARY.requests, planned=100, failed=failed, dropped=dropped),
        slo=Slo(objectives={"ttft_s": 0.5}, attainment_ratio=ratio, good=good, due=due),
    )


def evidence(*runs: Summary, **options: object) -> list[str]:
    """What is said of the gates that failed."""
    return [gate.evidence for gate in failed_gates(runs, options)]


def test_attainment_names_limit_and_value() -> None:
    """Below is failed, at the limit is not."""
    assert evidence(run(due=40), slo_attainment=1.0) == ["SLO attainment 0% is below 100% (0 good of 40 due)"]
    assert evidence(run(good=99, due=100), slo_attainment=0.99) == []
    (gate,) = failed_gates([run(good=1, due=4)], {"slo_attainment": 0.5})
    assert (gate.name, gate.limit, gate.value) == ("slo_attainment", 0.5, 0.25)


def test_a_near_miss_is_told_from_the_limit() -> None:
    """99.996 % is not said to be below 100 %."""
    (said,) = evidence(run(good=99_996, due=100_000), slo_attainment=1.0)
    assert said == "SLO attainment 99.996% is below 100% (99996 good of 100000 due)"
    (said,) = evidence(run(good=998_999, due=1_000_000), slo_attainment=0.999)
    assert said.startswith("SLO attainment 99.8999% is below 99.9%")


def test_nothing_due_attains_nothing() -> None:
    """Without a value the gate has failed, and says so."""
    assert evidence(run(), slo_attainment=0.5) == ["SLO attainment has no value, since no request was due"]


def test_a_ladder_need_not_attain_beyond_its_capacity() -> None:
    """One level that attains the objectives is enough; when none does, the best one is named."""
    levels = [run(good=good, due=100, concurrency=c) for c, good in ((1, 99), (2, 100), (4, 10))]
    assert evidence(*levels, slo_attainment=1.0) == []
    assert evidence(*levels[::2], slo_attainment=1.0) == [
        "SLO attainment is below 100% at every level, 99% at best (concurrency 1: 99 good of 100 due)"
    ]


def test_errors_of_any_level_count() -> None:
    """Failed and dropped requests of those planned; the worst level is named."""
    assert evidence(run(failed=3, dropped=2), max_error_ratio=0.05) == []
    assert evidence(run(failed=3, dropped=3), max_error_ratio=0.05) == [
        "share of failed or dropped requests 6% is above 5% (6 of 100)"
    ]
    levels = [run(failed=c, concurrency=c) for c in (1, 2, 8)]
    assert evidence(*levels, max_error_ratio=0.015) == [
        "share of failed or dropped requests 8% is above 1.5% (concurrency 8: 8 of 100)"
    ]
    assert len(evidence(run(failed=1), max_error_ratio=0)) == 1


@pytest.mark.parametrize("options", [{}, {"slo_attainment": None, "max_error_ratio": None}])
def test_without_a_limit_there_is_no_gate(options: dict[str, object]) -> None:
    """However bad it was."""
    assert failed_gates([run(due=1, failed=100)], options) == ()
    assert failed_gates([], {"slo_attainment": 1.0}) == ()
