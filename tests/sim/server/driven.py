"""A dialect driven by the engine model in virtual time, so that every figure has a known cause."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from loadgen.core.request import Endpoint
from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Job, Limits
from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.step_time import FREE_DRAFTING, StepTime
from loadgen.core.simulation.survival import Survival
from loadgen.core.stream.answer import Answer as Decoded
from loadgen.core.stream.openai import AnswerDecoder
from loadgen.sim.server.dialect import Dialect, Load, ServerFacts, Statistics
from loadgen.sim.server.exchange import Answer, Asked, Output, Route

STEP_S = 0.008
METRICS_PATHS = {"sglang": "/metrics", "llamacpp": "/metrics", "tensorrt-llm": "/prometheus/metrics"}
TWO_OF_THREE = Speculator(
    method=Method.EAGLE3, draft_tokens=3, survival=Survival(rates=(1.0, 1.0, 0.0)), drafting=FREE_DRAFTING
)
"""Three tokens are drafted in every step and exactly the first two accepted."""


def facts(speculator: Speculator | None = TWO_OF_THREE) -> ServerFacts:
    """A server of eight sequences and a thousand blocks of cache."""
    return ServerFacts(
        model="m",
        max_model_len=4096,
        kv_blocks=1000,
        block_tokens=16,
        max_sequences=8,
        token_budget=2048,
        prefix_caching=True,
        speculator=speculator,
    )


def asked(route: Route = Route.CHAT, **fields: Any) -> Asked:
    """A request of 20 prompt tokens for at most 100, streamed."""
    given = {"request_id": "r", "model": "m", "prompt_ids": tuple(range(20)), "max_tokens": 100, "stream": True}
    return Asked(**{"route": route, **given, **fields})


def output(tokens: int, **fields: Any) -> Output:
    """So many tokens, each a word."""
    texts = tuple(f" w{place}" for place in range(tokens))
    told = {"texts": texts, "tokens": texts, "logprobs": (-0.5,) * tokens}
    return Output(**{"ids": tuple(range(tokens)), **told, "finish_reason": "length", **fields})


@dataclass
class Driven:
    """A server under test: answers go through the engine model, bytes and counters through the dialect."""

    dialect: Dialect
    engine: Engine
    statistics: Statistics
    now_ns: int = 0
    steps: int = 0

    @classmethod
    def of(cls, kind: Callable[[ServerFacts], Dialect], speculator: Speculator | None = TWO_OF_THREE) -> "Driven":
        """A fresh one with steps of `STEP_S`."""
        dialect = kind(facts(speculator))
        engine = Engine(
            target=StepTime(fixed_s=STEP_S, per_token_s=0.0, per_context_token_s=0.0),
            limits=Limits(kv_blocks=1000, max_sequences=8, token_budget=2048),
            rng=np.random.default_rng(1),
            speculator=speculator,
        )
        return cls(dialect, engine, dialect.statistics())

    def serve(self, *requests: tuple[Asked, Sequence[Output]], stop_after: int | None = None) -> list[list[bytes]]:
        """The pieces of each request's stream, all sent at once; `stop_after` steps the clients leave."""
        streams: list[list[bytes]] = []
        answers: dict[int, tuple[Answer, list[bytes]]] = {}
        keys = count(1000 * self.steps)
        for request, outputs in requests:
            pieces: list[bytes] = []
            streams.append(pieces)
            for index, whole in enumerate(outputs):
                answer = Answer(
                    key=next(keys), index=index, asked=request, output=whole, created_s=1, received_ns=self.now_ns
                )
                answers[answer.key] = answer, pieces
                self.statistics.received(answer)
                blocks = tuple(request.prompt_ids[16 * place] for place in range(len(request.prompt_ids) // 16))
                self.engine.submit(
                    Job(
                        key=answer.key,
                        prompt_tokens=len(request.prompt_ids),
                        output_tokens=len(whole.ids),
                        blocks=blocks,
                    )
                )
        for _ in self._run(answers):
            if stop_after is not None and self.steps >= stop_after:
                for key, (answer, _pieces) in answers.items():
                    self.engine.cancel(key)
                    self.statistics.finished(answer, "abort")
                return streams
        for pieces in streams:
            pieces.append(self.dialect.closing([answer for answer, to in answers.values() if to is pieces]))
        return streams

    def _run(self, answers: dict[int, tuple[Answer, list[bytes]]]) -> Iterator[None]:
        while (step := self.engine.step(self.now_ns)) is not None:
            for key, cached in step.cached_tokens.items():
                answers[key][0].scheduled_ns, answers[key][0].cached_tokens = step.start_ns, cached
            parts = []
            for emission in step.emissions():
                answer, pieces = answers[emission.key]
                part = answer.take(emission, step.end_ns)
                pieces.append((b"" if part.start else self.dialect.opening(answer)) + self.dialect.part(answer, part))
                parts.append((answer, part))
            self.now_ns, self.steps = step.end_ns, self.steps + 1
            engine = self.engine
            load = Load(running=engine.running, waiting=engine.waiting, kv_used_ratio=engine.kv_used_ratio)
            self.statistics.stepped(step, parts, load)
            for answer, part in parts:
                if part.finished:
                    self.statistics.finished(answer, answer.output.finish_reason)
            yield

    def page(self, path: str) -> bytes:
        """The body of one of the dialect's pages."""
        reply = self.dialect.page("GET", path, b"", self.statistics)
        assert reply is not None
        assert reply.status == 200
        return reply.body

    def json(self, path: str) -> Any:
        """A page that is JSON."""
        return json.loads(self.page(path))

    def metrics(self) -> dict[str, float]:
        """Samples of the Prometheus page by name; of several with one name, their sum; bucket bounds in the name."""
        found: dict[str, float] = {}
        for family in text_string_to_metric_families(self.page(METRICS_PATHS[self.dialect.name]).decode()):
            for sample in family.samples:
                bound = sample.labels.get("le")
                name = sample.name if bound is None else f"{sample.name} {bound}"
                found[name] = found.get(name, 0) + sample.value
        return found

    def labels(self, name: str) -> list[dict[str, str]]:
        """The labels of each sample of that name."""
        families = text_string_to_metric_families(self.page(METRICS_PATHS[self.dialect.name]).decode())
        return [sample.labels for family in families for sample in family.samples if sample.name == name]


def decoded(pieces: Sequence[bytes], route: Route = Route.CHAT) -> Decoded:
    """What our own client makes of a stream, one piece each 10 ns."""
    endpoint = Endpoint.CHAT if route is Route.CHAT else Endpoint.COMPLETIONS
    decoder = AnswerDecoder(endpoint, keep_text=True, content_type="text/event-stream")
    for number, piece in enumerate(pieces, 1):
        if piece:
            decoder.feed(10 * number, piece)
    return decoder.finish()


def events(data: bytes) -> list[dict[str, Any]]:
    """The events of a stream but for its end mark."""
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n\n") if line]
    return [json.loads(line) for line in lines if line != b"[DONE]"]
