"""Recorded answers of a real vLLM as the values that the simulator makes its own from."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.step_time import Drafting
from loadgen.core.simulation.survival import Survival
from loadgen.sim.server.dialect import ServerFacts
from loadgen.sim.server.exchange import Answer, Asked, Output, Part, Route

GOLDEN = Path(__file__).parents[2] / "golden"
STREAMS = GOLDEN / "streams"
TIMINGS = {"time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms", "tokens_per_second"}
"""Those servers ran with `--enable-per-request-metrics`, which the simulator does not have."""
_METHODS = {"baseline": None, "ngram": (Method.NGRAM, 4), "eagle": (Method.EAGLE, 3)}


def facts(arm: str, **given: Any) -> ServerFacts:
    """A server like the recorded one."""
    speculator = None
    if method := _METHODS[arm]:
        kind, tokens = method
        rates = tuple(0.7**place for place in range(1, tokens + 1))
        survival = Survival(rates=rates)
        speculator = Speculator(method=kind, draft_tokens=tokens, survival=survival, drafting=Drafting())
    described = {"model": "gemma3-270m", "max_model_len": 2048, "kv_blocks": 910, "block_tokens": 128}
    engine = {"max_sequences": 16, "token_budget": 2048, "prefix_caching": True, "speculator": speculator}
    return ServerFacts(**described | engine | given)


def recorded(name: str) -> tuple[dict[str, Any], bytes]:
    """How a recorded answer was asked for, and its body."""
    index = json.loads((STREAMS / name).with_name("index.json").read_text())
    return index[name], (STREAMS / name).read_bytes()


def events_of(body: bytes) -> list[bytes]:
    """The events of a stream, each whole with its blank line."""
    return [event + b"\n\n" for event in body.split(b"\n\n") if event]


def ordered(event: bytes) -> str:
    """An event or a body as text that tells the order of keys and the types of values, but neither the spacing nor the
    fingerprint, by which every server differs.
    """
    data = event.removeprefix(b"data: ").rstrip()
    if not data.startswith(b"{"):
        return data.decode()
    value = json.loads(data)
    if value.get("system_fingerprint", "").startswith("vllm-0.32.0"):
        value["system_fingerprint"] = "vllm"
    return json.dumps(value)


def without_timings(body: bytes) -> bytes:
    """What was recorded, as a server without timings of its own tells it."""
    if not body.startswith(b"data: "):
        return _without_timings(body, whole=True)
    return b"".join(b"data: %b\n\n" % _without_timings(event[6:-2], whole=False) for event in events_of(body))


def _without_timings(data: bytes, *, whole: bool) -> bytes:
    if b'"metrics":{' not in data:
        return data
    value = json.loads(data)
    metrics: dict[str, Any] = value.pop("metrics")
    if whole:
        told = {name: None if name in TIMINGS else part for name, part in metrics.items()}
        value["metrics"] = told if any(told.values()) else None
    elif told := {name: part for name, part in metrics.items() if name not in TIMINGS}:
        value["metrics"] = told
    return json.dumps(value).encode()


@dataclass(slots=True)
class _Told:
    """What a recorded choice told, token by token, and the parts in which it did."""

    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[tuple[tuple[str, float], ...]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)

    def take(self, choice: dict[str, Any], tokens: int | None) -> None:
        """One event, or the whole choice; where nothing says how many tokens it had, it had one."""
        start = len(self.texts)
        ids, logprobs = choice.get("token_ids"), choice.get("logprobs")
        text = choice["text"] if "text" in choice else choice.get("delta", choice.get("message"))["content"]
        if logprobs is None:
            count = tokens if tokens is not None else len(ids or [0])
            self.texts += [text, *[""] * (count - 1)]
            self.logprobs += [0.0] * count
        elif "content" in logprobs:
            for entry in logprobs["content"]:
                self.texts.append(entry["token"])
                self.logprobs.append(entry["logprob"])
                self.top.append(tuple((top["token"], top["logprob"]) for top in entry["top_logprobs"]))
        else:
            self.texts += logprobs["tokens"]
            self.logprobs += logprobs["token_logprobs"]
            self.top += [tuple(top.items()) for top in logprobs["top_logprobs"]]
        self.ids += ids or [0] * (len(self.texts) - start)
        self.last = choice
        self.parts.append(Part(start, len(self.texts), choice["finish_reason"] is not None))

    def fill_up(self, tokens: int) -> None:
        """More tokens without text, in the last event."""
        part = self.parts.pop()
        self.parts.append(Part(part.start, part.stop + tokens, part.finished))
        self.texts += [""] * tokens
        self.ids += [0] * tokens
        self.logprobs += [0.0] * tokens

    def output(self) -> Output:
        return Output(
            ids=tuple(self.ids),
            texts=tuple(self.texts),
            logprobs=tuple(self.logprobs),
            tokens=tuple(self.texts),
            top_logprobs=tuple(self.top),
            finish_reason=self.last["finish_reason"],
            stop_reason=self.last["stop_reason"],
        )


@dataclass(frozen=True, slots=True)
class Retold:
    """A recorded response as the simulator's values: an answer a choice, and the parts in the order of their events."""

    answers: list[Answer]
    parts: list[tuple[Answer, Part]]


