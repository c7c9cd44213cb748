"""Objectives as people write them."""

import re

import pytest

from loadgen.core.metrics.per_request import REQUEST_METRICS
from loadgen.core.metrics.slo import SLO_METRICS, parse_slo


@pytest.mark.parametrize(
    ("text", "objectives"),
    [
        ("ttft=500ms,tpot=50ms,e2el=10s", {"ttft_s": 0.5, "tpot_s": 0.05, "e2el_s": 10.0}),
        ("ttft_s=500ms", {"ttft_s": 0.5}),
        (" TTFT = 0.5s , e2el_from_due=1m30s", {"ttft_s": 0.5, "e2el_from_due_s": 90.0}),
        ("ttfo=1s", {"ttfo_s": 1.0}),
    ],
)
def test_objectives(text: str, objectives: dict[str, float]) -> None:
    """Names with or without _s, a bare number in seconds."""
    assert parse_slo(text) == objectives


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected METRIC=TIME pairs such as ttft=500ms,tpot=50ms, got ''"),
        ("ttft", "got 'ttft'"),
        ("=5s", "got '=5s'"),
        ("ttft=500ms,", "got ''"),
        ("latency=5s", "latency: not a metric that can have an objective; expected one of ttft, ttft_from_due"),
        ("icl=5ms", "icl: gaps are pooled over requests"),
        ("itl_s=5ms", "use tpot"),
        ("ttft=fast", "ttft: expected a duration such as 500ms"),
        ("ttft=", "ttft: expected a duration"),
        ("ttft=0", "ttft: expected a time above zero, got '0'"),
        ("ttft=-5ms", "ttft: expected a duration"),
        ("ttft=1s,ttft_s=2s", "ttft_s: given twice"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    """The error names the part and what was expected."""
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_slo(text)


def test_every_objective_has_a_value_of_one_request() -> None:
    """Nothing can be asked for that a request cannot be judged by."""
    assert set(SLO_METRICS) <= set(REQUEST_METRICS)
