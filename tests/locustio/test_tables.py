"""Our measurements in Locust's tables."""

from typing import Any

import numpy as np
import pytest
from locust.stats import RequestStats

from loadgen.core.metrics.totals import Timing, Totals
from loadgen.locustio.conductor.counts import counted, since
from loadgen.locustio.swarm.tables import REQUESTS, add_counts, level_rows


def timings(**values_s: list[float]) -> Totals:
    """Totals that have seen these values."""
    totals = Totals()
    for name, values in values_s.items():
        totals.timings[Timing(name)].observe(np.array(values))
    return totals


TOTALS = timings(
    request_duration=[0.147, 3.432], time_to_first_token=[0.0112, 0.0934], time_per_output_token=[0.00741, 0.00753]
)


def test_each_metric_has_a_row_and_requests_alone_are_the_aggregate() -> None:
    """Two requests are two in all, not eight; failures count among them."""
    stats = RequestStats()
    add_counts(stats, "concurrency 4", counted(TOTALS) | {"failures": {"http_5xx": 3}})
    rows = {name: entry.num_requests for (name, _), entry in stats.entries.items()}
    assert rows == {"concurrency 4 · end to end": 5, "concurrency 4 · TTFT": 2, "concurrency 4 · TPOT": 2}
    assert (stats.total.num_requests, stats.total.num_failures, stats.total.fail_ratio) == (5, 3, 0.6)
    ((error),) = stats.errors.values()
    assert (error.name, error.error, error.occurrences) == ("concurrency 4 · end to end", "http_5xx", 3)


@pytest.mark.parametrize(
    ("name", "true_ms"), [("end to end", 3432), ("TTFT", 93.4), ("TPOT", 7.53)], ids=["seconds", "tens", "few"]
)
def test_times_are_not_rounded_to_two_digits(name: str, true_ms: float) -> None:
    """Within half of a native bucket, a little above one percent; Locust by itself would say 3400, 93 and 8."""
    stats = RequestStats()
    add_counts(stats, "l", counted(TOTALS))
    assert stats.entries[f"l · {name}", "LLM"].get_response_time_percentile(1.0) == pytest.approx(true_ms, rel=0.0115)


def test_what_comes_in_parts_adds_up() -> None:
    """The difference between two moments is what is told; all differences together are the whole."""
    begun, half, done = Totals(), timings(request_duration=[0.147]), TOTALS
    parts, whole = RequestStats(), RequestStats()
    for before, now in ((begun, half), (half, done)):
        add_counts(parts, "l", since(counted(before), counted(now)))
    add_counts(whole, "l", since(counted(begun), counted(done)))
    key = ("l · end to end", "LLM")
    assert dict(parts.entries[key].response_times) == dict(whole.entries[key].response_times)
    assert parts.total.avg_response_time == pytest.approx(whole.total.avg_response_time)
    assert since(counted(done), counted(done)) == {}


def test_nothing_new_changes_nothing() -> None:
    """No row without a request."""
    stats = RequestStats()
    add_counts(stats, "l", {})
    assert (dict(stats.entries), stats.total.num_requests) == ({}, 0)


def row(**changed: Any) -> dict[str, Any]:
    """A level as the conductor tells of it."""
    values = {"n": 40, "mean": 0.0107, "min": 0.01, "p50": 0.0106812345, "p90": 0.012, "p95": 0.014, "max": 0.0145}
    latency = dict.fromkeys(("ttft_s", "tpot_s", "icl_s", "e2el_s"), values | {"p99": None})
    return {"level": 4, "arm": None, "repeat": None, "latency": latency, "verdict": "valid"} | changed


def test_the_tab_has_a_row_a_level_and_metric() -> None:
    """In ms to the microsecond; a percentile that the sample does not carry is a dash, not the 0 of Locust's page."""
    rows = level_rows([row(), row(level=8, arm="eagle3", repeat="2")])
    assert [(found["load"], found["metric"]) for found in rows][::4] == [("4", "TTFT"), ("eagle3 · 2 · 8", "TTFT")]
    assert [found["metric"] for found in rows[:4]] == ["TTFT", "TPOT", "inter-chunk", "end to end"]
    assert (rows[0]["requests"], rows[0]["p50"], rows[0]["p99"]) == (40, 10.681, "—")


def test_the_aggregate_is_of_a_timing_that_there_is() -> None:
    """The name by which whole requests are known is one of the totals'."""
    assert REQUESTS in set(Timing)
