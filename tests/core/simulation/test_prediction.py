"""The closed formulas: their limits, what they must not do, and that the engine in virtual time agrees."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.errors import ConfigError
from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.gpus import GPUS
from loadgen.core.simulation.job import Job, Limits
from loadgen.core.simulation.loop import closed_loop
from loadgen.core.simulation.models import MODELS, eagle3_head, mtp_head
from loadgen.core.simulation.prediction import (
    MeasuredSteps,
    Memory,
    Prediction,
    Traffic,
    best_draft_tokens,
    predict,
)
from loadgen.core.simulation.roofline import head_drafting, kv_capacity_tokens, step_time
from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.speedup import (
    critical_batch,
    critical_context_tokens,
    plain_step_s,
    speculative_step_s,
)
from loadgen.core.simulation.step_time import EAGLE_8B_ON_H100, FREE_DRAFTING, LLAMA_8B_ON_H100, Drafting, StepTime
from loadgen.core.simulation.survival import Survival, from_conditional
from loadgen.core.simulation.workloads import DEPTH, WORKLOADS, basis
from tests.core.simulation.setting import SETTING

LADDER = (1, 2, 4, 8, 16, 32, 64, 128, 256)
TRAFFIC = Traffic(prompt_tokens=250, output_tokens=100, context_tokens=300)


def speculator(rates: tuple[float, ...] = (0.65, 0.4, 0.25), **given: object) -> Speculator:
    return Speculator(
        **{
            "method": Method.EAGLE,
            "draft_tokens": len(rates),
            "survival": Survival(rates=rates),
            "drafting": EAGLE_8B_ON_H100,
            **given,
        }
    )


def prediction(
    concurrencies: tuple[int, ...] = LADDER,
    *,
    drafter: Speculator | None = None,
    context: float = 300,
    target: StepTime = LLAMA_8B_ON_H100,
    **given: object,
) -> Prediction:
    return predict(
        concurrencies,
        setting=SETTING,
        speculator=drafter or speculator(),
        traffic=replace(TRAFFIC, context_tokens=context),
        target=target,
        **given,
    )


times = st.floats(1e-6, 1e-1)
targets = st.builds(
    StepTime,
    fixed_s=times,
    per_token_s=st.floats(1e-7, 1e-3),
    per_context_token_s=st.floats(1e-10, 1e-6),
    overhead_s=st.floats(0, 1e-2),
)
draftings = st.builds(
    Drafting,
    pass_time=st.builds(
        StepTime,
        fixed_s=st.floats(0, 1e-2),
        per_token_s=st.floats(0, 1e-5),
        per_context_token_s=st.floats(0, 1e-9),
    ),
    sequential=st.booleans(),
)
rates = st.lists(st.floats(0.01, 0.99), min_size=1, max_size=8).map(lambda given: from_conditional(given, len(given)))


@given(targets, draftings, rates, st.floats(10, 10_000))
def test_speedup_is_acceptance_over_break_even_length(
    target: StepTime, drafting: Drafting, survival: tuple[float, ...], context: float
) -> None:
    """S = L / L* at every level, L* is at least 1, and neither a free nor a perfect drafter is ever worse."""
    drafter = speculator(survival, drafting=drafting)
    found = prediction(drafter=drafter, target=target, context=context)
    for point, bounds in zip(found.points, found.bounds, strict=True):
        assert point.speedup == pytest.approx(point.acceptance_length / point.break_even_acceptance_length)
        assert point.break_even_acceptance_length >= 1 - 1e-9
        assert bounds.draft_free is not None
        assert point.speedup <= min(bounds.draft_free, bounds.perfect_drafter) * (1 + 1e-9)


@given(targets, draftings, rates, st.floats(10, 10_000))
def test_the_critical_batch_is_where_the_speedup_is_one(
    target: StepTime, drafting: Drafting, survival: tuple[float, ...], context: float
) -> None:
    """Below it speculation pays, at it the speedup is 1, above it it does not: as the linear formula has it."""
    length = 1 + sum(survival)
    tokens = len(survival)

    def speedup(batch: float) -> float:
        given = {"batch": batch, "context_tokens": context}
        plain = plain_step_s(target, **given)
        return length * plain / speculative_step_s(target, drafting, **given, draft_tokens=tokens)

    found = critical_batch(speedup)
    reach = critical_context_tokens(target, drafting, draft_tokens=tokens, tokens_per_step=length)
    if found is None:
        assert speedup(2.0**20) > 1
    elif found == 0:
        assert speedup(1) <= 1
    else:
        assert speedup(found) == pytest.approx(1, rel=1e-6)
        assert speedup(found / 2) > 1 or found < 2
        assert speedup(found * 2) < 1
        assert reach is None or context < reach * (1 + 1e-6)


def test_the_critical_batch_against_its_closed_form() -> None:
    """((L - 1)(f + o) - t_draft) / (gamma (k + 1 - L) - (L - 1) kappa c) for drafting that does not grow with b."""
    target, fixed_s = LLAMA_8B_ON_H100, 0.002
    drafting = Drafting(pass_time=StepTime(fixed_s=fixed_s, per_token_s=0, per_context_token_s=0), sequential=False)
    drafter = speculator((0.65, 0.4, 0.25), drafting=drafting)
    gain = drafter.tokens_per_step(3) - 1
    expected = (gain * (target.fixed_s + target.overhead_s) - fixed_s) / (
        target.per_token_s * (3 - gain) - gain * target.per_context_token_s * 300
    )
    assert prediction(drafter=drafter).critical_batch == pytest.approx(expected, rel=1e-6)


def test_above_the_critical_context_no_batch_is_too_large() -> None:
    """Just below it there is a critical batch, just above it there is none."""
    context = prediction().critical_context_tokens
    assert context == pytest.approx(734, abs=1)  # about 700 where the head's own cache costs nothing
    assert prediction(context=context * 0.9).critical_batch is not None
    assert prediction(context=context * 1.1).critical_batch is None


def test_a_context_never_long_enough_is_said() -> None:
    """A draft model whose cache is as large as the target's gains nothing from context."""
    heavy = Drafting(pass_time=replace(LLAMA_8B_ON_H100, overhead_s=0.0))
    assert critical_context_tokens(LLAMA_8B_ON_H100, heavy, draft_tokens=3, tokens_per_step=2.3) is None
    assert critical_context_tokens(LLAMA_8B_ON_H100, FREE_DRAFTING, draft_tokens=3, tokens_per_step=4) == 0


