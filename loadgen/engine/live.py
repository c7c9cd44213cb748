"""The live aggregate: plain counters that the run updates and a display reads at any time."""

from collections.abc import Sequence
from dataclasses import dataclass

_SUMS = ("sent", "in_flight", "completed", "failed", "cancelled", "dropped", "events", "warmup_ended")


@dataclass(slots=True)
class LiveCounts:
    """Counts of a run so far. `events` lags the wire by up to a decoder's round; events never count as tokens.

    `planned` is None while the end is by duration; it and the outcomes count warm-up too. `measuring_since_ns` is set
    when the first measured request leaves.
    """

    planned: int | None = None
    sent: int = 0
    in_flight: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    dropped: int = 0
    events: int = 0
    warmup_planned: int = 0
    warmup_ended: int = 0
    measuring_since_ns: int | None = None
    last_progress_ns: int | None = None
    stopping: str | None = None

    @property
    def ended(self) -> int:
        """Requests that have a record."""
        return self.completed + self.failed + self.cancelled + self.dropped

    @property
    def measured_ended(self) -> int:
        """Of these, the ones that are measured."""
        return self.ended - self.warmup_ended

    @property
    def measured_planned(self) -> int | None:
        """Requests to be measured; while the load still rises, each that is sent is one less."""
        return None if self.planned is None else self.planned - max(self.warmup_planned, self.warmup_ended)

    def add_up(self, parts: Sequence["LiveCounts"]) -> None:
        """Becomes what the processes of a run have counted together; what is planned and why it stops stay."""
        for name in _SUMS:
            setattr(self, name, sum(getattr(part, name) for part in parts))
        progress = [part.last_progress_ns for part in parts if part.last_progress_ns is not None]
        self.last_progress_ns = max(progress, default=None)
