"""The run's monotonic clock, with a sleep that ends within about 0.1 ms of its instant.

asyncio's own timers go through `epoll_wait`, whose timeout is in whole milliseconds and rounded up. On Linux a timerfd,
which the loop watches like a socket, has no such step; elsewhere the loop's timers have to do.
"""

import asyncio
import contextlib
import ctypes
import heapq
import os
import sys
import time
import weakref
from itertools import count

from loadgen.core.errors import InternalError
from loadgen.core.units import NS_PER_S, seconds

_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1  # TFD_TIMER_ABSTIME


class MonotonicClock:
    """Nanoseconds of CLOCK_MONOTONIC since the clock was made; `origin_unix_ns` is that moment's wall time.

    Workers of one machine share an axis by passing the first one's `origin_monotonic_ns` and `origin_unix_ns` on.
    A clock belongs to the event loop that first sleeps on it; `close` gives its timer back.
    """

    def __init__(self, *, origin_monotonic_ns: int | None = None, origin_unix_ns: int | None = None) -> None:
        if (origin_monotonic_ns is None) != (origin_unix_ns is None):
            raise InternalError("a clock's origin is given on both axes or on none")
        self.origin_monotonic_ns = time.monotonic_ns() if origin_monotonic_ns is None else origin_monotonic_ns
        self._origin_unix_ns = time.time_ns() if origin_unix_ns is None else origin_unix_ns
        self._alarm: _TimerAlarm | _LoopAlarm | None = None

    @property
    def origin_unix_ns(self) -> int:
        """Wall time of the axis' zero, for correlation only."""
        return self._origin_unix_ns

    def now_ns(self) -> int:
        """Nanoseconds since the origin."""
        return time.monotonic_ns() - self.origin_monotonic_ns

    async def sleep_until(self, due_ns: int) -> None:
        """Returns at `due_ns` or later, never earlier, and always lets the loop turn once.

        The turn matters when the caller is behind: what it has just started gets to run before it starts more.
        """
        due = due_ns + self.origin_monotonic_ns
        if due <= time.monotonic_ns():
            await asyncio.sleep(0)
            return
        if self._alarm is None:
            descriptor = _create_timer()
            self._alarm = _LoopAlarm() if descriptor is None else _TimerAlarm(descriptor)
        while time.monotonic_ns() < due:
            await self._alarm.wait_until(due)

    def close(self) -> None:
        """Gives the timer's descriptor back. Sleepers are cancelled; the clock can still be read."""
        if self._alarm is not None:
            self._alarm.close()
            self._alarm = None


class _LoopAlarm:
    """The loop's own timers: portable, in steps of the system's poll timeout."""

    async def wait_until(self, due: int) -> None:
        await asyncio.sleep(seconds(due - time.monotonic_ns()))

    def close(self) -> None:
        pass


class _TimerAlarm:
    """One timerfd, set to the earliest of a heap of waiters."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._release = weakref.finalize(self, os.close, descriptor)
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._ring)

    async def wait_until(self, due: int) -> None:
        waiter = self._loop.create_future()
        heapq.heappush(self._waiters, (due, next(self._order), waiter))
        if self._waiters[0][2] is waiter:
            _set_timer(self._descriptor, due)
        await waiter

    def close(self) -> None:
        if self._loop.is_closed():
            self._waiters.clear()
        else:
            self._loop.remove_reader(self._descriptor)
        self._release()
        for _, _, waiter in self._waiters:
            waiter.cancel()
        self._waiters.clear()

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # set anew after it fired: the expiry is gone, its waiters are not
            os.read(self._descriptor, 8)
        now = time.monotonic_ns()
        while self._waiters and self._waiters[0][0] <= now:
            waiter = heapq.heappop(self._waiters)[2]
            if not waiter.done():
                waiter.set_result(None)
        if self._waiters:
            _set_timer(self._descriptor, self._waiters[0][0])


if sys.version_info >= (3, 13) and sys.platform == "linux":

    def _create_timer() -> int | None:
        return os.timerfd_create(time.CLOCK_MONOTONIC, flags=os.TFD_NONBLOCK | os.TFD_CLOEXEC)

    def _set_timer(descriptor: int, due: int) -> None:
        os.timerfd_settime_ns(descriptor, flags=os.TFD_TIMER_ABSTIME, initial=due)

else:
    # Python has timerfd since 3.13; before, the C library's two functions do the same.

    class _TimerSpec(ctypes.Structure):
        """struct itimerspec: interval, then first expiry, each in seconds and nanoseconds."""

        _fields_ = (
            ("interval_s", ctypes.c_long),
            ("interval_ns", ctypes.c_long),
            ("due_s", ctypes.c_long),
            ("due_ns", ctypes.c_long),
        )

    _LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

    def _create_timer() -> int | None:
        if _LIBC is None:
            return None
        descriptor = int(_LIBC.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))
        return None if descriptor < 0 else descriptor

    def _set_timer(descriptor: int, due: int) -> None:
        if _LIBC is None:
            raise InternalError("a timer was set on a system without timerfd")
        spec = _TimerSpec(0, 0, *divmod(due, NS_PER_S))
        if _LIBC.timerfd_settime(descriptor, _ABSOLUTE, ctypes.byref(spec), None) < 0:
            raise InternalError(f"timerfd_settime failed: {os.strerror(ctypes.get_errno())}")
