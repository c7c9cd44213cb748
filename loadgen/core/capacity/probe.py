"""What a run at a level showed, and what it and the runs before it at that level decide."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadgen.core.capacity.evidence import Evidence, pooled
from loadgen.core.metrics.summary import Distribution, Finding, RequestCounts


class Verdict(StrEnum):
    """Whether a level meets the objectives. The last two say that the run tells nothing of it."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNDECIDED = "undecided"
    INVALID = "invalid"
    CUT_SHORT = "cut_short"


class Ground(StrEnum):
    """What decided: the whole interval of attainment, a queue that grows, or the bare share when runs were used up."""

    INTERVAL = "interval"
    OVERLOAD = "overload"
    ESTIMATE = "estimate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attainment:
    """The share of due requests that met the objectives, good / due, with its 95 % interval; None when none was due."""

    ratio: float | None
    low: float
    high: float
    good: int
    due: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Of the run's summary, what the search is about; `latency` by metric: TTFT, TPOT, E2EL and the objectives'."""

    requests: RequestCounts
    requests_per_s: float | None
    output_tokens_per_s: float | None
    concurrency_mean: float | None
    window_s: float | None
    latency: dict[str, Distribution]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """How far requests were from one objective.

    `over` completed later than `limit_s`, `without_value` completed without the metric. `needed_s` is the least limit
    that as large a share of the due requests would have met as is asked for; None when too many have no value at all.
    """

    metric: str
    limit_s: float
    over: int
    without_value: int
    needed_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """The due requests of a run that were not good: `lost` did not complete, the others missed an objective.

    `by_third` counts them by thirds of the due requests in order, `seqs` names the first of them. The medians of input
    tokens are None where the server counted none.
    """

    bad: int
    lost: int
    misses: tuple[Miss, ...]
    by_third: tuple[int, int, int]
    seqs: tuple[int, ...]
    input_tokens_bad_p50: float | None
    input_tokens_good_p50: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. In words: why it is `invalid`, `overloaded` or `unsettled`, and by what it was `cut_short`.

    `slowed` says why latencies may be the client's own. Such a run holds more misses than the server's, never fewer.
    """

    run_id: str
    evidence: Evidence
    summary: Excerpt
    shortfall: Shortfall | None = None
    invalid: str | None = None
    slowed: str | None = None
    overloaded: str | None = None
    unsettled: str | None = None
    cut_short: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One run and what is known of its level after it; `repeat` counts the runs at that level, from 1.

    `attainment` is over the runs at that level which count, `good` and `due` of this one alone. `why` says in words
    what led to the verdict. `shortfall` is None when every request of the run was good.
    """

    level: float
    repeat: int
    run_id: str
    verdict: Verdict
    ground: Ground | None
    attainment: Attainment
    why: str
    good: int
    due: int
    summary: Excerpt
    shortfall: Shortfall | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a level is judged: the share that is asked for, the runs that it takes, and those that it may take."""

    attainment_ratio: float
    repeats: int
    further_repeats: int
    allow_invalid: bool = False

    def objection(self, run: Run) -> str | None:
        """Why a run does not count: it is invalid, or misses what is asked for and the client may be why."""
        if self.allow_invalid:
            return None
        if run.invalid is not None or run.slowed is None:
            return run.invalid
        ratio = run.evidence.ratio
        missed = run.overloaded is not None or (ratio is not None and ratio < self.attainment_ratio)
        return run.slowed if missed else None


def judge(rule: Rule, level: float, runs: Sequence[Run]) -> Probe:
    """The last of the runs at a level as a probe, in the light of those before it.

    Attainment is over all of them that count: those with an objection do not, and those that had not settled only while
    there is nothing better. An overloaded run fails whatever it attained: its latencies grow with its length.
    """
    last = runs[-1]
    counting = [run for run in runs if run.cut_short is None and rule.objection(run) is None]
    settled = [run for run in counting if run.unsettled is None]
    evidence = pooled([run.evidence for run in settled or counting[-1:] or [last]])
    low, high = evidence.interval
    attainment = Attainment(ratio=evidence.ratio, low=low, high=high, good=evidence.good, due=evidence.due)
    verdict, ground, why = _verdict(rule, attainment, last, valid=len(counting))
    return Probe(
        level=level,
        repeat=len(runs),
        run_id=last.run_id,
        verdict=verdict,
        ground=ground,
        attainment=attainment,
        why=why,
        good=last.evidence.good,
        due=last.evidence.due,
        summary=last.summary,
        shortfall=last.shortfall,
    )


def _verdict(rule: Rule, attained: Attainment, last: Run, *, valid: int) -> tuple[Verdict, Ground | None, str]:
    target = rule.attainment_ratio
    if last.cut_short is not None:
        return Verdict.CUT_SHORT, None, last.cut_short
    if (objection := rule.objection(last)) is not None:
        return Verdict.INVALID, None, objection
    if last.overloaded is not None:
        return Verdict.FAIL, Ground.OVERLOAD, last.overloaded
    said = attainment_words(attained)
    if valid < rule.repeats:
        return Verdict.UNDECIDED, None, f"{said}; run {valid} of {rule.repeats}"
    if attained.due and attained.high < target:
        return Verdict.FAIL, Ground.INTERVAL, f"{said}; below {_share(target)}"
    passes = attained.low >= target
    if passes and last.unsettled is None:
        return Verdict.PASS, Ground.INTERVAL, f"{said}; at least {_share(target)}"
    doubt = f"not settled: {last.unsettled}" if passes else f"too few to tell from {_share(target)}"
    if valid < rule.repeats + rule.further_repeats:
        return Verdict.UNDECIDED, None, f"{said}; {doubt}"
    verdict = Verdict.PASS if attained.ratio is not None and attained.ratio >= target else Verdict.FAIL
    return verdict, Ground.ESTIMATE, f"{said}; decided by that share, though {doubt}"


def attainment_words(attained: Attainment) -> str:
    """A share of requests with its interval."""
    if attained.ratio is None:
        return "no request was due"
    return (
        f"{attained.good} of {attained.due} requests met the objectives"
        f" ({_share(attained.ratio)}, 95% interval {_share(attained.low)} to {_share(attained.high)})"
    )


def _share(ratio: float) -> str:
    """A percentage with as many digits as the share needs to differ from 100%."""
    return f"{ratio * 100:.{1 if ratio < 0.99 else 2}f}".rstrip("0").rstrip(".") + "%"
