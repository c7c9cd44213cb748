"""Stored runs as OpenMetrics: what stands at which time."""

import re
from collections import defaultdict
from dataclasses import replace

import pytest

from loadgen.adapters.prometheus.backfill import FinishedRun, backfill
from loadgen.adapters.prometheus.capacity import EndedSearch
from loadgen.core.record import RequestRecord
from tests.adapters.prometheus.pages import LABELS
from tests.core.analysis.factory import S, analysed, answered, manifest
from tests.core.capacity.made import made_run, search, searched

BEGAN_S = 1_767_225_600
INFO = {"command": "sweep", "run_id": "sweep-1", "version": "0"}


def finished(records: list[RequestRecord], *, after_s: int = 0) -> FinishedRun:
    """A run that began so long after the first one."""
    facts = manifest(origin_unix_ns=(BEGAN_S + after_s) * S)
    return FinishedRun(labels=LABELS, manifest=facts, summary=analysed(records).summary, records=lambda: iter(records))


def samples(*runs: FinishedRun, ended: EndedSearch | None = None) -> dict[str, dict[float, float]]:
    """Values by time and series, without the common labels. Every family and every series is in one piece.

    Read here, since the library's parser takes a series' second sample for a duplicate of the first.
    """
    lines = "".join(backfill(runs, INFO, ended)).splitlines()
    assert lines.pop() == "# EOF"
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    found: dict[str, dict[float, float]] = defaultdict(dict)
    for line in lines:
        if line.startswith("#"):
            continue
        read = re.fullmatch(r"(\w+)\{(.*)\} (\S+) (\S+)", line)
        assert read is not None, line
        labels = [pair for pair in read[2].split(",") if pair.split("=")[0] not in LABELS.as_dict()]
        series, stamp = ",".join((read[1], *labels)), float(read[4])
        assert stamp > max(found[series], default=0.0), line
        found[series][stamp] = float(read[3])
    return found


def test_every_second_has_what_was_over_by_then() -> None:
    """A request a second, each of 280 ms: none at the start, one more at each step, all at the end."""
    found = samples(finished([answered(number, sent_ms=1000 * number) for number in range(4)]))
    completed = found['loadgen_requests_total,outcome="completed"']
    assert [(round(at - BEGAN_S, 2), value) for at, value in completed.items()] == [
        *((0, 0), (1, 1), (2, 2), (3, 3)),
        (round(max(completed) - BEGAN_S, 2), 4),
    ]
    assert 3.2 < max(completed) - BEGAN_S < 3.4
    assert list(found["loadgen_time_to_first_token_seconds_count"].values()) == [0, 1, 2, 3, 4]
    assert list(found["loadgen_requests_in_flight"].values()) == [1, 1, 1, 1, 0]
    assert len(found['loadgen_level_measurement_valid,level="1",variable="concurrency"']) == 1


def test_many_within_one_step_are_counted_once() -> None:
    """However many: they are taken in by batches."""
    found = samples(finished([answered(number, sent_ms=number) for number in range(100)]))
    assert list(found['loadgen_requests_total,outcome="completed"'].values()) == [0, 100]
    assert list(found["loadgen_time_to_first_token_seconds_count"].values()) == [0, 100]


def test_runs_follow_each_other_whatever_their_order() -> None:
    """Series go on from run to run, in the order of time, and begin again at 0 with each."""
    records = [answered(number, sent_ms=400 * number) for number in range(3)]
    completed = samples(finished(records, after_s=100), finished(records))['loadgen_requests_total,outcome="completed"']
    assert list(completed) == sorted(completed)
    assert list(completed.values()) == [0, 2, 3, 0, 2, 3]


def test_a_search_is_told_at_its_end() -> None:
    """Once, beside its probes: when it ended and what it came to."""
    asked = search(most=4)
    result = searched(asked, lambda _: made_run(200, 200))
    ended = EndedSearch(labels=LABELS, search=asked, result=result, ended_unix_s=BEGAN_S + 9.5)
    found = samples(finished([answered(0)]), ended=ended)
    assert found['loadgen_capacity_level,variable="concurrency"'] == {BEGAN_S + 9.5: 4}
    assert found['loadgen_capacity_ended_timestamp_seconds,variable="concurrency"'] == {BEGAN_S + 9.5: BEGAN_S + 9.5}
    assert "loadgen_capacity_level" not in "".join(samples(finished([answered(0)])))


@pytest.mark.slow
def test_a_long_run_has_no_more_steps_than_a_short_one() -> None:
    """An hour is told in steps of six seconds."""
    records = [answered(number, sent_ms=60_000 * number) for number in range(60)]
    stamps = list(samples(finished(records))["loadgen_requests_in_flight"])
    assert stamps[1] - stamps[0] == 6
    assert 580 < len(stamps) <= 601


def test_a_run_that_was_killed_at_once() -> None:
    """It has one instant, and nothing in it."""
    found = samples(replace(finished([answered(0)]), records=lambda: iter(())))
    assert list(found['loadgen_requests_total,outcome="completed"'].values()) == [0]
