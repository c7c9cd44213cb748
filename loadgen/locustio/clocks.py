"""How far another machine's clock is ahead of this one's, from questions that it answered with its time."""

from collections import deque

_KEPT = 32


class ClockEstimate:
    """Keeps the latest answers and believes the quickest of them: whatever the way was, it took no longer than that."""

    def __init__(self) -> None:
        self._answers: deque[tuple[int, int]] = deque(maxlen=_KEPT)

    def add(self, *, asked_ns: int, told_ns: int, heard_ns: int) -> None:
        """An answer: asked and heard by this clock, and what the other one told in between; wall times."""
        self._answers.append((heard_ns - asked_ns, told_ns - (asked_ns + heard_ns) // 2))

    @property
    def answers(self) -> int:
        """How many it stands on."""
        return len(self._answers)

    @property
    def ahead_ns(self) -> int | None:
        """By how much the other clock is ahead; None before it has answered."""
        return min(self._answers)[1] if self._answers else None

    @property
    def within_ns(self) -> int | None:
        """How far off that is at most: half of the quickest way there and back."""
        return min(self._answers)[0] // 2 if self._answers else None
