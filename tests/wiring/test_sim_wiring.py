"""From the options of a simulated server to what it is made of."""

from typing import Any

import pytest

from loadgen.core.errors import ConfigError
from loadgen.core.simulation.job import Job
from loadgen.core.units import nanoseconds
from loadgen.options.resolve import resolve
from loadgen.options.sim import SimOptions
from loadgen.sim.server.dialect import ServerFacts
from loadgen.wiring.predict import modelled_server
from loadgen.wiring.sim import engines_of, facts_of


def options(**given: Any) -> SimOptions:
    return resolve(SimOptions, given, environment={})


def facts(**given: Any) -> ServerFacts:
    chosen = options(**given)
    return facts_of(chosen, modelled_server(chosen))


def step_s(decoding: int, **given: Any) -> float:
    """Seconds of the second step of so many requests of one prompt token each: the first in which they decode."""
    chosen = options(**given)
    server = modelled_server(chosen)
    engine = engines_of(chosen, facts_of(chosen, server), server)()
    for key in range(decoding):
        engine.submit(Job(key=key, prompt_tokens=1, output_tokens=100))
    engine.step(0)
    step = engine.step(0)
    assert step is not None
    return step.end_ns / 1e9


def test_a_baseline() -> None:
    """All of the cache is the target's, whose longest context and name on Hugging Face are the server's."""
    found = facts()
    assert (found.model, found.max_model_len) == ("meta-llama/Llama-3.1-8B-Instruct", 131_072)
    assert (found.speculator, found.speculation) == (None, {})
    assert found.kv_blocks == 426_784 // 16
    assert (found.gpus, facts(gpus="2").gpus) == (1, 2)


def test_a_drafter_takes_its_memory() -> None:
    """A head and a draft model leave fewer blocks, lookup leaves all; a number of blocks that is given holds."""
    plain = facts().kv_blocks
    assert facts(method="ngram").kv_blocks == plain
    assert facts(method="draft_model").kv_blocks < facts(method="eagle3").kv_blocks < plain
    assert facts(method="eagle3", kv_blocks="100").kv_blocks == 100


def test_a_context_is_never_longer_than_the_cache() -> None:
    """Without a length it is what fits, drafts included; a length that does not fit is refused, as vLLM does."""
    small = facts(method="mtp", draft_tokens="4", kv_blocks="10")
    assert small.max_model_len == 156
    with pytest.raises(ConfigError, match=r"--max-model-len: a context of 157 tokens does not fit .* which holds 156"):
        facts(method="mtp", draft_tokens="4", kv_blocks="10", max_model_len="157")


def test_a_longest_context_can_be_asked_for_to_its_last_token() -> None:
    """The engine takes a request of exactly that length."""
    chosen = options(method="mtp", draft_tokens="4", kv_blocks="10")
    server = modelled_server(chosen)
    found = facts_of(chosen, server)
    engine = engines_of(chosen, found, server)()
    engine.submit(Job(key=1, prompt_tokens=100, output_tokens=found.max_model_len - 100))
    with pytest.raises(ConfigError, match="KV blocks"):
        engine.submit(Job(key=2, prompt_tokens=100, output_tokens=found.max_model_len - 100 + 6))


def test_a_model_that_does_not_fit_is_named_with_its_gpu() -> None:
    """671 GB of weights on one H100; more of them, or a cache by decree, will do."""
    with pytest.raises(ConfigError, match=r"DeepSeek-V3 does not fit into 1 x H100 SXM .* --gpus, .* or --kv-blocks"):
        facts(target="deepseek-v3")
    assert facts(target="deepseek-v3", gpus="16").kv_blocks > 0
    assert facts(target="deepseek-v3", kv_blocks="5").kv_blocks == 5


