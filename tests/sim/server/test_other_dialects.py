"""SGLang, llama.cpp and TensorRT-LLM as the simulator speaks them: what a load tester reads of their streams and pages.

The dialects are driven by the engine model in virtual time, so every figure has a known cause.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.core.request import Endpoint
from loadgen.core.simulation.engine import Engine, Job, Limits
from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.step_time import FREE_DRAFTING, StepTime
from loadgen.core.simulation.survival import Survival
from loadgen.core.stream.answer import Answer as Decoded
from loadgen.core.stream.answer import Note
from loadgen.core.stream.openai import AnswerDecoder
from loadgen.sim.server.dialect import Dialect, Load, ServerFacts, Statistics
from loadgen.sim.server.exchange import Answer, Asked, Output, Part, RefusedError, Route
from loadgen.sim.server.llamacpp import LlamacppDialect
from loadgen.sim.server.sglang import SglangDialect
from loadgen.sim.server.tensorrt_llm import KEPT_ITERATIONS, TensorrtLlmDialect
from loadgen.sim.server.vllm import VllmDialect

STEP_S = 0.008
DIALECTS = [SglangDialect, LlamacppDialect, TensorrtLlmDialect]
METRICS_PATHS = {"sglang": "/metrics", "llamacpp": "/metrics", "tensorrt-llm": "/prometheus/metrics"}
TWO_OF_THREE = Speculator(
    method=Method.EAGLE3, draft_tokens=3, survival=Survival(rates=(1.0, 1.0, 0.0)), drafting=FREE_DRAFTING
)
"""Three tokens are drafted in every step and exactly the first two accepted."""


def facts(speculator: Speculator | None = TWO_OF_THREE) -> ServerFacts:
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
    given = {"request_id": "r", "model": "m", "prompt_ids": tuple(range(20)), "max_tokens": 100, "stream": True}
    return Asked(**{"route": route, **given, **fields})


def output(tokens: int, **fields: Any) -> Output:
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
        reply = self.dialect.page("GET", path, b"", self.statistics)
        assert reply is not None
        assert reply.status == 200
        return reply.body

    def json(self, path: str) -> Any:
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
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n\n") if line]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


# All three


@pytest.mark.parametrize("route", list(Route))
@pytest.mark.parametrize("kind", DIALECTS)
def test_a_stream_reads_as_what_was_generated(kind: Callable[[ServerFacts], Dialect], route: Route) -> None:
    """Text, usage, finish reason and the end are there, and nothing about the stream is odd."""
    (stream,) = Driven.of(kind).serve((asked(route, include_usage=True), [output(10)]))
    answer = decoded(stream, route)
    assert answer.text == "".join(output(10).texts)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (20, 10)
    assert (answer.finish_reason, answer.terminal, answer.error, answer.malformed) == ("length", True, None, None)
    assert answer.notes == ()


@pytest.mark.parametrize("kind", DIALECTS)
def test_an_end_token_without_text_ends_an_answer(kind: Callable[[ServerFacts], Dialect]) -> None:
    """The model's own end has no text: the finish reason comes all the same, and the token counts."""
    ended = output(4, texts=("a", "b", "c", ""), finish_reason="stop")
    (stream,) = Driven.of(kind).serve((asked(include_usage=True), [ended]))
    answer = decoded(stream)
    assert (answer.text, answer.finish_reason, answer.usage.output_tokens) == ("abc", "stop", 4)


@pytest.mark.parametrize(("kind", "deltas"), [(SglangDialect, 2), (LlamacppDialect, 2), (TensorrtLlmDialect, 3)])
def test_tokens_without_text_need_no_event_of_a_chat(kind: Callable[[ServerFacts], Dialect], deltas: int) -> None:
    """SGLang and llama.cpp leave out what would be empty, TensorRT-LLM shows that tokens came."""
    silent = output(3, texts=("a", "", "c"))
    (stream,) = Driven.of(kind, None).serve((asked(), [silent]))
    choices = [choice for event in events(b"".join(stream)) for choice in event["choices"]]
    said = [choice["delta"]["content"] for choice in choices if choice["delta"].get("content") is not None]
    assert len([text for text in said if text]) == 2
    assert len(said) == deltas + (kind is SglangDialect)  # whose role event has an empty content


