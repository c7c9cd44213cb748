"""What speculative decoding is expected to bring, before anything is measured.

The step-time model is evaluated at a ladder of concurrency, with its limits, and with what a perfect drafter or a
perfect choice could do.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from loadgen.core.errors import ConfigError
from loadgen.core.simulation.speculator import BatchRange, Method, Speculator, as_ranges
from loadgen.core.simulation.speedup import (
    break_even_length,
    critical_batch,
    critical_context_tokens,
    plain_step_s,
    speculative_step_s,
)
from loadgen.core.simulation.step_time import FREE_DRAFTING, NGRAM_TARGET_RATIO, StepTime
from loadgen.core.simulation.workloads import Combined, Workload

PREDICT_SCHEMA = "loadgen.predict/1"
_SCHEDULED_BATCHES = 512
_MOST_SCHEDULED_TOKENS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Mean lengths of the requests, in tokens. `context_tokens` is the mean context of a decode step."""

    prompt_tokens: float
    output_tokens: float
    context_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Tokens of context that fit into the GPU's memory, without and with the drafter; 0 or less: the weights do not."""

    plain_tokens: int
    speculative_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a prediction stands on, in words. None: step times are measured and nothing was said of the server."""

    gpu: str | None
    gpus: int
    target: str | None
    draft: str | None
    workload: str
    acceptance_from: str
    step_times_from: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSteps:
    """Measured seconds of a decode step at some concurrency, without and with speculation, in rising order."""

    concurrency: tuple[float, ...]
    plain_s: tuple[float, ...]
    speculative_s: tuple[float, ...]

    def at(self, concurrency: float) -> tuple[float, float]:
        """Both step times, on straight lines between the measured ones. Raises ConfigError outside of them."""
        first, last = self.concurrency[0], self.concurrency[-1]
        if not first <= concurrency <= last:
            raise ConfigError(
                f"concurrency {concurrency:g} lies outside of the measured step times, {first:g} to {last:g}"
            )
        place = bisect_left(self.concurrency, concurrency)
        if self.concurrency[place] == concurrency:
            return self.plain_s[place], self.speculative_s[place]
        low, high = self.concurrency[place - 1], self.concurrency[place]
        share = (concurrency - low) / (high - low)

        def between(values: Sequence[float]) -> float:
            return values[place - 1] * (1 - share) + values[place] * share

        return between(self.plain_s), between(self.speculative_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The expectation at one concurrency.

    `t_ar_s` and `t_sd_s` are decode steps alone, and `speedup` is that of decoding: acceptance length over break-even
    length. TPOT and throughput also carry the prompts of the requests that follow one another in a closed loop.
    """

    concurrency: int
    t_ar_s: float
    t_sd_s: float
    acceptance_length: float
    speedup: float
    break_even_acceptance_length: float
    tpot_ar_s: float
    tpot_sd_s: float
    output_tokens_per_s_ar: float
    output_tokens_per_s_sd: float
    throughput_speedup: float
    fits_memory: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedBound:
    """Speedup when an oracle takes the longer span of n-gram and drafter at each step, under three conventions of cost.

    `lookup_cost` charges n-gram lookup alone, as the published figure does; `cost_where_used` the drafter on the steps
    that use it; `cost_every_step` always, which is nearer to mixed traffic, where some request nearly always wants it.
    """

    lookup_cost: float
    cost_where_used: float
    cost_every_step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Speedups that cannot be passed at one concurrency, each with one thing made perfect. None: not known.

    `draft_free`: drafting takes no time. `oracle_length`: exactly the tokens that will be accepted are proposed.
    `perfect_drafter`: every draft token is accepted. `combined`: the longer of two methods' spans at each step.
    """

    concurrency: int
    draft_free: float | None
    oracle_length: float | None
    perfect_drafter: float
    combined: CombinedBound | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The answer of `predict`, with what it stands on.

    `critical_batch` is the concurrency at which the speedup of decoding falls to 1 (0: none even alone; None: not in
    reach), `critical_context_tokens` the context above which that never happens (None: never or not known).
    `ridge_tokens`: tokens a step at which arithmetic takes as long as reading the weights.
    """

    schema: str
    setting: Setting
    method: Method
    draft_tokens: int
    coverage_ratio: float
    measured: bool
    traffic: Traffic
    step_time: StepTime | None
    points: tuple[Point, ...]
    critical_batch: float | None
    critical_context_tokens: float | None
    ridge_tokens: float | None
    memory_concurrency_ar: int | None
    memory_concurrency_sd: int | None
    draft_tokens_by_batch: tuple[BatchRange, ...]
    bounds: tuple[Bounds, ...]
    notes: tuple[str, ...]


