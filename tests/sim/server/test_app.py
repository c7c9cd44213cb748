"""The simulated server over real sockets, as vLLM would look: what is asked, what comes back, what is refused."""

import asyncio
import time

import pytest

from loadgen.sim.server.llamacpp import LlamacppDialect
from loadgen.sim.server.sglang import SglangDialect
from loadgen.sim.server.tensorrt_llm import TensorrtLlmDialect
from loadgen.sim.server.vllm import VllmDialect
from tests.sim.server.listening import CHAT, TEXT, Server, asking, simulated

OTHERS = (LlamacppDialect, TensorrtLlmDialect)


async def test_a_stream_says_what_the_whole_answer_does():
    """The same greedy request gives the same text in events, one a step, and in one body, on one connection."""
    async with simulated() as server, server.connected() as client:
        await client.send("POST", TEXT, asking(stream=True), x_request_id="mine")
        streamed = await client.answer()
        await client.send("POST", TEXT, asking())
        whole = await client.answer()
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = streamed.events
    assert {event["id"] for event in events} == {"cmpl-mine"}
    assert len(events) == 6
    assert "".join(event["choices"][0]["text"] for event in events) == whole.json["choices"][0]["text"]
    assert whole.headers["content-type"] == "application/json"
    assert whole.json["usage"]["completion_tokens"] == 6


async def test_steps_set_the_pace():
    """An event a step: six tokens take at least six steps, and not much longer on the server's own account."""
    async with simulated(step_s=0.01) as server:
        started = time.monotonic()
        await server.ask("POST", TEXT, asking(stream=True))
        assert time.monotonic() - started >= 0.06
        figures = (await server.ask("GET", "/sim/lateness")).json
    assert (figures["emissions"], figures["missed"]) == (6, 0)
    assert figures["max_s"] < 5


async def test_choices_share_a_stream():
    """The roles come first, then each choice's six events, then one end."""
    body = {
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 6,
        "ignore_eos": True,
        "n": 2,
        "stream": True,
    }
    async with simulated() as server:
        choices = [event["choices"][0] for event in (await server.ask("POST", CHAT, body)).events]
    assert [choice["index"] for choice in choices[:2]] == [0, 1]
    assert all(choice["delta"] == {"role": "assistant", "content": ""} for choice in choices[:2])
    assert sorted(choice["index"] for choice in choices[2:]) == [0] * 6 + [1] * 6


async def test_a_stream_interval_merges_events():
    """The first token comes at once, then events of at least four, and the rest at the end."""
    async with simulated() as server:
        asked = asking(max_tokens=11, stream=True, stream_interval=4, return_token_ids=True)
        events = (await server.ask("POST", TEXT, asked)).events
    assert [len(event["choices"][0]["token_ids"]) for event in events] == [1, 4, 4, 2]


async def test_many_at_once_run_in_the_same_steps():
    """Sixty-four requests that come together are served together, and each gets its own answer."""
    async with simulated() as server:
        answers = await asyncio.gather(
            *(server.ask("POST", TEXT, asking(prompt=f"question {number}", stream=True)) for number in range(64))
        )
        steps = await server.metric("vllm:iteration_tokens_total_count")
    texts = {"".join(event["choices"][0]["text"] for event in answer.events) for answer in answers}
    assert len(texts) == 64
    assert steps < 64 * 6 / 2, "shared steps: alone, each would need six of its own"


async def test_what_was_computed_once_is_found_again():
    """A prompt's full blocks are cached for the next that begins with them, until the cache is emptied."""

    async def cached(server: Server) -> int:
        answer = await server.ask("POST", TEXT, asking(prompt=list(range(1000, 1040))))
        return int(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"])

    async with simulated() as server:
        assert [await cached(server), await cached(server)] == [0, 32]
        assert (await server.ask("POST", "/reset_prefix_cache")).json == {"success": True}
        assert await cached(server) == 0


@pytest.mark.parametrize(
    ("dialect", "asked", "says"),
    [
        (VllmDialect, ("POST", "/reset_prefix_cache"), (200, b'{"success":true}')),
        (VllmDialect, ("GET", "/reset_prefix_cache"), (405, None)),
        (VllmDialect, ("POST", "/flush_cache"), (404, None)),
        (SglangDialect, ("POST", "/flush_cache"), (200, b"Cache flushed.\n")),
        (SglangDialect, ("GET", "/flush_cache"), (200, b"Cache flushed.\n")),
        (SglangDialect, ("POST", "/reset_prefix_cache"), (404, None)),
        *((other, ("POST", path), (404, None)) for other in OTHERS for path in ("/reset_prefix_cache", "/flush_cache")),
    ],
)
async def test_each_dialect_empties_its_cache_by_its_own_page(dialect, asked, says):
    """And has no other's; `GET` on vLLM's tells that it is there without emptying anything."""
    async with simulated(dialect=dialect) as server:
        answer = await server.ask(*asked)
    assert answer.status == says[0]
    assert says[1] in (None, answer.body)


@pytest.mark.parametrize(
    ("dialect", "path", "says"),
    [
        (VllmDialect, "/reset_prefix_cache", (200, b'{"success":false}')),
        (SglangDialect, "/flush_cache", (400, b"Requests are running: the cache was not flushed.\n")),
    ],
)
async def test_a_cache_in_use_is_not_emptied(dialect, path, says):
    """Each dialect says so in its own way."""
    async with simulated(step_s=0.05, dialect=dialect) as server, server.connected() as client:
        await client.send("POST", TEXT, asking(stream=True))
        await client.head()
        await client.piece()
        answer = await server.ask("POST", path)
    assert (answer.status, answer.body) == says


async def test_a_request_that_cannot_be_served_is_refused():
    """With the dialect's words and the request's status, and the connection carries on."""
    async with simulated() as server, server.connected() as client:
        await client.send("POST", TEXT, asking(model="other"))
        refused = await client.answer()
        await client.send("POST", TEXT, b"{")
        broken = await client.answer()
        await client.send("POST", TEXT, asking())
        assert (await client.answer()).status == 200
    assert (refused.status, refused.json["error"]["code"]) == (404, 404)
    assert broken.status == 400


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"cache_salt": "\ud800"}, 200),
        ({"stop": "\ud800"}, 200),
        ({"prompt": "\ud800"}, 200),
        ({"model": "\ud800"}, 404),
        ({"logprobs": "\ud800"}, 400),
        ({"logit_bias": {"\ud800": "much"}}, 400),
    ],
)
async def test_half_a_surrogate_pair_is_answered(fields, status):
    """JSON can hold what UTF-8 cannot: it is worked with, or told as a question mark where a refusal repeats it."""
    async with simulated() as server:
        answered = await server.ask("POST", TEXT, asking(**fields))
    assert answered.status == status
    assert ("?" in answered.json.get("error", {}).get("message", "?")) == (fields.keys() != {"logit_bias"})


