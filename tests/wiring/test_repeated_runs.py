"""Runs one after the other in one process, as a ladder makes them."""

import asyncio
import threading
from pathlib import Path

import pytest

from loadgen.cli.progress import RunProgress
from loadgen.options.load import SweepOptions
from loadgen.sim.script import Script
from loadgen.sim.truth import spawn_truth_server
from loadgen.wiring.sweep import sweep_once


def resources() -> tuple[int, int]:
    """Open descriptors and threads of this process, its pool of helpers aside."""
    threads = [thread for thread in threading.enumerate() if not thread.name.startswith("asyncio_")]
    return len(list(Path("/proc/self/fd").iterdir())), len(threads)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["native", "httpx"])
def test_levels_leave_nothing_open(tmp_path: Path, transport: str) -> None:
    """Every level opens its own connections, clock, file and writer: at the end all of them are closed."""
    with spawn_truth_server(Script(ttft_ms=1, gap_ms=0, tokens=2)) as server:
        options = SweepOptions(
            url=server.url,
            concurrency=list(range(1, 7)),
            num_requests=12,
            warmup_requests=0,
            settle=0.0,
            transport=transport,
            out=tmp_path,
            no_progress=True,
        )

        def display(live, title, duration_s):
            return RunProgress(live, title, duration_s, enabled=False)

        before = resources()
        finished = asyncio.run(sweep_once(options, display=display))
        assert resources() == before
    assert [level.level for level in finished.sweep.levels] == list(range(1, 7))
    assert all(level.summary.requests.completed == 12 for level in finished.sweep.levels)
