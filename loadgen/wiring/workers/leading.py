"""What the messages of several workers come to: one run, with its counts, what all of them are to be told, its end."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from loadgen.core.errors import ConfigError, DataError, InternalError, LoadgenError, StoreError, TargetError
from loadgen.core.metrics.totals import Totals
from loadgen.core.run import ClientFacts, Load, LoadMode, TimingSource, Window
from loadgen.engine.live import LiveCounts
from loadgen.engine.outlook import reason_to_give_up
from loadgen.engine.runner import RunEnd
from loadgen.wiring.workers.messages import Began, Ended, Failed, FromWorker, Measuring, Progress, Ready, Stop, ToWorker

LOST = "worker lost"
"""Why a run ends that one of its workers has left."""

_FAULTS: Mapping[str, type[LoadgenError]] = {
    fault.__name__: fault for fault in (ConfigError, DataError, StoreError, TargetError)
}
_BY_QUALITY = (TimingSource.KERNEL, TimingSource.USER, TimingSource.COROUTINE)


@dataclass(slots=True)
class _Worker:
    """What one worker has said last."""

    ready: Ready | None = None
    progress: Progress | None = None
    end: RunEnd | None = None
    failed: Failed | None = None
    lost: bool = False

    @property
    def over(self) -> bool:
        return self.lost or self.end is not None or self.failed is not None

    @property
    def records_at_least(self) -> int:
        """Requests that it had sent or given up when it was heard last."""
        counts = None if self.progress is None else self.progress.counts
        return 0 if counts is None else max(counts.sent + counts.dropped, counts.ended)


class Leading:
    """Takes the messages of `workers` workers, in the order in which each of them said them.

    `data` is as the leader found it. `counted` gets totals as they come in. `live` is what all have counted together,
    `reason` why the run was ended, None as long as nobody did.
    """

    def __init__(
        self,
        load: Load,
        *,
        workers: int,
        warmup_requests: int,
        data: Ready,
        counted: Callable[[Totals], None] | None = None,
    ) -> None:
        self.live = LiveCounts(
            planned=None if load.num_requests is None else load.num_requests + warmup_requests,
            warmup_planned=warmup_requests,
        )
        self.reason: str | None = None
        self._load, self._data, self._counted = load, data, counted
        self._workers = [_Worker() for _ in range(workers)]

    @property
    def ready(self) -> bool:
        """Whether all are, or cannot be any more."""
        return all(worker.ready is not None or worker.over for worker in self._workers)

    @property
    def over(self) -> bool:
        """Whether no worker has anything more to say."""
        return all(worker.over for worker in self._workers)

    @property
    def lost(self) -> tuple[int, ...]:
        """The numbers of the workers that left before their end."""
        return tuple(index for index, worker in enumerate(self._workers) if worker.lost)

    @property
    def fault(self) -> LoadgenError | None:
        """Why the run cannot be done: what a worker failed with, or that one was lost before the load began."""
        for failed in (worker.failed for worker in self._workers):
            if failed is not None:
                return _FAULTS.get(failed.kind, InternalError)(failed.message)
        if any(worker.lost and worker.ready is None for worker in self._workers):
            return InternalError("a worker process ended before it was ready")
        return None

    def is_over(self, index: int) -> bool:
        """Whether that worker has nothing more to say."""
        return self._workers[index].over

    def take(self, index: int, message: FromWorker) -> ToWorker | None:
        """Takes a message; what all workers are to be told now."""
        worker = self._workers[index]
        match message:
            case Ready():
                worker.ready = message
                if message != self._data:
                    worker.failed = _other_data(index)
            case Began(at_ns=at_ns):
                since_ns = self.live.measuring_since_ns
                if since_ns is None or at_ns < since_ns:
                    self.live.measuring_since_ns = at_ns
                    return Measuring(at_ns=at_ns)
            case Progress():
                self._take_progress(worker, message)
                return self._without_hope()
            case Ended():
                self._take_progress(worker, message.last)
                worker.end = message.end
            case Failed():
                worker.failed = message
        return None

    def lose(self, index: int) -> ToWorker | None:
        """That worker will say nothing more; what the others are to be told."""
        self._workers[index].lost = True
        return self.stop(LOST)

    def stop(self, reason: str) -> ToWorker | None:
        """What the workers are to be told; nothing when they are stopping already. The first reason counts."""
        if self.reason is not None:
            return None
        self.reason = self.live.stopping = reason
        return Stop(reason=reason)

    def result(self, recorded: Mapping[int, int]) -> RunEnd:
        """How the run ended, once it is over; `recorded` counts the records that each lost worker left."""
        ends = [worker.end for worker in self._workers if worker.end is not None]
        lost = [max(recorded.get(index, 0), self._workers[index].records_at_least) for index in self.lost]
        return RunEnd(
            ended_by=self._ended_by([end.ended_by for end in ends if end.ended_by != "requests"]),
            interrupted=any(end.interrupted for end in ends),
            requests=sum(chain((end.requests for end in ends), lost)),
            window=self._window(ends),
            client=_client(ends, workers=len(self._workers)),
            late_preparations=sum(end.late_preparations for end in ends),
            exhausted_ns=min((end.exhausted_ns for end in ends if end.exhausted_ns is not None), default=None),
        )

    def _take_progress(self, worker: _Worker, progress: Progress) -> None:
        worker.progress = progress
        if progress.totals is not None and self._counted is not None:
            self._counted(progress.totals.totals())
        counts = [each.progress.counts for each in self._workers if each.progress is not None]
        self.live.add_up(counts)
        self.live.stopping = self.reason or next((each.stopping for each in counts if each.stopping), None)

    def _without_hope(self) -> ToWorker | None:
        """What the workers are to be told when none of them can succeed; nothing as long as one has not told yet."""
        outlooks = [worker.progress.outlook for worker in self._workers if worker.progress is not None]
        reason = reason_to_give_up(outlooks) if len(outlooks) == len(self._workers) else None
        return None if reason is None else self.stop(reason)

    def _ended_by(self, said: list[str]) -> str:
        """The common reason where workers ended for several, or for none."""
        if self.reason in said:
            return self.reason
        return said[0] if said else LOST if self.lost else "requests"

    def _window(self, ends: list[RunEnd]) -> Window | None:
        """The measured span, up to where the first of them stopped. A closed loop needs one of each: where a worker had
        run out of requests before, the load was not whole any more."""
        windows = [end.window for end in ends if end.window is not None]
        start_ns = self.live.measuring_since_ns
        if not windows or start_ns is None:
            return None
        if self._load.mode is LoadMode.CONCURRENCY and len(windows) < len(ends):
            return None
        end_ns = min(window.end_ns for window in windows)
        return Window(start_ns=start_ns, end_ns=max(start_ns, end_ns), kind="duration")


def _other_data(index: int) -> Failed:
    return Failed(
        kind=DataError.__name__,
        message=f"worker {index} found other data than this process: was the file changed meanwhile?",
    )


def _client(ends: list[RunEnd], *, workers: int) -> ClientFacts:
    """The workers' health as that of the worst of them: a mean would hide one that could not keep up."""
    facts = [end.client for end in ends]

    def worst(values: Iterator[float | None]) -> float | None:
        return max((value for value in values if value is not None), default=None)

    return ClientFacts(
        timing_source=max((each.timing_source for each in facts), key=_BY_QUALITY.index, default=TimingSource.USER),
        workers=workers,
        workers_lost=workers - len(ends),
        cpu_ratio=worst(each.cpu_ratio for each in facts),
        loop_stall_p99_s=worst(each.loop_stall_p99_s for each in facts),
        loop_stall_max_s=worst(each.loop_stall_max_s for each in facts),
    )
