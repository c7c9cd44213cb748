"""A server whose every step is known: its answers, and its counters as an engine keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.core.metrics.summary import AcceptanceView, Comparison, Speculation
from loadgen.core.record import RequestRecord, RequestSpeculation
from loadgen.core.server.sample import Counters, Gauges, Scrape, ServerSample
from loadgen.core.speculation.server_side import ServerSide
from loadgen.core.speculation.tally import AcceptanceTally
from tests.core.analysis.factory import MS, S, answered

ANSWER_MS = 1000.0


@dataclass
class MadeServer:
    """Drafts `k` tokens a step and counts as vLLM does: drafts before the end of an answer cuts them off."""

    k: int = 4
    drafts: int = 0
    accepted: tuple[int, ...] = ()
    decode_steps: int = 0
    generated: int = 0
    answered: int = 0

    def answer(self, seq: int, steps: Sequence[int | None], *, cut: int = 0, **changes: Any) -> RequestRecord:
        """A completed answer of decode steps that accepted so many drafts each, None for a step without a draft.

        `cut` are tokens of the last step that the answer's end took away. One answer follows the other.
        """
        drafted = tuple(accepted for accepted in steps if accepted is not None)
        sizes = [1, *(1 + (accepted or 0) for accepted in steps)]
        sizes[-1] -= cut
        self.accepted += drafted
        self.decode_steps += len(steps)
        self.generated += sum(sizes)
        self.answered += 1
        sent_ns = round(seq * ANSWER_MS * MS)
        gap_ns = round(ANSWER_MS * MS / (len(sizes) + 1))
        event_ns = tuple(sent_ns + gap_ns * (place + 1) for place in range(len(sizes)))
        block = RequestSpeculation(
            steps=len(drafted),
            drafted_tokens=self.k * len(drafted),
            accepted_tokens=sum(drafted),
            histogram=tuple(drafted.count(accepted) for accepted in range(self.k + 1)),
            max_draft_tokens=self.k,
            per_step_accepted=drafted,
            per_step_drafted=(self.k,) * len(drafted),
        )
        facts = {
            "sent_ms": seq * ANSWER_MS,
            "tokens": sum(sizes),
            "event_tokens": tuple(sizes),
            "event_ns": event_ns,
            "first_ns": event_ns[0],
            "first_output_ns": event_ns[0],
            "last_ns": event_ns[-1],
            "closed_ns": event_ns[-1] + MS,
            "speculation": block,
        }
        return answered(seq, **(facts | changes))

    def counters(self, **changes: float) -> Counters:
        """What it has counted so far."""
        counted = {
            "generation_tokens": self.generated,
            "first_tokens": self.answered,
            "drafts": len(self.accepted),
            "drafted_tokens": self.k * len(self.accepted),
            "accepted_tokens": sum(self.accepted),
            "accepted_by_position": tuple(
                float(sum(accepted > place for accepted in self.accepted)) for place in range(self.k)
            ),
            "decode_steps": self.decode_steps,
        }
        return Counters(**(counted | changes))

    def scrapes(self, *, first_ns: int = -S, last_ns: int = 10_000 * S, **changes: float) -> tuple[Scrape, ...]:
        """Its page before everything and after everything."""
        return (
            scrape(first_ns, MadeServer(k=self.k).counters()),
            scrape(last_ns, self.counters(**changes)),
        )


def scrape(taken_ns: int, counters: Counters, gauges: Gauges | None = None) -> Scrape:
    """One page of one process."""
    sample = ServerSample(engine="0", counters=counters, gauges=gauges or Gauges())
    return Scrape(taken_ns=taken_ns, took_ns=MS, source="0", samples=(sample,))


def tallied(
    *records: RequestRecord, server: ServerSide | None = None, max_output_tokens: int | None = None, **configured: Any
) -> Speculation | None:
    """The section of these records beside what the server told of itself."""
    tally = AcceptanceTally(configured, max_output_tokens=max_output_tokens)
    for record in records:
        tally.observe(record)
    return tally.result(server or ServerSide())


def view(speculation: Speculation | None, origin: str) -> AcceptanceView:
    """The view of one origin."""
    assert speculation is not None
    (found,) = (one for one in speculation.views if one.origin == origin)
    return found


def comparison(speculation: Speculation | None, left: str, right: str, quantity: str) -> Comparison:
    """One comparison."""
    assert speculation is not None
    (found,) = (one for one in speculation.agreement if (one.left, one.right, one.quantity) == (left, right, quantity))
    return found
