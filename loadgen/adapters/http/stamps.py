"""Kernel receive stamps: when a segment came in, whenever this process gets round to reading it.

With SO_TIMESTAMPNS Linux hands over, beside the bytes of a TCP read, the CLOCK_REALTIME instant at which it took the
last of their segments in. Stamps are moved to the run's axis with an offset taken at each turn of the event loop, so
a stepped wall clock does not shift later ones.
"""

import contextlib
import socket
import struct
import sys
import time
from collections.abc import Callable

ANCILLARY_BYTES = 64  # room for one struct timespec with its header
STALL_NS = 1_000_000  # a read that late may hold segments whose own stamps are gone, by enough to matter

_SO_TIMESTAMPNS = 35  # Linux, asm-generic; absent from Python's socket module
_TIMESPEC = struct.Struct("@ll")
_SANDWICH_NS = 20_000
_PROBES = 20
_PROBE_PAUSE_S = 0.001
_unpack = _TIMESPEC.unpack_from


def request_stamps(sock: socket.socket) -> bool:
    """Asks for receive stamps on a TCP socket; whether the system took the option."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def stamp_unix_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The stamp in what `recvmsg` returned beside the bytes; `ancillary` is not empty and holds nothing else."""
    s, ns = _unpack(ancillary[0][2])
    return int(s * 1_000_000_000 + ns)


def realtime_offset_ns(now_ns: Callable[[], int]) -> int:
    """What added to a CLOCK_REALTIME instant gives the instant on `now_ns`'s axis.

    The wall clock is read between two reads of the other; a pair that something came between is taken again.
    """
    for _ in range(3):
        before = now_ns()
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = now_ns()
        if after - before < _SANDWICH_NS:
            break
    return (before + after) // 2 - wall


def stamp_keeper() -> socket.socket | None:
    """A socket that does nothing but hold the system's stamping on while others come and go; None without stamps.

    Linux stamps packets only while some socket wants it, and switches over a moment after the first one asks.
    """
    try:
        keeper = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    except OSError:
        return None
    if request_stamps(keeper):
        return keeper
    keeper.close()
    return None


def kernel_stamps_work() -> bool:
    """Whether loopback reads really come with a stamp between their send and their receipt: tried, not assumed."""
    with contextlib.ExitStack() as stack:
        try:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            receiver = stack.enter_context(socket.create_connection(listener.getsockname(), timeout=1.0))
            sender = stack.enter_context(listener.accept()[0])
            if not request_stamps(receiver):
                return False
            for _ in range(_PROBES):
                sent = time.clock_gettime_ns(time.CLOCK_REALTIME)
                sender.sendall(b".")
                ancillary = receiver.recvmsg(1, ANCILLARY_BYTES)[1]
                received = time.clock_gettime_ns(time.CLOCK_REALTIME)
                if len(ancillary) == 1 and sent <= stamp_unix_ns(ancillary) <= received:
                    return True
                time.sleep(_PROBE_PAUSE_S)
        except OSError:
            pass
    return False
