"""The engine in virtual time: what a step holds, how long it lasts, what happens when memory is short."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

from loadgen.core.errors import ConfigError
from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Job, Limits
from loadgen.core.simulation.loop import closed_loop, open_loop
from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.step import Step
from loadgen.core.simulation.step_time import EAGLE_8B_ON_H100, LLAMA_8B_ON_H100, Drafting, StepTime
from loadgen.core.simulation.survival import Survival, forced

ROUND = StepTime(fixed_s=0.010, per_token_s=0.001, per_context_token_s=0.0, overhead_s=0.002)
"""12 ms a step and 1 ms a token."""


def speculator(rates: tuple[float, ...], **given: object) -> Speculator:
    return Speculator(
        **{
            "method": Method.EAGLE,
            "draft_tokens": len(rates),
            "survival": Survival(rates=rates),
            "drafting": Drafting(),
            **given,
        }
    )


def engine(
    *, target: StepTime = ROUND, speculator: Speculator | None = None, seed: int = 1, **limits: object
) -> Engine:
    return Engine(
        target=target,
        limits=Limits(**{"kv_blocks": 1000, "prefix_caching": False, **limits}),
        rng=np.random.default_rng(seed),
        speculator=speculator,
    )


def job(key: int, prompt: int = 8, output: int = 4, blocks: Iterable[int] = ()) -> Job:
    return Job(key=key, prompt_tokens=prompt, output_tokens=output, blocks=tuple(blocks))


def steps_of(run: Engine, jobs: Iterable[Job], concurrency: int = 64) -> list[Step]:
    steps: list[Step] = []
    closed_loop(run, jobs, concurrency=concurrency, observe=steps.append)
    return steps


def test_a_request_alone_step_by_step() -> None:
    """The prompt's step emits the first token, each later step one; a step lasts 12 ms and 1 ms a token."""
    steps = steps_of(engine(), [job(7, prompt=8, output=3)])
    assert [(step.start_ns // 10**6, step.end_ns // 10**6) for step in steps] == [(0, 20), (20, 33), (33, 46)]
    emissions = [[(e.key, e.tokens, e.prompt_end, e.finished) for e in step.emissions()] for step in steps]
    assert emissions == [[(7, 1, True, False)], [(7, 1, False, False)], [(7, 1, False, True)]]


def test_a_single_token_answer_ends_with_its_prompt() -> None:
    """One step, and nothing is left behind."""
    run = engine()
    (step,) = steps_of(run, [job(1, output=1)])
    assert (step.finished, run.running, run.kv_used_ratio) == ((1,), 0, 0)


def test_nothing_to_do_is_no_step() -> None:
    """An idle engine says so instead of spinning."""
    assert engine().step(0) is None


def test_prompts_share_the_budget_with_decoding() -> None:
    """A long prompt is taken in pieces of what decoding requests leave of the budget."""
    run = engine(token_budget=10)
    run.submit(job(1, prompt=4, output=50))
    first = run.step(0)
    assert first is not None
    run.submit(job(2, prompt=25, output=5))
    pieces = []
    for _ in range(3):
        step = run.step(0)
        assert step is not None
        pieces.append((step.prompt_tokens, len(step.keys), step.prompt_ends))
    assert pieces == [(9, 1, ()), (9, 1, ()), (7, 1, (2,))]


def test_drafts_spend_the_budget_too() -> None:
    """A verifying request takes 1 + k tokens of the budget, so that a prompt gets fewer a step."""
    run = engine(token_budget=10, speculator=speculator((1.0, 1.0, 1.0)))
    run.submit(job(1, prompt=4, output=50))
    run.step(0)
    run.submit(job(2, prompt=25, output=5))
    step = run.step(0)
    assert step is not None
    assert (step.prompt_tokens, step.tokens, step.draft_tokens) == (6, 10, 3)


def test_forced_acceptance_of_2_reads_2_everywhere() -> None:
    """Counters, histogram and the tokens of each step: two a step, one drafted token accepted each time."""
    run = engine(speculator=speculator(forced(2.0, 3)))
    seen: list[tuple[int, int, int]] = []
    result = closed_loop(
        run,
        [job(key, output=101) for key in range(20)],
        concurrency=8,
        observe=lambda step: seen.extend(
            (e.tokens, e.drafted, e.accepted) for e in step.emissions() if not e.prompt_end
        ),
    )
    assert set(seen) == {(2, 3, 1)}
    assert result.acceptance.length == 2.0
    assert result.acceptance.by_position == (1.0, 0.0, 0.0)
    assert result.acceptance.ratio == pytest.approx(1 / 3)
    assert result.coverage_ratio == 1.0


def test_acceptance_follows_the_rates() -> None:
    """Over many steps the survivors by position are the rates, whatever share belongs to stretches of text."""
    survival = Survival(rates=(0.8, 0.55, 0.3), stretch_share=0.4, stretch_steps=5)
    run = engine(speculator=speculator((0.8, 0.55, 0.3), survival=survival))
    result = closed_loop(run, [job(key, output=400) for key in range(300)], concurrency=64)
    assert result.acceptance.by_position == pytest.approx((0.8, 0.55, 0.3), abs=0.015)


def test_requests_that_differ_show_the_pooled_length() -> None:
    """With a share of luck in the request, counters read the harmonic mean over requests, below 1 + sum r_i."""
    survival = Survival(rates=(0.8, 0.55, 0.3), request_share=0.5)
    run = engine(speculator=speculator((0.8, 0.55, 0.3), survival=survival))
    lengths: Counter[int] = Counter()
    steps: Counter[int] = Counter()

    def observe(step: Step) -> None:
        for emission in step.emissions():
            if not emission.prompt_end:
                lengths[emission.key] += emission.tokens
                steps[emission.key] += 1

    result = closed_loop(run, [job(key, output=200) for key in range(2000)], concurrency=256, observe=observe)
    assert result.acceptance.length == pytest.approx(survival.pooled_length(3), rel=0.02)
    by_request = np.array([lengths[key] / steps[key] for key in lengths])
    assert by_request.mean() == pytest.approx(survival.mean_length(3), rel=0.02)
    assert by_request.std() > 0.4


def test_stretches_make_equal_steps_follow_one_another() -> None:
    """Neighbouring steps of one request accept alike, and without a share of stretches they do not."""

    def correlation(share: float) -> float:
        survival = Survival(rates=(0.5,), stretch_share=share, stretch_steps=10)
        run = engine(speculator=speculator((0.5,), survival=survival))
        accepted: list[int] = []
        closed_loop(
            run,
            [job(1, output=12_000)],
            concurrency=1,
            observe=lambda step: accepted.extend(step.accepted.tolist()),
        )
        return float(np.corrcoef(accepted[:-1], accepted[1:])[0, 1])

    assert correlation(0.8) > 0.3
    assert abs(correlation(0.0)) < 0.05


def test_steps_that_find_nothing_are_no_drafts() -> None:
    """With a coverage of 0.3 a step drafts three times in ten; the acceptance length speaks of those alone."""
    run = engine(speculator=speculator((0.9, 0.8), method=Method.NGRAM, coverage_ratio=0.3))
    result = closed_loop(run, [job(key, output=500) for key in range(60)], concurrency=32)
    assert result.coverage_ratio == pytest.approx(0.3, abs=0.02)
    assert result.acceptance.length == pytest.approx(2.7, abs=0.03)
    per_step = (result.counters.output_tokens - 60) / result.counters.decode_steps
    assert per_step == pytest.approx(1 + 0.3 * 1.7, abs=0.03)


def test_only_what_was_drafted_is_verified() -> None:
    """A request without a draft has one token in the step, so its step is shorter."""
    run = engine(speculator=speculator((0.0,) * 4, method=Method.NGRAM, coverage_ratio=0.5))
    lengths = {(step.end_ns - step.start_ns) // 10**6 for step in steps_of(run, [job(1, output=200)]) if len(step.keys)}
    assert lengths == {13, 17}


def test_a_draft_that_runs_past_the_end_is_counted_and_not_emitted() -> None:
    """The last step accepts three and emits what is left, as engines count it."""
    run = engine(speculator=speculator((1.0, 1.0, 1.0)))
    steps = steps_of(run, [job(1, output=7)])
    assert [step.emitted.tolist() for step in steps] == [[], [4], [2]]
    assert [step.accepted.tolist() for step in steps] == [[], [3], [3]]
    assert run.counters.output_tokens == 7
    assert run.counters.accepted_tokens == 6


def test_the_step_takes_what_the_formulas_say() -> None:
    """Sixteen requests, EAGLE, three draft tokens: the engine's steps are the model's, for the context it has."""
    run = engine(target=LLAMA_8B_ON_H100, speculator=speculator((0.0, 0.0, 0.0), drafting=EAGLE_8B_ON_H100))
    steps = steps_of(run, [job(key, prompt=300, output=3) for key in range(16)])
    last = steps[-1]
    context = 16 * 302
    forward_s = LLAMA_8B_ON_H100.forward_s(64, context)
    expected = forward_s + LLAMA_8B_ON_H100.overhead_s
    expected += EAGLE_8B_ON_H100.seconds(
        sequences=16, context_tokens=context, draft_tokens=3, target_forward_s=forward_s
    )
    assert (last.end_ns - last.start_ns) / 1e9 == pytest.approx(expected, abs=1e-9)


def test_draft_length_by_batch_size() -> None:
    """Three draft tokens up to two requests, one up to four, none beyond: vLLM's inclusive ranges."""
    ranges = ((1, 2, 3), (3, 4, 1), (5, 8, 0))
    run = engine(speculator=speculator((0.5, 0.4, 0.3), by_batch_size=ranges))
    lengths = {
        (len(step.keys), step.draft_tokens) for step in steps_of(run, [job(k, output=5 + 9 * k) for k in range(8)])
    }
    for batch, tokens in lengths:
        assert tokens == (0 if batch in (0, *range(5, 9)) else 3 if batch <= 2 else 1)
    assert {0, 1, 3} == {tokens for batch, tokens in lengths if batch}


@pytest.mark.parametrize(
    ("ranges", "message"),
    [(((1, 4, 3), (6, 9, 1)), "without a gap"), (((2, 4, 1),), "from 1 on"), (((1, 4, 5),), "0 to 3 draft tokens")],
)
def test_ranges_with_gaps_or_too_long_drafts_are_refused(
    ranges: tuple[tuple[int, int, int], ...], message: str
) -> None:
    """As vLLM's option, they begin at 1 and follow one another."""
    with pytest.raises(ValueError, match=message):
        speculator((0.5, 0.4, 0.3), by_batch_size=ranges)


def test_drafting_again_pays_for_the_tokens_missed() -> None:
    """Back below the limit the drafter takes in what was generated meanwhile, once: 5 ms and 1 ms a token."""
    settings = {"by_batch_size": ((1, 1, 1), (2, 2, 0)), "switch_s": 0.005, "catch_up_token_s": 0.001}
    run = engine(speculator=speculator((0.0,), **settings))
    steps = steps_of(run, [job(1, output=8), job(2, output=4)])
    rows = [(len(step.keys), step.draft_tokens, (step.end_ns - step.start_ns) // 10**6) for step in steps]
    assert rows == [(0, 0, 28), (2, 0, 14), (2, 0, 14), (2, 0, 14), (1, 1, 14 + 5 + 3), *[(1, 1, 14)] * 3]


def test_steps_beyond_the_largest_graph_take_longer() -> None:
    """Above the captured size every step pays the penalty; verification gets there four times as early."""

    def slowest(count: int, rates: tuple[float, ...]) -> float:
        run = engine(
            graph_tokens=32, graph_miss_s=0.1, speculator=speculator(rates) if rates else None, token_budget=10_000
        )
        steps = steps_of(run, [job(key, prompt=1, output=9) for key in range(count)])
        return max((step.end_ns - step.start_ns) / 1e9 - 0.012 - 0.001 * step.tokens for step in steps)

    assert slowest(32, ()) == pytest.approx(0)
    assert slowest(33, ()) == pytest.approx(0.1)
    assert slowest(8, (0.0, 0.0, 0.0)) == pytest.approx(0)
    assert slowest(9, (0.0, 0.0, 0.0)) == pytest.approx(0.1)


def test_the_youngest_loses_its_memory_and_finishes_later() -> None:
    """Two requests that do not fit together: the second is preempted, computes again and gets all its tokens."""
    run = engine(kv_blocks=5, block_tokens=4)
    emitted: Counter[int] = Counter()
    preempted: list[int] = []

    def observe(step: Step) -> None:
        preempted.extend(step.preempted)
        for emission in step.emissions():
            emitted[emission.key] += emission.tokens

    result = closed_loop(run, [job(1, 6, 10), job(2, 6, 10)], concurrency=2, observe=observe)
    assert preempted == [2]
    assert emitted == {1: 10, 2: 10}
    assert [request.key for request in result.requests] == [1, 2]
    assert result.counters.preemptions == 1
    # Six prompt tokens each, and those of the second again with what it had generated.
    assert result.counters.prompt_tokens == 6 + 6 + (6 + 3)


def test_admission_waits_for_memory_in_order() -> None:
    """A small request behind a large one that does not fit waits too: first come, first served."""
    run = engine(kv_blocks=5, block_tokens=4)
    for given in (job(1, 8, 4), job(2, 16, 2), job(3, 1, 1)):
        run.submit(given)
    step = run.step(0)
    assert step is not None
    assert (step.prompt_ends, run.waiting) == ((1,), 2)


def test_a_request_that_can_never_fit_is_refused() -> None:
    """The message says what it needs and what there is."""
    with pytest.raises(ConfigError, match=r"request 3: 100 \+ 20 tokens need 8 KV blocks, there are 7"):
        engine(kv_blocks=7).submit(job(3, 100, 20))


@pytest.mark.parametrize(
    ("limits", "message"),
    [({"token_budget": 3}, "cannot hold one token and 3 draft"), ({"max_sequences": 0}, "at least")],
)
def test_limits_under_which_nothing_runs_are_refused(limits: dict[str, int], message: str) -> None:
    """Before the first step."""
    with pytest.raises(ConfigError, match=message):
        engine(speculator=speculator((0.5, 0.5, 0.5)), **limits)


def test_equal_prompts_are_computed_once() -> None:
    """The second of two equal prompts computes its last token's block alone; the time shows it."""
    run = engine(prefix_caching=True, block_tokens=4)
    jobs = [job(1, 17, 2, blocks=range(4)), job(2, 17, 2, blocks=range(4))]
    steps = steps_of(run, jobs, concurrency=1)
    assert [step.prompt_tokens for step in steps if step.prompt_tokens] == [17, 1]
    assert [step.cached_tokens for step in steps if step.cached_tokens] == [{1: 0}, {2: 16}]
    assert (run.counters.prefix_query_tokens, run.counters.prefix_hit_tokens) == (34, 16)


def test_a_prompt_in_full_blocks_still_computes_its_last_one() -> None:
    """A hit never covers the last token, whose logits are needed."""
    run = engine(prefix_caching=True, block_tokens=4)
    steps = steps_of(run, [job(key, 16, 1, blocks=range(4)) for key in (1, 2)], concurrency=1)
    assert [step.prompt_tokens for step in steps] == [16, 4]


def test_methods_on_hidden_states_compute_one_more_block() -> None:
    """EAGLE-like drafters lose the last cached block; lookup does not."""

    def second_prompt(method: Method) -> int:
        run = engine(prefix_caching=True, block_tokens=4, speculator=speculator((0.5,), method=method))
        return [
            s.prompt_tokens for s in steps_of(run, [job(k, 17, 2, range(4)) for k in (1, 2)], 1) if s.prompt_tokens
        ][1]

    assert (second_prompt(Method.NGRAM), second_prompt(Method.EAGLE3)) == (1, 5)


def test_the_next_turn_finds_the_answer_before_it() -> None:
    """Names that go on into the output are kept when the request ends, up to the last computed full block."""
    run = engine(prefix_caching=True, block_tokens=4)
    turns = [job(1, 8, 9, blocks=range(4)), job(2, 20, 1, blocks=range(5))]
    steps = steps_of(run, turns, concurrency=1)
    assert steps[-1].cached_tokens == {2: 16}


def test_a_reset_of_the_prefix_cache_forgets() -> None:
    """The same prompt is computed in full again."""
    run = engine(prefix_caching=True, block_tokens=4)
    steps_of(run, [job(1, 16, 1, range(4))])
    run.forget_prefixes()
    (step,) = steps_of(run, [job(2, 16, 1, range(4))])
    assert step.prompt_tokens == 16


def test_cancelled_requests_leave_nothing_behind() -> None:
    """Waiting, taking in its prompt or decoding: it ends, its memory is free, the others go on."""
    run = engine(token_budget=12, max_sequences=3)
    for key in range(1, 5):
        run.submit(job(key, prompt=10, output=6))
    run.step(0)
    run.step(0)
    assert (run.running, run.waiting) == (3, 1)
    assert [run.cancel(key) for key in (4, 3, 1, 99)] == [True, True, True, False]
    assert run.running == 1
    keys = set()
    while (step := run.step(0)) is not None:
        keys |= {emission.key for emission in step.emissions()}
    assert keys == {2}
    assert run.kv_used_ratio == 0


def test_an_open_loop_takes_requests_when_they_are_due() -> None:
    """The engine idles until the first one; arrivals during a step wait for its end."""
    arrivals = [(1_000_000_000, job(1)), (1_005_000_000, job(2))]
    result = open_loop(engine(), arrivals)
    assert [request.first_ns // 10**6 for request in result.requests] == [1020, 1041]
    assert result.requests[1].ttft_s == pytest.approx(1.041 - 1.005)


def test_equal_seeds_give_equal_runs() -> None:
    """Another seed gives another one."""

    def ends(seed: int) -> list[int]:
        run = engine(speculator=speculator((0.7, 0.4)), seed=seed)
        return [step.end_ns for step in steps_of(run, [job(key, output=50) for key in range(9)], concurrency=4)]

    assert ends(3) == ends(3) != ends(4)


@pytest.mark.slow
def test_ten_minutes_of_256_requests_take_seconds() -> None:
    """A run of 600 virtual seconds at 256 concurrent requests, with speculation, in under 5 s of CPU time."""
    import time

    speculative = speculator((0.65, 0.4, 0.25), drafting=EAGLE_8B_ON_H100)
    run = engine(target=LLAMA_8B_ON_H100, kv_blocks=26_000, speculator=speculative, prefix_caching=True)
    endless = (job(key, prompt=100 + key % 700, output=100 + key % 500) for key in range(10**9))
    before = time.process_time()
    result = closed_loop(run, endless, concurrency=256, stop_ns=600 * 10**9)
    assert time.process_time() - before < 5
    assert result.duration_s >= 600
    assert run.running + run.waiting == 256
    assert run.waiting < 10
