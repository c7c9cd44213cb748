"""Any load on any engine in virtual time: what must hold of every step and of the whole."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Job, Limits
from loadgen.core.simulation.loop import closed_loop
from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.step import Step
from loadgen.core.simulation.step_time import Drafting, StepTime
from loadgen.core.simulation.survival import Survival, from_conditional

TARGET = StepTime(fixed_s=5e-3, per_token_s=2e-5, per_context_token_s=4e-8, overhead_s=1e-3)
DRAFTING = Drafting(pass_time=StepTime(fixed_s=5e-4, per_token_s=1e-6, per_context_token_s=1e-9))


@st.composite
def speculators(draw: st.DrawFn) -> Speculator | None:
    if draw(st.booleans()):
        return None
    tokens = draw(st.integers(1, 5))
    ranges = ((1, 2, tokens), (3, 4, 0), (5, 9, 1)) if draw(st.booleans()) else ()
    return Speculator(
        method=draw(st.sampled_from(Method)),
        draft_tokens=tokens,
        survival=Survival(
            rates=from_conditional([draw(st.floats(0, 1))], tokens),
            request_share=draw(st.sampled_from([0.0, 0.3])),
            stretch_share=draw(st.sampled_from([0.0, 0.3])),
        ),
        drafting=DRAFTING,
        coverage_ratio=draw(st.sampled_from([1.0, 0.4])),
        by_batch_size=ranges,
        switch_s=0.01,
        catch_up_token_s=0.001,
    )


@st.composite
def loads(draw: st.DrawFn) -> tuple[Limits, list[Job]]:
    """Requests in families of common beginnings, on memory that holds the largest and little more."""
    size = draw(st.integers(1, 8))
    jobs = []
    for key in range(draw(st.integers(1, 12))):
        prompt, output = draw(st.integers(1, 40)), draw(st.integers(1, 30))
        family = draw(st.integers(0, 2))
        named = (prompt + output * draw(st.booleans())) // size
        blocks = tuple(family * 1000 + place for place in range(named)) if family else ()
        jobs.append(Job(key=key, prompt_tokens=prompt, output_tokens=output, blocks=blocks))
    largest = max(-(-(job.prompt_tokens + job.output_tokens + 5) // size) for job in jobs)
    return (
        Limits(
            kv_blocks=largest + draw(st.integers(0, 12)),
            block_tokens=size,
            max_sequences=draw(st.integers(1, 9)),
            token_budget=draw(st.integers(6, 60)),
            prefix_caching=draw(st.booleans()),
            graph_tokens=draw(st.sampled_from([None, 8])),
            graph_miss_s=0.002,
        ),
        jobs,
    )


@settings(max_examples=150, deadline=None)
@given(loads(), speculators(), st.integers(1, 12), st.integers(0, 2**32))
def test_every_token_once_and_memory_never_over(
    load: tuple[Limits, list[Job]], speculator: Speculator | None, concurrency: int, seed: int
) -> None:
    """Each request gets exactly its tokens, preempted or not, in steps that neither pass the budget nor the memory; the
    counters are the sums of the emissions; at the end nothing is held; and the same seed gives the same steps."""
    limits, jobs = load

    def run() -> tuple[list[Step], Engine]:
        engine = Engine(target=TARGET, limits=limits, rng=np.random.default_rng(seed), speculator=speculator)
        steps: list[Step] = []

        def observe(step: Step) -> None:
            steps.append(step)
            assert 0 <= engine.kv_used_ratio <= 1
            assert engine.running <= limits.max_sequences

        closed_loop(engine, jobs, concurrency=concurrency, observe=observe)
        return steps, engine

    steps, engine = run()
    emitted: Counter[int] = Counter()
    finished: list[int] = []
    drafts = drafted = accepted = 0
    now_ns = 0
    for step in steps:
        assert step.start_ns == now_ns < step.end_ns
        now_ns = step.end_ns
        assert 0 < step.tokens <= limits.token_budget
        finished.extend(step.finished)
        for emission in step.emissions():
            assert 1 <= emission.tokens <= 1 + emission.drafted
            assert emission.accepted <= emission.drafted
            emitted[emission.key] += emission.tokens
            drafts += emission.drafted > 0
            drafted += emission.drafted
            accepted += emission.accepted
    assert emitted == {job.key: job.output_tokens for job in jobs}
    assert sorted(finished) == [job.key for job in jobs]
    counters = engine.counters
    assert (counters.drafts, counters.drafted_tokens, counters.accepted_tokens) == (drafts, drafted, accepted)
    assert sum(counters.histogram) == drafts
    assert counters.output_tokens == sum(job.output_tokens for job in jobs)
    assert counters.preemptions == sum(len(step.preempted) for step in steps)
    assert (engine.running, engine.waiting, engine.kv_used_ratio) == (0, 0, 0)

    again, _ = run()
    assert [(step.end_ns, step.keys.tolist(), step.emitted.tolist()) for step in again] == [
        (step.end_ns, step.keys.tolist(), step.emitted.tolist()) for step in steps
    ]
