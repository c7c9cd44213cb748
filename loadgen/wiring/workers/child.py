"""A worker: takes one job, drives its share of the run, and tells its leader. The messages are in `messages`."""

import asyncio
import os
import signal
import sys
import time
from collections import deque
from contextlib import closing, suppress
from pathlib import Path

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.store.files import Scrubber
from loadgen.adapters.store.records import RecordWriter
from loadgen.core.errors import InternalError, LoadgenError
from loadgen.core.metrics.totals import Totals
from loadgen.core.record import RequestRecord
from loadgen.engine.ports import RecordSink
from loadgen.engine.runner import Run, RunEnd
from loadgen.wiring.garbage import few_collections
from loadgen.wiring.settings import settings_of
from loadgen.wiring.target import destination_of
from loadgen.wiring.transport import transport_of
from loadgen.wiring.workers.counted import CountedTotals
from loadgen.wiring.workers.leader import Leader
from loadgen.wiring.workers.messages import (
    LONGEST_LINE_BYTES,
    Axis,
    Ended,
    Failed,
    Job,
    Progress,
    Ready,
    decode_to_worker,
    options_of,
)
from loadgen.wiring.workload import level_plan, open_workload

_TELL_S = 0.25


def main() -> int:
    """Does one job; 0 when its end, or why there is none, was told."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    spoken = os.dup(1)
    os.dup2(2, 1)  # whatever else is printed does not get between the messages
    return asyncio.run(_serve(spoken))


async def _serve(spoken: int) -> int:
    loop = asyncio.get_running_loop()
    heard = asyncio.StreamReader(limit=LONGEST_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(heard), sys.stdin)
    pipe, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(spoken, "wb", buffering=0)
    )
    line = await heard.readline()
    if not line:
        return 0
    leader = Leader(heard, asyncio.StreamWriter(pipe, protocol, None, loop))
    try:
        job = decode_to_worker(line)
        if not isinstance(job, Job):
            raise InternalError(f"a worker was to get a job first, not {type(job).__name__}")
        await _work(job, leader)
    except LoadgenError as fault:
        leader.tell(Failed(kind=type(fault).__name__, message=str(fault)))
    await leader.close()
    return 0


class _Counting:
    """The record sink: to the file, and into totals where these are wanted."""

    def __init__(self, sink: RecordSink, *, origin_unix_ns: int, wanted: bool) -> None:
        self._sink, self._origin_unix_ns, self._wanted = sink, origin_unix_ns, wanted
        self._untold: deque[RequestRecord] = deque()

    def put(self, record: RequestRecord) -> None:
        self._sink.put(record)
        if self._wanted:
            self._untold.append(record)

    def since_last(self) -> CountedTotals | None:
        """What has come since the last call."""
        if not self._untold:
            return None
        totals = Totals()
        records = [self._untold.popleft() for _ in range(len(self._untold))]
        totals.observe(records, origin_unix_ns=self._origin_unix_ns)
        return CountedTotals.of(totals)


async def _work(job: Job, leader: Leader) -> None:
    options = options_of(job)
    destination = destination_of(options)
    secrets = (*destination.secrets, *job.secrets)
    with closing(open_workload(options, seed=job.seed)) as workload, closing(_clock(job.axis)) as clock:
        writer = RecordWriter(Path(job.records), scrubber=Scrubber(secrets))
        sink = _Counting(writer, origin_unix_ns=job.axis.origin_unix_ns, wanted=job.totals)
        try:
            plan = level_plan(
                workload,
                job.load,
                job.template,
                run_id=job.run_id,
                warmup_requests=job.warmup_requests,
                first_pass=job.first_pass,
                share=job.share,
            )
            settings = settings_of(
                options,
                job.load,
                job.template,
                warmup_requests=job.warmup_requests,
                secrets=secrets,
                share=job.share,
            )
            transport = transport_of(options, destination, clock, job.load.mode)
            run = Run(plan.conversations, settings, clock=clock, transport=transport, sink=sink, partners=leader)
            leader.ready = Ready.over(workload)
            with few_collections():
                end = await _driven(run, leader, sink)
        finally:
            writer.close()
        leader.tell(Ended(end=end, last=_progress(run, sink.since_last())))


async def _driven(run: Run, leader: Leader, sink: _Counting) -> RunEnd:
    """The run to its end, while its leader is listened to and told how far it is."""
    over = asyncio.Event()
    listening = asyncio.create_task(leader.listen(run))
    reporting = asyncio.create_task(_report(run, leader, sink, over))
    try:
        end = await run.execute()
    finally:
        over.set()
        listening.cancel()
        faults = await asyncio.gather(listening, reporting, return_exceptions=True)
    for fault in faults:
        if isinstance(fault, Exception):
            raise fault
    return end


async def _report(run: Run, leader: Leader, sink: _Counting, over: asyncio.Event) -> None:
    while not over.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(_TELL_S):
                await over.wait()
        if leader.listens and not over.is_set():
            totals = await asyncio.to_thread(sink.since_last)
            leader.tell(_progress(run, totals))


def _progress(run: Run, totals: CountedTotals | None) -> Progress:
    return Progress(counts=run.live, outlook=run.outlook, totals=totals)


def _clock(axis: Axis) -> MonotonicClock:
    origin = axis.origin_monotonic_ns
    if origin is None:
        since_origin_ns = time.time_ns() - axis.clock_ahead_ns - axis.origin_unix_ns
        origin = time.monotonic_ns() - since_origin_ns
    return MonotonicClock(origin_monotonic_ns=origin, origin_unix_ns=axis.origin_unix_ns)