def predict(
    concurrencies: Sequence[int],
    *,
    setting: Setting,
    speculator: Speculator,
    traffic: Traffic,
    target: StepTime | None,
    measured: MeasuredSteps | None = None,
    memory: Memory | None = None,
    workload: Workload | None = None,
    known_draft_tokens: int = 0,
) -> Prediction:
    """The expectation at each concurrency.

    Step times are `measured` where given, else those of `target`. Acceptance is known up to `known_draft_tokens`
    positions: 0 leaves out what needs more than the mean length. `workload` adds the bound of combined methods.
    """
    steps = _from_model(target, speculator, traffic) if measured is None and target is not None else None
    at: Callable[[float], tuple[float, float]] = steps or _from_measured(measured)
    points = tuple(_point(concurrency, at, speculator, traffic, target, memory) for concurrency in concurrencies)
    context = None
    length = speculator.tokens_per_step(speculator.draft_tokens)
    if steps is not None and target is not None:
        context = critical_context_tokens(
            target,
            speculator.drafting,
            draft_tokens=speculator.draft_tokens,
            tokens_per_step=length,
            coverage_ratio=speculator.coverage_ratio,
        )
    combined = workload.combined if workload is not None and speculator.method is Method.EAGLE else None
    modelled = None if steps is None else target
    by_batch: tuple[BatchRange, ...] = ()
    if modelled is not None:
        most = min(known_draft_tokens, _MOST_SCHEDULED_TOKENS)
        by_batch = best_draft_tokens(modelled, speculator, traffic.context_tokens, most)
    return Prediction(
        schema=PREDICT_SCHEMA,
        setting=setting,
        method=speculator.method,
        draft_tokens=speculator.draft_tokens,
        coverage_ratio=speculator.coverage_ratio,
        measured=steps is None,
        traffic=traffic,
        step_time=modelled,
        points=points,
        critical_batch=_critical_batch(at, length, measured),
        critical_context_tokens=context,
        ridge_tokens=None if modelled is None else modelled.ridge_tokens,
        memory_concurrency_ar=None if memory is None else _fitting(memory.plain_tokens, traffic),
        memory_concurrency_sd=None if memory is None else _fitting(memory.speculative_tokens, traffic),
        draft_tokens_by_batch=by_batch,
        bounds=tuple(
            _bounds(point, speculator, traffic.context_tokens, modelled, known_draft_tokens, combined)
            for point in points
        ),
        notes=_notes(points, memory, setting),
    )


def best_draft_tokens(
    target: StepTime, speculator: Speculator, context_tokens: float, most: int
) -> tuple[BatchRange, ...]:
    """The draft length, 0 to `most`, with the most tokens a second at each batch size up to 512, as ranges.

    Empty when `most` is 0: nothing is known of acceptance by position.
    """
    if most == 0:
        return ()
    lengths = [speculator.tokens_per_step(tokens) for tokens in range(most + 1)]

    def speed(batch: int, tokens: int) -> float:
        return lengths[tokens] / _speculative_s(target, speculator, batch, context_tokens, tokens)

    def best(batch: int) -> int:
        return max(range(most + 1), key=lambda tokens: (speed(batch, tokens), -tokens))

    return as_ranges([best(batch) for batch in range(1, _SCHEDULED_BATCHES + 1)])


def _from_model(target: StepTime, speculator: Speculator, traffic: Traffic) -> Callable[[float], tuple[float, float]]:
    def at(batch: float) -> tuple[float, float]:
        tokens = speculator.draft_tokens
        return (
            plain_step_s(target, batch=batch, context_tokens=traffic.context_tokens),
            _speculative_s(target, speculator, batch, traffic.context_tokens, tokens),
        )

    return at


def _from_measured(measured: MeasuredSteps | None) -> Callable[[float], tuple[float, float]]:
    if measured is None:
        raise ConfigError("step times are needed: a GPU and a model, or measured ones")
    return measured.at


def _speculative_s(
    target: StepTime, speculator: Speculator, batch: float, context_tokens: float, draft_tokens: int
) -> float:
    return speculative_step_s(
        target,
        speculator.drafting,
        batch=batch,
        context_tokens=context_tokens,
        draft_tokens=draft_tokens,
        coverage_ratio=speculator.coverage_ratio,
    )


def _point(
    concurrency: int,
    at: Callable[[float], tuple[float, float]],
    speculator: Speculator,
    traffic: Traffic,
    target: StepTime | None,
    memory: Memory | None,
) -> Point:
    plain_s, speculative_s = at(concurrency)
    length = speculator.tokens_per_step(speculator.draft_tokens)
    break_even = break_even_length(plain_s, speculative_s)
    prompt_s = (0.0, 0.0)
    if target is not None:
        plain_token_s = target.per_token_s
        prompt_s = (
            traffic.prompt_tokens * plain_token_s,
            traffic.prompt_tokens * (plain_token_s + speculator.drafting.prompt_token_s),
        )
    tpot_ar_s, tokens_ar = closed_loop(concurrency, plain_s, 1.0, prompt_s[0], traffic.output_tokens)
    tpot_sd_s, tokens_sd = closed_loop(concurrency, speculative_s, length, prompt_s[1], traffic.output_tokens)
    fits = None
    if memory is not None:
        fits = concurrency <= min(_fitting(memory.plain_tokens, traffic), _fitting(memory.speculative_tokens, traffic))
    return Point(
        concurrency=concurrency,
        t_ar_s=plain_s,
        t_sd_s=speculative_s,
        acceptance_length=length,
        speedup=length / break_even,
        break_even_acceptance_length=break_even,
        tpot_ar_s=tpot_ar_s,
        tpot_sd_s=tpot_sd_s,
        output_tokens_per_s_ar=tokens_ar,
        output_tokens_per_s_sd=tokens_sd,
        throughput_speedup=tokens_sd / tokens_ar,
        fits_memory=fits,
    )


