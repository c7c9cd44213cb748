"""Counts of verification steps, and the figures that are made of them.

A verification step has a draft of k tokens, accepts j of them and emits j + 1. Requests are pooled as sums, so that
every figure is a ratio of sums.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadgen.core.errors import InternalError
from loadgen.core.record import RequestSpeculation


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Counts of one population of steps. `histogram[j]` are the steps that accepted j draft tokens.

    Raises InternalError when the histogram does not add up to `steps` and `accepted_tokens`.
    """

    steps: int | None = None
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    histogram: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.histogram is not None and not _adds_up(self.histogram, self.steps, self.accepted_tokens):
            raise InternalError(
                f"acceptance histogram {list(self.histogram)} does not add up to {self.steps} steps"
                f" with {self.accepted_tokens} accepted tokens"
            )

    @property
    def length(self) -> float | None:
        """Mean acceptance length, 1 + accepted / steps: tokens a step emitted, its own included. None without steps."""
        if not self.steps or self.accepted_tokens is None:
            return None
        return 1 + self.accepted_tokens / self.steps

    @property
    def ratio(self) -> float | None:
        """accepted / drafted tokens, 0..1. None when nothing is known to have been drafted."""
        if not self.drafted_tokens or self.accepted_tokens is None:
            return None
        return self.accepted_tokens / self.drafted_tokens

    @property
    def by_position(self) -> tuple[float, ...] | None:
        """Share of steps that accepted at least i draft tokens, i = 1, 2, ...: survival, not conditional acceptance.

        The mean acceptance length is 1 plus their sum. None without steps or histogram.
        """
        if not self.steps or self.histogram is None:
            return None
        survivors = [sum(self.histogram[place:]) for place in range(1, len(self.histogram))]
        return tuple(count / self.steps for count in survivors)

    @property
    def conditional_by_position(self) -> tuple[float | None, ...] | None:
        """Share that accepted token i of the steps that had accepted the i - 1 before it; None where no step had.

        Where drafts differ in length, a token that was never proposed counts as one that was not accepted.
        """
        survival = self.by_position
        if survival is None:
            return None
        return tuple(now / before if before else None for before, now in zip((1.0, *survival), survival, strict=False))


class AcceptanceSum:
    """Sums of counts over many requests. A count that some request does not have is None for the whole.

    (Sums over different requests make no ratio.) Histograms of different lengths add place by place.
    """

    __slots__ = ("accepted_tokens", "drafted_tokens", "histogram", "steps")

    def __init__(self) -> None:
        self.steps: int | None = 0
        self.drafted_tokens: int | None = 0
        self.accepted_tokens: int | None = 0
        self.histogram: list[int] | None = []

    def add(self, part: Acceptance) -> None:
        """One request, or the sums of several."""
        self.steps = plus(self.steps, part.steps)
        self.drafted_tokens = plus(self.drafted_tokens, part.drafted_tokens)
        self.accepted_tokens = plus(self.accepted_tokens, part.accepted_tokens)
        if self.histogram is None or part.histogram is None:
            self.histogram = None
            return
        self.histogram += [0] * (len(part.histogram) - len(self.histogram))
        for accepted, steps in enumerate(part.histogram):
            self.histogram[accepted] += steps

    def total(self) -> Acceptance:
        """What was added so far."""
        return Acceptance(
            steps=self.steps,
            drafted_tokens=self.drafted_tokens,
            accepted_tokens=self.accepted_tokens,
            histogram=None if self.histogram is None else tuple(self.histogram),
        )


def pooled(parts: Iterable[Acceptance]) -> Acceptance:
    """One Acceptance over all parts; zeros without any."""
    total = AcceptanceSum()
    for part in parts:
        total.add(part)
    return total.total()


def from_block(block: RequestSpeculation) -> Acceptance | None:
    """One request's own account; None when its numbers contradict each other."""
    if block.steps == 0:
        return Acceptance(steps=0, drafted_tokens=0, accepted_tokens=0, histogram=())
    histogram = block.histogram
    if histogram is None and block.per_step_accepted is not None:
        places = range(max(block.per_step_accepted, default=0) + 1)
        histogram = tuple(block.per_step_accepted.count(accepted) for accepted in places)
    steps = sum(histogram) if block.steps is None and histogram is not None else block.steps
    accepted = block.accepted_tokens
    if accepted is None and histogram is not None:
        accepted = _accepted_in(histogram)
    if histogram is not None and not _adds_up(histogram, steps, accepted):
        return None
    drafted = block.drafted_tokens
    if drafted is None and block.per_step_drafted is not None:
        drafted = sum(block.per_step_drafted)
    if accepted is not None and drafted is not None and accepted > drafted:
        return None
    return Acceptance(steps=steps, drafted_tokens=drafted, accepted_tokens=accepted, histogram=histogram)


def from_step_tokens(step_tokens: NDArray[np.int64]) -> Acceptance:
    """Decode steps by the tokens that each emitted, at least one."""
    accepted = step_tokens - 1
    histogram = tuple(np.bincount(accepted).tolist())
    return Acceptance(steps=len(accepted), accepted_tokens=int(accepted.sum()), histogram=histogram)


def plus(one: int | None, other: int | None) -> int | None:
    """The sum, None when either is not known."""
    return None if one is None or other is None else one + other


def _accepted_in(histogram: Sequence[int]) -> int:
    return sum(accepted * steps for accepted, steps in enumerate(histogram))


def _adds_up(histogram: Sequence[int], steps: int | None, accepted_tokens: int | None) -> bool:
    return sum(histogram) == steps and (accepted_tokens is None or _accepted_in(histogram) == accepted_tokens)