@pytest.mark.parametrize("kind", DIALECTS)
def test_choices_share_a_stream(kind: Callable[[ServerFacts], Dialect]) -> None:
    """Each of two choices has its role, its text and its finish reason under its index."""
    (stream,) = Driven.of(kind).serve((asked(n=2), [output(5), output(7)]))
    texts, reasons = {0: "", 1: ""}, {}
    for event in events(b"".join(stream)):
        for choice in event["choices"]:
            texts[choice["index"]] += choice["delta"].get("content") or ""
            if choice.get("finish_reason"):
                reasons[choice["index"]] = choice["finish_reason"]
    assert texts == {0: "".join(output(5).texts), 1: "".join(output(7).texts)}
    assert reasons == {0: "length", 1: "length"}
    assert decoded(stream).terminal


@pytest.mark.parametrize("route", list(Route))
@pytest.mark.parametrize("kind", DIALECTS)
def test_a_whole_answer_reads_as_what_was_generated(kind: Callable[[ServerFacts], Dialect], route: Route) -> None:
    """The body of an answer that is not streamed has the text, the usage and the finish reason."""
    driven = Driven.of(kind)
    whole = Answer(
        key=1, index=0, asked=asked(route, stream=False), output=output(10), created_s=1, received_ns=0,
        scheduled_ns=0, first_ns=8, last_ns=80, emitted=10, decode_steps=3, drafted=[3] * 3, accepted=[2] * 3,
    )  # fmt: skip
    endpoint = Endpoint.CHAT if route is Route.CHAT else Endpoint.COMPLETIONS
    decoder = AnswerDecoder(endpoint, keep_text=True, content_type="application/json")
    decoder.feed(1, driven.dialect.whole([whole]))
    answer = decoder.finish()
    assert answer.text == "".join(output(10).texts)
    assert (answer.usage.output_tokens, answer.finish_reason, answer.malformed) == (10, "length", None)


@pytest.mark.parametrize("route", list(Route))
@pytest.mark.parametrize("kind", DIALECTS)
def test_log_probabilities_count_tokens(kind: Callable[[ServerFacts], Dialect], route: Route) -> None:
    """With log-probabilities our client knows the tokens of every event."""
    top = tuple(((text, -0.5), ("other", -2.0)) for text in output(7).texts)
    (stream,) = Driven.of(kind).serve((asked(route, logprobs=2), [output(7, top_logprobs=top)]))
    answer = decoded(stream, route)
    assert answer.stream_tokens == 7
    assert answer.event_tokens is not None
    assert sum(answer.event_tokens) == 7
    (told,) = (event["choices"][0]["logprobs"] for event in events(stream[0]) if " w0" in json.dumps(event))
    if "content" in told:
        first = told["content"][0]
        alternatives = [(each["token"], each["logprob"], bytes(each["bytes"])) for each in first["top_logprobs"]]
        assert (first["token"], first["logprob"]) == (" w0", -0.5)
        assert alternatives == [(" w0", -0.5, b" w0"), ("other", -2.0, b"other")]
    else:
        assert (told["tokens"], told["token_logprobs"], told["text_offset"]) == ([" w0"], [-0.5], [0])
        assert told["top_logprobs"] == [{" w0": -0.5, "other": -2.0}]


@pytest.mark.parametrize("route", list(Route))
@pytest.mark.parametrize("kind", [*DIALECTS, VllmDialect])
def test_log_probabilities_name_whole_tokens(kind: Callable[[ServerFacts], Dialect], route: Route) -> None:
    """Where stop strings hold text back, an event's text is not its token's; the log-probabilities tell the token."""
    held = output(3, texts=("", " w", "0 w1 w2"))
    whole = Answer(
        key=1, index=0, asked=asked(route, stream=False, logprobs=0), output=held, created_s=1, received_ns=0,
        scheduled_ns=0, first_ns=8, last_ns=80, emitted=3, decode_steps=3,
    )  # fmt: skip
    (choice,) = json.loads(kind(facts()).whole([whole]))["choices"]
    told = choice["logprobs"]
    if "content" in told:
        assert [each["token"] for each in told["content"]] == [" w0", " w1", " w2"]
    else:
        assert (told["tokens"], told["text_offset"]) == ([" w0", " w1", " w2"], [0, 3, 6])


