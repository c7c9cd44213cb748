"""A server that runs already and is nobody's to stop."""

import asyncio
import time

from loadgen.adapters.launch.waiting import NotReadyError, Waiting
from loadgen.core.errors import TargetError
from loadgen.engine.ports import Exited, Launched, StopKind, Stopped


class AttachLauncher:
    """Waits for the server at `url` and leaves it alone afterwards. `shown` is its URL without credentials."""

    def __init__(self, url: str, *, shown: str, waiting: Waiting) -> None:
        self._url, self._shown, self._waiting = url, shown, waiting

    async def start(self) -> Launched:
        """Returns when it is ready. Raises TargetError when it does not become so in time."""
        began_s = time.monotonic()
        try:
            await self._waiting.until_ready(self._url, ended=asyncio.Event())
        except NotReadyError as fault:
            raise TargetError(f"{self._shown}: {fault}") from None
        return Launched(url=self._shown, how=f"running at {self._shown}", start_s=time.monotonic() - began_s)

    def exited(self) -> Exited | None:
        """Always None: it cannot be known from here."""
        return None

    async def stop(self) -> Stopped:
        """Does nothing."""
        return Stopped(how=StopKind.LEFT_RUNNING)
