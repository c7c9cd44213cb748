"""The native form: what a row may hold, what is refused, and the way back to a line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.request import Body, Messages, Text, TokenIds
from loadgen.core.traces.native import NativeParser, native_line
from loadgen.core.traces.row import BadRow, Reason, Row, RowTurn
from loadgen.core.units import NS_PER_S

USER = {"role": "user", "content": "hi"}


def row_of(**fields: Any) -> Row:
    row = NativeParser().parse(json.dumps(fields).encode())
    assert isinstance(row, Row)
    return row


def turn_of(**fields: Any) -> RowTurn:
    return row_of(**fields).turns[0]


def test_a_prompt_line_keeps_its_text_as_it_is() -> None:
    """A leading newline stays."""
    assert turn_of(prompt="\ndef f():").prompt == Text(text="\ndef f():")


def test_a_system_text_goes_before_the_prompt_or_the_messages() -> None:
    """`system` becomes the first message."""
    system = {"role": "system", "content": "be brief"}
    assert turn_of(prompt="hi", system="be brief").prompt == Messages(messages=(system, USER))
    assert turn_of(messages=[USER], system="be brief").prompt == Messages(messages=(system, USER))


def test_token_ids_have_an_exact_length() -> None:
    """The input length is the number of ids, whatever the row says."""
    turn = turn_of(token_ids=[5, 6, 7], input_tokens=99)
    assert (turn.prompt, turn.input_tokens) == (TokenIds(ids=(5, 6, 7)), 3)


def test_a_body_is_kept_whole_and_tells_the_output_length() -> None:
    """Unknown keys of a body stay; its limit is the planned output."""
    body = {"messages": [USER], "max_tokens": 7, "tools": [{"x": None}], "temperature": 0}
    turn = turn_of(body=body, timestamp=1.5)
    assert (turn.prompt, turn.output_tokens) == (Body(body=body), 7)


def test_the_limit_of_a_body_is_what_is_asked_for() -> None:
    """It is what the server gets, whatever stands beside the body; of several answers all of it. A body without one
    takes the line's."""
    body = {"messages": [USER], "max_tokens": 7}
    assert turn_of(body=body, max_tokens=5, output_tokens=3).output_tokens == 7
    assert turn_of(body=body | {"n": 2}).output_tokens == 14
    assert turn_of(body={"messages": [USER]}, max_tokens=5, output_tokens=3).output_tokens == 5
    assert turn_of(body={"messages": [USER]}).output_tokens is None


def test_max_tokens_goes_before_output_tokens() -> None:
    """An explicit limit is what is asked for; without it the recorded length is."""
    assert turn_of(prompt="x", max_tokens=5, output_tokens=50).output_tokens == 5
    assert turn_of(prompt="x", output_tokens=50).output_tokens == 50
    assert turn_of(prompt="x").output_tokens is None


def test_an_mt_bench_row_is_a_conversation() -> None:
    """Each of its turns is sent, later ones after the answer before."""
    row = row_of(question_id=81, category="writing", turns=["first", "second"], reference=["a", "b"])
    assert (row.id, row.category, row.session) == ("81", "writing", None)
    assert [turn.continues_answers for turn in row.turns] == [False, True]
    assert row.turns[1].prompt == Messages(messages=({"role": "user", "content": "second"},))


def test_a_humaneval_row_is_a_prompt() -> None:
    """Keys that are not ours are no fault."""
    row = row_of(task_id="HumanEval/0", prompt="\ndef f():", entry_point="f", canonical_solution="x", test="y")
    assert (row.id, row.turns[0].prompt) == ("HumanEval/0", Text(text="\ndef f():"))


def test_a_bare_text_in_a_session_goes_on_from_the_answers() -> None:
    """`prompt` cannot hold a history, `messages` can; `continues_answers` overrides both."""
    assert turn_of(session_id="s", prompt="and then?").continues_answers is True
    assert turn_of(session_id="s", messages=[USER]).continues_answers is False
    assert turn_of(session_id="s", prompt="x", continues_answers=False).continues_answers is False
    assert turn_of(session_id="s", messages=[USER], continues_answers=True).continues_answers is True


def test_lengths_alone_are_a_row() -> None:
    """Its prompt is made later; blocks name what is shared."""
    turn = turn_of(timestamp=0, input_tokens=20, output_tokens=3, hash_ids=[4, 9], block_tokens=16)
    assert turn.prompt is None
    assert (turn.blocks, turn.block_tokens) == ((4, 9), 16)


@pytest.mark.parametrize("fields", [{"input_tokens": 0, "output_tokens": 3}, {"input_tokens": 3, "output_tokens": 0}])
def test_zero_tokens_are_left_out(fields: dict[str, int]) -> None:
    """They cannot be sent, and are no fault of the file."""
    assert NativeParser().parse(json.dumps(fields).encode()) is Reason.ZERO_TOKENS


