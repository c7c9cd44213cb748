"""Requests step back behind the processes that measure."""

import os
import sys
import threading

_NICE = 10


def step_back() -> None:
    """Lowers the priority of this thread and of those that it starts; of the others, which start processes, nothing.

    Linux has a priority for each thread; elsewhere nothing is done.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
