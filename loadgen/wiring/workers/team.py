"""The leader of workers: drives a run with other processes as `Run` does with none."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.metrics.totals import Totals
from loadgen.engine.live import LiveCounts
from loadgen.engine.ports import Clock, ServerProbe
from loadgen.engine.runner import RunEnd
from loadgen.wiring.workers.crew import Crew, Worker
from loadgen.wiring.workers.leading import Leading
from loadgen.wiring.workers.messages import Abort, FromWorker, Job, Ready, Start, Stop, ToWorker

SILENCE_S = 60.0
"""A worker that has told nothing for so long will not come back to its load."""

_LOOK_S = 1.0


class Team:
    """Drives one run with a worker for each job. `stop` ends it in order, `abort` at once; both keep what was measured.

    The records of all workers are joined in the folder when they are through.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        crew: Crew,
        folder: RunFolder,
        data: Ready,
        clock: Clock,
        probe: ServerProbe | None,
        counted: Callable[[Totals], None] | None = None,
        silence_s: float = SILENCE_S,
    ) -> None:
        first = jobs[0]
        self._jobs, self._crew, self._folder, self._clock, self._probe = jobs, crew, folder, clock, probe
        self._leading = Leading(
            first.load, workers=len(jobs), warmup_requests=first.warmup_requests, data=data, counted=counted
        )
        self._silence_s = silence_s
        self._workers: list[Worker] = []
        self._heard: asyncio.Queue[tuple[int, FromWorker | None]] = asyncio.Queue()
        self._heard_at_s = [time.monotonic()] * len(jobs)
        self._started = self._aborted = False

    @property
    def live(self) -> LiveCounts:
        """What all have counted together."""
        return self._leading.live

    def stop(self, reason: str = "interrupt") -> None:
        """Starts no further request; those in flight have the grace to end. The first reason counts."""
        self._tell(self._leading.stop(reason))

    def abort(self) -> None:
        """Cancels what is in flight and ends the run."""
        self._leading.stop("interrupt")
        self._aborted = True
        self._tell(Abort())

    async def execute(self) -> RunEnd:
        """Runs to the end. Raises LoadgenError for a fault of ours or a failed sink, after ending every worker."""
        listening: list[asyncio.Task[None]] = []
        try:
            for index, job in enumerate(self._jobs):
                worker = await self._crew.start(index)
                self._workers.append(worker)
                listening.append(asyncio.create_task(self._listen(index, worker)))
                worker.tell(job)
            self._repeat_stop()
            await self._until(lambda: self._leading.ready)
            await self._drive()
        finally:
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)
            await asyncio.gather(*(worker.end() for worker in self._workers))
        recorded = await asyncio.to_thread(self._folder.join_parts, cut=self._leading.lost)
        return self._leading.result(recorded)

    async def _drive(self) -> None:
        """The load from its first request to its last, with the server read around it and meanwhile."""
        if self._probe is None:
            await self._load()
            return
        await self._probe.before()
        reading = asyncio.create_task(self._probe.during())
        try:
            await self._load()
            await self._probe.after()
            await reading
        finally:
            reading.cancel()

    async def _load(self) -> None:
        self._heard_at_s = [time.monotonic()] * len(self._jobs)
        self._started = True
        self._tell(Start(at_ns=self._clock.now_ns() + self._crew.lead_ns))
        await self._until(lambda: self._leading.over)

    async def _listen(self, index: int, worker: Worker) -> None:
        try:
            while (message := await worker.hear()) is not None:
                self._heard.put_nowait((index, message))
        finally:
            self._heard.put_nowait((index, None))

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Takes what the workers say until it is so. Ends them and raises what makes the run impossible."""
        while not reached():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    self._take(*await self._heard.get())
            if (fault := self._leading.fault) is not None:
                self._tell(Abort())
                raise fault
            if self._started:
                self._end_silent()

    def _take(self, index: int, message: FromWorker | None) -> None:
        self._heard_at_s[index] = time.monotonic()
        if message is not None:
            self._tell(self._leading.take(index, message))
        elif not self._leading.is_over(index):
            self._tell(self._leading.lose(index))

    def _end_silent(self) -> None:
        """Kills a worker that has told nothing for too long: what it left counts, and it is lost."""
        for index, worker in enumerate(self._workers):
            silent_s = time.monotonic() - self._heard_at_s[index]
            if silent_s > self._silence_s and not self._leading.is_over(index):
                worker.kill()

    def _repeat_stop(self) -> None:
        """Tells workers that were not there yet when somebody asked to stop."""
        if self._aborted:
            self._tell(Abort())
        elif self._leading.reason is not None:
            self._tell(Stop(reason=self._leading.reason))

    def _tell(self, message: ToWorker | None) -> None:
        if message is not None:
            for worker in self._workers:
                worker.tell(message)
