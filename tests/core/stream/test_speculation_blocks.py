"""What servers say of speculative decoding in a response."""

import json

import pytest

from loadgen.core.record import RequestSpeculation
from loadgen.core.stream.answer import Note

SUMMARY = {
    "mean_acceptance_length": 3.0,
    "draft_acceptance_rate": 0.5,
    "acceptance_histogram": [1, 0, 1, 0, 1],
    "num_spec_steps": 3,
    "num_accepted_draft_tokens": 6,
    "num_draft_tokens": 12,
    "num_spec_tokens": 4,
}


def final(**fields: object) -> bytes:
    return f"data: {json.dumps({'choices': [], **fields})}\n\n".encode()


@pytest.mark.parametrize("detailed", [False, True])
def test_vllm(decode, chunk, detailed: bool) -> None:
    """vLLM's block, with the per-step lists at its detailed level."""
    steps = {"per_step_accepted": [4, 2, 0], "per_step_drafted": [4, 4, 4]} if detailed else {}
    block = {"time_to_first_token_ms": 1.5, "speculative_decoding": {**SUMMARY, **steps}}
    answer = decode(chunk(content="x"), chunk("stop"), final(metrics=block), b"data: [DONE]\n\n")
    assert answer.speculation == RequestSpeculation(
        steps=3,
        drafted_tokens=12,
        accepted_tokens=6,
        histogram=(1, 0, 1, 0, 1),
        max_draft_tokens=4,
        per_step_accepted=(4, 2, 0) if detailed else None,
        per_step_drafted=(4, 4, 4) if detailed else None,
    )
    assert Note.SPECULATION_INCONSISTENT not in answer.notes


@pytest.mark.parametrize("block", [None, {}, {"speculative_decoding": None}])
def test_vllm_without_speculation(decode, chunk, block: object) -> None:
    """The block of a server that does not speculate says nothing."""
    assert decode(chunk(content="x"), final(metrics=block)).speculation is None


def test_a_request_that_never_drafted_is_a_fact(decode, chunk) -> None:
    """Zero steps is a value, not a missing one."""
    zeros = {**SUMMARY, "acceptance_histogram": [0] * 5, "num_spec_steps": 0, "num_accepted_draft_tokens": 0}
    told = decode(chunk(content="x"), final(metrics={"speculative_decoding": zeros})).speculation
    assert (told.steps, told.accepted_tokens) == (0, 0)


@pytest.mark.parametrize("change", [{"num_spec_steps": 4}, {"num_accepted_draft_tokens": 5}])
def test_a_histogram_that_contradicts_its_sums_is_said(decode, chunk, change: dict) -> None:
    """The numbers stand as given, with a note."""
    answer = decode(chunk(content="x"), final(metrics={"speculative_decoding": {**SUMMARY, **change}}))
    assert answer.speculation.histogram == (1, 0, 1, 0, 1)
    assert Note.SPECULATION_INCONSISTENT in answer.notes


def test_sglang(decode, chunk) -> None:
    """SGLang's extension; the empty list that stands for "not known" is absent."""
    details = {"spec_verify_ct": 4, "spec_num_proposed_drafts": 12, "spec_num_correct_drafts": 7}
    histogram = {"spec_correct_drafts_histogram": [0, 2, 1, 1]}
    answer = decode(chunk(content="x"), final(sglext={"spec_tokens_details": {**details, **histogram}}))
    expected = {"steps": 4, "drafted_tokens": 12, "accepted_tokens": 7}
    assert answer.speculation == RequestSpeculation(**expected, histogram=(0, 2, 1, 1))
    bare = final(sglext={"spec_tokens_details": {**details, "spec_correct_drafts_histogram": []}})
    assert decode(chunk(content="x"), bare).speculation == RequestSpeculation(**expected)


@pytest.mark.parametrize("streamed", [True, False])
def test_sglang_with_several_choices(decode, chunk, streamed: bool) -> None:
    """Its accounts come as a list, one a choice: they add up, and what one of them lacks is not known of all."""
    one = {"spec_verify_ct": 4, "spec_num_proposed_drafts": 12, "spec_num_correct_drafts": 7}
    other = {"spec_verify_ct": 2, "spec_num_proposed_drafts": 6, "spec_num_correct_drafts": 1}
    lists = ([0, 2, 1, 1], [1, 1])

    def told(*details: object) -> RequestSpeculation | None:
        extension = {"sglext": {"spec_tokens_details": list(details)}}
        if streamed:
            second = chunk("stop", choice={"index": 1}, content="y")
            answer = decode(chunk("stop", content="x"), second, final(**extension), b"data: [DONE]\n\n")
        else:
            choices = [{"index": index, "message": {"content": "x"}, "finish_reason": "stop"} for index in range(2)]
            answer = decode(json.dumps({"choices": choices, **extension}).encode(), content_type="application/json")
        assert Note.SEVERAL_CHOICES in answer.notes
        assert not {Note.ODD_FIELDS, Note.SPECULATION_INCONSISTENT} & set(answer.notes)
        return answer.speculation

    histograms = [{"spec_correct_drafts_histogram": each} for each in lists]
    pooled = RequestSpeculation(steps=6, drafted_tokens=18, accepted_tokens=8, histogram=(1, 3, 1, 1))
    assert told(one | histograms[0], other | histograms[1]) == pooled
    assert told(one | histograms[0], other) == RequestSpeculation(steps=6, drafted_tokens=18, accepted_tokens=8)
    assert told(one, {"spec_verify_ct": 2}) == RequestSpeculation(steps=6)
    assert told() is None


def test_llama_cpp(decode, chunk) -> None:
    """llama.cpp's timings give tokens and no steps, and counts where usage is not sent."""
    timings = {"cache_n": 12, "prompt_n": 18, "predicted_n": 6, "draft_n": 5, "draft_n_accepted": 3}
    answer = decode(chunk(content="x"), chunk("stop", top={"timings": timings}))
    assert answer.speculation == RequestSpeculation(drafted_tokens=5, accepted_tokens=3)
    assert (answer.usage.input_tokens, answer.usage.cached_input_tokens, answer.usage.output_tokens) == (30, 12, 6)
    usage = {"prompt_tokens": 31, "completion_tokens": 7}
    counted = decode(chunk(content="x"), chunk("stop", top={"timings": timings, "usage": usage}))
    assert (counted.usage.input_tokens, counted.usage.output_tokens) == (31, 7)
    early = {"predicted_n": 1, "prompt_n": 18, "draft_n": 1, "draft_n_accepted": 0}
    each = decode(chunk(content="x", top={"timings": early}), chunk("stop", top={"timings": timings}))
    assert (each.usage, each.speculation) == (answer.usage, answer.speculation), "the last account wins"
    del timings["draft_n"], timings["draft_n_accepted"]
    assert decode(chunk(content="x"), chunk("stop", top={"timings": timings})).speculation is None
