"""Plans: numbering, phases, due times and bodies."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from loadgen.core.errors import ConfigError
from loadgen.core.request import (
    Body,
    Conversation,
    Endpoint,
    Messages,
    Phase,
    Prompt,
    RequestTemplate,
    Sampling,
    Text,
    TokenIds,
    Turn,
)
from loadgen.core.schedule.bodies import body_of
from loadgen.core.schedule.plan import plan


def template(endpoint: Endpoint = Endpoint.CHAT, **more: Any) -> RequestTemplate:
    return RequestTemplate(endpoint=endpoint, model="m", **more)


def conversations(*lengths: int) -> Iterator[Conversation]:
    for number, length in enumerate(lengths):
        turns = tuple(Turn(prompt=Text(text=f"{number}.{turn}"), offset_ns=number * 10**9) for turn in range(length))
        yield Conversation(turns=turns, session_id=f"s{number}" if length > 1 else None)


def test_requests_are_numbered_over_conversations_and_cut_at_the_count() -> None:
    """Seven requests of conversations of 2, 4 and 5 turns: the last conversation is cut, numbers have no gap."""
    planned = list(plan(conversations(2, 4, 5), template(), request_id_prefix="run", num_requests=7))
    requests = [request for conversation in planned for request in conversation.requests]
    assert [request.seq for request in requests] == list(range(7))
    assert [len(conversation.requests) for conversation in planned] == [2, 4, 1]
    assert len({request.request_id for request in requests}) == 7


def test_the_first_requests_are_warm_up_and_come_on_top_of_the_count() -> None:
    """Three warm-up requests and four measured ones are seven in all."""
    planned = list(plan(conversations(*[1] * 20), template(), request_id_prefix="r", num_requests=4, warmup_requests=3))
    phases = [request.phase for conversation in planned for request in conversation.requests]
    assert phases == [Phase.WARMUP] * 3 + [Phase.MEASURE] * 4


def test_rates_time_conversations_and_replay_times_turns() -> None:
    """A rate gives the first turn of each conversation an instant; a replay gives each turn its own."""
    by_rate = list(plan(conversations(2, 1), template(), request_id_prefix="r", offsets=iter([0, 50])))
    assert [[request.due_ns for request in item.requests] for item in by_rate] == [[0, None], [50]]
    replayed = list(plan(conversations(1, 1, 1), template(), request_id_prefix="r", replay=True))
    assert [item.requests[0].due_ns for item in replayed] == [0, 1_000_000_000, 2_000_000_000]


def test_a_replay_of_data_without_times_is_refused() -> None:
    """The message says what to give instead."""
    untimed = iter([Conversation(turns=(Turn(prompt=Text(text="x")),))])
    with pytest.raises(ConfigError, match="needs data with time stamps"):
        list(plan(untimed, template(), request_id_prefix="r", replay=True))


PROMPTS: list[tuple[Endpoint, Prompt, dict[str, Any]]] = [
    (Endpoint.CHAT, Text(text="hi"), {"messages": [{"role": "user", "content": "hi"}]}),
    (Endpoint.COMPLETIONS, Text(text="hi"), {"prompt": "hi"}),
    (Endpoint.COMPLETIONS, TokenIds(ids=(1, 2)), {"prompt": [1, 2]}),
    (Endpoint.COMPLETIONS, Messages(messages=({"role": "user", "content": "hi"},)), {"prompt": "hi"}),
    (Endpoint.RESPONSES, Text(text="hi"), {"input": "hi"}),
    (Endpoint.CHAT, Body(body={"messages": [], "top_p": 0.5}), {"messages": [], "top_p": 0.5}),
]


@pytest.mark.parametrize(("endpoint", "prompt", "expected"), PROMPTS)
def test_bodies_by_endpoint_and_prompt(endpoint: Endpoint, prompt: Prompt, expected: dict[str, Any]) -> None:
    """Each endpoint gets its prompt under its own name, with the model and streaming set."""
    body = json.loads(json.dumps(body_of(template(endpoint), Turn(prompt=prompt))))
    assert {key: body[key] for key in expected} == expected
    assert body["model"] == "m"
    assert body["stream"] is True
    assert ("stream_options" in body) == (endpoint is not Endpoint.RESPONSES)


@pytest.mark.parametrize(
    ("endpoint", "prompt"),
    [
        (Endpoint.CHAT, TokenIds(ids=(1,))),
        (Endpoint.RESPONSES, TokenIds(ids=(1,))),
        (Endpoint.COMPLETIONS, Messages(messages=({"role": "user", "content": "a"}, {"role": "user", "content": "b"}))),
    ],
)
def test_a_prompt_that_the_endpoint_cannot_take_names_its_line(endpoint: Endpoint, prompt: Prompt) -> None:
    """Nothing is sent in another form in silence."""
    with pytest.raises(ConfigError, match=r"line 17: .*--endpoint completions"):
        body_of(template(endpoint), Turn(prompt=prompt, source_line=17))


@pytest.mark.parametrize(("row", "limit", "sent"), [(64, None, 64), (64, 32, 32), (16, 32, 16), (None, 32, 32)])
def test_max_tokens_caps_the_data(row: int | None, limit: int | None, sent: int) -> None:
    """The data's own output length is asked for, at most the given bound."""
    body = body_of(template(max_output_tokens=limit), Turn(prompt=Text(text="x"), output_tokens=row))
    assert body["max_tokens"] == sent


