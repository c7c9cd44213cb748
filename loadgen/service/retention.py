"""Files of old runs are removed when the settings say so; what lists and histories show of them stays."""

import logging
import shutil
from pathlib import Path

from sqlalchemy import delete, select, update

from loadgen.service.clock import Clock
from loadgen.service.jobs.states import ENDED
from loadgen.service.store.database import Database
from loadgen.service.store.tables import baselines, events, runs
from loadgen.service.webhooks import outbox

LOG = logging.getLogger("loadgen.service.retention")

EVERY_S = 3600.0
_AT_ONCE = 200


class Retention:
    """One for a service. `after_s` is the time after a run's end, None for ever."""

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
            outbox.forget_old(connection, now)
        if self._after_s is not None:
            for run_id in self._old(now - int(self._after_s * 1000)):
                self._remove(run_id)

    def _old(self, before_unix_ms: int) -> list[str]:
        with self._database.read() as connection:
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
