"""A worker as a child process of its leader."""

import asyncio
import sys
from contextlib import suppress

from loadgen.core.errors import InternalError
from loadgen.wiring.workers.messages import LONGEST_LINE_BYTES, FromWorker, ToWorker, decode_from_worker, encode

COMMAND = (sys.executable, "-m", "loadgen.wiring.workers")
_ENDING_S = 10.0


class WorkerProcess:
    """A running worker. Whoever starts one calls `end` whatever happens."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> "WorkerProcess":
        """Starts one that waits for its job, out of reach of the terminal's signals.

        Raises InternalError when there is no process to be had.
        """
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *COMMAND, stdin=pipe, stdout=pipe, start_new_session=True, limit=LONGEST_LINE_BYTES
            )
        except OSError as fault:
            raise InternalError(f"a worker process could not be started: {fault.strerror or fault}") from fault
        return cls(process)

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def tell(self, message: ToWorker) -> None:
        """Says something, without waiting; to one that has ended, nothing."""
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(encode(message) + b"\n")

    async def hear(self) -> FromWorker | None:
        """What it says next; None when it says nothing more. A line that was cut is nothing."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        return decode_from_worker(line) if line.endswith(b"\n") else None

    def kill(self) -> None:
        """Ends it at once."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """Returns when it has ended; one that does not within some seconds is killed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_ENDING_S):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
