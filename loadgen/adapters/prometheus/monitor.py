"""The live aggregate of a command: what its runs came to so far, over all of them, and what is under way.

The measuring side does two things: it appends each record to a queue when the request is over, and it counts in plain
integers. Everything else is done by whoever reads, in the reader's thread.
"""

import threading
from collections import deque
from collections.abc import Iterator, Mapping

from loadgen.adapters.prometheus.capacity import EndedSearch, capacity_series
from loadgen.adapters.prometheus.families import RUN_INFO, VALID, families_of, load_series, total_series
from loadgen.adapters.prometheus.levels import Level, level_of, level_series
from loadgen.adapters.prometheus.series import Family, Labels, Series, Spec
from loadgen.core.metrics.summary import Summary
from loadgen.core.metrics.totals import Totals
from loadgen.core.record import RequestRecord
from loadgen.core.run import Load
from loadgen.engine.live import LiveCounts
from loadgen.engine.ports import RecordSink

_MOST_LEVELS = 1000


class WatchedRun:
    """One run that is followed, from its beginning to its summary. `live` is None before the load and after it."""

    def __init__(self, labels: Labels, load: Load, origin_unix_ns: int) -> None:
        self.labels, self.load, self.origin_unix_ns = labels, load, origin_unix_ns
        self.live: LiveCounts | None = None
        self.records: deque[RequestRecord] = deque()
        self.counted: deque[Totals] = deque()
        self.summary: Summary | None = None

    def beside(self, sink: RecordSink) -> RecordSink:
        """A sink that gives each record to this one as well."""
        return _Beside(sink, self.records)

    def count(self, totals: Totals) -> None:
        """Takes what somebody else has counted of records that this process does not see."""
        self.counted.append(totals)

    def finished(self, summary: Summary) -> None:
        """The run is over and analysed."""
        self.live, self.summary = None, summary


class _Beside:
    def __init__(self, sink: RecordSink, records: deque[RequestRecord]) -> None:
        self._sink, self._records = sink, records

    def put(self, record: RequestRecord) -> None:
        self._sink.put(record)
        self._records.append(record)


class Monitor:
    """Follows the runs of one command, one after the other.

    Its series are bounded by the sets of labels, which an experiment's file and a ladder bound, never by requests.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._info: dict[str, str] = {}
        self._run: WatchedRun | None = None
        self._totals: dict[Labels, Totals] = {}
        self._levels: dict[Level, Summary] = {}
        self._valid: dict[Labels, bool] = {}
        self._search: EndedSearch | None = None

    def tell(self, info: Mapping[str, str]) -> None:
        """What is under way, as labels of `loadgen_run_info`: a word each, and the same for the whole command."""
        with self._lock:
            self._info = dict(info)

    def begin(self, labels: Labels, load: Load, *, origin_unix_ns: int) -> WatchedRun:
        """A run begins; the one before it, if any, is over."""
        self.take_in()
        with self._lock:
            self._run = WatchedRun(labels, load, origin_unix_ns)
            self._totals.setdefault(labels, Totals())
            return self._run

    def searched(self, ended: EndedSearch) -> None:
        """A search for a capacity is over."""
        with self._lock:
            self._search = ended

    def take_in(self) -> None:
        """Folds what has ended since the last time."""
        with self._lock:
            self._fold()

    def families(self) -> list[Family]:
        """Everything as it is now."""
        with self._lock:
            self._fold()
            return families_of(self._series())

    def _fold(self) -> None:
        run = self._run
        if run is None:
            return
        summary = run.summary  # before the queue: what it tells of is in the queue by then
        records = [run.records.popleft() for _ in range(len(run.records))]
        self._totals[run.labels].observe(records, origin_unix_ns=run.origin_unix_ns)
        for _ in range(len(run.counted)):
            self._totals[run.labels].add(run.counted.popleft())
        if summary is not None:
            level = level_of(run.labels, run.load)
            if level in self._levels or len(self._levels) < _MOST_LEVELS:
                self._levels[level] = summary
            self._valid[run.labels] = summary.verdict.valid

    def _series(self) -> Iterator[tuple[Spec, Series]]:
        if self._info:
            yield RUN_INFO, Series(labels=self._info, value=1)
        for labels, totals in self._totals.items():
            run = self._run
            live = run.live if run is not None and run.labels == labels else None
            yield from total_series(labels, totals)
            yield from load_series(
                labels, None if live is None or run is None else run.load, 0 if live is None else live.in_flight
            )
        for level, summary in self._levels.items():
            yield from level_series(level, summary)
        if self._search is not None:
            yield from capacity_series(self._search)
        for labels, valid in self._valid.items():
            yield VALID, Series(labels=labels.as_dict(), value=int(valid))
