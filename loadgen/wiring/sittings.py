"""The sittings of an experiment: servers started and ended, levels measured in between, everything noted."""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import Any, Protocol

from loadgen.adapters.servers.generic import TargetFacts
from loadgen.adapters.store.experiment_folder import (
    LOG,
    CellEnd,
    CellState,
    ExperimentFolder,
    SittingRecord,
    Start,
)
from loadgen.core.comparison.footing import Served, footing
from loadgen.core.errors import ConfigError, TargetError
from loadgen.core.experiment.plan import Plan, PlannedCell
from loadgen.core.experiment.time_left import Pending, TimeLeft
from loadgen.engine.live import LiveCounts
from loadgen.engine.ports import Exited, Launcher, Stopped
from loadgen.options.experiment import ArmSection, ExperimentFile
from loadgen.options.load import CommonOptions
from loadgen.wiring.api_key import api_key_from
from loadgen.wiring.cooldown import cool_down
from loadgen.wiring.execute import Finished, execute, load_title
from loadgen.wiring.experiment_notes import empty_words, footing_words
from loadgen.wiring.interrupts import Interrupted, interruptible, interrupts, signals
from loadgen.wiring.launch import launcher_of
from loadgen.wiring.punctuality import lateness_p99_s
from loadgen.wiring.session import Session, session_over
from loadgen.wiring.target import ask_target, destination_of
from loadgen.wiring.watch import Watch
from loadgen.wiring.workload import Workload, passes_needed

_SALTED = frozenset({"vllm"})  # other engines refuse fields that they do not know, or empty their cache when asked
_ENDING_S, _LOOK_S = 1.0, 0.05  # how long it may take until a server's end is known here


class ExperimentDisplay(Protocol):
    """Shows an experiment while it is under way."""

    def tell(self, line: str) -> None:
        """Something that people should know."""
        ...

    def starting(self, title: str, waited_s: float, last_line: str | None, left_s: float | None) -> None:
        """A server is being waited for; the last line of its log is what it says.

        `left_s` is what everything from its start on is expected to take.
        """
        ...

    def cell(self, live: LiveCounts, title: str, after_s: float | None) -> AbstractAsyncContextManager[object]:
        """A context in which a run's live counts are followed; `after_s` is what is expected to come after it."""
        ...


@dataclass(slots=True, kw_only=True)
class _Server:
    """The server of a sitting, from one start to its end."""

    pending: Pending
    section: ArmSection
    launcher: Launcher
    start: Start
    earlier: tuple[Start, ...]
    secrets: tuple[str, ...]
    lost: bool = False

    def gone(self) -> bool:
        return self.launcher.exited() is not None

    async def exited(self) -> Exited | None:
        """How it ended, waiting a moment for the news."""
        end_s = time.monotonic() + _ENDING_S
        while (exited := self.launcher.exited()) is None and time.monotonic() < end_s:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        return exited


