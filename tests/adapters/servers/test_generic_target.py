"""What a target tells before a run, asked over real sockets."""

import asyncio
import json
import socket
import threading
from typing import Any

import httpx2
import pytest

from loadgen.adapters.servers.control import Control
from loadgen.adapters.servers.generic import probe_target
from loadgen.adapters.servers.trials import Capabilities
from loadgen.core.errors import ConfigError, TargetError
from loadgen.core.request import Endpoint
from tests.fakes.scripted_server import Peer, ScriptedServer, plain


def as_json(value: Any, status: int = 200) -> tuple[int, str, bytes]:
    """A JSON reply."""
    return status, "application/json", json.dumps(value).encode()


def models(*names: str, **more: Any) -> tuple[int, str, bytes]:
    """A model listing."""
    return as_json({"object": "list", "data": [{"id": name, "object": "model"} | more for name in names]})


def as_stream(*chunks: Any) -> tuple[int, str, bytes]:
    """An event stream reply with its end marker."""
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return 200, "text/event-stream; charset=utf-8", "".join([": hi\n\n", *events, "data: [DONE]\n\n"]).encode()


def delta(text: str, **more: Any) -> dict[str, Any]:
    """A chat chunk."""
    return {"choices": [{"index": 0, "delta": {"content": text}} | more]}


USAGE = {"prompt_tokens": 1, "completion_tokens": 2}


async def probe(serving, client_for, table, **options):
    """The facts, and what the server was asked."""
    locate = options.pop("locate", str)
    options = {"endpoint": Endpoint.CHAT} | options
    with serving(table) as server:
        async with client_for(server.url) as client:
            return await probe_target(Control(client, locate), **options), server.seen


ENGINES = {
    "vllm": (
        {
            "/v1/models": models("m", owned_by="vllm", max_model_len=4096),
            "/version": as_json({"version": "0.33.0"}),
            "/health": (200, "text/plain", b""),
            "/metrics": (200, "text/plain; version=0.0.4", b"# HELP vllm:num_requests_running x\n"),
        },
        ("vllm", "0.33.0", 4096, True, "/metrics"),
    ),
    "sglang": (
        {
            "/v1/models": models("m", owned_by="sglang", max_model_len=2048),
            "/server_info": as_json({"version": "0.5.23"}),
            "/health": (503, "text/plain", b""),
        },
        ("sglang", "0.5.23", 2048, False, None),
    ),
    "llama.cpp": (
        {
            "/v1/models": models("m", owned_by="llamacpp"),
            "/props": as_json({"build_info": "b9000-abc", "default_generation_settings": {"n_ctx": 8192}}),
            "/health": as_json({"status": "ok"}),
            "/metrics": as_json({"error": {"code": 501}}, 501),
        },
        ("llamacpp", "b9000-abc", 8192, True, None),
    ),
    "TensorRT-LLM": (
        {
            "/v1/models": models("m", owned_by="tensorrt_llm"),
            "/version": as_json({"version": "1.2.0"}),
            "/metrics": as_json([]),
            "/prometheus/metrics": (200, "text/plain", b"trtllm_e2e_request_latency_seconds_count 3\n"),
        },
        ("tensorrt-llm", "1.2.0", None, None, "/prometheus/metrics"),
    ),
    "only its metrics": (
        {"/v1/models": models("m"), "/metrics": (200, "text/plain", b"# TYPE vllm:x counter\nvllm:x 1\n")},
        ("vllm", None, None, None, "/metrics"),
    ),
    "unknown": ({"/v1/models": models("m", owned_by="me")}, (None, None, None, None, None)),
    "a page of HTML for everything": (
        {
            "/v1/models": models("m"),
            **dict.fromkeys(("/version", "/metrics", "/health"), (200, "text/html", b"<!doctype html>")),
        },
        (None, None, None, True, None),
    ),
}


@pytest.mark.parametrize("name", ENGINES)
async def test_an_engine_is_known_by_its_own_word(serving, client_for, name):
    """Engine, version, context and pages follow from what each engine answers; nothing is guessed for the others."""
    table, expected = ENGINES[name]
    facts, _ = await probe(serving, client_for, table)
    found = (facts.engine, facts.engine_version, facts.max_model_len, facts.healthy, facts.metrics_path)
    assert found == expected
    assert facts.model == "m"
    assert facts.capabilities == Capabilities(), "nothing is tried unless asked for"


