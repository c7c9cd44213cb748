"""Requests step back behind the processes that measure."""

import os
import sys
import threading

_NICER = 10
_NICEST = 19


def step_back() -> None:
    """Lowers the priority of this thread and of those that it starts; of the others, which start processes, nothing.

    Linux has a priority for each thread; elsewhere nothing is done.
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        nice = os.getpriority(os.PRIO_PROCESS, thread) + _NICER
        os.setpriority(os.PRIO_PROCESS, thread, min(nice, _NICEST))