def test_the_limits_of_the_speedup() -> None:
    """Flat: L. Arithmetic alone: L / (k + 1). Reading context alone: L kappa / (kappa + k kappa_d)."""
    drafter = speculator(drafting=FREE_DRAFTING)
    length = drafter.tokens_per_step(3)
    flat = StepTime(fixed_s=1, per_token_s=0, per_context_token_s=0)
    arithmetic = StepTime(fixed_s=0, per_token_s=1, per_context_token_s=0)
    reading = StepTime(fixed_s=0, per_token_s=0, per_context_token_s=1)
    for target, expected in ((flat, length), (arithmetic, length / 4), (reading, length)):
        for point in prediction(drafter=drafter, target=target).points:
            assert point.speedup == pytest.approx(expected)
    drafting = Drafting(pass_time=replace(reading, per_context_token_s=0.1))
    (point,) = prediction((64,), drafter=speculator(drafting=drafting), target=reading).points
    assert point.speedup == pytest.approx(length / 1.3)


def test_monotonicities() -> None:
    """Below the critical context: more concurrency, less speedup and slower tokens, but more of them in all; more
    draft tokens raise the break-even length; more context, more speedup at a large batch."""
    points = prediction().points
    for before, after in pairwise(points):
        assert after.speedup < before.speedup
        assert after.break_even_acceptance_length > before.break_even_acceptance_length
        assert after.tpot_sd_s > before.tpot_sd_s
        assert after.output_tokens_per_s_sd > before.output_tokens_per_s_sd
    by_length = [
        prediction((32,), drafter=speculator((0.5,) * tokens)).points[0].break_even_acceptance_length
        for tokens in range(1, 9)
    ]
    assert by_length == sorted(by_length)
    by_context = [prediction((128,), context=context).points[0].speedup for context in (100, 500, 2000, 9000)]
    assert by_context == sorted(by_context)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_bounds_are_in_order(workload: str) -> None:
    """A perfect length is no worse than any fixed one; of the conventions of the combined bound the cheaper is higher,
    and charged on every step it still beats the one method's own bound."""
    given = WORKLOADS[workload]
    traffic = Traffic(
        prompt_tokens=given.prompt_tokens, output_tokens=given.output_tokens, context_tokens=given.context_tokens
    )
    for tokens in (1, 3, 5):
        drafter = speculator(
            given.survival(Method.EAGLE).rates, survival=given.survival(Method.EAGLE), draft_tokens=tokens
        )
        found = predict(
            LADDER,
            setting=SETTING,
            speculator=drafter,
            traffic=traffic,
            target=LLAMA_8B_ON_H100,
            workload=given,
            known_draft_tokens=DEPTH,
        )
        for point, bounds in zip(found.points, found.bounds, strict=True):
            assert bounds.oracle_length is not None
            assert bounds.combined is not None
            assert bounds.oracle_length >= point.speedup
            assert bounds.combined.lookup_cost > bounds.combined.cost_where_used > bounds.combined.cost_every_step
            assert bounds.combined.cost_every_step > bounds.oracle_length * 0.99


