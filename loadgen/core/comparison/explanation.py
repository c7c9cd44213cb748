"""Why an arm is as fast as it is: what its steps cost and emit, what would be possible, and what else takes time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadgen.core.comparison.break_even import BreakEven, break_even
from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.ratio import ratio
from loadgen.core.comparison.verdict import LevelVerdict
from loadgen.core.metrics.summary import Summary
from loadgen.core.stats.bootstrap import Estimate

_TPOT = "tpot_s.mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a server told of its runs at one level, as means over the repeats; None where it told nothing.

    Acceptance is by who counted it (`acceptance_length_by_origin`) and by draft token. The ratios are shares of the
    time of requests in the server, `preemptions` and `kv_peak_ratio` the most of any repeat.
    """

    acceptance_length_by_origin: Mapping[str, float]
    acceptance_by_position: tuple[float, ...] | None
    coverage_ratio: float | None
    queue_ratio: float | None
    prefill_ratio: float | None
    decode_ratio: float | None
    kv_blocks: float | None
    kv_peak_ratio: float | None
    preemptions: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBound:
    """What the speedup of decoding can do for whole requests, by Amdahl's law.

    `decode_ratio` is φ, the share of the baseline's mean E2EL that comes after the first token; `speedup` is
    1 / ((1 - φ) + φ / S) for the measured speedup S of TPOT, `limit` the same for decoding in no time, 1 / (1 - φ).
    """

    decode_ratio: float
    speedup: float
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One arm at one level.

    From forced runs: `needed`, what a step has to emit; `perfect_drafter`, the speedup with every draft accepted, which
    no drafter of so many tokens can pass; `oracle_length`, the speedup if exactly the tokens were proposed that will be
    accepted, a step costing more in proportion to what is proposed. None without them, or where nothing can be
    compared. `forced_coverage_ratio` is the share of steps that drafted when none was accepted, `drafting_share` the
    arm's own share over that: `needed` is of steps that draft as often as the arm's. It is 1 where one of them is not
    told. `perfect_drafter` is as measured: of steps that draft as often as forced ones.
    """

    needed: BreakEven | None
    forced_coverage_ratio: float | None
    drafting_share: float
    perfect_drafter: Estimate | None
    oracle_length: float | None
    request: RequestBound | None


class Cause(StrEnum):
    """What makes a speedup fall with the load: more of it than the other does."""

    STEPS = "steps"
    ACCEPTANCE = "acceptance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """A speedup S = E[L] / L* that is for certain lower at level `high` than at `low`.

    `length_ratio` is tokens per step at `high` over those at `low`, `needed_ratio` the same of the tokens that a step
    has to emit for what was measured, `step_ratio` what forced runs show of that, drafting and verifying alone.
    `length_share` is the share of the fall, in logarithms, that lies in acceptance: below 0 where that even rises.
    """

    low: float
    high: float
    length_ratio: float
    needed_ratio: float
    step_ratio: float | None
    length_share: float

    @property
    def cause(self) -> Cause:
        """What weighs more."""
        return Cause.ACCEPTANCE if self.length_share > 0.5 else Cause.STEPS


def told(runs: Sequence[Summary]) -> Told:
    """What the server of some repeats told."""
    views = [() if run.speculation is None else run.speculation.views for run in runs]
    positions = [None if run.speculation is None else run.speculation.acceptance_by_position for run in runs]
    known = [each for each in positions if each]
    origins = dict.fromkeys(view.origin for each in views for view in each)
    lengths = {
        origin: _mean([view.acceptance_length for each in views for view in each if view.origin == origin])
        for origin in origins
    }
    servers = [run.server for run in runs]
    times = [server.request_times for server in servers]
    return Told(
        acceptance_length_by_origin={origin: length for origin, length in lengths.items() if length is not None},
        acceptance_by_position=None
        if not known or len(known) < len(runs)
        else tuple(sum(each) / len(known) for each in zip(*known, strict=False)),
        coverage_ratio=_mean([None if run.speculation is None else run.speculation.coverage_ratio for run in runs]),
        queue_ratio=_mean([each.queue_ratio for each in times]),
        prefill_ratio=_mean([each.prefill_ratio for each in times]),
        decode_ratio=_mean([each.decode_ratio for each in times]),
        kv_blocks=_mean(
            [None if server.configuration is None else server.configuration.kv_blocks for server in servers]
        ),
        kv_peak_ratio=_most([server.kv_used_ratio.peak for server in servers]),
        preemptions=_most([server.preemptions for server in servers]),
    )


def explanation(
    baseline: Sequence[Cell],
    arm: Sequence[Cell],
    forced: Mapping[int, Sequence[Cell]],
    *,
    speedup: float,
    draft_tokens: int | None,
    coverage_ratio: float | None,
    forced_coverage_ratio: float | None,
) -> Explanation:
    """From cells of one level and the same repeats; `forced` has those of forced arms by tokens a step.

    `speedup` is the measured one of mean TPOT.
    """
    nothing, everything = forced.get(1), None if draft_tokens is None else forced.get(draft_tokens + 1)
    share = coverage_ratio / forced_coverage_ratio if coverage_ratio and forced_coverage_ratio else 1.0
    needed = None if nothing is None else break_even(baseline, arm, nothing, forced_length=1, drafting_share=share)
    perfect = None if everything is None else ratio(baseline, everything, _TPOT)
    return Explanation(
        needed=needed,
        forced_coverage_ratio=None if needed is None else forced_coverage_ratio,
        drafting_share=share,
        perfect_drafter=None if perfect is None else perfect.speedup.estimate(),
        oracle_length=_oracle(needed, draft_tokens, coverage_ratio),
        request=_request_bound(baseline, speedup),
    )


def fall(
    verdicts: Sequence[LevelVerdict], tokens_per_step: Sequence[float | None], needed: Sequence[BreakEven | None]
) -> Fall | None:
    """Between the level of most speedup and the highest, from the levels of a ladder, ascending.

    None where the intervals leave doubt that it falls, or tokens per step are not known.
    """
    best = max(range(len(verdicts)), key=lambda place: verdicts[place].speedup.value)
    before, after = verdicts[best].speedup, verdicts[-1].speedup
    emitted, forced = (tokens_per_step[best], tokens_per_step[-1]), (needed[best], needed[-1])
    if after.high >= before.low or emitted[0] is None or emitted[1] is None:
        return None
    length_ratio, speedup_ratio = emitted[1] / emitted[0], after.value / before.value
    return Fall(
        low=verdicts[best].level,
        high=verdicts[-1].level,
        length_ratio=length_ratio,
        needed_ratio=length_ratio / speedup_ratio,
        step_ratio=None if forced[0] is None or forced[1] is None else forced[1].length.value / forced[0].length.value,
        length_share=math.log(length_ratio) / math.log(speedup_ratio),
    )


def _oracle(needed: BreakEven | None, draft_tokens: int | None, coverage_ratio: float | None) -> float | None:
    """E / (1 + (L* - 1)(E - 1) / d), in units of a plain step.

    A step costs 1 without drafts and L* with the d that the arm's have on average; with E - 1 of them it would emit
    what it emits now.
    """
    if needed is None or needed.tokens_per_step is None or draft_tokens is None or not coverage_ratio:
        return None
    emitted, drafted = needed.tokens_per_step, coverage_ratio * draft_tokens
    return emitted / (1 + (needed.length.value - 1) * (emitted - 1) / drafted)


def _request_bound(baseline: Sequence[Cell], speedup: float) -> RequestBound | None:
    """None where no request has both latencies, or all is over with the first token."""
    shares = []
    for cell in baseline:
        ttft_s, e2el_s = cell.columns["ttft_s"], cell.columns["e2el_s"]
        both = (ttft_s > 0) & (e2el_s > 0)
        if both.any():
            shares.append(1 - float(ttft_s[both].sum() / e2el_s[both].sum()))
    decode = _mean([*shares])
    if decode is None or not 0 < decode < 1:
        return None
    return RequestBound(decode_ratio=decode, speedup=1 / (1 - decode + decode / speedup), limit=1 / (1 - decode))


def _mean(values: Sequence[float | None]) -> float | None:
    """Of all; None when one is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
