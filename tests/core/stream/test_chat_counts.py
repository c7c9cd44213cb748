"""Tokens of chat and completions streams: as the server counts the whole, and what each event holds."""

import json

import pytest

from loadgen.core.stream.answer import Note, Usage
from tests.core.stream.chat import DONE, usage

# Usage


@pytest.mark.parametrize(
    "final",
    [
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 23}},
        {"choices": None, "usage": {"prompt_tokens": 5, "completion_tokens": 23}},
        {"usage": {"prompt_tokens": 5, "completion_tokens": 23}},
        {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 23},
        },
        {"choices": [{"index": 0, "text": "", "usage": {"prompt_tokens": 5, "completion_tokens": 23}}]},
    ],
)
def test_usage_counts_wherever_it_stands(decode, chunk, final: dict) -> None:
    """In a chunk of its own, beside a choice, or inside one."""
    answer = decode(chunk(content="a"), chunk("length"), f"data: {json.dumps(final)}\n\n".encode(), DONE)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (5, 23)


def test_usage_details_and_the_last_value_wins(decode, chunk) -> None:
    """A later object overrides field by field; a null or missing field takes nothing away."""
    first = {"prompt_tokens": 31, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 16}}
    last = {"prompt_tokens": None, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 4}}
    answer = decode(chunk(reasoning="a", top={"usage": first}), chunk("stop"), usage(**last), DONE)
    assert answer.usage == Usage(input_tokens=31, cached_input_tokens=16, output_tokens=9, reasoning_tokens=4)


@pytest.mark.parametrize("absent", [{"completion_tokens": None}, {}], ids=["null", "missing"])
def test_a_count_once_given_is_not_taken_back(decode, chunk, absent: dict[str, None]) -> None:
    """A later usage that has one count leaves the other, and the details, as they were."""
    given = {"prompt_tokens": 31, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 16}}
    answer = decode(chunk("stop", content="a"), usage(**given), usage(prompt_tokens=32, **absent), DONE)
    assert answer.usage == Usage(input_tokens=32, cached_input_tokens=16, output_tokens=9)
    nothing = dict.fromkeys(given, None)
    assert decode(chunk("stop", content="a"), usage(**given), usage(**nothing), DONE).usage.input_tokens == 31


def test_usage_with_a_missing_field_keeps_the_others(decode, chunk) -> None:
    """`{"prompt_tokens": 7180}` alone is a prompt count and no output count."""
    answer = decode(chunk(content="a"), chunk("stop"), usage(prompt_tokens=7180), DONE)
    assert answer.usage == Usage(input_tokens=7180)
    assert Note.USAGE_MISSING in answer.notes


def test_counts_that_cannot_be_true_are_said(decode, chunk) -> None:
    """No prompt has zero tokens; five events are more than two tokens. A zero becomes unknown."""
    events = [chunk(content=str(i)) for i in range(5)]
    answer = decode(*events, chunk("stop"), usage(prompt_tokens=0, completion_tokens=2), DONE)
    assert answer.usage == Usage(output_tokens=2)
    assert answer.notes == (Note.USAGE_IMPLAUSIBLE,)
    assert decode(*events, chunk("stop"), usage(completion_tokens=0), DONE).usage.output_tokens is None


@pytest.mark.parametrize(
    ("counts", "odd"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 2}, True),
        ({"prompt_tokens": 0, "completion_tokens": 5}, True),
        ({"prompt_tokens": 7, "completion_tokens": 0}, True),
        ({"prompt_tokens": 7, "completion_tokens": 5}, False),
        ({"prompt_tokens": 7, "completion_tokens": 500}, False),
    ],
)
def test_each_impossible_count_is_said_by_itself(decode, chunk, counts: dict[str, int], odd: bool) -> None:
    """Five events: two tokens, none, or no prompt cannot be; more tokens than events can."""
    events = [chunk(content=str(i)) for i in range(5)]
    answer = decode(*events, chunk("stop"), usage(**counts), DONE)
    assert (Note.USAGE_IMPLAUSIBLE in answer.notes) is odd


@pytest.mark.parametrize("place", ["top", "choice"])
def test_prompt_token_ids_count_where_no_usage_does(decode, chunk, place: str) -> None:
    """The returned prompt ids are a count of the prompt; a usage that comes wins."""
    first = chunk(role="assistant", content="", **{place: {"prompt_token_ids": [2, 105, 7]}})
    assert decode(first, chunk(content="a"), chunk("stop"), DONE).usage == Usage(input_tokens=3)
    counted = decode(first, chunk(content="a"), chunk("stop"), usage(prompt_tokens=4), DONE)
    assert counted.usage == Usage(input_tokens=4)


def test_negative_and_textual_counts_are_absent(decode, chunk) -> None:
    """A count of -1 or "23" is no count; the fields beside it stay."""
    answer = decode(chunk(content="a"), chunk("stop"), usage(prompt_tokens=4, completion_tokens=-1), DONE)
    assert answer.usage == Usage(input_tokens=4)
    assert Note.ODD_FIELDS in answer.notes


def test_a_count_beyond_any_answer_is_absent(decode, chunk) -> None:
    """A counter that wrapped round, as 2**64 - 3, is no count: no total and no file has to hold it."""
    answer = decode(chunk(content="a"), chunk("stop"), usage(prompt_tokens=4, completion_tokens=2**64 - 3), DONE)
    assert answer.usage == Usage(input_tokens=4)
    assert Note.ODD_FIELDS in answer.notes
    assert decode(chunk(content="a"), usage(prompt_tokens=4, completion_tokens="23")).usage == Usage(input_tokens=4)


