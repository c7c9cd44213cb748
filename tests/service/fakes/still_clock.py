"""A clock that moves when it is told to, and whose calendar can be set."""

from datetime import UTC, datetime


class StillClock:
    """Both kinds of time; see `loadgen.service.clock.Clock`."""

    def __init__(self, at: str = "2026-03-02T12:00:00") -> None:
        self._unix_ms = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)
        self._monotonic_s = 1000.0

    def now_unix_ms(self) -> int:
        return self._unix_ms

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def move(self, seconds: float) -> None:
        """Time goes by."""
        self._unix_ms += round(seconds * 1000)
        self._monotonic_s += seconds

    def set(self, at: str) -> None:
        """Somebody sets the calendar; no time goes by."""
        self._unix_ms = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)
