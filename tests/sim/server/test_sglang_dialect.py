"""SGLang as the simulator speaks it: its streams, accounts of acceptance, gauges and counters."""

from dataclasses import replace

import numpy as np
import pytest

from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Limits
from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.step_time import FREE_DRAFTING, StepTime
from loadgen.core.simulation.survival import Survival
from loadgen.core.stream.answer import Note
from loadgen.sim.server.exchange import Answer
from loadgen.sim.server.sglang import SglangDialect
from tests.sim.server.driven import STEP_S, Driven, asked, decoded, events, facts, output


def test_sglang_sends_one_event_a_step_with_its_tokens() -> None:
    """One event for the prompt's token and one for each step of three tokens, ids told when asked for."""
    (stream,) = Driven.of(SglangDialect).serve((asked(return_token_ids=True), [output(10)]))
    assert decoded(stream).event_tokens == (1, 3, 3, 3)


def test_sglang_tells_usage_so_far() -> None:
    """Continuous usage counts the tokens of each event."""
    (stream,) = Driven.of(SglangDialect).serve((asked(include_usage=True, continuous_usage=True), [output(10)]))
    assert decoded(stream).event_tokens == (1, 3, 3, 3)


def test_sglang_tells_a_requests_acceptance_if_asked() -> None:
    """Every decode step is a verify call; accepted tokens are counted before the answer's end cuts them."""
    request = asked(include_usage=True, fields={"return_spec_tokens_details": True})
    (stream,) = Driven.of(SglangDialect).serve((request, [output(9)]))
    answer = decoded(stream)
    told = answer.speculation
    assert told is not None
    assert (told.steps, told.drafted_tokens, told.accepted_tokens) == (3, 9, 6)
    assert told.histogram == (0, 0, 3)
    assert Note.SPECULATION_INCONSISTENT not in answer.notes
    details = events(stream[-1])[-2]["sglext"]["spec_tokens_details"]
    assert details["spec_accept_length"] == pytest.approx(9 / 3)  # its own words: output tokens by verify calls
    assert details["spec_accept_rate"] == pytest.approx(6 / 9)


def test_sglang_tells_no_acceptance_unasked_or_without_speculation() -> None:
    """No account of speculation without the request's field, nor from a baseline."""
    (unasked,) = Driven.of(SglangDialect).serve((asked(), [output(9)]))
    request = asked(fields={"return_spec_tokens_details": True})
    (baseline,) = Driven.of(SglangDialect, None).serve((request, [output(9)]))
    assert b"sglext" not in b"".join(unasked + baseline)


def test_sglang_tells_acceptance_of_each_choice() -> None:
    """Of several choices the accounts are a list."""
    request = asked(n=2, fields={"return_spec_tokens_details": True})
    (stream,) = Driven.of(SglangDialect).serve((request, [output(4), output(7)]))
    details = events(stream[-1])[-1]["sglext"]["spec_tokens_details"]
    assert [each["spec_verify_ct"] for each in details] == [1, 2]


def test_a_step_without_a_draft_is_a_verify_call_that_accepted_nothing() -> None:
    """SGLang counts it among the calls, so the histogram holds it at 0 and proposals are calls by draft length."""
    answer = Answer(
        key=1, index=0, asked=asked(fields={"return_spec_tokens_details": True}), output=output(6), created_s=1,
        received_ns=0, emitted=6, decode_steps=3, drafted=[3], accepted=[2],
    )  # fmt: skip
    details = events(SglangDialect(facts()).closing([answer]))[-1]["sglext"]["spec_tokens_details"]
    assert details["spec_correct_drafts_histogram"] == [2, 0, 1]
    assert (details["spec_verify_ct"], details["spec_num_proposed_drafts"]) == (3, 9)


def test_sglang_gauges_are_of_the_last_forty_decode_steps() -> None:
    """No acceptance before 40 decode steps; then the interval's, which later steps leave until 80."""
    driven = Driven.of(SglangDialect)
    request = asked()
    driven.serve((request, [output(1 + 3 * 50)]), stop_after=40)  # a prompt step and 39 decode steps
    assert driven.metrics()["sglang:spec_accept_length"] == 0
    assert "avg_spec_accept_length" not in driven.json("/server_info")["internal_states"][0]
    driven = Driven.of(SglangDialect)
    driven.serve((request, [output(1 + 3 * 50)]), stop_after=41)
    metrics = driven.metrics()
    assert metrics["sglang:spec_accept_length"] == 3
    assert metrics["sglang:spec_accept_rate"] == pytest.approx(2 / 3)
    assert metrics["sglang:gen_throughput"] == pytest.approx(3 / STEP_S)
    assert metrics["sglang:num_running_reqs"] == 1
    assert metrics["sglang:spec_num_draft_tokens"] == 4
    assert driven.json("/get_server_info")["internal_states"][0]["avg_spec_accept_length"] == 3