def test_reasoning_that_was_not_streamed_is_said(decode, chunk) -> None:
    """One event and 650 tokens of which 610 are hidden reasoning: both counts, and a note."""
    counts = {"completion_tokens": 650, "completion_tokens_details": {"reasoning_tokens": 610}}
    answer = decode(chunk(content="42"), chunk("stop"), usage(**counts), DONE)
    assert (answer.usage.output_tokens, answer.usage.reasoning_tokens) == (650, 610)
    assert Note.HIDDEN_REASONING in answer.notes
    streamed = decode(chunk(reasoning="x"), chunk(content="42"), chunk("stop"), usage(**counts), DONE)
    assert Note.HIDDEN_REASONING not in streamed.notes


# Tokens an event


def test_tokens_from_token_ids(decode, chunk) -> None:
    """The length of `token_ids` is an event's tokens."""
    events = [chunk(content="x", choice={"token_ids": list(range(n))}) for n in (1, 5, 3)]
    answer = decode(chunk(role="assistant", content=""), *events, chunk("length"), usage(completion_tokens=9), DONE)
    assert (answer.event_tokens, answer.stream_tokens, answer.notes) == ((1, 5, 3), 9, ())


def test_tokens_from_continuous_usage(decode, chunk) -> None:
    """The differences of running totals are the events' tokens."""
    events = [chunk(content="x", top={"usage": {"completion_tokens": n}}) for n in (1, 4, 4, 8)]
    prelude = chunk(role="assistant", content="", top={"usage": {"completion_tokens": 0}})
    answer = decode(prelude, *events, chunk("length"), usage(completion_tokens=8), DONE)
    assert answer.event_tokens == (1, 3, 0, 4)


def test_a_running_total_that_goes_back_counts_nothing(decode, chunk) -> None:
    """Usage that falls is no running total, so no event gets a negative count and none a wrong one."""
    events = [chunk(content="x", top={"usage": {"completion_tokens": n}}) for n in (3, 1, 4)]
    assert decode(*events, chunk("stop"), usage(completion_tokens=8), DONE).event_tokens is None


@pytest.mark.parametrize("layout", ["content", "tokens"])
def test_tokens_from_logprobs(decode, chunk, layout: str) -> None:
    """One logprobs entry is one token, in the layout of chat and in that of completions; an empty list says nothing."""
    events = [chunk(content="x", choice={"logprobs": {layout: [{"logprob": -1}] * n}}) for n in (1, 2)]
    assert decode(*events, chunk("stop"), DONE).event_tokens == (1, 2)
    assert decode(chunk(content="x", choice={"logprobs": {layout: []}}), chunk("stop")).event_tokens is None


def test_tokens_are_unknown_unless_every_event_has_them(decode, chunk) -> None:
    """One event without a count leaves none: the number of events is never a number of tokens."""
    known, unknown = chunk(content="x", choice={"token_ids": [1, 2]}), chunk(content="y")
    assert decode(known, unknown, known, chunk("stop"), DONE).event_tokens is None
    answer = decode(unknown, unknown, chunk("stop"), DONE)
    assert (answer.event_tokens, answer.stream_tokens, answer.usage.output_tokens) == (None, None, None)
    assert answer.notes == (Note.USAGE_MISSING,)


def test_tokens_of_events_without_text_go_to_the_next_text(decode, chunk) -> None:
    """A parser may hold text back: its tokens arrive with the text. What comes after the last text is in no event."""
    held, shown = (chunk(content=text, choice={"token_ids": [1, 2]}) for text in ("", "x"))
    last = chunk("stop", content="", choice={"token_ids": [106]})
    answer = decode(held, shown, shown, last, usage(completion_tokens=7), DONE)
    assert (answer.event_tokens, answer.stream_tokens) == ((4, 2), 7)
    assert answer.notes == (Note.TRAILING_TOKENS,)


def test_a_disagreement_of_counts_is_said(decode, chunk) -> None:
    """Token ids that do not add up to the server's total: both stand, and a note."""
    answer = decode(chunk(content="x", choice={"token_ids": [1, 2]}), chunk("stop"), usage(completion_tokens=3), DONE)
    assert (answer.stream_tokens, answer.usage.output_tokens) == (2, 3)
    assert Note.COUNTS_DISAGREE in answer.notes


def test_several_choices_share_a_stream(decode, chunk) -> None:
    """n = 2: events of both, text of the first, no counts from continuous usage (it is per choice), an end of both."""

    def of(index: int, finish: str | None = None, tokens: int = 1, **delta: str) -> bytes:
        return chunk(finish, choice={"index": index}, top={"usage": {"completion_tokens": tokens}}, **delta)

    stream = [of(0, content="a"), of(1, content="b"), of(0, content="c", tokens=2), of(0, "stop", 2)]
    half = decode(*stream)
    assert not half.terminal, "one of two choices has finished"
    answer = decode(*stream, of(1, "length"), usage(completion_tokens=3), DONE)
    assert (len(answer.event_ns), answer.text, answer.event_tokens) == (3, "ac", None)
    assert (answer.terminal, answer.finish_reason, answer.usage.output_tokens) == (True, "stop", 3)
    assert answer.notes == (Note.SEVERAL_CHOICES,)