@pytest.mark.parametrize("kind", DIALECTS)
def test_errors_are_read_as_errors(kind: Callable[[ServerFacts], Dialect]) -> None:
    """A refusal's body and an error within a stream give our client the message."""
    dialect = kind(facts())
    refused = AnswerDecoder(Endpoint.CHAT, keep_text=False, content_type="application/json")
    refused.feed(1, dialect.refusal(RefusedError(400, "BadRequestError", "too long", param="max_tokens")))
    assert refused.finish().error == "too long"
    assert decoded([dialect.error_event("the engine died")]).error == "the engine died"


@pytest.mark.parametrize("kind", DIALECTS)
def test_unknown_pages_are_left_to_the_server(kind: Callable[[ServerFacts], Dialect]) -> None:
    """A dialect answers for its own pages only, and not to another method."""
    driven = Driven.of(kind)
    for method, path in (("GET", "/nothing"), ("POST", "/metrics")):
        assert driven.dialect.page(method, path, b"", driven.statistics) is None


@pytest.mark.parametrize("kind", DIALECTS)
def test_a_restart_begins_at_zero(kind: Callable[[ServerFacts], Dialect]) -> None:
    """New statistics know nothing of what the old ones counted."""
    driven = Driven.of(kind)
    driven.serve((asked(), [output(10)]))
    fresh = Driven.of(kind).metrics()
    used = driven.metrics()
    counted = {name for name, value in used.items() if name.endswith("_total") and value}
    assert counted
    assert not any(fresh.get(name) for name in counted)


@pytest.mark.parametrize("kind", DIALECTS)
def test_a_client_may_leave_while_its_request_is_admitted(kind: Callable[[ServerFacts], Dialect]) -> None:
    """The step that admitted it ends after it has left: no gauge, slot or record holds it."""
    driven = Driven.of(kind)
    gone = Answer(key=7, index=0, asked=asked(), output=output(4), created_s=1, received_ns=0)
    driven.statistics.received(gone)
    driven.engine.submit(Job(key=7, prompt_tokens=20, output_tokens=4))
    step = driven.engine.step(0)
    assert step is not None
    assert 7 in step.cached_tokens
    driven.engine.cancel(7)
    driven.statistics.finished(gone, "abort")
    driven.statistics.stepped(step, [], Load(running=0, waiting=0, kv_used_ratio=0.0))
    (stream,) = driven.serve((asked(include_usage=True), [output(10)]))
    assert decoded(stream).usage.output_tokens == 10
    if kind is LlamacppDialect:
        assert not any(slot["is_processing"] for slot in driven.json("/slots"))
    if kind is TensorrtLlmDialect:
        assert len(driven.json("/perf_metrics")) == 1


@pytest.mark.parametrize("kind", DIALECTS)
def test_a_figure_without_an_observation_is_absent(kind: Callable[[ServerFacts], Dialect]) -> None:
    """Before the first request there are no histograms, and no acceptance by position."""
    fresh = Driven.of(kind).metrics()
    assert not any("_bucket" in name or "per_pos" in name or "spec_decode_drafted" in name for name in fresh)


# SGLang


def test_sglang_sends_one_event_a_step_with_its_tokens() -> None:
    """One event for the prompt's token and one for each step of three tokens, ids told when asked for."""
    (stream,) = Driven.of(SglangDialect).serve((asked(return_token_ids=True), [output(10)]))
    assert decoded(stream).event_tokens == (1, 3, 3, 3)


def test_sglang_tells_usage_so_far() -> None:
    """Continuous usage counts the tokens of each event."""
    (stream,) = Driven.of(SglangDialect).serve((asked(include_usage=True, continuous_usage=True), [output(10)]))
    assert decoded(stream).event_tokens == (1, 3, 3, 3)


def test_sglang_tells_a_requests_acceptance_if_asked() -> None:
    """Every decode step is a verify call; accepted tokens are counted before the answer's end cuts them."""
    request = asked(include_usage=True, fields={"return_spec_tokens_details": True})
    (stream,) = Driven.of(SglangDialect).serve((request, [output(9)]))
    answer = decoded(stream)
    told = answer.speculation
    assert told is not None
    assert (told.steps, told.drafted_tokens, told.accepted_tokens) == (3, 9, 6)
    assert told.histogram == (0, 0, 3)
    assert Note.SPECULATION_INCONSISTENT not in answer.notes
    details = events(stream[-1])[-2]["sglext"]["spec_tokens_details"]
    assert details["spec_accept_length"] == pytest.approx(9 / 3)  # its own words: output tokens by verify calls
    assert details["spec_accept_rate"] == pytest.approx(6 / 9)


