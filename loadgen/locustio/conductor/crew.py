"""Workers on other machines, whom the process that started this one speaks for, line by line."""

import asyncio
import time
from collections.abc import Sequence
from itertools import count

import msgspec

from loadgen.core.errors import InternalError, TargetError
from loadgen.locustio.conductor.telling import Tell
from loadgen.wiring.workers.messages import Failed, FromWorker, ToWorker, decode_from_worker, encode

LEAD_NS = 500_000_000
"""From the moment at which all workers are ready to the first request: so long may the way to the last of them take."""

_ENDING_S = 15.0
_LEVELS = count(time.time_ns())
"""Numbers that no process gave before this one, which may have died with shares under way."""


class RemoteWorker:
    """One worker for one level."""

    def __init__(self, name: str, level: int, tell: Tell) -> None:
        self.name, self.level = name, level
        self._tell = tell
        self._heard: asyncio.Queue[str | None] = asyncio.Queue()
        self._gone = asyncio.Event()

    def tell(self, message: ToWorker) -> None:
        """Says something, without waiting."""
        self._line(encode(message).decode())

    async def hear(self) -> FromWorker | None:
        """What it says next; None when it says nothing more."""
        line = await self._heard.get()
        message = None if line is None else decode_from_worker(line)
        if isinstance(message, Failed):
            return msgspec.structs.replace(message, message=f"worker {self.name}: {message.message}")
        return message

    def kill(self) -> None:
        """Is given up: whatever it says from now on is not heard."""
        self.deliver(None)

    async def end(self) -> None:
        """Returns when its process has ended, or nobody says so within some seconds."""
        self._line(None)
        try:
            async with asyncio.timeout(_ENDING_S):
                await self._gone.wait()
        except TimeoutError:
            return

    def deliver(self, line: str | None) -> None:
        """Takes what it said; None when it says nothing more."""
        if not self._gone.is_set():
            self._heard.put_nowait(line)
        if line is None:
            self._gone.set()

    def _line(self, line: str | None) -> None:
        self._tell("to_worker", worker=self.name, level=self.level, line=line)


class RemoteCrew:
    """The workers of a ladder. One that is lost has no part in later levels."""

    lead_ns = LEAD_NS

    def __init__(self, names: Sequence[str], tell: Tell) -> None:
        self._names, self._tell = list(names), tell
        self._workers: list[RemoteWorker] = []
        self._level = 0

    @property
    def size(self) -> int:
        """How many there are. Raises TargetError when none is left."""
        if not self._names:
            raise TargetError("every worker was lost; what was measured until then is stored")
        return len(self._names)

    async def start(self, index: int) -> RemoteWorker:
        """The worker of that number, for one level. Raises InternalError where it was lost a moment ago."""
        if index == 0:
            self._level, self._workers = next(_LEVELS), []
        if index >= len(self._names):
            raise InternalError("a worker was lost before it had its share")
        worker = RemoteWorker(self._names[index], self._level, self._tell)
        self._workers.append(worker)
        return worker

    def deliver(self, name: str, level: int, line: str | None) -> None:
        """What a worker said; nothing of a level that is over."""
        for worker in self._workers:
            if (worker.name, worker.level) == (name, level):
                worker.deliver(line)

    def lose(self, name: str) -> None:
        """A worker is gone."""
        if name in self._names:
            self._names.remove(name)
            self._tell("note", text=f"worker {name} is lost: the level under way is invalid, later ones do without it")
        for worker in self._workers:
            if worker.name == name:
                worker.deliver(None)

    def lose_all(self) -> None:
        """Whoever speaks for the workers is gone."""
        for name in tuple(self._names):
            self.lose(name)
