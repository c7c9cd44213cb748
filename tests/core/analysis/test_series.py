"""The run over time."""

import pytest

from loadgen.core.analysis.series import MOST_BINS
from loadgen.core.request import Phase
from tests.core.analysis.factory import answered, failed, summarised, unsent


def test_bins_hold_warmup_measurement_and_drain() -> None:
    """One second each, from the first start to the last close; counts by instant."""
    records = [
        answered(0, sent_ms=500, phase=Phase.WARMUP),
        answered(1, sent_ms=1600, lag_ms=50, ttft_ms=1000, tokens=1),
        failed(2, sent_ms=2000),
        unsent(3, due_ms=600),
    ]
    series = summarised(records).time_series
    assert series is not None
    assert (series.start_s, series.step_s) == (0.5, 1.0)
    assert series.sent == (1, 2, 0)
    assert series.due == (1, 1, 0)
    assert series.completed == (1, 0, 1)
    assert series.failed == (0, 1, 0)
    assert series.output_tokens == (10.0, 0.0, 1.0)
    assert series.ttft_p50_s == (0.1, 1.0, None)
    assert series.tpot_p50_s == (pytest.approx(0.02), None, None)
    assert series.ttft_p95_s == (None, None, None)


def test_a_short_last_bin_keeps_its_mean_and_its_counts() -> None:
    """A run that ends 10 ms into a bin: concurrency is over those 10 ms, counts are what fell in them."""
    series = summarised([answered(0, sent_ms=0, ttft_ms=1009, tokens=1)]).time_series
    assert series is not None
    assert series.concurrency == (1.0, pytest.approx(1.0, abs=0.001))
    assert series.output_tokens == (0.0, 1.0)


def test_a_long_run_has_wider_bins() -> None:
    """Near two hours in bins of two seconds, three in bins of four: never more than the bound."""
    for hours, step in ((0.9, 1.0), (1.9, 2.0), (3, 4.0)):
        last = answered(1, sent_ms=hours * 3_600_000)
        series = summarised([answered(0), last]).time_series
        assert series is not None
        assert series.step_s == step
        assert len(series.sent) <= MOST_BINS
        assert sum(series.sent) == sum(series.completed) == 2
        assert sum(series.output_tokens) == 20


def test_p95_of_a_bin_needs_its_sample() -> None:
    """20 requests in a bin carry a p95."""
    series = summarised([answered(seq, sent_ms=seq) for seq in range(20)]).time_series
    assert series is not None
    assert series.ttft_p95_s[0] == 0.1


def test_nothing_sent_has_no_series() -> None:
    """No run, no time."""
    assert summarised([]).time_series is None
    assert summarised([unsent(0, due_ms=None)]).time_series is None