async def test_an_engine_that_is_named_is_believed(serving, client_for):
    """Behind a gateway that calls itself something else, its pages are asked for all the same."""
    table = {
        "/v1/models": models("m", owned_by="gateway"),
        "/version": as_json({"engine": "gateway"}),
        "/server_info": as_json({"version": "0.5.23", "speculative_algorithm": "EAGLE3"}),
    }
    assert (await probe(serving, client_for, table))[0].engine == "gateway"
    facts, _ = await probe(serving, client_for, table, engine="sglang")
    assert (facts.engine, facts.engine_version) == ("sglang", "0.5.23")
    assert facts.speculation is not None


def trtllm(**pages: Any) -> dict[str, Any]:
    return {"/v1/models": models("m", owned_by="tensorrt_llm"), "/metrics": as_json([{"iter": 1}]), **pages}


@pytest.mark.parametrize(
    ("pages", "path"),
    [({"/prometheus/metrics": (200, "text/plain", b"trtllm_x 3\n")}, "/prometheus/metrics"), ({}, "/metrics")],
)
async def test_iterations_are_not_taken_from_their_queue(serving, client_for, pages, path):
    """Another reader of TensorRT-LLM's list, such as a monitor, loses none of them to our questions."""
    facts, seen = await probe(serving, client_for, trtllm(**pages))
    assert (facts.engine, facts.metrics_path) == ("tensorrt-llm", path)
    assert ("GET", "/metrics") not in [(method, asked) for method, asked, *_ in seen]


async def test_an_unnamed_engine_is_asked_for_the_page_that_is_no_queue_first(serving, client_for):
    """Behind a gateway that owns the models: its Prometheus page tells the engine, and the list stays as it is."""
    table = trtllm(**{"/prometheus/metrics": (200, "text/plain", b"trtllm_x 3\n"), "/v1/models": models("m")})
    facts, seen = await probe(serving, client_for, table)
    assert (facts.engine, facts.metrics_path) == ("tensorrt-llm", "/prometheus/metrics")
    assert "/metrics" not in [asked for _, asked, *_ in seen]


@pytest.mark.parametrize(
    ("reply", "unread"),
    [
        ((401, "text/plain", b""), "/metrics"),
        ((307, "text/plain", b"/metrics/"), "/metrics"),
        ((503, "text/plain", b""), "/metrics"),
        ((404, "text/plain", b""), None),
        ((501, "text/plain", b""), None),
        ((200, "text/html", b"<html>"), None),
    ],
)
async def test_a_page_that_is_withheld_is_not_one_that_is_not_there(serving, client_for, reply, unread):
    """What wants a key, redirects or breaks will be asked for during the run, and its failure told."""
    table = {"/v1/models": models("m", owned_by="vllm"), "/metrics": reply}
    facts, _ = await probe(serving, client_for, table)
    assert (facts.metrics_path, facts.unread_metrics_path) == (None, unread)


async def test_the_only_model_is_taken(serving, client_for):
    """Without a name the server's only model is the one."""
    facts, _ = await probe(serving, client_for, {"/v1/models": models("just-me")})
    assert (facts.model, facts.models) == ("just-me", ("just-me",))


async def test_a_name_given_wins_over_the_listing(serving, client_for):
    """A name that the listing lacks is used as given: adapters and aliases need not be listed."""
    table = {"/v1/models": models("base", max_model_len=5)}
    facts, _ = await probe(serving, client_for, table, model="adapter")
    assert (facts.model, facts.max_model_len) == ("adapter", None)


@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        (models("a", "b"), r"--model: expected one of the server's 2 models: a, b$"),
        (models(*"abcdefghijklmnopqrstuvwxyz"), r"26 models: a, .*, t, …$"),
        (models(), "does not list its models"),
        (as_json({"data": None}), "does not list its models"),
        (as_json({"data": [{"id": None}, {"id": ""}, {}, None]}), "does not list its models"),
        ((200, "text/html", b"<p>"), "does not list its models"),
        ((404, "text/plain", b"no"), "does not list its models"),
    ],
)
async def test_a_model_must_be_named_unless_there_is_one(serving, client_for, listing, expected):
    """With several models, or none listed, the message says what to give."""
    with pytest.raises(ConfigError, match=expected):
        await probe(serving, client_for, {"/v1/models": listing})


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ((401, "text/plain", b""), r"the key was refused \(HTTP 401\)"),
        ((307, "text/plain", b"http://127.0.0.1:9/elsewhere"), r"redirects elsewhere \(HTTP 307\)"),
        ((503, "text/plain", b"loading"), r"not ready: GET /v1/models gave HTTP 503"),
    ],
)
async def test_an_unusable_target_is_told_apart(serving, client_for, reply, expected):
    """A refused key, a redirect (never followed) and a server that still loads each have their own words."""
    with pytest.raises(TargetError, match=expected) as caught:
        await probe(serving, client_for, {"/v1/models": reply})
    assert caught.value.exit_code == 4