@dataclass(slots=True, kw_only=True)
class Sittings:
    """The sittings of a plan in their order, as far as their cells are not in the folder yet.

    `baseline` is what the baseline told of itself at its first start, None before that.
    """

    experiment: ExperimentFile
    plan: Plan
    folder: ExperimentFolder
    workload: Workload
    display: ExperimentDisplay
    time_left: TimeLeft
    baseline: Served | None
    watch: Watch | None = None
    _told: set[str] = field(default_factory=set)

    async def run(self) -> bool:
        """Goes through all sittings that have something left. Whether somebody asked to stop."""
        finished = self.folder.finished()
        pending = [
            Pending(place=place, sitting=sitting, cells=cells)
            for place, sitting in enumerate(self.plan.sittings, start=1)
            if (cells := tuple(cell for cell in sitting.cells if cell.name not in finished))
        ]
        for sitting in self.plan.sittings:
            for start in self.folder.sitting(sitting).starts:
                self.time_left.started(sitting.arm, start.start_s)
        together = self.experiment.servers == "together"
        by_start = groupby(pending, key=lambda each: each.sitting.repeat if together else each.place)
        groups = [list(group) for _, group in by_start]
        with signals():
            try:
                for number, group in enumerate(groups, start=1):
                    await self._with_servers(group, groups[number:])
            except Interrupted:
                return True
        return False

    async def _with_servers(self, group: Sequence[Pending], later: Sequence[Sequence[Pending]]) -> None:
        """Sittings whose servers are up at the same time; they are sent load one after the other. `later` come after
        them, those together that are started together."""
        left_s = self._left_s((), (), [group, *later])
        servers = [self._server(each, left_s) for each in group]
        try:
            await interruptible(self._start_all(servers))
            for number, server in enumerate(servers, start=1):
                await self._sit(server, group[number:], later)
        finally:
            with interrupts(_nothing, _nothing):
                await self._stop_all(servers)

    def _left_s(
        self, cells: Sequence[PlannedCell], started: Sequence[Pending], later: Sequence[Sequence[Pending]]
    ) -> float | None:
        """Seconds for these cells, then for sittings whose servers are up, then for later ones with their starts."""
        sittings = (*started, *chain.from_iterable(later))
        arms = [[each.sitting.arm for each in group] for group in later]
        return self.time_left.of([*cells, *chain.from_iterable(each.cells for each in sittings)], starts=arms)

    def _server(self, pending: Pending, left_s: float | None) -> _Server:
        experiment, sitting = self.experiment, pending.sitting
        section = experiment.arms[sitting.arm.of]
        title = self._title(pending)
        return _Server(
            pending=pending,
            section=section,
            launcher=launcher_of(
                section,
                log=self.folder.begin_sitting(sitting) / LOG,
                kept=self.folder.path / f"{sitting.arm.name}.kept.json",
                start_timeout_s=experiment.start_timeout,
                forced_length=sitting.arm.forced_length,
                start=pending.place,
                api_key=api_key_from(experiment.api_key_env),
                progress=lambda waited_s, line: self.display.starting(title, waited_s, line, left_s),
                warn=self.display.tell,
            ),
            start=Start(started_at=_now()),
            earlier=self.folder.sitting(sitting).starts,
            secrets=section.secrets(os.environ),
        )

    async def _start_all(self, servers: Sequence[_Server]) -> None:
        started = await asyncio.gather(*map(self._start, servers), return_exceptions=True)
        _raise_first(started)

    async def _start(self, server: _Server) -> None:
        """A server that does not come up is noted; what follows from it is seen when it is its turn."""
        try:
            launched = await server.launcher.start()
        except TargetError as fault:
            self._save(server, fault=str(fault))
        else:
            self._save(server, how=launched.how, url=launched.url, start_s=launched.start_s)
            self.time_left.started(server.pending.sitting.arm, launched.start_s)

    async def _stop_all(self, servers: Sequence[_Server]) -> None:
        """Ends every server, whatever becomes of the others."""
        ends = await asyncio.gather(*(server.launcher.stop() for server in servers), return_exceptions=True)
        for server, stopped in zip(servers, ends, strict=True):
            if isinstance(stopped, Stopped):
                self._save(server, stopped=stopped.how.value, exit_status=stopped.exit_status)
        _raise_first(ends)

    def _save(self, server: _Server, **changes: Any) -> None:
        server.start = replace(server.start, **changes)
        record = SittingRecord(sitting=server.pending.sitting.name, starts=(*server.earlier, server.start))
        self.folder.save_sitting(record, secrets=server.secrets)

    async def _sit(self, server: _Server, started: Sequence[Pending], later: Sequence[Sequence[Pending]]) -> None:
        """All levels of a sitting that are left. After it come those that have `started` as well, and `later` ones."""
        session = None
        if server.start.fault is None:
            try:
                session = await interruptible(self._session(server))
            except TargetError as fault:
                exited = await server.exited()
                self._save(server, fault=str(fault) if exited is None else f"the server {exited.words}")
        if session is None:
            assert server.start.fault is not None
            if self.baseline is None:
                raise TargetError(f"{self.plan.baseline.label}, which all is compared with: {server.start.fault}")
            for cell in server.pending.cells:
                self._fail(cell, server.start.fault, server)
            return
        self._check_footing(server, session.facts)
        left, first_pass = list(server.pending.cells), 0
        notes: tuple[str, ...] = ()
        for cell in server.pending.sitting.cells:
            if cell in left:
                left.remove(cell)
                after_s = self._left_s(left, started, later)
                await self._measure(server, session, cell, first_pass=first_pass, after_s=after_s, notes=notes)
                if left and not server.lost:
                    notes = await interruptible(self._pause(session))
            load, warmup_requests = cell.level.load, cell.level.warmup_requests
            first_pass += passes_needed(self.workload, load, warmup_requests=warmup_requests)
        if server.section.sim is not None and not server.lost:
            self._save(server, late_p99_s=await lateness_p99_s(session.destination))

    async def _pause(self, session: Session) -> tuple[str, ...]:
        """Between two levels: what was left running would be measured with the next one. Notes for that one."""
        await asyncio.sleep(self.experiment.cooldown)
        return await cool_down(session.pages, session.facts, pause_s=0)

    async def _session(self, server: _Server) -> Session:
        """Asks the server what it is. Raises TargetError when it does not answer, ConfigError when it serves several
        models or tells of none and the file does not say which one is meant."""
        arm, url = server.pending.sitting.arm, server.start.url
        assert url is not None
        if server.section.url is not None:
            url = server.section.url_from(os.environ)  # with the credentials that are stored nowhere
        options = self.experiment.session_options(url)
        options = options.model_copy(update={"label": {"arm": arm.name, "repeat": str(server.pending.sitting.repeat)}})
        destination = destination_of(options)
        server.secrets = (*destination.secrets, *server.secrets)
        try:
            facts = await ask_target(destination, options)
        except ConfigError as fault:  # the file has fields where the command line has options
            raise ConfigError(f"{arm.label}: {str(fault).removeprefix('--')}") from None
        return session_over(
            self.workload,
            _with_cold_cache(options, facts),
            destination=destination,
            facts=facts,
            seed=self.experiment.workload.seed,
        )

    def _check_footing(self, server: _Server, facts: TargetFacts) -> None:
        """Compares the server with the baseline's first one. Raises ConfigError when they are unequal."""
        arm = server.pending.sitting.arm
        served = Served(
            engine=facts.engine,
            engine_version=facts.engine_version,
            model=facts.model,
            configuration=facts.configuration,
            speculation=facts.speculation,
            page=facts.configuration_page,
        )
        if self.baseline is None:
            self.baseline = served
        found = footing(self.baseline, served, arm)
        self._save(server, served=served, footing=found)
        for line in footing_words(found, arm):
            self._tell_once(line)
        if found.objections and not self.experiment.allow_unequal:
            raise ConfigError(
                f"{arm.label} is not on equal footing: {'; '.join(found.objections)}. Start it as the baseline is"
                " started, or set allow_unequal: true to measure it all the same"
            )

    async def _measure(
        self,
        server: _Server,
        session: Session,
        cell: PlannedCell,
        *,
        first_pass: int,
        after_s: float | None,
        notes: Sequence[str],
    ) -> None:
        if server.lost:
            self._fail(cell, "the server was no longer there", server)
            return
        cells = list(self.plan.cells)
        title = (
            f"run {cells.index(cell) + 1}/{len(cells)} · {cell.arm.name} · {load_title(cell.level.load)}"
            f" · {self._repeat(cell.repeat)}"
        )
        began_s = time.monotonic()
        try:
            finished = await execute(
                session,
                cell.level.load,
                folder=self.folder.begin_cell(cell, secrets=(*session.secrets, *server.secrets)),
                warmup_requests=cell.level.warmup_requests,
                display=lambda live, _title, _duration_s: self.display.cell(live, title, after_s),
                first_pass=first_pass,
                run_id=f"r{cell.repeat}-{cell.arm.name}-{cell.level.name}",
                notes=(*_notes(server, session), *notes),
                gone=server.gone,
                watch=None if self.watch is None else self.watch.arm(cell.arm.name, cell.arm.method),
            )
        except TargetError as error:
            exited = await server.exited()
            server.lost = exited is not None
            self._fail(cell, str(error) if exited is None else f"the server {exited.words}", server)
            return
        if finished.end.interrupted:
            raise Interrupted
        self.time_left.took(cell, time.monotonic() - began_s)
        fault = await _fault(server, finished)
        if fault is not None:
            self._fail(cell, fault, server)
            return
        summary = finished.analysis.summary
        empty, valid = empty_words(summary), summary.verdict.valid
        state = CellState.FINISHED if empty is None else CellState.EMPTY
        start = len(server.earlier) + 1
        self.folder.note(CellEnd(cell=cell.name, state=state, valid=valid, reason=empty, start=start, ended_at=_now()))
        if empty is not None:
            self.display.tell(f"{cell.name}: {empty}; loadgen report {finished.folder.path} says more")
        elif not valid:
            self.display.tell(
                f"{cell.name}: the measurement is invalid; loadgen report {finished.folder.path} says why"
            )

    def _fail(self, cell: PlannedCell, reason: str, server: _Server) -> None:
        end = CellEnd(cell=cell.name, state=CellState.FAILED, reason=reason, ended_at=_now())
        self.folder.note(end, secrets=server.secrets)
        self.display.tell(f"{cell.name} failed: {reason}")

    def _tell_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self.display.tell(line)

    def _title(self, pending: Pending) -> str:
        sitting = pending.sitting
        return f"start {pending.place}/{len(self.plan.sittings)} · {sitting.arm.name} · {self._repeat(sitting.repeat)}"

    def _repeat(self, repeat: int) -> str:
        return f"repeat {repeat}/{self.plan.repeats}"


