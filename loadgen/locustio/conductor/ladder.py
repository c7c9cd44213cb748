"""One ladder, from the options of a form to its folder and its report."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loadgen.adapters.store.files import Scrubber, document, replace_file
from loadgen.core.analysis.ladder import DEFAULT_LADDER
from loadgen.core.errors import ExitCode
from loadgen.locustio.conductor.following import Follower
from loadgen.locustio.conductor.measured import Measured, variable_of
from loadgen.locustio.conductor.stopping import nothing, on_interrupt
from loadgen.locustio.conductor.telling import Tell
from loadgen.options.locust import LocustOptions, ladder_of, server_of
from loadgen.report.html import sweep_html
from loadgen.report.terminal import sweep_text
from loadgen.wiring.launch import launched, launcher_of
from loadgen.wiring.sweep import FinishedSweep, sweep_once
from loadgen.wiring.watch import Watch

REPORT = "report.html"
_START_TIMEOUT_S = 1200.0


async def run_ladder(options: LocustOptions, tell: Tell, follower: Follower) -> dict[str, Any]:
    """Runs it to its end, which is told as values; raises LoadgenError where it cannot be run."""
    async with _target(options, tell) as url:
        ladder = ladder_of(options, url=url)
        done = await sweep_once(ladder, display=follower.display, watch=Watch(monitor=follower))
    on_interrupt(nothing)
    follower.catch_up()
    ending = done.ending(ladder)
    report = _saved_report(done)
    return {
        "code": int(ending.code),
        "interrupted": ending.code is ExitCode.INTERRUPTED,
        "error": None if done.fault is None else str(done.fault),
        "failed_gates": [gate.evidence for gate in ending.failed_gates],
        "path": str(done.path.resolve()),
        "report": str(report),
        "text": sweep_text(done.sweep, done.levels[0].manifest if done.levels else None),
        "document": document(done.sweep, Scrubber()).decode(),
    }


def measured_of(options: LocustOptions) -> Measured:
    """Where the levels of a ladder are put together."""
    asked = options.request_rate or options.concurrency or DEFAULT_LADDER
    rates = options.request_rate is not None
    return Measured(variable=variable_of(rates=rates), asked=asked, arms=(), attainment=options.slo_attainment)


def _saved_report(done: FinishedSweep) -> Path:
    path = (done.path / REPORT).resolve()
    manifest = done.levels[0].manifest if done.levels else None
    replace_file(path, sweep_html(done.sweep, manifest).encode("utf-8", "replace"))
    return path


@asynccontextmanager
async def _target(options: LocustOptions, tell: Tell) -> AsyncIterator[str | None]:
    """The URL of the profile's server, started for the ladder and ended behind it; None where one runs already."""
    if options.server_profile is None:
        yield None
        return
    with TemporaryDirectory(prefix="loadgen-server-") as scratch:
        launcher = launcher_of(
            server_of(options),
            log=Path(scratch) / "server.log",
            kept=Path(scratch) / "kept",
            start_timeout_s=_START_TIMEOUT_S,
            progress=lambda waited_s, line: tell("starting", waited_s=waited_s, line=line),
        )
        async with launched(launcher) as server:
            yield server.url