def test_sglang_gauges_forget_earlier_intervals() -> None:
    """The gauge is of one interval, the average of `/server_info` of all."""
    driven = Driven.of(SglangDialect)
    statistics = driven.statistics
    for accepted in (1, 3):
        driven.engine = Engine(
            target=StepTime(fixed_s=STEP_S, per_token_s=0.0, per_context_token_s=0.0),
            limits=Limits(kv_blocks=1000),
            rng=np.random.default_rng(1),
            speculator=Speculator(
                method=Method.EAGLE3,
                draft_tokens=3,
                survival=Survival(rates=(1.0,) * accepted + (0.0,) * (3 - accepted)),
                drafting=FREE_DRAFTING,
            ),
        )
        driven.serve((asked(), [output(1 + (1 + accepted) * 40 + 1)]), stop_after=driven.steps + 41)
    assert driven.statistics is statistics
    assert driven.metrics()["sglang:spec_accept_length"] == 4
    assert driven.json("/server_info")["internal_states"][0]["avg_spec_accept_length"] == 3


def test_sglang_counts_a_request_when_it_has_finished() -> None:
    """Totals of requests and verify calls rise at the end, live ones with every step; an aborted one only aborts."""
    driven = Driven.of(SglangDialect)
    driven.serve((asked(), [output(10)]), stop_after=2)
    running = driven.metrics()
    assert "sglang:generation_tokens_total" not in running
    assert running["sglang:num_aborted_requests_total"] == 1
    assert running["sglang:realtime_tokens_total"] == 20 + 3
    driven.serve((asked(), [output(10)]), (asked(stream=False), [output(4)]))
    done = driven.metrics()
    assert done["sglang:generation_tokens_total"] == 14
    assert done["sglang:prompt_tokens_total"] == 40
    assert done["sglang:num_requests_total"] == 2
    assert done["sglang:spec_verify_calls_total"] == 3 + 1
    assert done["sglang:e2e_request_latency_seconds_count"] == 2
    by = driven.labels("sglang:num_requests_total")
    assert by == [
        {"model_name": "m", "engine_type": "unified", "is_streaming": streamed} for streamed in ("false", "true")
    ]


def test_sglang_divides_gaps_by_their_tokens() -> None:
    """Nine tokens in three steps of 8 ms are nine gaps of 2.7 ms, not three of 8 ms."""
    driven = Driven.of(SglangDialect)
    driven.serve((asked(), [output(10)]))
    metrics = driven.metrics()
    name = "sglang:inter_token_latency_seconds"
    assert (metrics[f"{name}_count"], metrics[f"{name}_bucket 0.002"], metrics[f"{name}_bucket 0.004"]) == (9, 0, 9)
    assert metrics[f"{name}_sum"] == pytest.approx(3 * STEP_S)
    baseline = Driven.of(SglangDialect, None)
    baseline.serve((asked(), [output(10)]))
    assert baseline.metrics()[f"{name}_bucket 0.006"] == 0
    assert baseline.metrics()[f"{name}_bucket 0.008"] == 9  # a bound belongs to its bucket


def test_sglang_shows_the_cache_hits_of_a_prompt_step() -> None:
    """The second request finds 32 of its 50 prompt tokens; the gauge says so until the next report of decoding."""
    driven = Driven.of(SglangDialect)
    request = asked(include_usage=True, prompt_ids=tuple(range(50)))
    driven.serve((request, [output(4)]))
    assert driven.metrics()["sglang:cache_hit_rate"] == 0
    assert driven.metrics()["sglang:num_running_reqs"] == 0
    (stream,) = driven.serve((request, [output(4)]))
    assert decoded(stream).usage.cached_input_tokens == 32
    metrics = driven.metrics()
    assert metrics["sglang:cache_hit_rate"] == pytest.approx(32 / 50)
    assert metrics["sglang:cached_tokens_total"] == 32
    driven.serve((request, [output(1 + 3 * 50)]))
    assert driven.metrics()["sglang:cache_hit_rate"] == 0


def test_sglang_describes_itself() -> None:
    """Version and arguments, with the speculation's; the configuration's own words win."""
    info = Driven.of(SglangDialect).json("/server_info")
    assert (info["version"], info["context_length"], info["max_running_requests"]) == ("0.5.23", 4096, 8)
    assert (info["speculative_algorithm"], info["speculative_num_draft_tokens"]) == ("EAGLE3", 4)
    assert Driven.of(SglangDialect, None).json("/server_info")["speculative_algorithm"] is None
    own_words = replace(facts(), speculation={"speculative_draft_model_path": "d", "speculative_eagle_topk": 2})
    info = Driven.of(lambda _: SglangDialect(own_words)).json("/server_info")
    assert (info["speculative_draft_model_path"], info["speculative_eagle_topk"]) == ("d", 2)
    assert Driven.of(SglangDialect).json("/get_model_info")["model_path"] == "m"
