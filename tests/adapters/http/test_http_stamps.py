"""The axis of kernel stamps."""

import socket
import sys
import time

import pytest

from loadgen.adapters.http.stamps import (
    ANCILLARY_BYTES,
    kernel_stamps_work,
    realtime_offset_ns,
    request_stamps,
    stamp_keeper,
    stamp_unix_ns,
)

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="receive stamps are Linux's")


@linux
def test_this_system_stamps() -> None:
    """On Linux the self-check finds stamps: without them every test of lateness would be empty."""
    assert kernel_stamps_work()


@linux
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_stamp_lies_between_send_and_read(family: socket.AddressFamily) -> None:
    """On IPv4 and IPv6, moved to the monotonic axis, the stamp is after the send and long before a late read."""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("no IPv6 loopback here")
    keeper = stamp_keeper()
    time.sleep(0.02)
    with keeper, listener, socket.create_connection(listener.getsockname()[:2]) as receiver:
        assert request_stamps(receiver)
        with listener.accept()[0] as sender:
            sent = time.monotonic_ns()
            sender.sendall(b"x")
            time.sleep(0.1)
            _, ancillary, _, _ = receiver.recvmsg(10, ANCILLARY_BYTES)
            read = time.monotonic_ns()
    stamp = stamp_unix_ns(ancillary) + realtime_offset_ns(time.monotonic_ns)
    assert sent - 100_000 <= stamp
    assert read - stamp > 80_000_000


def test_the_offset_moves_wall_instants_to_the_axis() -> None:
    """Wall time plus offset is the axis' now, whatever the axis' zero."""
    origin = time.monotonic_ns() - 5_000_000_000

    def now_ns() -> int:
        return time.monotonic_ns() - origin

    wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
    assert abs(wall + realtime_offset_ns(now_ns) - now_ns()) < 50_000_000


def test_an_interrupted_reading_of_the_offset_is_taken_again() -> None:
    """A pause between the clocks' reads would shift every stamp; the pair is read once more."""
    wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
    pauses = iter([0, 7_000_000, 0, 0])
    now = 0

    def now_ns() -> int:
        nonlocal now
        now += next(pauses, 0)
        return now

    assert abs(realtime_offset_ns(now_ns) - (7_000_000 - wall)) < 1_000_000_000
    assert next(pauses, None) is None