@pytest.mark.parametrize(
    ("own", "row", "limit", "sent"),
    [
        ({"max_tokens": 50}, 50, None, {"max_tokens": 50}),
        ({"max_tokens": 50}, 50, 9, {"max_tokens": 9}),
        ({"max_completion_tokens": 50, "max_tokens": 5}, 50, 9, {"max_completion_tokens": 9, "max_tokens": 5}),
        ({}, 20, None, {"max_tokens": 20}),
        ({"max_tokens": None}, None, 9, {"max_tokens": 9}),
        ({}, None, None, {}),
    ],
)
def test_a_whole_body_keeps_its_own_limit_under_that_of_the_run(
    own: dict[str, Any], row: int | None, limit: int | None, sent: dict[str, int]
) -> None:
    """By its own name. One without a limit gets that of its line; of what the run does not ask for nothing is added."""
    body = body_of(
        template(max_output_tokens=limit), Turn(prompt=Body(body={"messages": [], **own}), output_tokens=row)
    )
    assert body == {"messages": [], "model": "m", "stream": True, "stream_options": {"include_usage": True}, **sent}


def test_a_whole_body_is_sampled_as_the_run_asks() -> None:
    """Whatever it says itself: a comparison of greedy answers has to be one."""
    shared = template(sampling=Sampling(temperature=0.0, ignore_eos=True))
    body = body_of(shared, Turn(prompt=Body(body={"messages": [], "temperature": 0.9})))
    assert (body["temperature"], body["ignore_eos"]) == (0.0, True)


def test_sampling_and_extra_body_reach_the_request_typed() -> None:
    """A seed of 0 and a temperature of 0 are sent; the extra body lies on top with its JSON types."""
    shared = template(
        sampling=Sampling(temperature=0.0, seed=0, ignore_eos=True),
        extra_body={"top_k": 5, "ignore_eos": False},
        continuous_usage=True,
        return_token_ids=True,
    )
    body = body_of(shared, Turn(prompt=Text(text="x")))
    assert (body["temperature"], body["seed"], body["top_k"], body["ignore_eos"]) == (0.0, 0, 5, False)
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert body["return_token_ids"] is True


def test_nothing_is_asked_for_that_was_not_given() -> None:
    """Without options no sampling field is sent: a length forced past the end of a turn breaks some models' format."""
    body = body_of(template(), Turn(prompt=Text(text="x")))
    assert body.keys() == {"messages", "model", "stream", "stream_options"}
    assert body["stream_options"] == {"include_usage": True}
    forced = body_of(template(sampling=Sampling(ignore_eos=True)), Turn(prompt=Text(text="x"), output_tokens=300))
    assert (forced["ignore_eos"], forced["max_tokens"]) == (True, 300)
