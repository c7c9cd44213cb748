"""Takes in what the processes of runs tell: events into the journal, states into the queue, metrics into memory."""

import logging
import threading
import time
from collections.abc import Callable, Container
from contextlib import suppress
from typing import Any

import msgspec
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError

from loadgen.service.clock import Clock
from loadgen.service.jobs import journal, queue
from loadgen.service.jobs.exposition import Encoded
from loadgen.service.jobs.hub import Hub
from loadgen.service.jobs.order import OUTCOME_TOLD, Outcome
from loadgen.service.jobs.states import AT_WORK, State
from loadgen.service.store.database import Database

LOG = logging.getLogger("loadgen.service.jobs")

_JOURNALLED = frozenset({"progress", "level_began", "level", "probe", "note", "server_starting"})
_TRIES, _PAUSE_S = 60, 0.5


class Hearing:
    """One for a service; `heard` is called by the threads that read. `wait` lets a time in seconds go by."""

    def __init__(
        self, database: Database, clock: Clock, hub: Hub, *, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._database, self._clock, self._hub, self._wait = database, clock, hub, wait
        self._losing = False
        self._measured: dict[str, Encoded] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._lock = threading.Lock()

    def heard(self, run_id: str, line: dict[str, Any]) -> None:
        """One line of a process. While the database is gone its reader waits for half a minute, once, so that a restart
        of the database loses no state and no level; what the process tells meanwhile waits in its pipe."""
        kind = line.pop("kind", None)
        if kind == "metrics":
            with self._lock:
                self._measured.pop(run_id, None)
                self._measured[run_id] = line["families"]
            return
        if kind == OUTCOME_TOLD:
            with suppress(msgspec.ValidationError), self._lock:
                self._outcomes[run_id] = msgspec.convert(line, Outcome)
            return
        left = 0 if kind == "progress" or self._losing else _TRIES  # of progress a later line tells more
        while True:
            try:
                self._take_in(run_id, kind, line)
            except SQLAlchemyError as fault:  # the run goes on; its results are in its folder
                if left and isinstance(fault, OperationalError | InterfaceError):
                    left -= 1
                    self._wait(_PAUSE_S)
                    continue
                self._losing = self._losing or kind != "progress"
                LOG.error("an event is lost", extra={"run_id": run_id, "fault": str(fault).partition("\n")[0]})
            else:
                self._losing = False
            break
        self._hub.tell(run_id)

    def _take_in(self, run_id: str, kind: str | None, line: dict[str, Any]) -> None:
        with self._database.write() as connection:
            if kind == "state":
                to = State(line["state"])
                before = AT_WORK[: AT_WORK.index(to)]
                queue.move(connection, run_id, to, self._clock.now_unix_ms(), expected=before)
            elif kind in _JOURNALLED:
                journal.append(connection, run_id, kind, line, self._clock.now_unix_ms())

    def measured(self) -> list[Encoded]:
        """The latest metrics of runs at work, and of the last one that ended; the latest first."""
        with self._lock:
            return list(reversed(self._measured.values()))

    def outcome(self, run_id: str) -> Outcome | None:
        """What the process of a run told of its end because it could not write it."""
        with self._lock:
            return self._outcomes.get(run_id)

    def forget_all_but(self, working: Container[str]) -> None:
        """Drops the outcomes of runs that have ended, and their metrics but for those of the last one."""
        with self._lock:
            for run_id in [each for each in self._outcomes if each not in working]:
                del self._outcomes[run_id]
            for run_id in [each for each in self._measured if each not in working][:-1]:
                del self._measured[run_id]
