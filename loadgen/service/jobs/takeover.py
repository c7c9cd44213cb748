"""Finds runs whose service is gone, and sees to them."""

import logging
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from loadgen.service.clock import Clock
from loadgen.service.jobs import owners, queue
from loadgen.service.jobs.ending import Follow, conclude
from loadgen.service.jobs.hub import Hub
from loadgen.service.jobs.process import still_lives
from loadgen.service.jobs.recovery import Orphans, adopt, begin_again, was_never_begun
from loadgen.service.jobs.states import Reason, State
from loadgen.service.store.database import Database

LOG = logging.getLogger("loadgen.service.jobs")

LOOK_S = 5.0
"""How often it looks."""


class TakeOver:
    """One for a service, which is `owner`."""

    def __init__(
        self, database: Database, clock: Clock, *, folder: Path, owner: str, follow: Sequence[Follow], hub: Hub
    ) -> None:
        self._database, self._clock, self._folder = database, clock, folder
        self._owner, self._follow, self._hub = owner, follow, hub
        self._watcher = owners.Watcher(clock, owner)
        self._orphans = Orphans(clock)
        self._looked_s: float | None = None

    def turn(self, working: Container[str]) -> None:
        """Takes over what is left alone, and settles what was taken over; `working` are runs that are looked after."""
        now_s = self._clock.monotonic_s()
        if self._looked_s is not None and now_s - self._looked_s < LOOK_S:
            return
        self._looked_s = now_s
        with self._database.read() as connection:
            gone = self._watcher.gone(connection)
            rows = queue.at_work(connection)
            known = owners.known(connection)
        for row in rows:
            if row["owner"] == self._owner:
                if row["id"] not in working and self._orphans.has_ended(row):
                    self._settle(row)
            elif row["owner"] in gone or row["owner"] not in known:
                self._take(row)
        if gone:
            with self._database.write() as connection:
                for owner in gone:
                    owners.leave(connection, owner)

    def _take(self, row: dict[str, Any]) -> None:
        LOG.warning("a run without a service is taken over", extra={"run_id": row["id"]})
        with self._database.write() as connection:
            adopted = adopt(connection, row["id"], before=row["owner"], owner=self._owner)
        if adopted is not None and not still_lives(adopted["child"]):
            self._settle(adopted)

    def _settle(self, row: dict[str, Any]) -> None:
        folder = self._folder / row["id"]
        at = self._clock.now_unix_ms()
        with self._database.write() as connection:
            if was_never_begun(row, folder):
                state: State | None = begin_again(connection, row, at, follow=self._follow)
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
        self._hub.tell(row["id"])