def test_sglang_tells_no_acceptance_unasked_or_without_speculation() -> None:
    """No account of speculation without the request's field, nor from a baseline."""
    (unasked,) = Driven.of(SglangDialect).serve((asked(), [output(9)]))
    request = asked(fields={"return_spec_tokens_details": True})
    (baseline,) = Driven.of(SglangDialect, None).serve((request, [output(9)]))
    assert b"sglext" not in b"".join(unasked + baseline)


def test_sglang_tells_acceptance_of_each_choice() -> None:
    """Of several choices the accounts are a list."""
    request = asked(n=2, fields={"return_spec_tokens_details": True})
    (stream,) = Driven.of(SglangDialect).serve((request, [output(4), output(7)]))
    details = events(stream[-1])[-1]["sglext"]["spec_tokens_details"]
    assert [each["spec_verify_ct"] for each in details] == [1, 2]


def test_a_step_without_a_draft_is_a_verify_call_that_accepted_nothing() -> None:
    """SGLang counts it among the calls, so the histogram holds it at 0 and proposals are calls by draft length."""
    answer = Answer(
        key=1, index=0, asked=asked(fields={"return_spec_tokens_details": True}), output=output(6), created_s=1,
        received_ns=0, emitted=6, decode_steps=3, drafted=[3], accepted=[2],
    )  # fmt: skip
    details = events(SglangDialect(facts()).closing([answer]))[-1]["sglext"]["spec_tokens_details"]
    assert details["spec_correct_drafts_histogram"] == [2, 0, 1]
    assert (details["spec_verify_ct"], details["spec_num_proposed_drafts"]) == (3, 9)


def test_sglang_gauges_are_of_the_last_forty_decode_steps() -> None:
    """No acceptance before 40 decode steps; then the interval's, which later steps leave until 80."""
    driven = Driven.of(SglangDialect)
    request = asked()
    driven.serve((request, [output(1 + 3 * 50)]), stop_after=40)  # a prompt step and 39 decode steps
    assert driven.metrics()["sglang:spec_accept_length"] == 0
    assert "avg_spec_accept_length" not in driven.json("/server_info")["internal_states"][0]
    driven = Driven.of(SglangDialect)
    driven.serve((request, [output(1 + 3 * 50)]), stop_after=41)
    metrics = driven.metrics()
    assert metrics["sglang:spec_accept_length"] == 3
    assert metrics["sglang:spec_accept_rate"] == pytest.approx(2 / 3)
    assert metrics["sglang:gen_throughput"] == pytest.approx(3 / STEP_S)
    assert metrics["sglang:num_running_reqs"] == 1
    assert metrics["sglang:spec_num_draft_tokens"] == 4
    assert driven.json("/get_server_info")["internal_states"][0]["avg_spec_accept_length"] == 3


def test_sglang_gauges_forget_earlier_intervals() -> None:
    """The gauge is of one interval, the average of `/server_info` of all."""
    driven = Driven.of(SglangDialect)
    statistics = driven.statistics
    for accepted in (1, 3):
        driven.engine = Engine(
            target=StepTime(fixed_s=STEP_S, per_token_s=0.0, per_context_token_s=0.0),
            limits=Limits(kv_blocks=1000),
            rng=np.random.default_rng(1),
            speculator=Speculator(
                method=Method.EAGLE3,
                draft_tokens=3,
                survival=Survival(rates=(1.0,) * accepted + (0.0,) * (3 - accepted)),
                drafting=FREE_DRAFTING,
            ),
        )
        driven.serve((asked(), [output(1 + (1 + accepted) * 40 + 1)]), stop_after=driven.steps + 41)
    assert driven.statistics is statistics
    assert driven.metrics()["sglang:spec_accept_length"] == 4
    assert driven.json("/server_info")["internal_states"][0]["avg_spec_accept_length"] == 3


def test_sglang_counts_a_request_when_it_has_finished() -> None:
    """Totals of requests and verify calls rise at the end, live ones with every step; an aborted one only aborts."""
    driven = Driven.of(SglangDialect)
    driven.serve((asked(), [output(10)]), stop_after=2)
    running = driven.metrics()
    assert "sglang:generation_tokens_total" not in running
    assert running["sglang:num_aborted_requests_total"] == 1
    assert running["sglang:realtime_tokens_total"] == 20 + 3
    driven.serve((asked(), [output(10)]), (asked(stream=False), [output(4)]))
    done = driven.metrics()
    assert done["sglang:generation_tokens_total"] == 14
    assert done["sglang:prompt_tokens_total"] == 40
    assert done["sglang:num_requests_total"] == 2
    assert done["sglang:spec_verify_calls_total"] == 3 + 1
    assert done["sglang:e2e_request_latency_seconds_count"] == 2
    by = driven.labels("sglang:num_requests_total")
    assert by == [
        {"model_name": "m", "engine_type": "unified", "is_streaming": streamed} for streamed in ("false", "true")
    ]


