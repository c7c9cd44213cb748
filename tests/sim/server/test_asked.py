import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.sim.server.asked import read_request
from loadgen.sim.server.exchange import Asked, RefusedError, Route
from loadgen.sim.server.prompts import chat_ids
from loadgen.sim.server.tokens import VOCABULARY_SIZE, ids_of

REFUSALS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "vllm_refusals.json").read_text()
)
QUESTION = [{"role": "user", "content": "How high is the lamp?"}]
QUESTION_TOKENS = len(chat_ids(QUESTION))


def read(route: Route, body: bytes, **changes: Any) -> Asked:
    server = {"request_id": "r-1", "model": "gemma3-270m", "max_model_len": 2048, **changes}
    return read_request(route, body, **server)


def chat(**fields: Any) -> Asked:
    return read(Route.CHAT, json.dumps({"messages": QUESTION, **fields}).encode())


def completion(**fields: Any) -> Asked:
    return read(Route.COMPLETIONS, json.dumps({"prompt": "The lamp is", **fields}).encode())


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_that_of_vllm(name: str) -> None:
    """Each request that a real vLLM was seen to refuse is refused with its status, type, message and parameter."""
    case = REFUSALS[name]
    with pytest.raises(RefusedError) as raised:
        read(Route(case["route"]), case["body"].encode(), speculates=True)
    refused = raised.value
    assert (refused.status, {"message": refused.message, "type": refused.kind, "param": refused.param}) == (
        case["status"],
        {key: value for key, value in case["reply"]["error"].items() if key != "code"},
    )


def test_what_a_chat_does_not_say_has_vllms_defaults() -> None:
    """A chat with messages alone may fill the context, samples at temperature 1 and is not streamed."""
    assert chat() == Asked(
        route=Route.CHAT,
        request_id="r-1",
        model="gemma3-270m",
        prompt_ids=tuple(chat_ids(QUESTION)),
        max_tokens=2048 - QUESTION_TOKENS,
    )


def test_a_completion_is_sixteen_tokens_unless_it_says_otherwise() -> None:
    """A completion without max_tokens, or with null, has 16; its prompt is the text's tokens alone."""
    assert completion().max_tokens == completion(max_tokens=None).max_tokens == 16
    assert completion(max_tokens=40).max_tokens == 40
    assert completion().prompt_ids == tuple(ids_of("The lamp is"))


def test_every_field_is_read() -> None:
    """What a request says of its own arrives under the name it has here."""
    asked = chat(
        model="gemma3-270m", stream=True, stream_options={"include_usage": True, "continuous_usage_stats": True}, n=2,
        max_completion_tokens=50, max_tokens=60, min_tokens=5, ignore_eos=True, temperature=0.5, top_p=0.9, seed=0,
        stop=["a", "b"], return_token_ids=True, logprobs=True, top_logprobs=3, stream_interval=4, cache_salt="salt",
    )  # fmt: skip
    assert asked == Asked(
        route=Route.CHAT, request_id="r-1", model="gemma3-270m", prompt_ids=tuple(chat_ids(QUESTION)), stream=True, n=2,
        max_tokens=50, min_tokens=5, ignore_eos=True, temperature=0.5, top_p=0.9, seed=0, stop=("a", "b"),
        include_usage=True, continuous_usage=True, return_token_ids=True, logprobs=3, stream_interval=4,
        cache_salt="salt",
    )  # fmt: skip


def test_null_is_the_default() -> None:
    """A field that may be null and is means the same as none."""
    names = ("model", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens", "temperature", "top_p",
             "seed", "stop", "return_token_ids", "logprobs", "top_logprobs", "stream_interval", "cache_salt", "min_p",
             "logit_bias")  # fmt: skip
    assert chat(**dict.fromkeys(names)) == chat()