@pytest.mark.parametrize(
    ("fields", "field", "what"),
    [
        ({"question_text": "?"}, None, "expected one of body, prompt, messages, token_ids, turns or input_tokens"),
        ({"output_tokens": 3}, None, "expected one of"),
        ({"prompt": "x", "messages": [USER]}, None, "found prompt and messages"),
        ({"prompt": ["x"]}, "prompt", "expected `str | null`, got `array`"),
        ({"prompt": 5}, "prompt", "got `int`"),
        ({"messages": []}, "messages", "at least one message"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "expected a text"),
        ({"messages": [{"content": "x"}]}, "messages[0].role", "expected a text"),
        ({"messages": ["x"]}, "messages[0]", "expected `object`"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", "expected a text"),
        ({"token_ids": []}, "token_ids", "at least one token"),
        ({"token_ids": [-1]}, "token_ids[0]", "int"),
        ({"turns": []}, "turns", "at least one text"),
        ({"turns": [1]}, "turns[0]", "expected `str`"),
        ({"body": {}}, "body", "expected messages, prompt or input"),
        ({"body": {"messages": "x"}}, "body.messages", "list of objects"),
        ({"body": {"messages": [{"role": "user"}]}}, "messages[0].content", "expected a text"),
        ({"body": {"prompt": "x", "max_tokens": "5"}}, "body.max_tokens", "whole number"),
        ({"body": {"prompt": "x", "max_tokens": True}}, "body.max_tokens", "whole number"),
        ({"body": {"prompt": "x", "max_tokens": 5, "n": "2"}}, "body.n", "whole number"),
        ({"prompt": "x", "max_tokens": 0}, "max_tokens", ">= 1"),
        ({"prompt": "x", "max_tokens": "5"}, "max_tokens", "got `str`"),
        ({"prompt": "x", "timestamp": "1"}, "timestamp", "got `str`"),
        ({"prompt": "x", "timestamp": -1}, "timestamp", "expected seconds from 0"),
        ({"prompt": "x", "timestamp": 1_735_689_600_000}, "timestamp", "expected seconds"),
        ({"prompt": "x", "think_s": -1}, "think_s", ">= 0"),
        ({"body": {"prompt": "x"}, "system": "y"}, "system", "beside prompt, messages or turns"),
        ({"token_ids": [1], "system": "y"}, "system", "beside prompt, messages or turns"),
        ({"input_tokens": 300, "hash_ids": [7, 8, 9], "block_tokens": 512}, "hash_ids", "3 blocks of 512 tokens"),
        ({"input_tokens": 300, "hash_ids": [7]}, "hash_ids", "block_tokens"),
        ({"prompt": "x", "input_tokens": 3, "hash_ids": [7], "block_tokens": 16}, "hash_ids", "no text"),
    ],
)
def test_bad_rows_are_refused_by_field(fields: dict[str, Any], field: str | None, what: str) -> None:
    """The error names the field and what was expected."""
    with pytest.raises(BadRow) as caught:
        row_of(**fields)
    assert caught.value.field == field
    assert what in caught.value.message


def test_an_assistant_message_with_tool_calls_needs_no_content() -> None:
    """Recorded tool calls are a legal history."""
    calls = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    assert turn_of(messages=[USER, calls, {"role": "tool", "content": "4"}]).prompt is not None


@pytest.mark.parametrize("seconds", [1_735_689_600, 1_735_689_600.25, 0])
def test_epoch_and_relative_times_are_seconds(seconds: float) -> None:
    """Either is read as seconds; the first is subtracted later."""
    assert row_of(prompt="x", timestamp=seconds).time_ns == round(seconds * NS_PER_S)


CONTENT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNT = st.integers(1, 10**6)
MESSAGES = st.lists(CONTENT, min_size=1, max_size=3)
IDS = st.lists(st.integers(0, 200_000), min_size=1, max_size=5)
PROMPTS = (
    st.builds(lambda text: Text(text=text), CONTENT)
    | st.builds(lambda texts: Messages(messages=tuple({"role": "user", "content": text} for text in texts)), MESSAGES)
    | st.builds(lambda ids: TokenIds(ids=tuple(ids)), IDS)
    | st.builds(lambda text, n: Body(body={"prompt": text, "top_k": n, "stop": None}), CONTENT, COUNT)
)


@given(
    prompt=PROMPTS,
    output=st.none() | COUNT,
    offset=st.none() | st.integers(0, 14 * 86_400 * NS_PER_S),
    think=st.none() | st.floats(0, 1e5),
    category=st.none() | CONTENT,
    answer=st.none() | CONTENT,
)
def test_a_line_reads_back_as_it_was(
    prompt: Any, output: int | None, offset: int | None, think: float | None, category: str | None, answer: str | None
) -> None:
    """Every kind of prompt with any text, and times to the ns over two weeks, survive writing and reading."""
    input_tokens = len(prompt.ids) if isinstance(prompt, TokenIds) else None
    turn = RowTurn(prompt=prompt, input_tokens=input_tokens, output_tokens=output, answer=answer, think_s=think)
    data = native_line(turn, offset_ns=offset, think_s=think, category=category)
    assert data.endswith(b"\n")
    assert b"\n" not in data[:-1]
    assert NativeParser().parse(data[:-1]) == Row(turns=(turn,), time_ns=offset, category=category)


@given(st.integers(1, 4000), st.sampled_from([16, 512]), st.integers(1, 900))
def test_lengths_and_blocks_read_back_as_they_were(tokens: int, block_tokens: int, output: int) -> None:
    """Shared prefixes survive a conversion."""
    blocks = tuple(range(-(-tokens // block_tokens)))
    turn = RowTurn(input_tokens=tokens, output_tokens=output, blocks=blocks, block_tokens=block_tokens)
    data = native_line(turn, offset_ns=5, session_id="s", turn_index=3)
    assert NativeParser().parse(data) == Row(turns=(turn,), time_ns=5, session="s", turn=3)
