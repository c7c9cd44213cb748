"""What a summary says of the server, from pages whose every number is known."""

from dataclasses import asdict

import pytest

from loadgen.core.metrics.summary import Gauge, RequestTimes, Server
from loadgen.core.run import Window
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration
from loadgen.core.server.sample import Gauges, GpuSample, Scrape, ServerSample
from tests.core.analysis.factory import answered, summarised
from tests.core.server.factory import S, gpus, page, sample, unread

WINDOW = Window(start_ns=0, end_ns=4 * S, kind="duration")
RECORDS = [answered(seq, sent_ms=1000 * seq + 10, tokens=10) for seq in range(4)]


def told(*scrapes: Scrape, **changes: object) -> Server:
    """The section of four answers of ten tokens in four seconds."""
    return summarised(RECORDS, scrapes=scrapes, window=WINDOW, **changes).server


def state(running: float, kv: float | None = None, *, engine: str = "0", **counted: float) -> ServerSample:
    return sample(engine=engine, gauges=Gauges(running_requests=running, kv_used_ratio=kv), **counted)


def test_without_pages_there_is_what_was_told_before() -> None:
    """Configuration alone; no figure is zero because nobody looked."""
    configured = {
        "configuration": asdict(ServerConfiguration(speculates=True, max_num_seqs=8)),
        "speculation": asdict(SpeculationConfiguration(method="ngram", draft_tokens=4, lossy=())),
        "pages": {"0": "http://gpu:8000/metrics"},
    }
    assert told() == Server()
    assert told(server=configured) == Server(
        pages={"0": "http://gpu:8000/metrics"},
        configuration=ServerConfiguration(speculates=True, max_num_seqs=8),
        speculation=SpeculationConfiguration(method="ngram", draft_tokens=4, lossy=()),
    )


def test_counters_are_of_the_window_and_tokens_of_the_run() -> None:
    """Pages at -9, -1, 5 and 9 s: the window stands on the two in the middle, the deltas on the outer ones."""
    counted = [
        {"generation_tokens": 0.0, "preemptions": 0.0, "prefix_query_tokens": 0.0, "prefix_hit_tokens": 0.0},
        {"generation_tokens": 10.0, "preemptions": 1.0, "prefix_query_tokens": 100.0, "prefix_hit_tokens": 50.0},
        {"generation_tokens": 50.0, "preemptions": 3.0, "prefix_query_tokens": 500.0, "prefix_hit_tokens": 150.0},
        {"generation_tokens": 60.0, "preemptions": 3.0, "prefix_query_tokens": 500.0, "prefix_hit_tokens": 150.0},
    ]
    server = told(*(page(at_s, sample(**each)) for at_s, each in zip((-9, -1, 5, 9), counted, strict=True)))
    assert (server.scraped, server.scrapes, server.processes) == (True, 4, 1)
    assert (server.start_s, server.end_s, server.generation_tokens_delta) == (-1.0, 5.0, 60.0)
    assert (server.preemptions, server.prefix_hit_ratio, server.prompt_tokens_delta) == (2.0, 0.25, None)


def test_where_requests_spent_their_time() -> None:
    """Ten requests: 1 s waiting, 2 s of prompts, 5 s decoding; 400 tokens in 100 steps of the engine."""
    names = ("timed_requests", "queue_s", "prefill_s", "decode_s", "iterations", "iteration_tokens")
    server = told(
        page(-1, sample(**dict.fromkeys(names, 0.0))),
        page(5, sample(**dict(zip(names, (10.0, 1.0, 2.0, 5.0, 100.0, 400.0), strict=True)))),
    )
    assert server.request_times == RequestTimes(
        queue_s=0.1, prefill_s=0.2, decode_s=0.5, queue_ratio=0.125, prefill_ratio=0.25, decode_ratio=0.625
    )
    assert server.tokens_per_iteration == 4.0


def test_states_are_summed_over_processes_and_peak_where_they_were_read() -> None:
    """Two processes: the mean over the window's time, the largest sum of readings, the fullest cache."""

    def both(at_s: float, one: float, other: float, kv: float = 0.0) -> Scrape:
        return page(at_s, state(one, kv), state(other, kv / 2, engine="1"))

    server = told(both(-1, 0, 0), both(0, 2, 4, 0.2), both(2, 4, 6, 0.8), both(4, 2, 4, 0.2), both(5, 0, 0))
    assert server.running_requests == Gauge(mean=8.0, peak=10.0)
    assert server.kv_used_ratio == Gauge(mean=pytest.approx(0.375), peak=0.8)
    assert server.waiting_requests == Gauge()
    assert server.processes == 2


