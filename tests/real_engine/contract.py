"""What the simulated vLLM has in common with a real one: asked the same, both answer in the same shapes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from loadgen.wiring.sim import spawn_simulator
from tests.sim.server.exposed import families, unlike
from tests.sim.server.outline import outline

MODEL = "gemma3-270m"
VERSE = "The miller opens the gate and the water runs under the wheel, and the wheel turns the stone all night. "
QUESTION = [{"role": "user", "content": VERSE}]
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
CONTINUOUS = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (CHAT, {"stream": True}),
    "chat_usage": (CHAT, USAGE),
    "chat_continuous": (CHAT, CONTINUOUS),
    "chat_token_ids": (CHAT, USAGE | {"return_token_ids": True}),
    "chat_logprobs": (CHAT, USAGE | {"logprobs": True, "top_logprobs": 2}),
    "chat_two_choices": (CHAT, USAGE | {"n": 2, "temperature": 0.8}),
    "chat_whole": (CHAT, {}),
    "chat_whole_logprobs": (CHAT, {"logprobs": True, "return_token_ids": True}),
    "completions": (TEXT, {"stream": True}),
    "completions_usage": (TEXT, USAGE),
    "completions_continuous": (TEXT, CONTINUOUS),
    "completions_token_ids": (TEXT, USAGE | {"return_token_ids": True}),
    "completions_logprobs": (TEXT, USAGE | {"logprobs": 2}),
    "completions_one_token": (TEXT, USAGE | {"max_tokens": 1}),
    "completions_whole": (TEXT, {"n": 2, "temperature": 0.8}),
    "too_long": (TEXT, {"max_tokens": 9_000}),
    "no_model": (CHAT, {"model": "no-such-model"}),
    "no_stream": (CHAT, {"stream": False, "stream_options": {"include_usage": True}}),
}  # fmt: skip


def body_of(path: str, options: dict[str, Any]) -> dict[str, Any]:
    """A request whose answer has as many tokens as are asked for, and some speculation where there is any."""
    asked = {"messages": QUESTION} if path == CHAT else {"prompt": VERSE * 3}
    return {"model": MODEL, "max_tokens": 32, "ignore_eos": True, "temperature": 0, "seed": 1} | asked | options


def answer(url: str, path: str, body: dict[str, Any]) -> tuple[int, str | None, bytes]:
    """Status, content type and the whole body, whatever the status."""
    request = Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        reply = urlopen(request, timeout=120)
    except HTTPError as refused:
        reply = refused
    with reply:
        return reply.status, reply.headers["Content-Type"], reply.read()


def page(url: str, path: str) -> bytes:
    with urlopen(url + path, timeout=60) as reply:
        return bytes(reply.read())


@contextmanager
def simulated(arm: str) -> Iterator[str]:
    """The URL of a simulator that is set like the test engine's arm, but faster."""
    speculation = ("--method", "ngram", "--draft-tokens", "4") if arm == "ngram" else ()
    like = (
        "--model-name",
        MODEL,
        "--max-model-len",
        "2048",
        "--max-num-seqs",
        "16",
        "--max-num-batched-tokens",
        "2048",
    )
    with spawn_simulator(*like, "--step-time", "2ms", *speculation) as server:
        yield server.url


def differences(real: str, given: str) -> dict[str, Any]:
    """By case, what the two servers with these URLs do not have in common: (the real one's, the simulator's)."""
    found = dict[str, Any]()
    for case, (path, options) in CASES.items():
        (status, kind, body), ours = (answer(url, path, body_of(path, options)) for url in (real, given))
        if (status, kind, outline(body)) != (*ours[:2], outline(ours[2])):
            found[case] = (body.decode(), ours[2].decode())
        elif status != 200:
            errors = [json.loads(each)["error"] for each in (body, ours[2])]
            if errors[0] != errors[1]:
                found[case] = tuple(errors)
    pages = [families(page(url, "/metrics")) for url in (real, given)]
    found |= unlike(real=pages[0], given=pages[1])
    return found
