"""What SGLang, llama.cpp and TensorRT-LLM have in common as the simulator speaks them: what a load tester reads."""

import json
from collections.abc import Callable

import pytest

from loadgen.core.request import Endpoint
from loadgen.core.simulation.job import Job
from loadgen.core.stream.openai import AnswerDecoder
from loadgen.sim.server.dialect import Dialect, Load, ServerFacts
from loadgen.sim.server.exchange import Answer, RefusedError, Route
from loadgen.sim.server.llamacpp import LlamacppDialect
from loadgen.sim.server.sglang import SglangDialect
from loadgen.sim.server.tensorrt_llm import TensorrtLlmDialect
from loadgen.sim.server.vllm import VllmDialect
from tests.sim.server.driven import Driven, asked, decoded, events, facts, output

DIALECTS = [SglangDialect, LlamacppDialect, TensorrtLlmDialect]


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
