"""Sees runs through: takes them from the queue, starts a process for each, ends those that have to end, takes in what
they left, and what others left that are gone."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy.exc import SQLAlchemyError

from loadgen.core.errors import ConfigError, LoadgenError, StoreError
from loadgen.service.clock import Clock
from loadgen.service.jobs import owners, queue
from loadgen.service.jobs.ending import Follow, conclude, end
from loadgen.service.jobs.hearing import Hearing
from loadgen.service.jobs.hub import Hub
from loadgen.service.jobs.order import Order
from loadgen.service.jobs.process import Spawn
from loadgen.service.jobs.states import Reason, State
from loadgen.service.jobs.takeover import LOOK_S, TakeOver
from loadgen.service.jobs.work import Work
from loadgen.service.problems import Problem
from loadgen.service.store.database import Database

LOG = logging.getLogger("loadgen.service.jobs")

FENCED_AFTER_S = owners.GONE_AFTER_S / 2
"""Without a beat for so long this service may soon be taken for gone, so it stops what it measures."""

OrderFor = Callable[[dict[str, Any], Path], Order]
"""Makes the order of a run for a process that works in that folder. May raise LoadgenError and Problem."""

BEAT_S = LOOK_S
"""How often a service says that it lives: as often as it looks for others that do not."""


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
        self._take_over = TakeOver(database, clock, folder=folder, owner=self.owner, follow=self._follow, hub=self.hub)
        self.hearing = Hearing(database, clock, self.hub)
        self._work: dict[str, Work] = {}
        self._beat_s = clock.monotonic_s()
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
            self._take_over.turn(self._work)
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
                work.stop(Reason.SERVICE_LOST, now_s)  # another service has it
            elif row["cancel_unix_ms"] is not None:
                work.stop(Reason.ASKED, now_s)
            elif now_s > work.deadline_s:
                work.stop(Reason.TIME_LIMIT, now_s)
            if status is None:
                work.press(now_s)

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
                told=self.hearing.outcome(work.run["id"]),
            )
        work.child.let_go()
        del self._work[work.run["id"]]
        self.hearing.forget_all_but(self._work)
        LOG.info("run ended", extra={"run_id": work.run["id"], "state": state, "status": status})
        self.hub.tell(work.run["id"])

    def _stop_all(self, reason: Reason) -> None:
        for work in list(self._work.values()):
            work.stop(reason, self._clock.monotonic_s())

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
                end(
                    connection,
                    run["id"],
                    State.FAILED,
                    self._clock.now_unix_ms(),
                    expected=(State.STARTING,),
                    follow=self._follow,
                    reason=reason,
                    message=str(fault).replace("\0", "?"),
                )
            LOG.warning("run cannot begin", extra={"run_id": run["id"], "fault": str(fault)})
            self.hub.tell(run["id"])
        return True

    def _start(self, run: dict[str, Any], folder: Path, order: Order) -> None:
        """The process is noted before it gets its order, so that whoever comes after a crash knows of it."""
        run_id = run["id"]
        child = self._spawn(folder, lambda line: self.hearing.heard(run_id, line))
        try:
            with self._database.write() as connection:
                still_ours = queue.note_child(connection, run_id, self.owner, child.identity)
            if not still_ours:
                LOG.warning("a run was taken over while it began", extra={"run_id": run_id})
                child.let_go()
                return
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
