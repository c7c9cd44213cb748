"""TensorRT-LLM as the simulator speaks it: its streams, and pages that are empty once read."""

import pytest

from loadgen.sim.server.tensorrt_llm import TensorrtLlmDialect
from loadgen.sim.server.tensorrt_llm_statistics import KEPT_ITERATIONS
from tests.sim.server.driven import STEP_S, Driven, asked, decoded, events, output


def test_tensorrt_llm_sends_one_event_a_step_with_the_mean_tokens_of_an_iteration() -> None:
    """Four events for ten tokens; the last says 2.5 tokens an iteration, the prompt's included."""
    (stream,) = Driven.of(TensorrtLlmDialect).serve((asked(include_usage=True, continuous_usage=True), [output(10)]))
    assert decoded(stream).event_tokens == (1, 3, 3, 3)
    assert events(stream[3])[0]["choices"][0]["avg_decoded_tokens_per_iter"] == 2.5


def test_tensorrt_llm_iterations_are_gone_once_read() -> None:
    """`/metrics` is JSON: each iteration once, with drafts where it decoded, and nothing at the second reading."""
    driven = Driven.of(TensorrtLlmDialect)
    driven.serve((asked(), [output(10)]), (asked(), [output(10)]))
    read = driven.json("/metrics")
    assert [each["iter"] for each in read] == [1, 2, 3, 4]
    told = [each["specDecodingStats"] for each in read]
    assert [each["numDraftTokens"] for each in told] == [0, 6, 6, 6]
    assert [each["numAcceptedTokens"] for each in told] == [0, 4, 4, 4]
    assert [each["numRequestsWithDraftTokens"] for each in told] == [0, 2, 2, 2]
    assert [each["acceptanceLength"] for each in told] == [0, 3, 3, 3]
    assert read[0]["inflightBatchingStats"]["numContextRequests"] == 2
    assert read[-1]["numCompletedRequests"] == 2
    assert read[0]["iterLatencyMS"] == pytest.approx(1000 * STEP_S)
    assert driven.json("/metrics") == []


def test_tensorrt_llm_keeps_the_latest_iterations() -> None:
    """What nobody reads is lost from the old end, while Prometheus' counters have it all."""
    driven = Driven.of(TensorrtLlmDialect)
    driven.serve((asked(), [output(1 + 3 * (KEPT_ITERATIONS + 9))]))
    read = driven.json("/metrics")
    assert (len(read), read[0]["iter"], read[-1]["iter"]) == (KEPT_ITERATIONS, 11, KEPT_ITERATIONS + 10)
    assert driven.metrics()["trtllm_spec_decode_num_draft_tokens_total"] == 3 * (KEPT_ITERATIONS + 9)


def test_tensorrt_llm_requests_are_gone_once_read() -> None:
    """`/perf_metrics` has a finished request once: iterations, instants, blocks and acceptance."""
    driven = Driven.of(TensorrtLlmDialect)
    driven.serve((asked(), [output(10)]))
    (record,) = driven.json("/perf_metrics")
    metrics = record["perf_metrics"]
    assert metrics["speculative_decoding"] == {
        "acceptance_rate": pytest.approx(6 / 9),
        "total_accepted_draft_tokens": 6,
        "total_draft_tokens": 9,
    }
    assert (metrics["first_iter"], metrics["last_iter"]) == (1, 4)
    timing = metrics["timing_metrics"]
    assert timing["last_token_time"] - timing["first_token_time"] == pytest.approx(3 * STEP_S)
    assert metrics["kv_cache_metrics"]["num_missed_blocks"] == 2
    assert driven.json("/perf_metrics") == []


def test_tensorrt_llm_counts_speculation_live_and_requests_at_their_end() -> None:
    """While a request runs its drafts count and its tokens do not; one whose client left never counts."""
    driven = Driven.of(TensorrtLlmDialect)
    driven.serve((asked(), [output(10)]), stop_after=3)
    running = driven.metrics()
    assert running["trtllm_spec_decode_num_draft_tokens_total"] == 6
    assert running["trtllm_spec_decode_num_accepted_tokens_total"] == 4
    assert running["trtllm_spec_decode_acceptance_length"] == 3
    assert "trtllm_generation_tokens_total" not in running
    assert driven.json("/perf_metrics") == []
    driven.serve((asked(), [output(10)]))
    done = driven.metrics()
    assert (done["trtllm_generation_tokens_total"], done["trtllm_prompt_tokens_total"]) == (10, 20)
    assert done["trtllm_request_success_total"] == 1
    assert done["trtllm_spec_decode_drafted_tokens_total"] == 9
    assert done["trtllm_spec_decode_accepted_tokens_total"] == 6
    assert done["trtllm_time_per_output_token_seconds_sum"] == pytest.approx(3 * STEP_S / 9)
    assert done["trtllm_request_decode_time_seconds_bucket 0.3"] == 1
    assert driven.labels("trtllm_num_requests_running") == [{"model_name": "undefined", "engine_type": "undefined"}]


def test_tensorrt_llm_without_speculation_has_no_such_figures() -> None:
    """A baseline's pages do not speak of drafts."""
    driven = Driven.of(TensorrtLlmDialect, None)
    driven.serve((asked(), [output(10)]))
    assert not any("spec_decode" in name for name in driven.metrics())
    assert all("specDecodingStats" not in each for each in driven.json("/metrics"))
    assert "speculative_decoding" not in driven.json("/perf_metrics")[0]["perf_metrics"]
    assert driven.json("/version")["version"]


def test_tensorrt_llm_finds_cached_blocks() -> None:
    """The second request reuses two blocks of its prompt: in usage, in its record, of an iteration and on the page."""
    driven = Driven.of(TensorrtLlmDialect)
    request = asked(include_usage=True, prompt_ids=tuple(range(50)))
    driven.serve((request, [output(4)]))
    (stream,) = driven.serve((request, [output(4)]))
    assert decoded(stream).usage.cached_input_tokens == 32
    assert driven.metrics()["trtllm_prompt_cached_tokens_total"] == 32
    assert driven.json("/perf_metrics")[-1]["perf_metrics"]["kv_cache_metrics"]["num_reused_blocks"] == 2
    assert driven.json("/metrics")[-1]["kvCacheStats"]["reusedBlocks"] == 2