def test_drafters_in_the_servers_own_words() -> None:
    """The draft model is named as the engine's configuration does; further keys are told as they are."""
    assert facts(method="draft_model").speculation == {"model": "meta-llama/Llama-3.2-1B-Instruct"}
    told = facts(method="draft_model", dialect="sglang", draft="qwen3-0.6b").speculation
    assert told == {"speculative_draft_model_path": "Qwen/Qwen3-0.6B"}
    named = facts(method="draft_model", speculation_config='{"model": "acme/tiny"}').speculation
    assert named == {"model": "acme/tiny"}
    told = facts(method="ngram", speculation_config='{"prompt_lookup_max": 7}').speculation
    assert told == {"prompt_lookup_max": 7}


def test_the_speculators_further_settings() -> None:
    """Draft length by batch, the request's share of luck, and the price of drafting again."""
    found = facts(
        method="eagle3", draft_tokens_by_batch="1-8:3,9-16:0", request_share="0.5", switch_time="2ms"
    ).speculator
    assert found is not None
    assert found.by_batch_size == ((1, 8, 3), (9, 16, 0))
    assert (found.survival.request_share, found.switch_s) == (0.5, 0.002)
    chat, given = facts(method="eagle3").speculator, facts(method="eagle3", acceptance="0.8").speculator
    assert chat is not None
    assert given is not None
    assert (chat.survival.request_share > 0, given.survival.request_share) == (True, 0.0)


def test_what_answers_tell_of_their_speculation() -> None:
    """All of it by default, the sums, or nothing."""
    assert facts().per_request_speculation == "detailed"
    assert facts(per_request_spec_decode_metrics="summary").per_request_speculation == "summary"
    assert facts(per_request_spec_decode_metrics="off").per_request_speculation is None


def test_one_time_is_every_steps() -> None:
    """Alone or with 64 others, with drafts or without: 8 ms to the nanosecond."""
    assert step_s(1, step_time="8ms") == step_s(64, step_time="8ms") == 0.008
    assert step_s(64, step_time="8ms", method="eagle3") == 0.008


def test_a_formula_is_the_targets() -> None:
    """Tokens and context count, and drafting comes on top of it as the GPU makes it."""
    assert step_s(4, step_time="6ms:1ms:0") == 0.010
    assert step_s(4, step_time="6ms:0:1ms") == 0.006 + 4 * 2 * 0.001
    assert step_s(4, step_time="6ms:0:0:1ms", method="ngram", coverage="1", acceptance_length="2") == pytest.approx(
        0.007 + 0.006 * 0.005875
    )


def test_without_a_step_time_it_is_the_gpus() -> None:
    """The same step as the model of the prediction has."""
    assert nanoseconds(step_s(1)) == nanoseconds(modelled_server(options()).step.seconds(1, 2))
    assert step_s(1, gpu="l4") > 9 * step_s(1)


def test_a_step_without_a_captured_graph() -> None:
    """Takes longer from one token more on."""
    slow = {"step_time": "8ms", "graph_tokens": "4", "graph_miss_time": "3ms"}
    assert (step_s(4, **slow), step_s(5, **slow)) == (0.008, 0.011)


def test_engines_of_one_seed_accept_alike_and_a_restart_goes_on_drawing() -> None:
    """Two servers with the same seed give the same steps; the second engine of a server gives others."""

    def drawn(seed: int, engines: int) -> list[list[int]]:
        chosen = options(method="eagle3", seed=str(seed))
        server = modelled_server(chosen)
        make = engines_of(chosen, facts_of(chosen, server), server)
        runs = []
        for _ in range(engines):
            engine, accepted = make(), []
            engine.submit(Job(key=1, prompt_tokens=4, output_tokens=200))
            while (step := engine.step(0)) is not None:
                accepted.extend(step.accepted.tolist())
            runs.append(accepted)
        return runs

    first, second = drawn(1, 2)
    assert first != second
    assert drawn(1, 1) == [first]
    assert drawn(2, 1) != [first]


def test_a_step_must_hold_its_drafts() -> None:
    """Said before anything listens."""
    chosen = options(method="mtp", draft_tokens="4", max_num_batched_tokens="4")
    server = modelled_server(chosen)
    with pytest.raises(ConfigError, match="a token budget of 4 a step cannot hold one token and 4 draft tokens"):
        engines_of(chosen, facts_of(chosen, server), server)
