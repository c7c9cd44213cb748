"""A process that measures only as far as a test says."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadgen.adapters.launch.orphans import identity_of
from loadgen.core.errors import StoreError
from loadgen.service.jobs.order import Order, Outcome, begin, save_outcome
from loadgen.service.jobs.process import as_stored

GONE = {"pid": 2**30, "started_ticks": 1, "boot": "another boot"}
"""A process that is not there any more."""


class ObedientChild:
    """See `loadgen.service.jobs.process.Child`. `stops` counts the orders to stop."""

    def __init__(self, folder: Path, on_line: Any, identity: dict[str, Any]) -> None:
        self.folder, self.on_line = folder, on_line
        self.identity = identity
        self.order: Order | None = None
        self.stops = 0
        self.killed = self.let_gone = self.refuses = False
        self._status: int | None = None

    def give(self, order: Order) -> None:
        if self.refuses:
            raise StoreError("it has ended")
        self.order = order

    def stop(self) -> None:
        self.stops += 1

    def kill(self) -> None:
        self.killed = True
        self._status = -9

    def ended(self) -> int | None:
        return self._status

    def let_go(self) -> None:
        self.let_gone = True

    def tell(self, kind: str, **data: Any) -> None:
        """One line of it."""
        self.on_line({"kind": kind, **data})

    def run(self) -> None:
        """It begins to measure."""
        begin(self.folder)
        (self.folder / "out" / "measured").mkdir(parents=True)
        self.tell("state", state="running")

    def end(self, exit_code: int = 0, **outcome: Any) -> None:
        """It ends with an outcome."""
        outcome.setdefault("artefact", "measured")
        outcome.setdefault("valid", exit_code == 0)
        save_outcome(self.folder, Outcome(exit_code=exit_code, **outcome))
        self._status = 0

    def die(self, status: int = -9) -> None:
        """It ends without one."""
        self._status = status


class Nursery:
    """Makes them, each with that identity; the latest one stands last. `meanwhile` happens once, while one starts."""

    def __init__(self) -> None:
        self.children: list[ObedientChild] = []
        self.identity: dict[str, Any] = dict(GONE)
        self.meanwhile: Callable[[], None] | None = None

    def __call__(self, folder: Path, on_line: Any) -> ObedientChild:
        child = ObedientChild(folder, on_line, self.identity)
        self.children.append(child)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return child

    @property
    def latest(self) -> ObedientChild:
        return self.children[-1]


def of_this_process() -> dict[str, Any]:
    """A process that is still there."""
    identity = identity_of(os.getpid())
    assert identity is not None
    return as_stored(identity)
