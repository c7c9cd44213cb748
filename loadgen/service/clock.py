"""Time as the service sees it: what the calendar says, and what only ever grows."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Both kinds of time. Deadlines are held against the monotonic one, so that a clock that is set breaks none."""

    def now_unix_ms(self) -> int:
        """Milliseconds since 1970, UTC. May jump."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that only grow."""
        ...


class SystemClock:
    """The machine's."""

    def now_unix_ms(self) -> int:
        """See `Clock`."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """See `Clock`."""
        return time.monotonic()


def rfc3339(unix_ms: int | None) -> str | None:
    """An instant as text, `2026-01-31T12:00:00.000Z`; None of none."""
    if unix_ms is None:
        return None
    return datetime.fromtimestamp(unix_ms / 1000, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
