"""Where the workers of a run come from: children of this process, unless somebody brings others."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from loadgen.engine.runner import LEAD_NS
from loadgen.wiring.workers.messages import FromWorker, ToWorker
from loadgen.wiring.workers.process import WorkerProcess


class Worker(Protocol):
    """A worker, wherever it is."""

    def tell(self, message: ToWorker) -> None:
        """Says something, without waiting; to one that has ended, nothing."""
        ...

    async def hear(self) -> FromWorker | None:
        """What it says next; None when it says nothing more."""
        ...

    def kill(self) -> None:
        """Gives it up: it will say nothing more."""
        ...

    async def end(self) -> None:
        """Returns when it has ended."""
        ...


class Crew(Protocol):
    """Workers for one run after the other. The records of each are where its job says by the time it has ended."""

    @property
    def size(self) -> int:
        """How many there are for the next run."""
        ...

    @property
    def lead_ns(self) -> int:
        """How long before the first request all have to be told of it."""
        ...

    async def start(self, index: int) -> Worker:
        """The worker of that number, which waits for its job. Raises InternalError when there is none to be had."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """So many child processes of this one, new for every run."""

    size: int

    @property
    def lead_ns(self) -> int:
        """Each of them is told in turn."""
        return self.size * LEAD_NS

    async def start(self, index: int) -> Worker:
        """One that waits for its job. Raises InternalError when there is no process to be had."""
        return await WorkerProcess.start()


_BROUGHT: ContextVar[Crew | None] = ContextVar("the workers that somebody has brought", default=None)


@contextmanager
def driven_by(crew: Crew) -> Iterator[None]:
    """Has these workers drive every run within the block, whatever its options say of processes."""
    before = _BROUGHT.set(crew)
    try:
        yield
    finally:
        _BROUGHT.reset(before)


def crew_of(wanted: int) -> Crew | None:
    """The workers of a run whose options want so many processes; None where this one drives it alone."""
    brought = _BROUGHT.get()
    if brought is not None:
        return brought
    return Children(size=wanted) if wanted > 1 else None
