"""Sees runs through: takes them from the queue, starts a process for each, ends those that have to end, takes in what
they left, and what others left that are gone."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import update
from sqlalchemy.exc import SQLAlchemyError

from loadgen.core.errors import ConfigError, LoadgenError, StoreError
from loadgen.service.clock import Clock
from loadgen.service.jobs import journal, owners, queue
from loadgen.service.jobs.ending import Follow, conclude
from loadgen.service.jobs.exposition import Encoded
from loadgen.service.jobs.hub import Hub
from loadgen.service.jobs.order import Order
from loadgen.service.jobs.process import Child, Spawn, still_lives
from loadgen.service.jobs.recovery import Orphans, adopt, begin_again, was_never_begun
from loadgen.service.jobs.states import AT_WORK, Reason, State
from loadgen.service.problems import Problem
from loadgen.service.store.database import Database
from loadgen.service.store.tables import runs

LOG = logging.getLogger("loadgen.service.jobs")

STOP_S = 120.0
"""From the order to stop to the second one, which does not wait for requests in flight."""
ABORT_S = 60.0
"""From that one to the process' end by force."""
FENCED_AFTER_S = owners.GONE_AFTER_S / 2
"""Without a beat for so long this service may soon be taken for gone, so it stops what it measures."""

OrderFor = Callable[[dict[str, Any], Path], Order]
"""Makes the order of a run for a process that works in that folder. May raise LoadgenError and Problem."""

BEAT_S = 5.0
"""How often a service says that it lives, and looks for others that do not."""

_JOURNALLED = frozenset({"progress", "level_began", "level", "probe", "note", "server_starting"})


