"""What the process of a run tells, and how the service takes it in."""

import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from loadgen.adapters.prometheus.families import REQUESTS, TIMINGS
from loadgen.adapters.prometheus.series import Series
from loadgen.core.metrics.totals import BOUNDS, Timing
from loadgen.core.stats.histogram import Exemplar, Histogram
from loadgen.service.child.interval import Intervals
from loadgen.service.child.telling import Teller
from loadgen.service.jobs.exposition import decode_families, encode_families, merged
from loadgen.service.jobs.order import Order, Outcome, begin, has_begun, load_outcome, save_outcome
from tests.service.ordering import carried_out


def histogram(*values: float) -> Histogram:
    found = Histogram(BOUNDS[Timing.TTFT])
    found.observe(np.array(values))
    return found


def test_metrics_come_through_whole() -> None:
    """Counts, native buckets and exemplars are those that were told, after JSON."""
    told = histogram(0.01, 0.02, 0.0)
    told.mark(Exemplar(value=0.02, request_id="r", unix_s=1.5))
    family = TIMINGS[Timing.TTFT].family([Series(labels={"server": "s"}, value=told)])
    (back,) = decode_families(msgspec.json.decode(msgspec.json.encode(encode_families([family]))))
    value = back.series[0].value
    assert isinstance(value, Histogram)
    assert (value.counts, value.native, value.zeros, value.sum) == (told.counts, told.native, 1, told.sum)
    assert value.exemplars == told.exemplars


def test_one_page_of_several() -> None:
    """Series of one name stand together, and of the same labels the first one's."""
    first = REQUESTS.family([Series(labels={"a": "1"}, value=1)])
    second = REQUESTS.family([Series(labels={"a": "1"}, value=5), Series(labels={"a": "2"}, value=2)])
    (page,) = merged([[first], [second]])
    assert [(dict(series.labels), series.value) for series in page.series] == [({"a": "1"}, 1), ({"a": "2"}, 2)]


def test_progress_is_of_the_last_interval() -> None:
    """Rates and quantiles are of what ended since the last look, not of all, within a bucket's width."""
    intervals = Intervals()
    counts = TIMINGS[Timing.TTFT]

    def look(*values: float, completed: int, elapsed_s: float) -> dict[str, object]:
        families = [
            counts.family([Series(labels={}, value=histogram(*values))]),
            REQUESTS.family([Series(labels={"outcome": "completed"}, value=completed)]),
        ]
        return intervals.since_last(families, elapsed_s)

    slow, fast = [0.1] * 40, [0.01] * 40
    first = look(*slow, completed=40, elapsed_s=2.0)
    second = look(*slow, *fast, completed=80, elapsed_s=4.0)
    assert (first["requests_per_s"], second["requests_per_s"]) == (20, 10)
    assert first["ttft_s"]["p50"] == pytest.approx(0.1, rel=0.25)  # type: ignore[index]
    assert second["ttft_s"]["p50"] == pytest.approx(0.01, rel=0.25)  # type: ignore[index]
    assert look(*slow, *fast, completed=80, elapsed_s=1.0)["ttft_s"] == {"p50": None, "p99": None}


def test_nobody_listens_any_more() -> None:
    """A run goes on when the service that it tells is gone."""
    reading, writing = os.pipe()
    teller = Teller(writing)
    teller.tell("note", text="heard")
    assert os.read(reading, 1000) == b'{"kind":"note","text":"heard"}\n'
    os.close(reading)
    for _ in range(3):
        teller.tell("note", text="unheard")
    teller.close()
    os.close(writing)


def test_telling_never_waits_for_a_reader() -> None:
    """What passes is left out while nobody reads, what counts is kept in order, and all of it at last."""
    reading, writing = os.pipe()
    teller = Teller(writing)
    for _ in range(2000):
        teller.tell("metrics", families=["x" * 1000])
    teller.tell("level", level=1)
    told = b""
    while b'"level"' not in told:
        told += os.read(reading, 65536)
    teller.close()
    lines = told.splitlines()
    assert 0 < len(lines) < 300
    assert lines[-1] == b'{"kind":"level","level":1}'
    os.close(reading)
    os.close(writing)


def test_an_order_is_begun_once(tmp_path: Path) -> None:
    """Of two processes with one order the second finds that it is begun; an outcome is whole or not there."""
    folder = tmp_path
    assert not has_begun(folder)
    assert begin(folder)
    assert not begin(folder)
    assert has_begun(folder)
    assert load_outcome(folder) is None
    (folder / "outcome.json").write_text('{"exit_code": 0')
    assert load_outcome(folder) is None
    save_outcome(folder, Outcome(exit_code=3, valid=False))
    assert load_outcome(folder) == Outcome(exit_code=3, valid=False)


def test_an_order_that_another_process_began_on_is_left_alone(tmp_path: Path) -> None:
    """Whoever gave it twice: the process ends, and nothing is sent or written."""
    options = {"url": "http://127.0.0.1:9", "num_requests": 1}
    order = Order(run_id="r", kind="run", options=options, folder=str(tmp_path), allowed_hosts=["loopback"])
    assert begin(tmp_path)
    done = carried_out(order)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["started"]