def test_what_is_not_known_is_none() -> None:
    """Without acceptance by position no oracle and no draft length by batch, without a workload no combination,
    without memory nothing about what fits."""
    found = prediction((1,))
    (bounds,) = found.bounds
    assert (bounds.oracle_length, bounds.combined, found.draft_tokens_by_batch) == (None, None, ())
    assert (found.points[0].fits_memory, found.memory_concurrency_ar) == (None, None)


def test_the_best_draft_length_falls_with_the_batch() -> None:
    """The ranges begin at 1, leave no gap, fall, and name the length with the most tokens a second."""
    survival = WORKLOADS["mathematics"].survival(Method.EAGLE)
    drafter = speculator(survival.rates, survival=survival, draft_tokens=3)
    ranges = best_draft_tokens(LLAMA_8B_ON_H100, drafter, 190, 8)
    assert ranges[0][0] == 1
    assert ranges[-1][1] == 512
    assert all(before[1] + 1 == after[0] for before, after in pairwise(ranges))
    lengths = [tokens for _, _, tokens in ranges]
    assert lengths == sorted(lengths, reverse=True)
    assert (lengths[0], lengths[-1]) == (8, 1)
    replace(drafter, draft_tokens=8, by_batch_size=ranges)
    for first, last, best in ranges:
        for batch in (first, last):
            speeds = [
                drafter.tokens_per_step(tokens)
                / speculative_step_s(
                    LLAMA_8B_ON_H100, drafter.drafting, batch=batch, context_tokens=190, draft_tokens=tokens
                )
                for tokens in range(9)
            ]
            assert speeds[best] == max(speeds)


@pytest.mark.parametrize("concurrency", [1, 16, 128])
@pytest.mark.parametrize("method", [None, Method.EAGLE, Method.NGRAM])
def test_the_engine_in_virtual_time_agrees(concurrency: int, method: Method | None) -> None:
    """A closed loop of requests, simulated step by step, gives TPOT and throughput of the closed formulas within a few
    per cent: prompts between the steps and the ends of answers included."""
    workload = WORKLOADS["chat"]
    tokens = 3 if method is Method.EAGLE else 5
    used = method or Method.EAGLE
    survival = replace(workload.survival(used), request_share=0.0)
    drafting = EAGLE_8B_ON_H100 if used is Method.EAGLE else Drafting(target_ratio=0.005875)
    drafter = speculator(
        survival.rates,
        method=used,
        survival=survival,
        draft_tokens=tokens,
        drafting=drafting,
        coverage_ratio=workload.coverage_ratio(used),
    )
    prompt, output = 300, 200
    (point,) = predict(
        [concurrency],
        setting=SETTING,
        speculator=drafter,
        traffic=Traffic(prompt_tokens=prompt, output_tokens=output, context_tokens=prompt + output / 2),
        target=LLAMA_8B_ON_H100,
    ).points
    run = Engine(
        target=LLAMA_8B_ON_H100,
        limits=Limits(kv_blocks=26_000, prefix_caching=False),
        rng=np.random.default_rng(11),
        speculator=None if method is None else drafter,
    )
    # Answers of 100 to 300 tokens, so that prompts do not all come at once.
    jobs = (Job(key=key, prompt_tokens=prompt, output_tokens=100 + key * 37 % 201) for key in range(10**6))
    result = closed_loop(run, jobs, concurrency=concurrency, stop_ns=30 * 10**9)
    tpot_s, speed = (
        (point.tpot_ar_s, point.output_tokens_per_s_ar)
        if method is None
        else (point.tpot_sd_s, point.output_tokens_per_s_sd)
    )
    assert result.tpot_s == pytest.approx(tpot_s, rel=0.03)
    assert result.output_tokens_per_s == pytest.approx(speed, rel=0.03)


def test_measured_steps_replace_the_model() -> None:
    """At measured levels as given, between them on a straight line, and the break-even point where the lines cross."""
    measured = MeasuredSteps(
        concurrency=(1, 16, 64), plain_s=(0.007, 0.008, 0.012), speculative_s=(0.009, 0.012, 0.036)
    )
    drafter = speculator((0.5, 0.3, 0.2))
    found = predict([1, 16, 40], setting=SETTING, speculator=drafter, traffic=TRAFFIC, target=None, measured=measured)
    assert found.measured
    assert [point.t_sd_s for point in found.points] == pytest.approx([0.009, 0.012, 0.024])
    assert [point.speedup for point in found.points] == pytest.approx([2 * 7 / 9, 2 * 8 / 12, 2 * 10 / 24])
    assert found.critical_batch == pytest.approx(16 + 48 * 4 / 16)
    (first, *_) = found.bounds
    assert (first.draft_free, first.oracle_length) == (None, None)
    assert first.perfect_drafter == pytest.approx(4 * 7 / 9)
    assert (found.critical_context_tokens, found.step_time) == (None, None)