@pytest.mark.parametrize("prompt", ["The lamp is", ["The lamp is"], ids_of("The lamp is"), [ids_of("The lamp is")]])
def test_a_prompt_has_four_forms(prompt: object) -> None:
    """Text, ids, and a list of one of either are the same prompt."""
    assert completion(prompt=prompt) == completion()


def test_any_token_of_the_vocabulary_may_be_in_a_prompt() -> None:
    """Ids from 0 to the last are taken as they are, the next one is refused."""
    assert completion(prompt=[0, VOCABULARY_SIZE - 1]).prompt_ids == (0, VOCABULARY_SIZE - 1)
    with pytest.raises(RefusedError, match=f"Token id {VOCABULARY_SIZE} is out of vocabulary"):
        completion(prompt=[0, VOCABULARY_SIZE])


def test_the_context_limits_an_answer() -> None:
    """An answer that would leave the context is cut to it, down to one token, and not refused."""
    assert completion(prompt=[5] * 2_000, max_tokens=100).max_tokens == 48
    assert completion(prompt=[5] * 2_047).max_tokens == 1


def test_log_probabilities_are_asked_for_in_two_ways() -> None:
    """A completion gives a number; a chat says yes, and how many alternatives besides."""
    assert [completion().logprobs, completion(logprobs=0).logprobs, completion(logprobs=2).logprobs] == [None, 0, 2]
    assert [chat().logprobs, chat(logprobs=True).logprobs, chat(logprobs=False, top_logprobs=0).logprobs] == [
        None,
        0,
        None,
    ]


def test_a_seed_of_minus_one_is_none() -> None:
    """As in vLLM, -1 asks for a random seed; 0 is a seed."""
    assert (chat(seed=-1).seed, chat(seed=0).seed) == (None, 0)


def test_fields_of_others_are_kept() -> None:
    """A field that is not known here is no fault and is kept as it came."""
    assert chat(user="a", tools=[{"type": "function"}], min_p=0.1).fields == {
        "user": "a",
        "tools": [{"type": "function"}],
    }


def test_without_speculation_nothing_of_it_is_refused() -> None:
    """min_p and logit_bias are refused by a server that speculates, and by no other."""
    body = json.dumps({"prompt": "The lamp", "min_p": 0.1}).encode()
    assert read(Route.COMPLETIONS, body).max_tokens == 16
    with pytest.raises(RefusedError, match="speculative decoding"):
        read(Route.COMPLETIONS, body, speculates=True)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"echo": True}, "echo is not supported"),
        ({"prompt": ["a", "b"]}, "one prompt"),
        ({"prompt": [[1], [2]]}, "one prompt"),
        ({"prompt": [""]}, "at least one prompt"),
        ({"n": 16_385}, "at most 16384"),
        ({"temperature": float("nan")}, "finite"),
        ({"logprobs": -1}, "greater than max allowed"),
        ({"cache_salt": "a" * 129}, "at most 128 characters"),
        ({"stop": ["a"] * 5}, "at most 4 items"),
    ],
)
def test_what_cannot_be_served_is_refused(fields: dict[str, object], message: str) -> None:
    """Values out of range, and what this server alone does not do, are bad requests that say what is wrong."""
    with pytest.raises(RefusedError, match=message) as refused:
        completion(**fields)
    assert refused.value.status == 400


@pytest.mark.parametrize("body", [b'{"model": "\xff"}', b"[" * 100_000])
def test_a_body_that_cannot_be_parsed_is_refused(body: bytes) -> None:
    """Bytes that are no text, and nesting without end, are a bad request like any other."""
    with pytest.raises(RefusedError, match="error parsing the body"):
        read(Route.CHAT, body)


def test_a_refusal_stays_short() -> None:
    """However much is wrong, and however long it is, the answer names ten faults and shows the start of each."""
    with pytest.raises(RefusedError) as refused:
        chat(messages=["x" * 10_000] * 50)
    assert refused.value.message.startswith("50 validation errors:")
    assert refused.value.message.endswith("...and 40 more errors")
    assert len(refused.value.message) < 10_000