async def test_more_than_a_server_can_generate_is_refused():
    """A million tokens are the limit of one request, all choices together; the answer does not take long."""
    async with simulated() as server:
        refused = await server.ask("POST", TEXT, asking(n=500, max_tokens=2001, temperature=1))
        assert refused.status == 400
        assert "at most 1,000,000 tokens a request, got n=500 times 2001" in refused.json["error"]["message"]


async def test_a_page_waits_for_the_burst():
    """A page asked for right after an event of a stream comes no earlier than the next one, a step later."""
    async with simulated(step_s=0.015) as server, server.connected() as client:
        await client.send("POST", TEXT, asking(max_tokens=20, stream=True))
        await client.head()
        waits_s = []
        for _ in range(5):
            await client.piece()
            asked_s = time.monotonic()
            await server.ask("GET", "/version")
            waits_s.append(time.monotonic() - asked_s)
    assert sorted(waits_s)[2] > 0.01


async def test_a_client_that_leaves_ends_its_request():
    """Its answer is aborted, which is no success, and the server holds nothing of it any more."""
    async with simulated() as server:
        async with server.connected() as client:
            await client.send("POST", TEXT, asking(max_tokens=4000, stream=True))
            await client.head()
            await client.piece()
            assert (await server.ask("GET", "/load")).json == {"server_load": 1}
        while await server.metric("vllm:num_requests_running"):
            pass
        assert (await server.ask("GET", "/load")).json == {"server_load": 0}
        assert await server.metric("vllm:request_success_total") == 0
        assert await server.metric("vllm:kv_cache_usage_perc") == 0


async def test_its_pages():
    """Health, models, load and the dialect's own pages; what there is not is a 404, with the wrong method a 405."""
    async with simulated() as server:
        health = await server.ask("GET", "/health")
        assert (health.status, health.body) == (200, b"")
        (model,) = (await server.ask("GET", "/v1/models")).json["data"]
        assert (model["id"], model["owned_by"], model["max_model_len"]) == ("m", "vllm", 4096)
        assert [permission["object"] for permission in model["permission"]] == ["model_permission"]
        assert (await server.ask("GET", "/version")).status == 200
        info = await server.ask("GET", "/server_info?config_format=json")
        assert isinstance(info.json["vllm_config"], dict), "a page gets its query"
        assert (await server.ask("GET", "/nothing")).json == {"detail": "Not Found"}
        assert (await server.ask("GET", TEXT)).status == 405
        assert (await server.ask("POST", "/health")).status == 405


async def test_text_becomes_tokens_and_tokens_text():
    """Tokenizing there and back gives the text again; what is neither text nor tokens is refused."""
    async with simulated() as server:
        told = (await server.ask("POST", "/tokenize", {"prompt": "Some words, and überall."})).json
        assert told["count"] == len(told["tokens"])
        back = await server.ask("POST", "/detokenize", {"tokens": told["tokens"]})
        assert back.json == {"prompt": "Some words, and überall."}
        chat = await server.ask("POST", "/tokenize", {"messages": [{"role": "user", "content": "hi"}]})
        assert chat.json["count"] > 2
        for path, body in (
            ("/tokenize", {"prompt": 1}),
            ("/tokenize", b"nonsense"),
            ("/tokenize", {"messages": ["hi"]}),
            ("/detokenize", {"tokens": [10**9]}),
            ("/detokenize", {"tokens": ["a"]}),
        ):
            assert (await server.ask("POST", path, body)).status == 400


async def test_a_key_is_asked_for_where_one_is_set():
    """Without the right key the API says 401; health and metrics need none."""
    async with simulated(api_key="secret") as server:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "secret"}):
            refused = await server.ask("POST", TEXT, asking(), **headers)
            assert (refused.status, refused.json) == (401, {"error": "Unauthorized"})
        assert (await server.ask("POST", TEXT, asking(), authorization="Bearer secret")).status == 200
        assert (await server.ask("GET", "/health")).status == 200
