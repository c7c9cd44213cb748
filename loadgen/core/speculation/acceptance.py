"""Acceptance of draft tokens, pooled over requests as a ratio of sums, from two origins under one type.

A verification step has a draft of k tokens, accepts j of them and emits j + 1. Servers that report per request count
the steps that had a draft; the stream shows every decode step, drafted or not, as one event of j + 1 tokens. The two
are therefore different populations: `origin` says which one the numbers stand on, and a ratio never mixes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest

import numpy as np

from loadgen.core.errors import InternalError
from loadgen.core.metrics.summary import Speculation
from loadgen.core.record import RequestRecord, RequestSpeculation

MIN_SEVERAL_TOKENS_RATIO = 0.01
"""Below this share of decode events with several tokens a stream is not taken to come from speculation: a slow read or
a character of several tokens also puts two tokens into one event."""

FULL_COVERAGE_RATIO = 0.99
"""From this share of decode steps with a draft on, acceptance length and tokens per step are the same for a reader."""


class AcceptanceOrigin(StrEnum):
    """What the counts come from: the server's block in each response, or the tokens in each event of the streams."""

    PER_REQUEST = "per_request"
    STREAM = "stream"


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


def pooled(parts: Sequence[Acceptance]) -> Acceptance:
    """One Acceptance over all parts: sums, and histograms of different lengths added place by place.

    A count that some part does not have is None for the whole: sums over different requests make no ratio.
    """
    histograms = [part.histogram for part in parts if part.histogram is not None]
    return Acceptance(
        steps=_sum([part.steps for part in parts]),
        drafted_tokens=_sum([part.drafted_tokens for part in parts]),
        accepted_tokens=_sum([part.accepted_tokens for part in parts]),
        histogram=(
            tuple(sum(places) for places in zip_longest(*histograms, fillvalue=0))
            if parts and len(histograms) == len(parts)
            else None
        ),
    )


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
    if accepted is not None and block.drafted_tokens is not None and accepted > block.drafted_tokens:
        return None
    return Acceptance(steps=steps, drafted_tokens=block.drafted_tokens, accepted_tokens=accepted, histogram=histogram)


def from_event_tokens(event_tokens: Sequence[int]) -> Acceptance:
    """One request's stream: each event after the first is a decode step; the first comes from processing the prompt.

    Every event holds at least one token.
    """
    accepted = np.array(event_tokens[1:], dtype=np.int64) - 1
    histogram = tuple(np.bincount(accepted).tolist())
    return Acceptance(steps=len(accepted), accepted_tokens=int(accepted.sum()), histogram=histogram)


class AcceptanceTally:
    """Takes records one by one and keeps counts only; `result` is the summary's section."""

    def __init__(self) -> None:
        self._blocks = Acceptance(steps=0, drafted_tokens=0, accepted_tokens=0, histogram=())
        self._block_count = 0
        self._contradicting = 0
        self._stream = Acceptance(steps=0, accepted_tokens=0, histogram=())
        self._both_blocks_steps: int | None = 0
        self._both_accepted: int | None = 0
        self._both_events = 0
        self._oversize_events = 0

    def observe(self, record: RequestRecord) -> None:
        """Adds one completed request."""
        stream = None
        if record.event_tokens and min(record.event_tokens) > 0:
            stream = from_event_tokens(record.event_tokens)
            self._stream = pooled([self._stream, stream])
        if record.speculation is None or record.speculation == RequestSpeculation():
            return
        block = from_block(record.speculation)
        if block is None:
            self._contradicting += 1
            return
        self._blocks = pooled([self._blocks, block])
        self._block_count += 1
        if stream is None or record.event_tokens is None:
            return
        self._both_events += stream.steps or 0
        self._both_blocks_steps = _sum([self._both_blocks_steps, block.steps])
        self._both_accepted = _sum([self._both_accepted, block.accepted_tokens])
        most = record.speculation.max_draft_tokens
        if most is not None:
            self._oversize_events += sum(tokens > most + 1 for tokens in record.event_tokens)

    def result(self) -> Speculation | None:
        """From per-request blocks; else from streams that show several tokens an event; else None: a baseline."""
        if self._block_count:
            return self._from_blocks()
        several = sum(self._stream.histogram[1:]) if self._stream.histogram else 0
        if not self._stream.steps or several < MIN_SEVERAL_TOKENS_RATIO * self._stream.steps:
            return None
        return Speculation(
            origin=AcceptanceOrigin.STREAM,
            acceptance_length=self._stream.length,
            acceptance_by_position=self._stream.by_position,
            steps=self._stream.steps,
            accepted_tokens=self._stream.accepted_tokens,
            notes=(
                "Counted from the tokens in each event: every decode step counts, whether it drafted or not."
                " Events that the server merged would look like accepted drafts.",
            ),
        )

    def _from_blocks(self) -> Speculation:
        blocks, notes = self._blocks, []
        coverage = None
        if self._both_events and self._both_blocks_steps is not None:
            coverage = self._both_blocks_steps / self._both_events
        if coverage is not None and coverage > 1:
            notes.append(
                f"{self._both_blocks_steps} drafting steps but only {self._both_events} events after the first:"
                " the server merged steps, so the share of steps that drafted cannot be told."
            )
            coverage = None
        elif coverage is not None and coverage < FULL_COVERAGE_RATIO and self._both_accepted is not None:
            notes.append(
                f"Only {coverage:.0%} of decode steps drafted: over all decode steps a step emitted"
                f" {1 + self._both_accepted / self._both_events:.2f} tokens, less than the acceptance length."
            )
        elif coverage is None and blocks.steps:
            notes.append(
                "Steps without a draft are not counted by the server, so the acceptance length is not tokens per decode"
                " step unless every step drafted (n-gram and suffix methods often do not)."
            )
        if blocks.steps is None:
            notes.append("The server counts drafted and accepted tokens but no steps: no acceptance length.")
        if self._contradicting:
            notes.append(f"{self._contradicting} requests' counts contradict themselves and were left out.")
        if self._oversize_events:
            notes.append(
                f"{self._oversize_events} events held more tokens than a step can emit: the server merged steps"
                " because the client or the network was slow to take them."
            )
        return Speculation(
            origin=AcceptanceOrigin.PER_REQUEST,
            acceptance_length=blocks.length,
            acceptance_ratio=blocks.ratio,
            acceptance_by_position=blocks.by_position,
            steps=blocks.steps,
            drafted_tokens=blocks.drafted_tokens,
            accepted_tokens=blocks.accepted_tokens,
            coverage_ratio=coverage,
            notes=tuple(notes),
        )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _accepted_in(histogram: Sequence[int]) -> int:
    return sum(accepted * steps for accepted, steps in enumerate(histogram))


def _adds_up(histogram: Sequence[int], steps: int | None, accepted_tokens: int | None) -> bool:
    return sum(histogram) == steps and (accepted_tokens is None or _accepted_in(histogram) == accepted_tokens)