def test_measured_steps_are_not_extended() -> None:
    """A concurrency outside of what was measured is an error that names both."""
    measured = MeasuredSteps(concurrency=(2, 16), plain_s=(0.007, 0.008), speculative_s=(0.009, 0.012))
    with pytest.raises(ConfigError, match="concurrency 1 lies outside of the measured step times, 2 to 16"):
        predict([1], setting=SETTING, speculator=speculator(), traffic=TRAFFIC, target=None, measured=measured)


def test_experts_shorten_the_flat_region() -> None:
    """Verifying four tokens of a mixture of experts reads more weights than decoding one, so even one request pays for
    it; a dense model of the same active size does not."""
    gpu = GPUS["h200"]
    moe = step_time(gpu, MODELS["qwen3-30b-a3b"])
    dense = replace(moe, experts_s=0.0)
    drafter = speculator(drafting=FREE_DRAFTING)
    (mixed,) = prediction((1,), drafter=drafter, target=moe).points
    (flat,) = prediction((1,), drafter=drafter, target=dense).points
    assert flat.break_even_acceptance_length < 1.05
    assert mixed.break_even_acceptance_length > 1.5
    assert moe.forward_s(100_000, 0) == pytest.approx(moe.fixed_s + moe.experts_s + 100_000 * moe.per_token_s)


def test_memory_says_what_fits() -> None:
    """Context of 300 tokens and room for 9,000 and 6,000: 30 and 20 requests; 64 do not fit."""
    found = prediction((16, 64), memory=Memory(plain_tokens=9000, speculative_tokens=6000))
    assert (found.memory_concurrency_ar, found.memory_concurrency_sd) == (30, 20)
    assert [point.fits_memory for point in found.points] == [True, False]


def test_a_drafter_takes_memory() -> None:
    """EAGLE-3's weights and cache leave fewer tokens of context; a 70B model needs several GPUs."""
    gpu, model = GPUS["h100"], MODELS["llama-3.1-8b"]
    head = eagle3_head(model)
    plain = kv_capacity_tokens(gpu, model)
    less = kv_capacity_tokens(gpu, model, draft_bytes=2 * head.parameters, draft_kv_bytes=head.kv_bytes_per_token)
    assert 0.94 * plain < less < 0.97 * plain
    assert (
        kv_capacity_tokens(gpu, MODELS["llama-3.1-70b"]) < 0 < kv_capacity_tokens(gpu, MODELS["llama-3.1-70b"], gpus=4)
    )


def test_two_gpus_halve_the_step_and_not_its_overhead() -> None:
    """What is read and computed is divided."""
    one, two = (step_time(GPUS["h100"], MODELS["llama-3.1-8b"], gpus=count) for count in (1, 2))
    assert two.forward_s(8, 4000) == pytest.approx(one.forward_s(8, 4000) / 2)
    assert two.overhead_s == one.overhead_s


def test_a_native_head_of_experts_reads_what_one_token_activates() -> None:
    """DeepSeek-V3's prediction layer stores about 11.5 billion parameters and activates 0.6 beside the projection."""
    head = mtp_head(MODELS["deepseek-v3"])
    assert head.parameters == pytest.approx(11.5e9, rel=0.05)
    drafting = head_drafting(GPUS["h200"], head, gpus=8)
    assert drafting.seconds(sequences=1, context_tokens=0, draft_tokens=1, target_forward_s=0) < 0.001


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize("method", Method)
def test_each_workload_knows_each_method(workload: object, method: Method) -> None:
    """Rates to the full depth, a coverage of 1 except for lookup, and a sentence on where they are from."""
    survival = workload.survival(method)
    assert len(survival.rates) == DEPTH
    assert 1 < survival.mean_length(3) < 4
    assert (workload.coverage_ratio(method) < 1) == method.looks_up_text
    assert basis(method, workload)


def test_the_harder_drafter_accepts_more() -> None:
    """EAGLE-3 accepts more than EAGLE on every workload; n-gram pays on code editing and little elsewhere."""
    for workload in WORKLOADS.values():
        assert workload.survival(Method.EAGLE3).mean_length(3) > workload.survival(Method.EAGLE).mean_length(3)
    lookup = {
        name: 1 + workload.coverage_ratio(Method.NGRAM) * (workload.survival(Method.NGRAM).mean_length(3) - 1)
        for name, workload in WORKLOADS.items()
    }
    assert lookup["code-editing"] > 1.8 > 1.4 > max(value for name, value in lookup.items() if name != "code-editing")
