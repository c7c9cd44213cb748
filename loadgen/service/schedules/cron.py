"""When a schedule is due: cron expressions in a time zone, daylight saving included."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from loadgen.core.errors import ConfigError

_FIELDS = 5
_MOST_MISSED = 1000
"""Instants that are looked at one by one after a long sleep; older ones are passed over together."""


@dataclass(frozen=True, slots=True)
class Timetable:
    """A cron expression of five fields in a time zone.

    In the hour that a clock skips, what is due at a fixed time is due at its end; in the hour that comes twice, once.
    What is due every hour is due in each of them.
    """

    cron: str
    time_zone: str

    def check(self, at_unix_ms: int) -> None:
        """Raises ConfigError that says what was expected, also for what is never due."""
        self.zone()
        if len(self.cron.split()) != _FIELDS:
            raise ConfigError("cron: expected five fields: minute, hour, day of month, month, day of week")
        try:
            if self.next_after(at_unix_ms) is None:
                raise ConfigError("cron: is never due")
        except CronSimError as error:
            raise ConfigError(f"cron: {str(error)[:1].lower()}{str(error)[1:]}") from None

    def zone(self) -> ZoneInfo:
        """Raises ConfigError for a zone that is none."""
        try:
            return _zone(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ConfigError("time_zone: expected one of the IANA list, such as Europe/Berlin or UTC") from None

    def after(self, at_unix_ms: int) -> Iterator[int]:
        """Instants behind that one, ascending, in Unix milliseconds."""
        start = datetime.fromtimestamp(at_unix_ms / 1000, tz=UTC).astimezone(self.zone())
        for due in CronSim(self.cron, start):
            unix_ms = round(due.timestamp()) * 1000
            if unix_ms > at_unix_ms:
                yield unix_ms

    def next_after(self, at_unix_ms: int) -> int | None:
        """The first of them; None when there is none within the years that are looked at."""
        return next(self.after(at_unix_ms), None)

    def due(self, first_unix_ms: int, now_unix_ms: int) -> list[int]:
        """Instants from the first one, which is due itself, up to now; of very many the latest."""
        found = [first_unix_ms]
        start = max(first_unix_ms, now_unix_ms - _MOST_MISSED * 60_000)
        for unix_ms in self.after(start):
            if unix_ms > now_unix_ms:
                break
            found.append(unix_ms)
        return found

    def words(self) -> str:
        """The expression in English."""
        return str(CronSim(self.cron, datetime.now(tz=UTC)).explain())


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