def test_sglang_divides_gaps_by_their_tokens() -> None:
    """Nine tokens in three steps of 8 ms are nine gaps of 2.7 ms, not three of 8 ms."""
    driven = Driven.of(SglangDialect)
    driven.serve((asked(), [output(10)]))
    metrics = driven.metrics()
    name = "sglang:inter_token_latency_seconds"
    assert (metrics[f"{name}_count"], metrics[f"{name}_bucket 0.002"], metrics[f"{name}_bucket 0.004"]) == (9, 0, 9)
    assert metrics[f"{name}_sum"] == pytest.approx(3 * STEP_S)
    baseline = Driven.of(SglangDialect, None)
    baseline.serve((asked(), [output(10)]))
    assert baseline.metrics()[f"{name}_bucket 0.006"] == 0
    assert baseline.metrics()[f"{name}_bucket 0.008"] == 9  # a bound belongs to its bucket


def test_sglang_shows_the_cache_hits_of_a_prompt_step() -> None:
    """The second request finds 32 of its 50 prompt tokens; the gauge says so until the next report of decoding."""
    driven = Driven.of(SglangDialect)
    request = asked(include_usage=True, prompt_ids=tuple(range(50)))
    driven.serve((request, [output(4)]))
    assert driven.metrics()["sglang:cache_hit_rate"] == 0
    assert driven.metrics()["sglang:num_running_reqs"] == 0
    (stream,) = driven.serve((request, [output(4)]))
    assert decoded(stream).usage.cached_input_tokens == 32
    metrics = driven.metrics()
    assert metrics["sglang:cache_hit_rate"] == pytest.approx(32 / 50)
    assert metrics["sglang:cached_tokens_total"] == 32
    driven.serve((request, [output(1 + 3 * 50)]))
    assert driven.metrics()["sglang:cache_hit_rate"] == 0


def test_sglang_describes_itself() -> None:
    """Version and arguments, with the speculation's; the configuration's own words win."""
    info = Driven.of(SglangDialect).json("/server_info")
    assert (info["version"], info["context_length"], info["max_running_requests"]) == ("0.5.23", 4096, 8)
    assert (info["speculative_algorithm"], info["speculative_num_draft_tokens"]) == ("EAGLE3", 4)
    assert Driven.of(SglangDialect, None).json("/server_info")["speculative_algorithm"] is None
    own_words = replace(facts(), speculation={"speculative_draft_model_path": "d", "speculative_eagle_topk": 2})
    info = Driven.of(lambda _: SglangDialect(own_words)).json("/server_info")
    assert (info["speculative_draft_model_path"], info["speculative_eagle_topk"]) == ("d", 2)
    assert Driven.of(SglangDialect).json("/get_model_info")["model_path"] == "m"


# llama.cpp


def test_llamacpp_sends_a_steps_tokens_one_by_one() -> None:
    """Ten tokens are ten events, of which a step's come together."""
    (stream,) = Driven.of(LlamacppDialect).serve((asked(), [output(10)]))
    answer = decoded(stream)
    assert answer.event_ns == (10, 20, 20, 20, 30, 30, 30, 40, 40, 40)


def test_llamacpp_tells_timings_on_its_last_event() -> None:
    """Drafted and accepted tokens, prompt and output times; no number of steps."""
    (stream,) = Driven.of(LlamacppDialect).serve((asked(), [output(10)]))
    told = decoded(stream).speculation
    assert told is not None
    assert (told.steps, told.drafted_tokens, told.accepted_tokens) == (None, 9, 6)
    timings = events(b"".join(stream))[-1]["timings"]
    assert (timings["prompt_n"], timings["cache_n"], timings["predicted_n"]) == (20, 0, 10)
    assert timings["prompt_ms"] == pytest.approx(1000 * STEP_S)
    assert timings["predicted_ms"] == pytest.approx(3000 * STEP_S)
    assert timings["predicted_per_second"] == pytest.approx(10 / (3 * STEP_S))
    assert b"timings" not in b"".join(stream[:-2])


