"""The leader as a worker sees it: what it says, and whom it is told."""

import asyncio
from contextlib import suppress

from loadgen.engine.runner import Run
from loadgen.wiring.workers.messages import (
    Abort,
    Began,
    FromWorker,
    Measuring,
    Ready,
    Start,
    Stop,
    ToWorker,
    decode_to_worker,
    encode,
)

_UNREAD_BYTES = 2**20


class Leader:
    """Both directions of the talk. As the run's partners it agrees on begin and measured phase."""

    def __init__(self, heard: asyncio.StreamReader, spoken: asyncio.StreamWriter) -> None:
        self._heard, self._spoken = heard, spoken
        self._start: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.ready = Ready(requests=0)

    @property
    def listens(self) -> bool:
        """Whether it takes what it is told; otherwise progress is not worth the memory."""
        return self._spoken.transport.get_write_buffer_size() < _UNREAD_BYTES

    def tell(self, message: FromWorker) -> None:
        """Says something, without waiting."""
        self._spoken.write(encode(message) + b"\n")

    async def start_ns(self) -> int:
        self.tell(self.ready)
        return await self._start

    def began(self, at_ns: int) -> None:
        self.tell(Began(at_ns=at_ns))

    async def listen(self, run: Run) -> None:
        """Does what it says, until it says nothing more: then nobody is there."""
        try:
            while line := await self._heard.readline():
                self._do(decode_to_worker(line), run)
        except Exception:
            self._do(Abort(), run)
            raise
        self._do(Abort(), run)

    async def close(self) -> None:
        """Returns when all was heard, or nobody is there to hear it."""
        self._spoken.close()
        with suppress(ConnectionError):
            await self._spoken.wait_closed()

    def _do(self, message: ToWorker, run: Run) -> None:
        match message:
            case Start(at_ns=at_ns):
                self._begin_at(at_ns)
            case Measuring(at_ns=at_ns):
                run.measure_from(at_ns)
            case Stop(reason=reason):
                run.stop(reason)
                self._begin_at(run.clock.now_ns())  # there is no load to begin, but the run has its end to go through
            case Abort():
                run.abort()
                self._begin_at(run.clock.now_ns())

    def _begin_at(self, at_ns: int) -> None:
        if not self._start.done():
            self._start.set_result(at_ns)