def retold(name: str) -> Retold:
    """What the simulator would have to hold to give the recorded response."""
    index, body = recorded(name)
    streamed = name.endswith(".sse")
    chunks = [json.loads(event[6:]) for event in events_of(body)[:-1]] if streamed else [json.loads(body)]
    request, usage = index["request"], chunks[-1].get("usage")
    told = [_Told() for _ in range(request.get("n", 1))]
    order, before = [], 0
    for chunk in chunks:
        choice = chunk["choices"][0] if chunk["choices"] else {"delta": {"role": ""}}
        if "role" in choice.get("delta", {}):
            continue
        tokens = None
        if streamed and "usage" in chunk:
            tokens = chunk["usage"]["completion_tokens"] - before
            before += tokens
        told[choice["index"]].take(choice, tokens)
        order.append(choice["index"])
    if usage is not None:
        told[order[-1]].fill_up(usage["completion_tokens"] - sum(len(choice.texts) for choice in told))
    asked = _asked(index, chunks, usage)
    answers = [_answer(asked, number, choice.output(), chunks) for number, choice in enumerate(told)]
    left = [iter(choice.parts) for choice in told]
    return Retold(answers, [(answers[number], next(left[number])) for number in order])


def _asked(index: dict[str, Any], chunks: list[dict[str, Any]], usage: dict[str, Any] | None) -> Asked:
    request = index["request"]
    choice = chunks[0]["choices"][0]
    prompt = chunks[0].get("prompt_token_ids") or choice.get("prompt_token_ids")
    options = request.get("stream_options", {})
    top = request.get("top_logprobs", 0) if request.get("logprobs") is True else request.get("logprobs")
    return Asked(
        route=Route(index["endpoint"]),
        request_id=chunks[0]["id"].partition("-")[2],
        model=chunks[0]["model"],
        prompt_ids=tuple(prompt or range(usage["prompt_tokens"] if usage else 23)),
        stream=bool(request.get("stream")),
        n=request.get("n", 1),
        max_tokens=32,
        include_usage=options.get("include_usage", False),
        continuous_usage=options.get("continuous_usage_stats", False),
        return_token_ids=request.get("return_token_ids", False),
        logprobs=top,
    )


def _answer(asked: Asked, index: int, output: Output, chunks: list[dict[str, Any]]) -> Answer:
    acceptance = ((chunks[-1].get("metrics") or {}).get("speculative_decoding")) or {}
    return Answer(
        key=index,
        index=index,
        asked=asked,
        output=output,
        created_s=chunks[0]["created"],
        received_ns=0,
        emitted=len(output.ids),
        drafted=acceptance.get("per_step_drafted") or [],
        accepted=acceptance.get("per_step_accepted") or [],
    )
