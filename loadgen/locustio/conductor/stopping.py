"""SIGINT asks a ladder to stop. Before one takes signals itself, and behind it, somebody else has to."""

import asyncio
import signal
from collections.abc import Callable


def on_interrupt(act: Callable[[], object]) -> None:
    """Has the running loop do this from now on, until a ladder takes signals, which leaves nobody when it ends."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, act)


def nothing() -> None:
    """There is nothing to stop."""
