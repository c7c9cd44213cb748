"""One type for every origin of acceptance: what each counts, over which steps, and where."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from statistics import median

from loadgen.core.metrics.summary import AcceptanceView
from loadgen.core.server.sample import Counters, Scrape
from loadgen.core.speculation.acceptance import Acceptance
from loadgen.core.speculation.by_request import without_steps
from loadgen.core.speculation.pool import RequestPool


class Origin(StrEnum):
    """Who counted: the metrics page, the block in each response, the tokens in each event, an engine's own gauge."""

    COUNTERS = "counters"
    PER_REQUEST = "per_request"
    STREAM = "stream"
    GAUGE = "gauge"


class Population(StrEnum):
    """Which steps were counted: those that had a draft, or every step after the prompt's."""

    DRAFTING_STEPS = "drafting_steps"
    DECODE_STEPS = "decode_steps"


class Scope(StrEnum):
    """Where they were counted: in completed requests of the measured phase, or at the server during the window."""

    MEASURED_REQUESTS = "measured_requests"
    WINDOW = "window"


def block_view(pool: RequestPool) -> AcceptanceView | None:
    """From the servers' blocks; None without one. Coverage is over the requests whose events tell their tokens too.

    There is no coverage when the blocks hold more steps than the events: the server merged steps.
    """
    if not pool.with_block:
        return None
    drafting, decode = pool.both_blocks.steps, pool.both_steps.steps
    coverage = drafting / decode if decode and drafting is not None and drafting <= decode else None
    accepted = pool.both_blocks.accepted_tokens
    if coverage is not None and decode and accepted is not None:
        per_step: float | None = 1 + accepted / decode
    else:
        decoded = pool.block_decode_tokens if pool.blocks.steps is None else None
        per_step = without_steps(decoded, pool.blocks.accepted_tokens)
    return _view(
        pool.blocks.total(),
        Origin.PER_REQUEST,
        Population.DRAFTING_STEPS,
        Scope.MEASURED_REQUESTS,
        coverage_ratio=coverage,
        tokens_per_step=per_step,
    )


def stream_view(pool: RequestPool) -> AcceptanceView | None:
    """From the tokens in each event; None when no request's events tell theirs."""
    if not pool.with_steps:
        return None
    counted = pool.steps.total()
    return _view(
        counted,
        Origin.STREAM,
        Population.DECODE_STEPS,
        Scope.MEASURED_REQUESTS,
        tokens_per_step=counted.length,
    )


def counter_view(counters: Counters) -> AcceptanceView | None:
    """From differences of counters over the window; None when they tell nothing of drafts.

    An engine that counts verification steps and no drafts verifies in every decode step: its figures are over those,
    and what it accepted is what it generated beyond one token a step. There is no coverage when more steps drafted than
    were decoded: the step in which a client leaves may be counted as the one and not as the other.
    """
    decoded = _minus(counters.generation_tokens, counters.first_tokens)
    if counters.drafts is None and counters.verify_steps is not None:
        steps, accepted = counters.verify_steps, _minus(decoded, counters.verify_steps)
        verified = Acceptance(steps=_whole(steps), accepted_tokens=_whole(accepted))
        return _view(verified, Origin.COUNTERS, Population.DECODE_STEPS, Scope.WINDOW, tokens_per_step=verified.length)
    if counters.drafted_tokens is None:
        return None
    drafts, decode_steps = counters.drafts, counters.decode_steps
    return _view(
        Acceptance(
            steps=_whole(drafts),
            drafted_tokens=_whole(counters.drafted_tokens),
            accepted_tokens=_whole(counters.accepted_tokens),
            histogram=_histogram(counters),
        ),
        Origin.COUNTERS,
        Population.DRAFTING_STEPS,
        Scope.WINDOW,
        coverage_ratio=drafts / decode_steps
        if decode_steps and drafts is not None and drafts <= decode_steps
        else None,
        tokens_per_step=decoded / decode_steps if decode_steps and decoded is not None else None,
    )


def gauge_view(scrapes: Iterable[Scrape], start_ns: int, end_ns: int) -> AcceptanceView | None:
    """The median of an engine's own readings in the window, each over the engine's last interval; None without any."""
    gauges = [sample.gauges for scrape in scrapes if start_ns <= scrape.taken_ns <= end_ns for sample in scrape.samples]
    lengths = [one.acceptance_length for one in gauges if one.acceptance_length]
    ratios = [one.acceptance_ratio for one in gauges if one.acceptance_ratio is not None and one.acceptance_length]
    if not lengths:
        return None
    return AcceptanceView(
        origin=Origin.GAUGE,
        population=Population.DRAFTING_STEPS,
        scope=Scope.WINDOW,
        acceptance_length=median(lengths),
        acceptance_ratio=median(ratios) if ratios else None,
    )


def _view(
    counted: Acceptance,
    origin: Origin,
    population: Population,
    scope: Scope,
    *,
    coverage_ratio: float | None = None,
    tokens_per_step: float | None = None,
) -> AcceptanceView:
    return AcceptanceView(
        origin=origin.value,
        population=population.value,
        scope=scope.value,
        acceptance_length=counted.length,
        acceptance_ratio=counted.ratio,
        by_position=counted.by_position,
        conditional_by_position=counted.conditional_by_position,
        histogram=counted.histogram,
        steps=counted.steps,
        drafted_tokens=counted.drafted_tokens,
        accepted_tokens=counted.accepted_tokens,
        coverage_ratio=coverage_ratio,
        tokens_per_step=tokens_per_step,
    )


def _histogram(counters: Counters) -> tuple[int, ...] | None:
    """Steps by accepted drafts, from those that accepted at least so many; None when the counts do not add up."""
    if counters.accepted_by_position is None or counters.drafts is None or counters.accepted_tokens is None:
        return None
    survivors: Sequence[int] = [round(count) for count in (counters.drafts, *counters.accepted_by_position)]
    if any(later > earlier for earlier, later in pairwise(survivors)):
        return None
    if sum(survivors[1:]) != round(counters.accepted_tokens):
        return None
    return tuple(here - beyond for here, beyond in zip(survivors, (*survivors[1:], 0), strict=True))


def _minus(whole: float | None, part: float | None) -> float | None:
    return None if whole is None or part is None else whole - part


def _whole(count: float | None) -> int | None:
    return None if count is None else round(count)
