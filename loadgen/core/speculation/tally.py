"""The speculation section of a summary, from records taken one by one and the server's counters beside them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from loadgen.core.metrics.summary import AcceptanceView, CategoryAcceptance, Speculation
from loadgen.core.record import Outcome, RequestRecord
from loadgen.core.request import Phase
from loadgen.core.speculation.by_output_position import OutputPositions
from loadgen.core.speculation.by_request import PerRequest
from loadgen.core.speculation.evidence import evidence_of
from loadgen.core.speculation.pool import RequestPool, merged
from loadgen.core.speculation.reconciliation import compared
from loadgen.core.speculation.server_side import ServerSide
from loadgen.core.speculation.views import Origin, Population, block_view, counter_view, stream_view

MIN_SEVERAL_TOKENS_RATIO = 0.01
"""Below this share of decode events with several tokens a stream is not taken to come from speculation: a slow read or
a character of several tokens also puts two tokens into one event."""

FULL_COVERAGE_RATIO = 0.99
"""From this share of decode steps with a draft on, acceptance length and tokens per step are the same for a reader."""

CATEGORIES_MOST = 50
"""Most categories shown, those with most requests first."""


class AcceptanceTally:
    """Takes records of any phase and outcome, keeps sums and three numbers a request; `result` is the section.

    `configured` is what the server says of its speculation (`method`, `draft_tokens`, `forced`), empty when it says
    nothing; `max_output_tokens` the run's own bound on answers.
    """

    def __init__(self, configured: Mapping[str, Any] | None = None, *, max_output_tokens: int | None = None) -> None:
        self._configured = configured or {}
        self._max_output_tokens = max_output_tokens
        self._draft_tokens: int | None = self._configured.get("draft_tokens")
        self._by_category: dict[str | None, RequestPool] = {}
        self._others = RequestPool()
        self._positions, self._requests = OutputPositions(), PerRequest()

    def observe(self, record: RequestRecord) -> None:
        """Adds one record."""
        told = evidence_of(
            record,
            draft_tokens=self._configured.get("draft_tokens"),
            max_output_tokens=self._max_output_tokens,
        )
        if told.draft_tokens is not None:
            self._draft_tokens = max(told.draft_tokens, self._draft_tokens or 0)
        if record.phase is not Phase.MEASURE or record.outcome is not Outcome.COMPLETED:
            self._others.observe(told)
            return
        self._by_category.setdefault(record.category, RequestPool()).observe(told)
        self._positions.observe(record, told)
        self._requests.observe(record, told)

    def result(self, server: ServerSide) -> Speculation | None:
        """None for a baseline: the server is not known to be set up for drafts, and no origin shows any."""
        measured = merged(self._by_category.values())
        blocks, stream = block_view(measured), stream_view(measured)
        counters = None if server.window is None else counter_view(server.window)
        headline = self._headline(measured, blocks, counters, stream)
        if headline is None:
            return None
        agreement = compared(merged((measured, self._others)), server.run, draft_tokens=self._draft_tokens)
        events_are_steps = not measured.oversize_events and all(
            one.agrees is not False for one in agreement if one.right == Origin.STREAM
        )
        per_step = _tokens_per_step((stream, counters, blocks) if events_are_steps else (counters, stream, blocks))
        coverage = headline.coverage_ratio
        if coverage is None and counters is not None:
            coverage = counters.coverage_ratio
        views = (counters, blocks, stream, server.gauge)
        return Speculation(
            origin=headline.origin,
            population=headline.population,
            acceptance_length=headline.acceptance_length,
            acceptance_ratio=headline.acceptance_ratio,
            acceptance_by_position=headline.by_position,
            steps=headline.steps,
            drafted_tokens=headline.drafted_tokens,
            accepted_tokens=headline.accepted_tokens,
            coverage_ratio=coverage,
            tokens_per_step=per_step,
            method=self._configured.get("method"),
            draft_tokens=self._draft_tokens,
            forced=self._configured.get("forced"),
            oversize_events=measured.oversize_events,
            per_request=self._requests.distributions(),
            tpot_by_acceptance=self._requests.tpot(),
            by_output_position=self._positions.result(),
            by_category=self._categories(),
            views=tuple(view for view in views if view is not None),
            agreement=agreement,
            notes=tuple(self._notes(measured, headline, coverage, per_step)),
        )

    def _headline(
        self,
        measured: RequestPool,
        blocks: AcceptanceView | None,
        counters: AcceptanceView | None,
        stream: AcceptanceView | None,
    ) -> AcceptanceView | None:
        """Complete blocks, else counters that hold steps, else what blocks there are, else the stream.

        A stream counts only when it shows several tokens an event, or the server is known to be set up for drafts.
        """
        configured = bool(self._configured.get("method") or self._configured.get("draft_tokens"))
        if blocks is not None and measured.complete:
            return blocks
        if counters is not None and counters.accepted_tokens is not None and _shows_drafts(counters, configured):
            return counters
        if blocks is not None:
            return blocks
        if stream is not None and stream.steps and (configured or _several_tokens(stream)):
            return stream
        return counters if counters is not None and (counters.drafted_tokens or configured) else None

    def _categories(self) -> tuple[CategoryAcceptance, ...]:
        """Nothing when the data has no categories."""
        named = [(name, pool) for name, pool in self._by_category.items() if name is not None]
        named.sort(key=lambda item: (-item[1].requests, item[0]))
        found = []
        for name, pool in named[:CATEGORIES_MOST]:
            stream = stream_view(pool)
            view = block_view(pool) or stream
            if view is None:
                continue
            found.append(
                CategoryAcceptance(
                    category=name,
                    requests=pool.requests,
                    origin=view.origin,
                    population=view.population,
                    steps=view.steps,
                    acceptance_length=view.acceptance_length,
                    acceptance_ratio=view.acceptance_ratio,
                    tokens_per_step=_tokens_per_step((stream, view)),
                )
            )
        return tuple(found)

    def _notes(
        self, measured: RequestPool, headline: AcceptanceView, coverage: float | None, per_step: float | None
    ) -> Iterator[str]:
        if headline.origin == Origin.COUNTERS:
            yield "From the server's counters over the window: the steps of every request that it served meanwhile."
        yield from _on_population(measured, headline, coverage, per_step)
        if headline.steps is None:
            yield "The server counts drafted and accepted tokens but no steps: no acceptance length."
        if measured.contradicting:
            yield f"{measured.contradicting} requests' counts contradict themselves and were left out."
        if measured.oversize_events:
            yield (
                f"{measured.oversize_events} events held more tokens than a step can emit and were left out: the server"
                " merged steps, because the client or the network was slow to take them or a parser held text back."
            )
        if len(self._by_category) - (None in self._by_category) > CATEGORIES_MOST:
            yield f"Only the {CATEGORIES_MOST} categories with most requests are shown."


def _on_population(
    measured: RequestPool, headline: AcceptanceView, coverage: float | None, per_step: float | None
) -> Iterator[str]:
    """What the counted steps are, where acceptance length is not tokens per step."""
    if not headline.steps and not headline.drafted_tokens:
        yield "The server is set up for drafts and none was made: there was nothing to accept."
        return
    if headline.origin == Origin.STREAM:
        yield (
            "Counted from the tokens in each event: every decode step counts, whether it drafted or not."
            " Events that the server merged would look like accepted drafts."
        )
        return
    if headline.population == Population.DECODE_STEPS:
        yield "The server counts verification steps and tokens: accepted is what it generated beyond one token a step."
        return
    drafting, decode = measured.both_blocks.steps, measured.both_steps.steps
    if measured.with_both and drafting is not None and decode is not None and drafting > decode:
        yield (
            f"{drafting} drafting steps but only {decode} events after the first:"
            " the server merged steps, so the share of steps that drafted cannot be told."
        )
    elif coverage is None and headline.steps:
        yield (
            "Steps without a draft are not counted by the server, so the acceptance length is not tokens per decode"
            " step unless every step drafted (n-gram and suffix methods often do not)."
        )
    elif coverage is not None and coverage < FULL_COVERAGE_RATIO and per_step is not None:
        yield (
            f"Only {coverage:.0%} of decode steps drafted: over all decode steps a step emitted"
            f" {per_step:.2f} tokens, less than the acceptance length."
        )


def _shows_drafts(counters: AcceptanceView, configured: bool) -> bool:
    """Whether steps were counted: none at all are an account too, of a server known to be set up for drafts."""
    return bool(counters.steps) or (configured and counters.steps == 0)


def _several_tokens(stream: AcceptanceView) -> bool:
    if stream.histogram is None or not stream.steps:
        return False
    return sum(stream.histogram[1:]) >= MIN_SEVERAL_TOKENS_RATIO * stream.steps


def _tokens_per_step(views: Iterable[AcceptanceView | None]) -> float | None:
    """Of the first view that has it: the events while each is a step, since those tokens reached the client."""
    return next((view.tokens_per_step for view in views if view is not None and view.tokens_per_step is not None), None)
