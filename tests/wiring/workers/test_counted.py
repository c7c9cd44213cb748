"""Counts of several workers are the counts of all their records together."""

import msgspec

from loadgen.core.metrics.totals import Totals
from loadgen.core.request import Phase
from loadgen.core.stats.histogram import Histogram
from loadgen.wiring.workers.counted import CountedTotals
from tests.core.analysis.factory import answered, failed, unsent

RECORDS = [
    *(answered(seq, ttft_ms=20 + 7 * seq, gap_ms=1 + seq % 5, tokens=3 + seq, lag_ms=seq % 3) for seq in range(40)),
    *(failed(seq) for seq in range(40, 45)),
    unsent(45),
    answered(46, phase=Phase.WARMUP),
]


def totals_of(*batches: list[object]) -> Totals:
    totals = Totals()
    for batch in batches:
        totals.observe(batch, origin_unix_ns=0)  # type: ignore[arg-type]
    return totals


def as_plain(value: object) -> object:
    """All that a histogram or totals hold, but examples and the last digits of sums."""
    match value:
        case Histogram():
            return [value.bounds, value.counts, dict(sorted(value.native.items())), value.zeros, round(value.sum, 9)]
        case dict():
            return {key: as_plain(item) for key, item in value.items()}
        case _:
            return value


def test_merged_counts_are_those_of_all_records() -> None:
    """Every count and every bucket, whichever worker had which record: over the wire, in three pieces, added up."""
    together = Totals()
    for piece in (RECORDS[:10], RECORDS[10:41], RECORDS[41:]):
        line = msgspec.json.encode(CountedTotals.of(totals_of(piece)))
        together.add(msgspec.json.decode(line, type=CountedTotals).totals())
    expected = vars(totals_of(RECORDS))
    assert set(vars(together)) == set(expected)
    assert {name: as_plain(value) for name, value in vars(together).items()} == {
        name: as_plain(value) for name, value in expected.items()
    }


def test_what_was_told_once_is_not_changed_by_what_follows() -> None:
    """Counts that were taken over stay as they were when more is added to the totals they went into."""
    counted = CountedTotals.of(totals_of(RECORDS))
    first = counted.totals()
    first.add(counted.totals())
    assert {name: as_plain(value) for name, value in vars(counted.totals()).items()} == {
        name: as_plain(value) for name, value in vars(totals_of(RECORDS)).items()
    }