async def _fault(server: _Server, finished: Finished) -> str | None:
    """Why a run cannot be used, None when it can; a server that is not there any more is lost from then on."""
    requests = finished.analysis.summary.requests
    if requests.completed == requests.planned and not server.gone():
        return None
    exited = await server.exited()
    server.lost = exited is not None or finished.end.ended_by == "unreachable"
    if exited is not None:
        return f"the server {exited.words}"
    return "the server could not be reached any more" if server.lost else None


def _with_cold_cache(options: CommonOptions, facts: TargetFacts) -> CommonOptions:
    """With what keeps a run's prompts from being answered out of an earlier one's cache, where the server has it."""
    if facts.cache_reset_path is not None:
        return options.model_copy(update={"reset_prefix_cache": True})
    if facts.engine in _SALTED and "cache_salt" not in options.extra_body:
        return options.model_copy(update={"cache_salt": "random"})
    return options


def _notes(server: _Server, session: Session) -> Iterator[str]:
    """What is particular about a run of this server."""
    if server.earlier:
        yield (
            f"the experiment was resumed within this sitting: this is start {len(server.earlier) + 1} of its server, so"
            " that levels of one repeat come from several starts"
        )
    options = session.options
    if server.section.url is not None and not options.reset_prefix_cache and options.cache_salt is None:
        yield "this server runs on and cannot be told to forget prompts: those of earlier repeats may be in its cache"


def _nothing() -> None:
    """Servers are being ended; there is nothing that an impatient signal could do better."""


def _raise_first(results: Sequence[object]) -> None:
    """The first fault among what tasks came to."""
    for result in results:
        if isinstance(result, BaseException):
            raise result


def _now() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="milliseconds")
