"""The vLLM dialect against a real vLLM: recorded answers are told again to the last key, pages have the same series."""

import json
from dataclasses import replace
from typing import Any

import pytest

from loadgen.sim.server.exchange import Answer, Output, Part, RefusedError
from loadgen.sim.server.vllm import VllmDialect
from tests.sim.server.recorded import events_of, facts, ordered, recorded, retold, without_timings

STREAMS = [
    *(f"chat_{case}" for case in ("usage", "no_usage", "continuous", "token_ids", "logprobs", "two_choices")),
    *(f"completions_{case}" for case in ("usage", "continuous", "token_ids", "logprobs", "multibyte", "one_token")),
]
WHOLE = [f"vllm_{arm}_{route}_unary.json" for arm in ("baseline", "ngram") for route in ("chat", "completions")]


ERRORS = [f"vllm_baseline_error_{case}.json" for case in ("too_long", "bad_field", "no_model")]


def dialect(arm: str, **given: Any) -> VllmDialect:
    return VllmDialect(facts(arm, **given))


@pytest.mark.parametrize("arm", ["baseline", "ngram"])
@pytest.mark.parametrize("case", STREAMS)
def test_a_recorded_stream_is_told_again(arm: str, case: str) -> None:
    """Every event has the same keys in the same order with the same values: roles, parts, finish, usage, end marker.

    What the events hold is taken from the recording; their form is the dialect's.
    """
    name = f"vllm_{arm}_{case}.sse"
    vllm, again = dialect(arm), retold(name)
    given = [vllm.opening(answer) for answer in again.answers] + [vllm.part(*each) for each in again.parts]
    given = [event for event in given if event] + events_of(vllm.closing(again.answers))
    wanted = events_of(recorded(name)[1])
    assert [ordered(event) for event in given] == [ordered(without_timings(event)) for event in wanted]
    assert [event for event in given if b"system_fingerprint" not in event] == [
        event for event in wanted if b"system_fingerprint" not in event
    ]


@pytest.mark.parametrize("name", WHOLE)
def test_a_recorded_body_is_told_again(name: str) -> None:
    """A whole answer has every field of the real one in its order, null where that has null."""
    given = dialect(name.split("_")[1]).whole(retold(name).answers)
    assert ordered(given) == ordered(without_timings(recorded(name)[1]))


def test_acceptance_is_told_as_configured() -> None:
    """`summary` leaves the steps out, None leaves all of it out; of several choices none is told."""
    answers, two = retold("vllm_ngram_chat_usage.sse").answers, retold("vllm_ngram_chat_two_choices.sse").answers

    def told(level: str | None, answers: list[Answer]) -> dict[str, Any]:
        return json.loads(events_of(dialect("ngram", per_request_speculation=level).closing(answers))[0][6:])

    detailed = told("detailed", answers)["metrics"]["speculative_decoding"]
    assert detailed["per_step_accepted"] == [4, 4, 3, 4, 4, 3]
    summary = {name: value for name, value in detailed.items() if not name.startswith("per_step")}
    assert told("summary", answers)["metrics"] == {"speculative_decoding": summary}
    assert "metrics" not in told(None, answers)
    assert "metrics" not in told("detailed", two)
    whole = json.loads(dialect("ngram", per_request_speculation="summary").whole(answers))
    assert whole["metrics"]["speculative_decoding"] == summary | {"per_step_accepted": None, "per_step_drafted": None}


def test_a_chat_tells_of_the_prefix_cache() -> None:
    """Tokens found in it, and those that the prompt added: its other full blocks, none where there is no cache."""
    (answer,) = retold("vllm_ngram_chat_usage.sse").answers

    def told(**given: Any) -> tuple[int, int]:
        usage = json.loads(events_of(dialect("ngram", **given).closing([found]))[0][6:])["usage"]
        details = usage["prompt_tokens_details"]
        return details["cached_tokens"], details["created_cache_tokens"]

    asked = replace(answer.asked, prompt_ids=tuple(range(100)))
    found = replace(answer, asked=asked, cached_tokens=32)
    assert told(block_tokens=16) == (32, 64)
    assert told(block_tokens=16, prefix_caching=False) == (32, 0)
    assert told(block_tokens=128) == (32, 0)


def test_a_part_may_hold_several_steps() -> None:
    """Steps that were merged for a slow reader are one event with all their text and ids."""
    (answer,) = retold("vllm_ngram_completions_token_ids.sse").answers
    event = json.loads(dialect("ngram").part(answer, Part(0, 8, finished=False))[6:])
    (choice,) = event["choices"]
    assert choice["text"] == "\n\nThe lighthouse stands at the end of"
    assert choice["token_ids"] == list(answer.output.ids[:8])


def test_alternatives_are_told_beside_the_token() -> None:
    """A chat lists as many as were asked for, most often the token first; completions have the token besides them."""
    output = Output(
        ids=(1,),
        texts=("a",),
        tokens=("a",),
        logprobs=(-2.0,),
        top_logprobs=((("b", -0.5), ("c", float("-inf"))),),
        finish_reason="length",
    )
    (answer,) = retold("vllm_baseline_chat_logprobs.sse").answers
    chat = replace(answer, output=output)
    (choice,) = json.loads(dialect("baseline").part(chat, Part(0, 1, finished=True))[6:])["choices"]
    (entry,) = choice["logprobs"]["content"]
    assert [(top["token"], top["logprob"]) for top in entry["top_logprobs"]] == [("a", -2.0), ("b", -0.5)]
    (answer,) = retold("vllm_baseline_completions_logprobs.sse").answers
    (choice,) = json.loads(dialect("baseline").part(replace(answer, output=output), Part(0, 1, finished=True))[6:])[
        "choices"
    ]
    assert choice["logprobs"]["top_logprobs"] == [{"a": -2.0, "b": -0.5, "c": -9999.0}]


@pytest.mark.parametrize("name", ERRORS)
def test_a_recorded_refusal_is_told_again(name: str) -> None:
    """An error body is the real one to the byte."""
    index, body = recorded(name)
    error = json.loads(body)["error"]
    refused = RefusedError(index["status"], error["type"], error["message"], param=error["param"])
    assert dialect("baseline").refusal(refused) == body


def test_a_failing_engine_is_told_as_recorded() -> None:
    """A stream that had begun ends with the real error event and end marker, to the byte; a whole answer likewise."""
    stream, whole = (recorded(f"vllm_dying_completions_{name}")[1] for name in ("stream.sse", "unary.json"))
    message = json.loads(whole)["error"]["message"]
    assert dialect("baseline").error_event(message) == stream
    assert dialect("baseline").refusal(RefusedError(500, "InternalServerError", message)) == whole
