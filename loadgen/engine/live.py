"""The live aggregate: plain counters that the run updates and a display reads at any time."""


class LiveCounts:
    """Counts of a run so far. `output_tokens` lags the wire by up to a decoder's round; events never count as tokens.

    `planned` is None while the end is by duration; it and the outcomes count warm-up too. `measuring_since_ns` is set
    when the first measured request leaves.
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
        "warmup_ended",
        "warmup_planned",
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
        self.warmup_planned = 0
        self.warmup_ended = 0
        self.measuring_since_ns: int | None = None
        self.last_progress_ns: int | None = None
        self.stopping: str | None = None

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
