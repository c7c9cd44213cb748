"""Bodies recorded from a real vLLM, and made ones of other servers, as answers that were checked by eye."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from loadgen.core.record import FailureKind, Outcome
from loadgen.core.request import Endpoint, Phase, PlannedRequest, Text, Turn
from loadgen.core.stream.answer import Answer
from loadgen.core.stream.openai import AnswerDecoder
from loadgen.core.stream.outcome import Received, record_of

STREAMS = Path(__file__).parents[2] / "golden" / "streams"
ANSWERS = STREAMS / "answers.json"
INDEX = json.loads((STREAMS / "index.json").read_text())
STREAMED = ("usage", "no_usage", "continuous", "token_ids", "logprobs")


def answer_of(name: str) -> Answer:
    """The answer to one recorded body; each event is stamped with its number among the reads of one event."""
    facts = INDEX[name]
    decoder = AnswerDecoder(Endpoint(facts["endpoint"]), keep_text=True, content_type=facts["content_type"])
    for number, event in enumerate((STREAMS / name).read_bytes().split(b"\n\n")):
        decoder.feed(number, event + b"\n\n")
    return decoder.finish()


def digest(name: str) -> dict[str, object]:
    """Every fact of an answer that the recording fixes, without absent ones."""
    answer = asdict(answer_of(name))
    for long in ("event_ns", "body_start"):
        value = answer.pop(long)
        answer[f"{long}_length"] = len(value) if value else None
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in answer.items()
        if value not in (None, ())
    }


def test_answers_are_as_checked() -> None:
    """The answers to all recordings, against the file that someone has read.

    LOADGEN_UPDATE_GOLDEN=1 writes the file anew and fails, so that the difference is read.
    """
    got = json.loads(json.dumps({name: digest(name) for name in sorted(INDEX)}))
    if os.environ.get("LOADGEN_UPDATE_GOLDEN"):
        ANSWERS.write_text(json.dumps(got, indent=1, ensure_ascii=False) + "\n")
        pytest.fail(f"wrote {ANSWERS.name}: read the difference, then run again")
    assert got == json.loads(ANSWERS.read_text())


def test_every_recording_is_listed_and_small() -> None:
    """No file without an index entry, none without a file, none over 40 KB."""
    files = {
        path.name: path.stat().st_size for path in STREAMS.iterdir() if path.name.split("_")[0] in ("vllm", "made")
    }
    assert files.keys() == INDEX.keys()
    assert max(files.values()) < 40_000


@pytest.mark.parametrize("arm", ["baseline", "ngram"])
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
@pytest.mark.parametrize("counting", ["continuous", "token_ids", "logprobs"])
def test_counts_of_events_add_up_to_the_servers_total(arm: str, endpoint: str, counting: str) -> None:
    """Each way in which a real server lets events be counted gives its own total."""
    answer = answer_of(f"vllm_{arm}_{endpoint}_{counting}.sse")
    assert answer.event_tokens is not None
    assert sum(answer.event_tokens) == answer.stream_tokens == answer.usage.output_tokens == 32
    assert answer.notes == ()


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_events_of_a_speculating_server_are_steps(endpoint: str) -> None:
    """A step that accepted j drafts is an event of j + 1 tokens, the others are events of one.

    The last step is cut by the length limit, while the server counts all that it accepted.
    """
    answer = answer_of(f"vllm_ngram_{endpoint}_token_ids.sse")
    told = answer.speculation
    assert told is not None
    assert told.per_step_accepted is not None
    assert answer.event_tokens is not None
    drafted = [tokens - 1 for tokens in answer.event_tokens if tokens > 1]
    assert len(answer.event_tokens) < 32
    assert drafted[:-1] == list(told.per_step_accepted[: len(drafted) - 1])
    assert drafted[-1] <= told.per_step_accepted[len(drafted) - 1]
    assert told.steps == len(told.per_step_accepted) == sum(told.histogram or ())
    assert told.accepted_tokens == sum(told.per_step_accepted)
    assert told.drafted_tokens == sum(told.per_step_drafted or ())


@pytest.mark.parametrize("arm", ["baseline", "ngram"])
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_options_do_not_change_what_was_said(arm: str, endpoint: str) -> None:
    """Usage, counts and logprobs are beside the text: the greedy answers are the same, also unstreamed."""
    names = [f"vllm_{arm}_{endpoint}_{kind}.sse" for kind in STREAMED]
    answers = [answer_of(name) for name in names if name in INDEX] + [answer_of(f"vllm_{arm}_{endpoint}_unary.json")]
    assert len({answer.text for answer in answers}) == 1
    assert {answer.finish_reason for answer in answers} == {"length"}


@pytest.mark.parametrize("name", sorted(INDEX))
def test_each_recording_has_the_outcome_that_it_shows(name: str) -> None:
    """Answers complete; refusals, the dying server and the failed response fail, each by its kind."""
    planned = PlannedRequest(
        seq=0, request_id="r", phase=Phase.MEASURE, due_ns=None, body=None, turn=Turn(prompt=Text(text="p"))
    )
    status = INDEX[name]["status"]
    record = record_of(planned, Received(sent_ns=0, http_status=status), answer_of(name))
    expected = None
    if status >= 400:
        expected = FailureKind.HTTP_4XX if status < 500 else FailureKind.HTTP_5XX
    elif "dying" in name or "failed" in name:
        expected = FailureKind.SERVER_ERROR_EVENT
    assert (record.failure and record.failure.kind) == expected
    assert record.outcome is (Outcome.COMPLETED if expected is None else Outcome.FAILED)
    assert (record.first_ns is not None) == (name.endswith(".sse") and "dying" not in name)
