"""Takes in what the processes of runs tell: events into the journal, states into the queue, metrics into memory."""

import logging
import threading
from collections.abc import Container
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from loadgen.service.clock import Clock
from loadgen.service.jobs import journal, queue
from loadgen.service.jobs.exposition import Encoded
from loadgen.service.jobs.hub import Hub
from loadgen.service.jobs.states import AT_WORK, State
from loadgen.service.store.database import Database

LOG = logging.getLogger("loadgen.service.jobs")

_JOURNALLED = frozenset({"progress", "level_began", "level", "probe", "note", "server_starting"})


class Hearing:
    """One for a service; `heard` is called by the threads that read."""

    def __init__(self, database: Database, clock: Clock, hub: Hub) -> None:
        self._database, self._clock, self._hub = database, clock, hub
        self._measured: dict[str, Encoded] = {}
        self._lock = threading.Lock()

    def heard(self, run_id: str, line: dict[str, Any]) -> None:
        """One line of a process."""
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
        self._hub.tell(run_id)

    def measured(self) -> list[Encoded]:
        """The latest metrics of runs at work, and of the last one that ended; the latest first."""
        with self._lock:
            return list(reversed(self._measured.values()))

    def forget_all_but(self, working: Container[str]) -> None:
        """Drops the metrics of runs that have ended, but for those of the last one."""
        with self._lock:
            for run_id in [each for each in self._measured if each not in working][:-1]:
                del self._measured[run_id]
