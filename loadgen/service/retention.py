"""Files of old runs are removed when the settings say so; what lists and histories show of them stays."""

import logging
import math
import shutil
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from loadgen.service.clock import Clock
from loadgen.service.jobs.states import ENDED
from loadgen.service.store.database import Database
from loadgen.service.store.tables import baselines, events, lived, runs
from loadgen.service.webhooks import outbox

LOG = logging.getLogger("loadgen.service.retention")

EVERY_S = 3600.0
_HOUR_MS = 3_600_000
_AT_ONCE = 200


class Retention:
    """One for a service. `after_s` is the time after a run's end, None for ever.

    The time is to have gone by on the calendar, and as many hours with a service that was there, which are noted in the
    database. So a calendar that is set ahead, at a start as well, brings no end nearer by more than an hour; what was
    stored before those hours were noted, and what lay while no service was there, stays longer.
    """

    def __init__(self, database: Database, clock: Clock, folder: Path, after_s: float | None) -> None:
        self._database, self._clock, self._folder, self._after_s = database, clock, folder, after_s
        self._looked_s: float | None = None

    def turn(self) -> None:
        """Once an hour."""
        now_s = self._clock.monotonic_s()
        if self._looked_s is not None and now_s - self._looked_s < EVERY_S:
            return
        self._looked_s = now_s
        now = self._clock.now_unix_ms()
        with self._database.write() as connection:
            _note_hour(connection, now // _HOUR_MS)
            outbox.forget_old(connection, now)
        if self._after_s is not None:
            for run_id in self._old(now, self._after_s):
                self._remove(run_id)

    def _old(self, now_unix_ms: int, after_s: float) -> list[str]:
        with self._database.read() as connection:
            hour = _hour_before(connection, math.ceil(after_s * 1000 / _HOUR_MS))
            if hour is None:
                return []
            before_unix_ms = min(now_unix_ms - int(after_s * 1000), hour * _HOUR_MS)
            found = connection.execute(
                select(runs.c.id)
                .where(
                    runs.c.state.in_(ENDED),
                    runs.c.ended_unix_ms < before_unix_ms,
                    runs.c.files_removed.is_(False),
                    runs.c.id.not_in(select(baselines.c.run_id)),
                )
                .order_by(runs.c.number)
                .limit(_AT_ONCE)
            )
            return list(found.scalars())

    def _remove(self, run_id: str) -> None:
        """First it is noted, so that nobody looks for what is half there; a folder that stays is told of."""
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.id == run_id).values(files_removed=True))
            connection.execute(delete(events).where(events.c.run_id == run_id, events.c.kind == "progress"))
        try:
            shutil.rmtree(self._folder / run_id)
        except FileNotFoundError:
            pass
        except OSError as fault:
            LOG.warning("files of a run cannot be removed", extra={"run_id": run_id, "fault": fault.strerror})


def _note_hour(connection: Connection, hour: int) -> None:
    try:
        with connection.begin_nested():
            connection.execute(insert(lived).values(hour=hour))
    except IntegrityError:  # it was noted before, or by another service
        pass


def _hour_before(connection: Connection, count: int) -> int | None:
    """The earliest of the latest `count` hours; None where there are not so many."""
    found = select(lived.c.hour).order_by(lived.c.hour.desc()).offset(count - 1).limit(1)
    return connection.execute(found).scalar_one_or_none()
