"""Runs of several worker processes, against a server that tells what it was sent."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.prometheus.monitor import Monitor
from loadgen.adapters.prometheus.series import Labels
from loadgen.adapters.prometheus.text import text
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.errors import StoreError
from loadgen.core.record import Outcome
from loadgen.core.run import Load, LoadMode
from loadgen.core.schedule.share import Share
from loadgen.engine.runner import RunEnd
from loadgen.options.load import RunOptions, SweepOptions
from loadgen.sim.script import Script
from loadgen.sim.truth import TruthServer, spawn_truth_server
from loadgen.wiring.driver import Asked
from loadgen.wiring.execute import Finished
from loadgen.wiring.run import run_once
from loadgen.wiring.session import open_session
from loadgen.wiring.sweep import sweep_once
from loadgen.wiring.watch import Watch
from loadgen.wiring.workers.messages import Axis, Ended, Ready, Start
from loadgen.wiring.workers.process import WorkerProcess
from loadgen.wiring.workers.team import Team
from tests.fakes.scripted_transport import MemorySink

_DEADLINE_S = 20.0


@pytest.fixture(scope="module")
def server() -> Iterator[TruthServer]:
    """Answers of five tokens in some 30 ms."""
    with spawn_truth_server(Script(ttft_ms=20, gap_ms=2, tokens=5)) as running:
        yield running


@asynccontextmanager
async def unseen(*_: Any):
    """Nobody looks at the run."""
    yield


def run(options: RunOptions, watch: Watch | None = None) -> Finished:
    return asyncio.run(run_once(options, display=unseen, watch=watch))


def received(server: TruthServer, prefix: str) -> Counter[str]:
    """How often the server got each request of a run."""
    return Counter(entry.request_id for entry in server.log().entries if entry.request_id.startswith(prefix))


@pytest.mark.slow
def test_two_workers_send_what_one_process_sends(server: TruthServer, tmp_path: Path) -> None:
    """The same requests at the same instants of the plan, each of them once; totals and percentiles are those of all
    records, and the folder is like any other.
    """
    done = {
        workers: run(
            RunOptions(
                url=server.url,
                request_rate=150.0,
                num_requests=60,
                warmup_requests=5,
                workers=workers,
                seed=4,
                out=tmp_path / str(workers),
            )
        )
        for workers in (1, 2)
    }
    plans = []
    for each in done.values():
        records = sorted(each.folder.records(), key=lambda record: record.seq)
        assert received(server, each.manifest.run_id) == {record.request_id: 1 for record in records}
        first_ns = records[0].due_ns or 0
        plans.append([(each.seq, each.phase, each.planned_output_tokens, each.due_ns - first_ns) for each in records])
    assert plans[0] == plans[1]
    assert len(plans[0]) == 65

    summary, one = done[2].analysis.summary, done[1].analysis.summary
    assert (summary.requests, summary.tokens, summary.warmup_requests) == (one.requests, one.tokens, 5)
    assert summary.client.workers == 2
    assert summary.client.timing_source == one.client.timing_source
    ttft = [(each.first_ns - each.sent_ns) / 1e9 for each in records if each.phase == "measure"]
    assert summary.latency.ttft_s.p90 == pytest.approx(np.percentile(ttft, 90), abs=1e-6)
    files = [sorted(path.name for path in each.folder.path.iterdir()) for each in done.values()]
    assert files[0] == files[1]


@pytest.mark.slow
def test_the_page_for_prometheus_is_one_of_all(server: TruthServer, tmp_path: Path) -> None:
    """Its counts are those of all records; of latencies every bucket."""
    monitor = Monitor()
    options = RunOptions(url=server.url, concurrency=5, duration="1s", workers=2, warmup_requests=5, out=tmp_path)
    done = run(options, Watch(monitor=monitor))
    alone = Monitor()
    sink = alone.begin(LABELS, done.manifest.load, origin_unix_ns=0).beside(MemorySink())
    for record in done.folder.records():
        sink.put(record)
    assert counts_on(monitor) == counts_on(alone)
    assert sum(counts_on(monitor).values()) > 1000
    assert done.analysis.summary.concurrency.peak == 5
    assert done.end.ended_by == "duration"
    assert received(server, done.manifest.run_id) == {each.request_id: 1 for each in done.folder.records()}


@pytest.mark.slow
def test_a_level_has_no_more_workers_than_slots(server: TruthServer, tmp_path: Path) -> None:
    """One slot is driven by this process itself, two by two workers; prompts of a level are not those of another."""
    options = SweepOptions(url=server.url, concurrency=[1, 2], num_requests=10, workers=2, settle=0.0, out=tmp_path)
    found = asyncio.run(sweep_once(options, display=unseen))
    assert [level.summary.client.workers for level in found.sweep.levels] == [1, 2]
    assert [level.summary.requests.completed for level in found.sweep.levels] == [10, 10]


LABELS = Labels(server="s", method="none", model="m", workload="w")


def counts_on(monitor: Monitor) -> dict[tuple[str, str], float]:
    """Counters and buckets of a page, by name and by what tells them apart besides the run."""
    families = text_string_to_metric_families(text(monitor.families()).decode())
    return {
        (sample.name, ",".join(sample.labels.get(name, "") for name in ("outcome", "kind", "le"))): sample.value
        for family in families
        for sample in family.samples
        if sample.name.endswith(("_total", "_bucket", "_count"))
    }


class Command:
    """`loadgen run` with two workers for a minute, under way."""

    def __init__(self, server: TruthServer, out: Path, *more: object) -> None:
        self.out = out
        arguments = ("--url", server.url, "--workers", 2, "--concurrency", 4, "--duration", "60s", "--no-progress")
        line = [sys.executable, "-m", "loadgen", "run", *map(str, (*arguments, *more)), "--out", str(out)]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(lambda: len(self.sent_by()) == 2 and min(self.sent_by()) > 0)
        self.workers = self._children()

    def sent_by(self) -> list[int]:
        """Bytes of records that each worker has written so far."""
        return [path.stat().st_size for path in self.out.glob("*/records.*.jsonl.zst")]

    def ended(self) -> tuple[int, RunFolder]:
        """Exit code and what it left, once it and its workers are gone."""
        self.process.communicate(timeout=_DEADLINE_S)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in self.workers))
        (path,) = self.out.iterdir()
        return self.process.returncode, RunFolder.open(path)

    def _children(self) -> list[int]:
        pid = self.process.pid
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(each) for each in found]


def until(reached: Any) -> None:
    """Waits for something that is to come soon."""
    end_s = time.monotonic() + _DEADLINE_S
    while not reached():
        assert time.monotonic() < end_s
        time.sleep(0.02)


@pytest.mark.slow
def test_a_worker_that_dies_is_noticed_and_nothing_measured_is_lost(server: TruthServer, tmp_path: Path) -> None:
    """The run ends at once and in order, is invalid, and has every record of both workers."""
    command = Command(server, tmp_path)
    began_s = time.monotonic()
    os.kill(command.workers[1], signal.SIGKILL)
    code, folder = command.ended()
    assert time.monotonic() - began_s < 6
    assert code == 3
    summary, manifest = folder.load_summary(), folder.load_manifest()
    assert manifest.ended_by == "worker lost"
    assert {finding.kind: finding.severity for finding in summary.verdict.findings}["worker_lost"] == "invalid"
    records = list(folder.records())
    assert {record.seq % 4 % 2 for record in records} == {0, 1}, "records of both"
    sent = received(server, manifest.run_id)
    assert manifest.planned is not None
    assert 0 <= sum(sent.values()) - len(records) <= 3, "but for what the dead one had in flight"
    assert len(records) <= manifest.planned <= len(records) + 2
    assert sorted(path.name for path in folder.path.glob("records*")) == ["records.jsonl.zst"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_workers_in_order(server: TruthServer, tmp_path: Path, number: int) -> None:
    """Answers on their way arrive; the same requests are on both sides."""
    command = Command(server, tmp_path)
    command.process.send_signal(number)
    code, folder = command.ended()
    records = list(folder.records())
    assert code == 130
    assert {record.outcome for record in records} == {Outcome.COMPLETED}
    assert received(server, folder.load_manifest().run_id) == {record.request_id: 1 for record in records}


@pytest.mark.slow
def test_a_second_interrupt_ends_all_workers_at_once(tmp_path: Path) -> None:
    """Answers that would take minutes are cut off, each with its record."""
    with spawn_truth_server(Script(ttft_ms=5, gap_ms=2000, tokens=100)) as server:
        line = [sys.executable, "-m", "loadgen", "run", "--url", server.url, "--workers", "2", "--concurrency", "4"]
        process = subprocess.Popen([*line, "--no-progress", "--out", str(tmp_path)], stdout=subprocess.DEVNULL)
        until(lambda: any(path.stat() for path in tmp_path.glob("*/records.1.jsonl.zst")))
        time.sleep(1.0)  # nothing but the server's own log, which tells of ended requests alone, would say more
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(_DEADLINE_S) == 130
    (path,) = tmp_path.iterdir()
    outcomes = [record.outcome for record in RunFolder.open(path).records()]
    assert set(outcomes) == {Outcome.CANCELLED}
    assert len(outcomes) == 4


@pytest.mark.slow
def test_workers_end_with_their_leader_and_leave_what_they_recorded(server: TruthServer, tmp_path: Path) -> None:
    """Nobody is left behind; both files are whole, and are read as the records of the run."""
    command = Command(server, tmp_path)
    command.process.kill()
    code, folder = command.ended()
    assert code == -signal.SIGKILL
    assert len(list(folder.path.glob("records.*.jsonl.zst"))) == 2
    records = list(folder.records())
    assert not folder.truncated
    assert received(server, folder.load_manifest().run_id).keys() <= {record.request_id for record in records}
    reported = subprocess.run(
        [sys.executable, "-m", "loadgen", "report", str(folder.path)], capture_output=True, text=True, timeout=60
    )
    assert reported.returncode == 0, reported.stderr
    assert f"{len(records)} planned" in reported.stdout


@dataclass
class Known:
    """Two child processes, by number."""

    size: int = 2
    lead_ns: int = 40_000_000
    pids: list[int] = field(default_factory=list)

    async def start(self, index: int) -> WorkerProcess:
        worker = await WorkerProcess.start()
        self.pids.append(worker.pid)
        return worker


async def nothing(_: Team) -> None:
    """Nothing happens."""


async def led(
    server: TruthServer,
    folder: RunFolder,
    crew: Known,
    during: Callable[[Team], Coroutine[Any, Any, None]] = nothing,
    *,
    silence_s: float = 60.0,
) -> RunEnd:
    """A run of two workers without what surrounds it; `during` gets the team while it is under way."""
    options = RunOptions(url=server.url, concurrency=2, duration="5s", workers=2)
    clock = MonotonicClock()
    async with open_session(options) as session:
        load = Load(mode=LoadMode.CONCURRENCY, concurrency=2, duration_s=5.0)
        asked = Asked(
            session=session,
            load=load,
            template=session.run_template(),
            run_id="r",
            warmup_requests=0,
            first_pass=0,
        )
        axis = Axis(origin_unix_ns=clock.origin_unix_ns, origin_monotonic_ns=clock.origin_monotonic_ns)
        jobs = [
            asked.job(Share(index=index, count=2), axis=axis, records=str(folder.part_path(index)), totals=False)
            for index in range(2)
        ]
        team = Team(
            jobs,
            crew=crew,
            folder=folder,
            data=Ready.over(session.workload),
            clock=clock,
            probe=None,
            silence_s=silence_s,
        )
        beside = asyncio.create_task(during(team))
        try:
            return await team.execute()
        finally:
            beside.cancel()
            clock.close()


@pytest.mark.slow
def test_a_worker_that_says_nothing_more_is_lost(server: TruthServer, tmp_path: Path) -> None:
    """It was stopped, not ended: after a while it is no longer waited for."""
    folder, crew = RunFolder.create(tmp_path, "r"), Known()

    async def freeze(team: Team) -> None:
        while team.live.completed < 20:  # noqa: ASYNC110 (nothing tells when; it has to be asked)
            await asyncio.sleep(0.02)
        os.kill(crew.pids[0], signal.SIGSTOP)

    end = asyncio.run(led(server, folder, crew, freeze, silence_s=1.5))
    assert end.ended_by == "worker lost"
    assert end.client.workers_lost == 1
    assert len(list(folder.records())) >= 20


@pytest.mark.slow
def test_what_one_worker_cannot_do_ends_the_others(server: TruthServer, tmp_path: Path) -> None:
    """Records are there already where one of them is to write: its own words, before any load, and nobody is left."""
    folder, crew = RunFolder.create(tmp_path, "r"), Known()
    folder.part_path(1).write_bytes(b"")
    before = len(server.log().entries)
    with pytest.raises(StoreError, match=r"records\.1\.jsonl\.zst: cannot be created: File exists"):
        asyncio.run(led(server, folder, crew))
    assert len(server.log().entries) == before
    assert len(crew.pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in crew.pids)


@pytest.mark.slow
def test_a_worker_without_a_job_ends() -> None:
    """Nobody told it anything; and something else than a job is refused in its own words."""
    command = [sys.executable, "-m", "loadgen.wiring.workers"]
    nothing = subprocess.run(command, input=b"", capture_output=True, timeout=30)
    assert (nothing.returncode, nothing.stdout) == (0, b"")
    other = subprocess.run(command, input=b'{"type":"abort"}\n', capture_output=True, timeout=30)
    assert other.stdout == (
        b'{"type":"failed","kind":"InternalError","message":"a worker was to get a job first, not Abort"}\n'
    )


@pytest.mark.slow
def test_what_several_cannot_send_is_counted_all_the_same(server: TruthServer, tmp_path: Path) -> None:
    """20,000 a second for 0.3 s: every arrival has one record, sent or dropped, and the measurement is invalid."""
    options = RunOptions(
        url=server.url,
        request_rate=20_000.0,
        burstiness=float("inf"),
        duration="300ms",
        grace="10s",
        workers=3,
        out=tmp_path,
    )
    done = run(options)
    records = list(done.folder.records())
    assert sorted(record.seq for record in records) == list(range(6_000))
    assert received(server, done.manifest.run_id) == {
        each.request_id: 1 for each in records if each.sent_ns is not None
    }
    assert done.end.requests == 6_000
    assert not done.analysis.summary.verdict.valid


async def elsewhere(server: TruthServer, records: Path, *, clock_ahead_ns: int) -> int:
    """Drives one worker as one on another machine is, whose wall clock is so far ahead, to start at 3 s of the run's
    axis; by how much (ns) the server got its request later than that.
    """
    options = RunOptions(url=server.url, num_requests=1)
    origin_monotonic_ns = time.monotonic_ns()
    axis = Axis(origin_unix_ns=time.time_ns(), clock_ahead_ns=clock_ahead_ns)
    async with open_session(options) as session:
        asked = Asked(
            session=session,
            load=Load(mode=LoadMode.CONCURRENCY, concurrency=1, num_requests=1),
            template=session.run_template(),
            run_id=f"elsewhere{clock_ahead_ns}",
            warmup_requests=0,
            first_pass=0,
        )
        worker = await WorkerProcess.start()
        try:
            worker.tell(asked.job(Share(), axis=axis, records=str(records), totals=False))
            assert isinstance(await worker.hear(), Ready)
            worker.tell(Start(at_ns=3_000_000_000))
            while not isinstance(await worker.hear(), Ended):
                pass
        finally:
            await worker.end()
    (received_ns,) = (each.recv_ns for each in server.log().entries if each.request_id.startswith(asked.run_id))
    return received_ns - origin_monotonic_ns - 3_000_000_000


@pytest.mark.slow
def test_a_worker_on_another_machine_begins_at_the_same_moment(server: TruthServer, tmp_path: Path) -> None:
    """Its axis is tied to the leader's by wall clocks, less what its own is ahead: here the clock is right, and is said
    to be ahead by a second, so that the worker is a second late.
    """
    right = asyncio.run(elsewhere(server, tmp_path / "right", clock_ahead_ns=0))
    assert 0 <= right < 1e9
    late = asyncio.run(elsewhere(server, tmp_path / "late", clock_ahead_ns=1_000_000_000))
    assert 1e9 <= late < 2e9


@pytest.mark.slow
def test_arrivals_of_several_workers_are_punctual(server: TruthServer, tmp_path: Path) -> None:
    """None is sent before its instant, and most at it, on one time axis; how late the last ones are is the machine's
    business, which `benchmarks/workers.py` looks at when it is idle.
    """
    done = run(RunOptions(url=server.url, request_rate=200.0, num_requests=600, workers=3, seed=1, out=tmp_path))
    records = list(done.folder.records())
    assert len(records) == done.analysis.summary.requests.completed == 600
    for index in range(3):
        lags = sorted((each.sent_ns or 0) - (each.due_ns or 0) for each in records if each.seq % 3 == index)
        assert lags[0] >= 0
        assert lags[len(lags) // 2] < 20_000_000