async def test_an_unreachable_target_is_an_error_with_a_hint(client_for):
    """Nothing listens: the message names the address and what localhost means in a container."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with client_for(url) as client:
            with pytest.raises(TargetError, match=r"cannot be reached: .*inside a container") as caught:
                await probe_target(Control(client), endpoint=Endpoint.CHAT)
    assert url in str(caught.value)


async def test_a_server_that_speaks_no_http_is_an_error(client_for):
    """A listener that closes at once is unreachable, not a crash."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with client_for(url) as client:
            closer = threading.Thread(target=lambda: listener.accept()[0].close())
            closer.start()
            with pytest.raises(TargetError, match="cannot be reached"):
                await probe_target(Control(client), endpoint=Endpoint.CHAT)
            closer.join()


async def test_a_full_server_shows_every_capability(serving, client_for):
    """Each capability is tried with one tiny request, and its field in the stream is the proof."""

    def answer(body):
        options = body.get("stream_options", {})
        more: dict[str, Any] = {}
        if body.get("return_token_ids"):
            more["token_ids"] = [1]
        if body.get("logprobs"):
            more["logprobs"] = {"content": [{"token": "a"}]}
        chunk = delta("a", **more)
        if options.get("continuous_usage_stats"):
            chunk["usage"] = USAGE
        last = [{"choices": [], "usage": USAGE}] if options.get("include_usage") else []
        return as_stream(delta(""), chunk, chunk, *last)

    table = {"/v1/models": models("m"), "/v1/chat/completions": answer}
    facts, seen = await probe(serving, client_for, table, try_requests=True)
    assert facts.capabilities == Capabilities(
        streaming=True, usage_in_stream=True, continuous_usage=True, token_ids=True, logprobs=True
    )
    assert facts.refusals == {}
    posted = [body for method, _, _, body in seen if method == "POST"]
    assert len(posted) == 4
    assert all(body["model"] == "m" and body["stream"] and body["max_tokens"] <= 16 for body in posted)


async def test_usage_in_the_last_chunk_is_not_continuous(serving, client_for):
    """Counts beside the last content are usage in the stream, and nothing is said about the events before."""
    reply = as_stream(delta("a"), delta("b", finish_reason="stop") | {"usage": USAGE})
    facts, _ = await probe(
        serving, client_for, {"/v1/models": models("m"), "/v1/chat/completions": reply}, try_requests=True
    )
    assert facts.capabilities.usage_in_stream is True
    assert facts.capabilities.continuous_usage is False


async def test_what_is_ignored_is_not_there(serving, client_for):
    """A server that streams and ignores every option has streaming alone; an explicit null is no value."""
    chunk = delta("a", token_ids=None, logprobs=None) | {"usage": None}
    table = {"/v1/models": models("m"), "/v1/completions": as_stream(chunk)}
    facts, seen = await probe(serving, client_for, table, endpoint=Endpoint.COMPLETIONS, try_requests=True)
    assert facts.capabilities == Capabilities(
        streaming=True, usage_in_stream=False, continuous_usage=False, token_ids=False, logprobs=False
    )
    assert {body["prompt"] for method, _, _, body in seen if method == "POST"} == {"Hello"}


