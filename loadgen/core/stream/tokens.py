"""Counts the tokens of each token-bearing event of a stream, by whatever the server offers for counting.

An event is a step of the server, not a token, so nothing is counted where the server says nothing.
"""

from collections.abc import Sequence

from loadgen.core.stream import wire


class Tally:
    """Tokens by one way of counting: a running total, and what it was at each token-bearing event.

    `complete` until a token-bearing event lacks the count, or a running total goes back.
    """

    __slots__ = ("complete", "marks", "total")

    def __init__(self) -> None:
        self.complete = True
        self.total = 0
        self.marks: list[int] = []

    def add(self, tokens: int | None, bearing: bool) -> None:
        """One event with that many tokens, None when it does not say."""
        if tokens is not None:
            self.total += tokens
            if bearing:
                self.marks.append(self.total)
        elif bearing:
            self.complete = False

    def reach(self, total: int | None, bearing: bool) -> None:
        """One event that gives the total so far, None when it does not."""
        if total is not None and total < self.total:
            self.complete = False
        self.add(None if total is None else total - self.total, bearing)

    @property
    def event_tokens(self) -> tuple[int, ...]:
        """Tokens of each token-bearing event, those of events without text between them included in the next."""
        return tuple(now - before for before, now in zip((0, *self.marks), self.marks, strict=False))


class TokenCounter:
    """The tallies of one stream: token ids, continuous usage, logprobs."""

    __slots__ = ("_tallies", "by_ids", "by_logprobs", "by_usage", "counting")

    def __init__(self) -> None:
        self.by_ids, self.by_usage, self.by_logprobs = Tally(), Tally(), Tally()
        self._tallies = (self.by_ids, self.by_usage, self.by_logprobs)
        self.counting = True
        """Some tally still has every token-bearing event."""

    def count(self, choices: Sequence[wire.Choice], usage: wire.UsageBlock | None, bearing: bool) -> None:
        """One chunk of a chat or completions stream."""
        ids: int | None = 0
        logprobs: int | None = 0
        for choice in choices:
            ids = None if ids is None or choice.token_ids is None else ids + len(choice.token_ids)
            entries = _entries(choice.logprobs)
            logprobs = None if logprobs is None or entries is None else logprobs + entries
            usage = choice.usage or usage
        by_ids, by_usage, by_logprobs = self._tallies
        if by_ids.complete:
            by_ids.add(ids, bearing)
        if by_usage.complete:
            by_usage.reach(None if usage is None else usage.completion_tokens, bearing)
        if by_logprobs.complete:
            by_logprobs.add(logprobs, bearing)
        self.counting = by_ids.complete or by_usage.complete or by_logprobs.complete

    def count_logprobs(self, logprobs: Sequence[object] | None) -> None:
        """One token-bearing event of a responses stream, which has no other count. An empty list is none."""
        self.by_logprobs.add(len(logprobs) if logprobs else None, bearing=True)
        self.counting = self.by_logprobs.complete

    def best(self, *, several_choices: bool) -> Tally | None:
        """The first tally that has every event; continuous usage is per choice and of no use when there are several."""
        for tally in self._tallies:
            if tally.complete and tally.marks and not (several_choices and tally is self.by_usage):
                return tally
        return None


def _entries(logprobs: wire.Logprobs | None) -> int | None:
    """Tokens that the entries stand for; None without entries, since a server may send an empty list unasked."""
    if logprobs is None:
        return None
    return len(logprobs.content or ()) + len(logprobs.refusal or ()) or len(logprobs.tokens or ()) or None