def test_llamacpp_tells_what_came_from_its_cache() -> None:
    """Tokens of the prompt found and computed, in the timings and in the usage that completions always have."""
    driven = Driven.of(LlamacppDialect)
    request = asked(Route.COMPLETIONS, prompt_ids=tuple(range(50)))
    driven.serve((request, [output(4)]))
    (stream,) = driven.serve((request, [output(4)]))
    last = events(b"".join(stream))[-1]
    assert (last["timings"]["cache_n"], last["timings"]["prompt_n"]) == (32, 18)
    assert last["usage"]["prompt_tokens_details"] == {"cached_tokens": 32}
    assert (last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]) == (50, 4)
    assert driven.metrics()["llamacpp:prompt_tokens_total"] == 50 + 18


def test_llamacpp_without_drafts_tells_none() -> None:
    """A baseline's timings have no draft counts, and one token still has a rate."""
    (stream,) = Driven.of(LlamacppDialect, None).serve((asked(), [output(1)]))
    timings = events(b"".join(stream))[-1]["timings"]
    assert "draft_n" not in timings
    assert timings["predicted_per_second"] > 0


def test_llamacpp_counters_have_vllms_shape() -> None:
    """Drafts, drafted, accepted and accepted by position of finished requests: acceptance length 1 + 6/3."""
    driven = Driven.of(LlamacppDialect)
    driven.serve((asked(), [output(10)]))
    metrics, prefix = driven.metrics(), "llamacpp:spec_decode_num_"
    assert (metrics[f"{prefix}drafts_total"], metrics[f"{prefix}draft_tokens_total"]) == (3, 9)
    assert metrics[f"{prefix}accepted_tokens_total"] == metrics[f"{prefix}accepted_tokens_per_pos_total"] == 6
    positions = driven.labels(f"{prefix}accepted_tokens_per_pos_total")
    assert positions == [{"position": "0"}, {"position": "1"}, {"position": "2"}]
    assert (metrics["llamacpp:tokens_predicted_total"], metrics["llamacpp:prompt_tokens_total"]) == (10, 20)
    assert metrics["llamacpp:tokens_predicted_seconds_total"] == pytest.approx(3 * STEP_S)
    assert (metrics["llamacpp:n_decode_total"], metrics["llamacpp:n_busy_slots_per_decode"]) == (4, 1)
    assert b"\nllamacpp:n_tokens_max 30\n" in driven.page("/metrics")


def test_llamacpp_has_its_speculation_counters_without_speculation() -> None:
    """At zero, and none by position."""
    driven = Driven.of(LlamacppDialect, None)
    driven.serve((asked(), [output(10)]))
    metrics = driven.metrics()
    assert metrics["llamacpp:spec_decode_num_drafts_total"] == 0
    assert "llamacpp:spec_decode_num_accepted_tokens_per_pos_total" not in metrics


def test_llamacpp_shows_its_slots() -> None:
    """Two of eight slots are busy while two requests run, and free again once their clients have left."""
    driven = Driven.of(LlamacppDialect)
    seen: list[list[dict[str, Any]]] = []

    class Watching(LlamacppDialect):
        def part(self, answer: Answer, part: Part) -> bytes:
            seen.append(driven.json("/slots"))
            return super().part(answer, part)

    driven.dialect = Watching(facts())
    driven.serve((asked(), [output(10)]), (asked(), [output(10)]), stop_after=3)
    busy = [slot for slot in seen[-1] if slot["is_processing"]]
    assert [slot["id"] for slot in busy] == [0, 1]
    assert all(slot["speculative"] for slot in seen[-1])
    assert len(seen[-1]) == 8
    assert not any(slot["is_processing"] for slot in driven.json("/slots"))
    assert driven.metrics()["llamacpp:tokens_predicted_total"] == 0


def test_llamacpp_describes_itself() -> None:
    """Slots, context and build; `/props` knows nothing of speculation; health is JSON."""
    props = Driven.of(LlamacppDialect).json("/props")
    assert (props["total_slots"], props["default_generation_settings"]["n_ctx"]) == (8, 4096)
    assert props["default_generation_settings"]["speculative"] is False
    assert props["build_info"]
    assert json.loads(LlamacppDialect.health) == {"status": "ok"}


# TensorRT-LLM


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