def closed_loop(
    concurrency: float, step_s: float, length: float, prompt_s: float, output_tokens: float
) -> tuple[float, float]:
    """TPOT and output tokens a second of a closed loop whose requests follow one another.

    While one request lives, through the step of its prompt and its decode steps, every other slot takes in one prompt
    too, so the arithmetic of those prompts, `prompt_s` each, is spread over its steps.
    """
    steps = max(output_tokens - 1, 0) / length + 1
    mixed_s = step_s + (concurrency - 1) * prompt_s / steps
    return mixed_s / length, concurrency * output_tokens / (steps * mixed_s + prompt_s)


def _fitting(tokens: int, traffic: Traffic) -> int:
    return max(0, math.floor(tokens / traffic.context_tokens)) if traffic.context_tokens else 0


def _notes(points: Sequence[Point], memory: Memory | None, setting: Setting) -> tuple[str, ...]:
    notes = []
    if memory is not None and min(memory.plain_tokens, memory.speculative_tokens) <= 0:
        notes.append("The weights do not fit into the memory of this many GPUs.")
    elif too_many := [point.concurrency for point in points if point.fits_memory is False]:
        levels = ", ".join(map(str, too_many))
        notes.append(
            f"At {levels} the KV cache is full: requests queue or are preempted, which is not in these figures."
        )
    if setting.gpus > 1 and setting.target is not None:
        notes.append("What several GPUs say to each other is not in the model; give measured step times to include it.")
    return tuple(notes)


def _critical_batch(
    at: Callable[[float], tuple[float, float]], length: float, measured: MeasuredSteps | None
) -> float | None:
    def speedup(batch: float) -> float:
        plain_s, speculative_s = at(batch)
        return length * plain_s / speculative_s

    if measured is None:
        return critical_batch(speedup)
    grid = measured.concurrency
    if speedup(grid[0]) <= 1:
        return 0.0
    for low, high in pairwise(grid):
        # Where the two lines of tokens a second cross: both step times are straight between the measured ones.
        before, after = (length * plain - sd for plain, sd in (at(low), at(high)))
        if after <= 0:
            return low + (high - low) * before / (before - after)
    return None


def _bounds(
    point: Point,
    speculator: Speculator,
    context_tokens: float,
    target: StepTime | None,
    known_draft_tokens: int,
    combined: Combined | None,
) -> Bounds:
    perfect = (1 + speculator.coverage_ratio * speculator.draft_tokens) / point.break_even_acceptance_length
    if target is None:
        return Bounds(
            concurrency=point.concurrency, draft_free=None, oracle_length=None, perfect_drafter=perfect, combined=None
        )
    batch = point.concurrency
    free = replace(speculator, drafting=FREE_DRAFTING)
    free_s = _speculative_s(target, free, batch, context_tokens, speculator.draft_tokens)
    drafting = speculator.drafting

    def forward_s(length: float) -> float:
        return target.forward_s(batch * length, batch * context_tokens)

    def draft_s(length: float, tokens: float) -> float:
        return drafting.seconds(
            sequences=batch,
            context_tokens=batch * context_tokens,
            draft_tokens=tokens,
            target_forward_s=forward_s(length),
        )

    def best(classes: Sequence[tuple[float, float]], cost: Callable[[float], float]) -> float:
        """Speedup when every request verifies just what a step emits: plain over mean seconds a token."""
        per_token = math.fsum(
            weight * (forward_s(length) + target.overhead_s + cost(length)) / length for weight, length in classes
        )
        return point.t_ar_s / per_token

    oracle = None
    if known_draft_tokens:
        coverage = speculator.coverage_ratio
        classes = [
            (weight, 1 + coverage * (length - 1)) for weight, length in speculator.survival.lengths(known_draft_tokens)
        ]
        oracle = best(classes, lambda length: draft_s(length, length - 1))
    both = None
    if combined is not None:
        classes = combined.survival.lengths(len(combined.survival.rates))
        used = combined.drafter_ratio

        def lookup_s(length: float) -> float:
            return NGRAM_TARGET_RATIO * forward_s(length)

        both = CombinedBound(
            lookup_cost=best(classes, lookup_s),
            cost_where_used=best(
                classes,
                lambda length: (1 - used) * lookup_s(length) + used * draft_s(length, combined.drafter_tokens),
            ),
            cost_every_step=best(classes, lambda length: draft_s(length, length - 1)),
        )
    return Bounds(
        concurrency=batch,
        draft_free=point.acceptance_length * point.t_ar_s / free_s,
        oracle_length=oracle,
        perfect_drafter=perfect,
        combined=both,
    )