@dataclass(slots=True, kw_only=True)
class Work:
    """A run that a process of this service works on."""

    run: dict[str, Any]
    folder: Path
    child: Child
    deadline_s: float
    stopped_for: Reason | None = None
    asked_s: float | None = None
    aborted_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The latest metrics of a run, and whether it is still under way."""

    run_id: str
    families: Encoded


class Supervisor:
    """One for a service. `turn` does whatever is to be done now; `order_for` makes the order of a run."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        folder: Path,
        spawn: Spawn,
        order_for: OrderFor,
        parallel_runs: int = 1,
        follow: Sequence[Follow] = (),
        hub: Hub | None = None,
    ) -> None:
        self._database, self._clock, self._folder = database, clock, folder
        self._spawn, self._order_for, self._most, self._follow = spawn, order_for, parallel_runs, tuple(follow)
        self.hub = hub or Hub()
        self.owner = uuid4().hex
        self._watcher = owners.Watcher(clock, self.owner)
        self._orphans = Orphans(clock)
        self._work: dict[str, Work] = {}
        self._measured: dict[str, Encoded] = {}
        self._beat_s = clock.monotonic_s()
        self._looked_s: float | None = None
        self._lock = threading.Lock()
        self._draining = False

    def enter(self) -> None:
        """Begins. Raises StoreError."""
        with self._database.write() as connection:
            owners.enter(connection, self.owner, self._clock)
        self._beat_s = self._clock.monotonic_s()

    def turn(self) -> None:
        """Whatever is to be done now. A database that fails for a moment fails the turn, not the service."""
        try:
            self._beat()
            self._tend()
            self._recover()
            while not self._draining and self._begin_next():
                pass
        except (SQLAlchemyError, StoreError) as fault:
            LOG.error("database", extra={"fault": str(fault).partition("\n")[0]})
            if self._clock.monotonic_s() - self._beat_s > FENCED_AFTER_S:
                self._stop_all(Reason.SERVICE_LOST)

    def drain(self) -> None:
        """Nothing begins from now on, and what is at work is stopped in order."""
        self._draining = True
        self._stop_all(Reason.SHUTDOWN)

    def leave(self) -> None:
        """Ends. Processes that still work end in order by themselves; the next start takes in what they leave."""
        for work in list(self._work.values()):
            work.child.let_go()
        if not self._work:
            with self._database.write() as connection:
                owners.leave(connection, self.owner)

    @property
    def working(self) -> list[str]:
        """The runs that processes of this service work on."""
        return list(self._work)

    def measured(self) -> list[Measured]:
        """The metrics of runs at work, and of the last one that ended."""
        with self._lock:
            return [Measured(run_id=run_id, families=families) for run_id, families in reversed(self._measured.items())]

    def _beat(self) -> None:
        if self._clock.monotonic_s() - self._beat_s < BEAT_S:
            return
        with self._database.write() as connection:
            if not owners.beat(connection, self.owner, self._clock):
                LOG.warning("this service was taken for gone")
                owners.enter(connection, self.owner, self._clock)
        self._beat_s = self._clock.monotonic_s()

    def _tend(self) -> None:
        """Ends what has to end, takes in what has ended."""
        if not self._work:
            return
        with self._database.read() as connection:
            rows = {row["id"]: row for row in queue.at_work(connection, self.owner)}
        now_s = self._clock.monotonic_s()
        for run_id, work in list(self._work.items()):
            status = work.child.ended()
            row = rows.get(run_id)
            if status is not None:
                self._take_in(work, status)
            elif row is None:
                self._stop(work, Reason.SERVICE_LOST)  # another service has it
            elif row["cancel_unix_ms"] is not None:
                self._stop(work, Reason.ASKED)
            elif now_s > work.deadline_s:
                self._stop(work, Reason.TIME_LIMIT)
            if status is None:
                self._press(work, now_s)

    def _take_in(self, work: Work, status: int) -> None:
        lost = f"the process that measured ended without an outcome, with status {status}"
        with self._database.write() as connection:
            state = conclude(
                connection,
                work.run,
                work.folder,
                self._clock.now_unix_ms(),
                stopped_for=work.stopped_for,
                follow=self._follow,
                lost=lost,
            )
        work.child.let_go()
        del self._work[work.run["id"]]
        with self._lock:
            for run_id in [each for each in self._measured if each not in self._work][:-1]:
                del self._measured[run_id]
        LOG.info("run ended", extra={"run_id": work.run["id"], "state": state, "status": status})
        self.hub.tell(work.run["id"])

    def _stop(self, work: Work, reason: Reason) -> None:
        if work.asked_s is None:
            work.stopped_for, work.asked_s = reason, self._clock.monotonic_s()
            LOG.info("run is stopped", extra={"run_id": work.run["id"], "reason": reason})
            work.child.stop()

    def _press(self, work: Work, now_s: float) -> None:
        if work.asked_s is None:
            return
        if work.aborted_s is None:
            if now_s - work.asked_s > STOP_S:
                work.aborted_s = now_s
                work.child.stop()
        elif now_s - work.aborted_s > ABORT_S:
            work.child.kill()

    def _stop_all(self, reason: Reason) -> None:
        for work in list(self._work.values()):
            self._stop(work, reason)

    def _begin_next(self) -> bool:
        with self._database.read() as connection:
            if not queue.any_waits(connection):
                return False
        with self._database.write() as connection:
            run = queue.claim(connection, self.owner, self._clock.now_unix_ms(), most=self._most)
        if run is None:
            return False
        self.hub.tell(run["id"])
        folder = self._folder / run["id"]
        try:
            order = self._order_for(run, folder)
            folder.mkdir(parents=True, exist_ok=True)
            self._start(run, folder, order)
        except (LoadgenError, OSError, Problem) as fault:
            reason = Reason.CONFIGURATION if isinstance(fault, ConfigError | Problem) else Reason.INTERNAL
            with self._database.write() as connection:
                queue.move(
                    connection,
                    run["id"],
                    State.FAILED,
                    self._clock.now_unix_ms(),
                    expected=(State.STARTING,),
                    reason=reason,
                    message=str(fault),
                )
            LOG.warning("run cannot begin", extra={"run_id": run["id"], "fault": str(fault)})
            self.hub.tell(run["id"])
        return True

    def _start(self, run: dict[str, Any], folder: Path, order: Order) -> None:
        """The process is noted before it gets its order, so that whoever comes after a crash knows of it."""
        run_id = run["id"]
        child = self._spawn(folder, lambda line: self._heard(run_id, line))
        try:
            with self._database.write() as connection:
                connection.execute(update(runs).where(runs.c.id == run_id).values(child=child.identity))
            limit_s = run["time_limit_s"] or float("inf")
            self._work[run_id] = Work(
                run=run, folder=folder, child=child, deadline_s=self._clock.monotonic_s() + limit_s
            )
            child.give(order)
        except BaseException:
            self._work.pop(run_id, None)
            child.let_go()
            raise
        LOG.info("run begins", extra={"run_id": run_id, "run_kind": run["kind"]})

    def _recover(self) -> None:
        now_s = self._clock.monotonic_s()
        if self._looked_s is not None and now_s - self._looked_s < BEAT_S:
            return
        self._looked_s = now_s
        with self._database.read() as connection:
            gone = self._watcher.gone(connection)
            rows = queue.at_work(connection)
            known = owners.known(connection)
        for row in rows:
            if row["owner"] == self.owner:
                if row["id"] not in self._work and self._orphans.has_ended(row):
                    self._settle(row)
            elif row["owner"] in gone or row["owner"] not in known:
                LOG.warning("a run without a service is taken over", extra={"run_id": row["id"]})
                with self._database.write() as connection:
                    adopt(connection, row["id"], self.owner)
                if not still_lives(row["child"]):
                    self._settle(row)
        if gone:
            with self._database.write() as connection:
                for owner in gone:
                    owners.leave(connection, owner)

    def _settle(self, row: dict[str, Any]) -> None:
        folder = self._folder / row["id"]
        at = self._clock.now_unix_ms()
        with self._database.write() as connection:
            if was_never_begun(row, folder):
                state: State | None = begin_again(connection, row, at)
            else:
                state = conclude(
                    connection,
                    row,
                    folder,
                    at,
                    stopped_for=Reason.SERVICE_LOST,
                    follow=self._follow,
                    lost="the service and the process that measured were lost",
                )
        LOG.info("run of a lost service is settled", extra={"run_id": row["id"], "state": state})
        self.hub.tell(row["id"])

    def _heard(self, run_id: str, line: dict[str, Any]) -> None:
        """Takes in one line of a process; runs in the thread that reads it."""
        kind = line.pop("kind", None)
        if kind == "metrics":
            with self._lock:
                self._measured.pop(run_id, None)
                self._measured[run_id] = line["families"]
            return
        try:
            with self._database.write() as connection:
                if kind == "state":
                    to = State(line["state"])
                    before = AT_WORK[: AT_WORK.index(to)]
                    queue.move(connection, run_id, to, self._clock.now_unix_ms(), expected=before)
                elif kind in _JOURNALLED:
                    journal.append(connection, run_id, kind, line, self._clock.now_unix_ms())
        except SQLAlchemyError as fault:  # the run goes on; its results are in its folder
            LOG.error("an event is lost", extra={"run_id": run_id, "fault": str(fault).partition("\n")[0]})
        self.hub.tell(run_id)