def test_a_mean_is_never_above_its_peak() -> None:
    """A queue that was read long before the window, and once within it, when it was gone, had a part of it."""
    server = told(page(-2, state(8)), page(2, state(0)), page(6, state(0)))
    assert server.running_requests == Gauge(mean=1.0, peak=4.0)
    restarted = told(
        page(-2, sample(started=1.0, gauges=Gauges(running_requests=8))),
        page(2, sample(started=90.0, gauges=Gauges(running_requests=0))),
        page(4, sample(started=90.0, gauges=Gauges(running_requests=0))),
    )
    assert restarted.running_requests == Gauge(mean=0.0, peak=0.0)


def test_what_lies_around_the_window_says_nothing_of_its_states() -> None:
    """Idle before and after: not a mean of zero."""
    assert told(page(-1, state(0)), page(5, state(0))).running_requests == Gauge()


def test_a_run_that_is_not_held_by_its_pages() -> None:
    """Each page must have been read before the first request and after the last one; why not is said."""
    early, late = page(-1, sample(generation_tokens=0.0)), page(5, sample(generation_tokens=40.0))
    assert told(early, late).scraped
    for scrapes, note in (
        ((page(1, sample(generation_tokens=5.0)), late), "page 0 was not read before the first request"),
        ((early, page(1, sample(generation_tokens=5.0))), "page 0 was not read after the last request"),
        ((early, late, unread(-1, source="1"), unread(5, source="1")), "page 1 could not be read"),
    ):
        server = told(*scrapes)
        assert not server.scraped
        assert note in server.notes
    killed = told(early, late, ended_unix_ns=None)
    assert (killed.scraped, killed.notes) == (False, ("the run was killed before the last reading",))


def test_failures_are_counted_with_an_example() -> None:
    """The first of them, wherever it was."""
    server = told(page(-1, sample()), unread(1, fault="HTTP 502"), unread(2), page(5, sample()))
    assert (server.scraped, server.failed_scrapes, server.failed_example) == (True, 2, "page 0 at 1.0 s: HTTP 502")


def test_gpus_of_the_window() -> None:
    """Two of them at 100 and 300 W for four seconds: 1,600 J, 40 J for each of 40 tokens; counters come first."""

    def reading(at_s: float, **more: float) -> Scrape:
        counted = {name: each * (at_s + 1) for name, each in more.items()}
        return gpus(at_s, GpuSample(gpu="0", power_w=100.0, **counted), GpuSample(gpu="1", power_w=300.0, **counted))

    drawn = told(reading(-1), reading(2), reading(5)).gpus
    assert drawn is not None
    assert (drawn.count, drawn.power_w, drawn.energy_j, drawn.energy_origin) == (2, 400.0, 1600.0, "power")
    assert drawn.energy_per_output_token_j == pytest.approx(40.0)
    counted = told(reading(-1, energy_j=50.0), reading(5, energy_j=50.0)).gpus
    assert counted is not None
    assert (counted.energy_j, counted.energy_origin) == (pytest.approx(400.0), "counter")
    assert (counted.utilisation_ratio, counted.memory_used_bytes) == (Gauge(), Gauge())
    assert told(page(-1, sample()), page(5, sample())).gpus is None


def test_how_busy_and_how_full_gpus_are() -> None:
    """Use is their mean, with the busiest one's peak; memory is their sum. Unknown of one is unknown of all."""

    def reading(at_s: float, use: float | None, held: float) -> Scrape:
        one = GpuSample(gpu="0", utilisation_ratio=0.5, memory_used_bytes=100.0)
        return gpus(at_s, one, GpuSample(gpu="1", utilisation_ratio=use, memory_used_bytes=held))

    found = told(reading(-1, 0.9, 0), reading(0, 0.9, 0), reading(2, 0.7, 400), reading(4, 0.9, 0)).gpus
    assert found is not None
    assert found.utilisation_ratio == Gauge(mean=pytest.approx(0.65), peak=0.9)
    assert found.memory_used_bytes == Gauge(mean=pytest.approx(300), peak=500)
    unknown = told(reading(-1, None, 0), reading(2, None, 0), reading(5, None, 0)).gpus
    assert unknown is not None
    assert (unknown.utilisation_ratio, unknown.memory_used_bytes) == (Gauge(), Gauge(mean=100, peak=100))


def test_gpus_alone_are_not_the_server() -> None:
    """That no page of its was read is said, not left as a doubt without a reason."""
    server = told(gpus(-1, GpuSample(gpu="0", power_w=1.0)), gpus(5, GpuSample(gpu="0", power_w=1.0)))
    assert (server.scraped, server.notes) == (False, ("no metrics page of the server was read, but GPUs alone",))


def test_series_share_the_bins_of_the_clients() -> None:
    """So that both can be drawn on one axis; none without a page."""
    summary = summarised(RECORDS, scrapes=(page(-1, state(0)), page(5, state(0))), window=WINDOW)
    assert summary.time_series is not None
    assert summary.server_series is not None
    edges_s = summary.server_series.edges_s
    assert len(edges_s) == len(summary.time_series.sent) + 1
    assert edges_s[0] == pytest.approx(summary.time_series.start_s)
    assert summarised(RECORDS, window=WINDOW).server_series is None
