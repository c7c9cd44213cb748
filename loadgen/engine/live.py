"""The live aggregate: plain counters that the run updates and a display reads at any time."""


class LiveCounts:
    """Counts of a run so far. `output_tokens` lags the wire by up to a decoder's round; events never count as tokens.

    `planned` is None while the end is by duration. `measuring_since_ns` is set when the first measured request leaves.
    """

    __slots__ = (
        "cancelled",
        "completed",
        "dropped",
        "events",
        "failed",
        "in_flight",
        "last_progress_ns",
        "measuring_since_ns",
        "planned",
        "sent",
        "stopping",
        "warmup_left",
    )

    def __init__(self) -> None:
        self.planned: int | None = None
        self.sent = 0
        self.in_flight = 0
        self.completed = 0
        self.failed = 0
        self.cancelled = 0
        self.dropped = 0
        self.events = 0
        self.warmup_left = 0
        self.measuring_since_ns: int | None = None
        self.last_progress_ns: int | None = None
        self.stopping: str | None = None

    @property
    def ended(self) -> int:
        """Requests that have a record."""
        return self.completed + self.failed + self.cancelled + self.dropped