async def test_a_strict_server_refuses_with_its_reason(serving, client_for):
    """Options that are refused cost their own capability alone, and the server's reason is kept."""

    def answer(body):
        for name in ("stream_options", "return_token_ids", "logprobs"):
            if name in body:
                return as_json({"error": {"message": f"extra field {name}"}}, 400)
        return as_stream(delta("a"))

    table = {"/v1/models": models("m"), "/v1/chat/completions": answer}
    facts, _ = await probe(serving, client_for, table, try_requests=True)
    assert facts.capabilities == Capabilities(
        streaming=True, usage_in_stream=False, continuous_usage=False, token_ids=False, logprobs=False
    )
    assert facts.refusals["token_ids"] == "HTTP 400: extra field return_token_ids"
    assert set(facts.refusals) == {"usage_in_stream", "continuous_usage", "token_ids", "logprobs"}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (as_json({"choices": [{"message": {"content": "hi"}}]}), "not with an event stream"),
        ((500, "text/html", b"<h1>oops</h1>"), "HTTP 500: <h1>oops</h1>"),
        (as_json({"error": "just text"}, 400), "HTTP 400: just text"),
    ],
)
async def test_a_server_without_streams_says_why(serving, client_for, reply, reason):
    """When not even a plain stream comes, nothing else is tried."""
    table = {"/v1/models": models("m"), "/v1/chat/completions": reply}
    facts, seen = await probe(serving, client_for, table, try_requests=True)
    assert facts.capabilities == Capabilities(streaming=False)
    assert reason in facts.refusals["streaming"]
    assert sum(method == "POST" for method, *_ in seen) == 2


async def test_an_error_event_is_no_stream(serving, client_for):
    """A 200 whose only event is an error does not count as streaming."""
    table = {"/v1/models": models("m"), "/v1/chat/completions": as_stream({"error": {"message": "dead"}})}
    facts, _ = await probe(serving, client_for, table, try_requests=True)
    assert facts.capabilities.streaming is False


async def test_the_responses_endpoint_has_its_own_usage(serving, client_for):
    """Counts of the responses endpoint stand in the final response object."""
    completed = {"type": "response.completed", "response": {"usage": {"output_tokens": 2}}}
    table = {"/v1/models": models("m"), "/v1/responses": as_stream({"type": "response.created"}, completed)}
    facts, seen = await probe(serving, client_for, table, endpoint=Endpoint.RESPONSES, try_requests=True)
    assert facts.capabilities == Capabilities(streaming=True, usage_in_stream=True)
    assert [body["input"] for method, _, _, body in seen if method == "POST"] == ["Hello"]


async def test_an_api_below_a_prefix_is_found(serving, client_for):
    """Every path goes through `locate`, so a gateway's prefix reaches each page and each trial request."""
    table = {
        "/gate/v2/models": models("m"),
        "/gate/health": (200, "text/plain", b""),
        "/gate/v2/chat/completions": as_stream(delta("a")),
    }

    def locate(path: str) -> str:
        return "/gate" + path.replace("/v1/", "/v2/")

    facts, seen = await probe(serving, client_for, table, locate=locate, try_requests=True)
    assert (facts.model, facts.healthy, facts.capabilities.streaming) == ("m", True, True)
    assert all(path.startswith("/gate/") for _, path, *_ in seen)


async def test_an_endless_page_is_cut(serving, client_for):
    """A metrics page of any size is read up to a limit."""
    page = (200, "text/plain", b"vllm:a 1\n" + b"# x\n" * 2_000_000)
    facts, _ = await probe(serving, client_for, {"/v1/models": models("m"), "/metrics": page})
    assert (facts.metrics_path, facts.engine) == ("/metrics", "vllm")


async def test_a_page_that_drips_is_given_up():
    """Each byte comes in time, and the whole never does: an optional page does not hold up a run for ever."""

    class Drip(httpx2.AsyncByteStream):
        async def __aiter__(self):
            while True:
                yield b"#"
                await asyncio.sleep(0.01)

    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, stream=Drip()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://server") as client, asyncio.timeout(5):
        with pytest.raises(httpx2.ReadTimeout, match=r"not whole within 0.15 s"):
            await Control(client).fetch("GET", "/metrics", httpx2.Timeout(0.05))


async def test_optional_pages_that_break_are_pages_that_are_not_there(client_for):
    """Every page but the models' resets the connection: the target is known by what it did say."""

    def script(peer: Peer) -> None:
        request = peer.read_request()
        if request is not None and "/v1/models" in request.line:
            peer.send(plain(b'{"data": [{"id": "m"}]}', headers="Connection: close\r\n"))
        else:
            peer.reset()

    with ScriptedServer(script) as server:
        async with client_for(server.url) as client:
            facts = await probe_target(Control(client), endpoint=Endpoint.CHAT)
    assert (facts.model, facts.engine, facts.engine_version, facts.healthy) == ("m", None, None, None)
    assert facts.metrics_path is None
