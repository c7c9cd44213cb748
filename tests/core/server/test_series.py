"""A server's figures over time."""

import pytest

from loadgen.core.server.sample import Gauges, GpuSample
from loadgen.core.server.series import server_series
from tests.core.server.factory import S, gpus, page, sample, unread

EDGES = [0, S, 2 * S, 3 * S]


def test_rates_are_differences_shared_out_evenly() -> None:
    """100 tokens over two seconds are 50 in each; the next second's own rate stays its own."""
    scrapes = [page(at, sample(generation_tokens=count)) for at, count in ((0, 0), (2, 100), (3, 110))]
    assert server_series(scrapes, EDGES).generation_tokens_per_s == (50, 50, 10)


def test_pages_between_the_edges_keep_the_total() -> None:
    """Read at other instants than the edges, the bins still add up to what was counted."""
    scrapes = [page(0.25 + at * 0.5, sample(generation_tokens=10 * at)) for at in range(6)]
    found = server_series(scrapes, EDGES)
    assert found.edges_s == (0, 1, 2, 3)
    assert found.generation_tokens_per_s == pytest.approx((20, 20, 20))


def test_gauges_of_processes_add_up_and_cache_use_has_a_mean_and_a_maximum() -> None:
    """Two engines: 2 + 4 running; 0.2 and 0.6 of their caches used."""
    state = (
        sample(gauges=Gauges(running_requests=2, waiting_requests=0, kv_used_ratio=0.2)),
        sample(engine="1", gauges=Gauges(running_requests=4, waiting_requests=1, kv_used_ratio=0.6)),
    )
    found = server_series([page(at, *state) for at in range(4)], EDGES)
    assert found.running_requests == pytest.approx((6, 6, 6))
    assert found.waiting_requests == pytest.approx((1, 1, 1))
    assert found.kv_used_mean_ratio == pytest.approx((0.4, 0.4, 0.4))
    assert found.kv_used_max_ratio == pytest.approx((0.6, 0.6, 0.6))


def test_a_gauge_moves_in_a_straight_line_between_readings() -> None:
    """From 0 to 6 over three seconds: 1, 3, 5 on average."""
    scrapes = [page(at, sample(gauges=Gauges(running_requests=count))) for at, count in ((0, 0), (3, 6))]
    assert server_series(scrapes, EDGES).running_requests == pytest.approx((1, 3, 5))


def test_a_failed_scrape_leaves_a_gap() -> None:
    """Nothing is drawn across it, though the counter's total is known."""
    scrapes = [page(0, sample(generation_tokens=0)), page(1, sample(generation_tokens=10)), unread(1.5)]
    scrapes += [page(2, sample(generation_tokens=20)), page(3, sample(generation_tokens=25))]
    assert server_series(scrapes, EDGES).generation_tokens_per_s == (10, None, 5)


def test_a_counter_without_a_number_leaves_a_gap_of_its_own() -> None:
    """NaN in one reading, or half a page: the other counters go on, and what comes back is no sudden rate."""
    for state in (sample(prompt_tokens=20, gaps=("generation_tokens",)), sample(prompt_tokens=20)):
        scrapes = [page(at, sample(generation_tokens=10 * at, prompt_tokens=20)) for at in (0, 1, 3, 4)]
        found = server_series([*scrapes, page(2, state)], [0, S, 2 * S, 3 * S, 4 * S])
        assert found.generation_tokens_per_s == (10, None, None, 10)
        assert found.prompt_tokens_per_s == (0, 0, 0, 0)


def test_a_restart_leaves_a_gap() -> None:
    """What the new process counted before it was read is not a rate."""
    scrapes = [page(at, sample(generation_tokens=count)) for at, count in ((0, 50), (1, 60), (2, 1), (3, 4))]
    assert server_series(scrapes, EDGES).generation_tokens_per_s == (10, None, 3)


def test_one_process_unread_leaves_the_sum_unknown() -> None:
    """Half of the processes would pass for all."""
    scrapes = [page(at, sample(generation_tokens=10 * at)) for at in range(4)]
    scrapes += [page(at, sample(generation_tokens=5 * at, started=2.0), source="1") for at in range(3)]
    assert server_series(scrapes, EDGES).generation_tokens_per_s == (15, 15, None)


def test_ratios_are_ratios_of_sums_and_nothing_drafted_has_none() -> None:
    """Acceptance with the bonus token; hits over looked up tokens; preemptions a second."""
    states = [
        sample(accepted_tokens=0, drafts=0, prefix_hit_tokens=0, prefix_query_tokens=0, preemptions=0),
        sample(accepted_tokens=6, drafts=4, prefix_hit_tokens=1, prefix_query_tokens=4, preemptions=0),
        sample(accepted_tokens=6, drafts=4, prefix_hit_tokens=1, prefix_query_tokens=4, preemptions=3),
    ]
    found = server_series([page(at, state) for at, state in enumerate(states)], EDGES[:3])
    assert found.acceptance_length == (2.5, None)
    assert found.prefix_hit_ratio == (0.25, None)
    assert found.preemptions_per_s == (0, 3)


def test_a_bin_that_is_hardly_covered_has_no_value() -> None:
    """A tenth of a second does not stand for a second; six tenths do."""
    scrapes = [page(at, sample(prompt_tokens=100 * at)) for at in (0.9, 1.0, 1.6)]
    assert server_series(scrapes, EDGES).prompt_tokens_per_s == pytest.approx((None, 100, None))


def test_power_adds_up_over_gpus() -> None:
    """400 W and 100 W."""
    scrapes = [gpus(at, GpuSample(gpu="0", power_w=400), GpuSample(gpu="1", power_w=100)) for at in range(4)]
    assert server_series(scrapes, EDGES).gpu_power_w == pytest.approx((500, 500, 500))


def test_use_is_the_mean_of_gpus_and_memory_their_sum() -> None:
    """0.5 and 1; 2 and 3 bytes."""
    one = GpuSample(gpu="0", utilisation_ratio=0.5, memory_used_bytes=2)
    other = GpuSample(gpu="1", utilisation_ratio=1.0, memory_used_bytes=3)
    found = server_series([gpus(at, one, other) for at in range(4)], EDGES)
    assert found.gpu_utilisation_ratio == pytest.approx((0.75, 0.75, 0.75))
    assert found.gpu_memory_used_bytes == pytest.approx((5, 5, 5))


def test_nothing_read_is_nothing_known() -> None:
    """A value a bin, all of them unknown."""
    assert server_series([], EDGES).running_requests == (None, None, None)
    assert server_series([], EDGES).gpu_power_w == (None, None, None)
