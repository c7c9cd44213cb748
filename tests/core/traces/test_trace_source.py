"""Rows to conversations: prompts, histories, think time, passes."""

from collections.abc import Iterator
from itertools import islice

import pytest

from loadgen.core.errors import ConfigError, DataError
from loadgen.core.request import Conversation, Messages, Prompt, Text, TokenIds, Turn
from loadgen.core.traces.facts import TraceFacts, facts_of
from loadgen.core.traces.row import Row, RowTurn
from loadgen.core.traces.source import PlacedRow, conversation_of, cycle, think_after
from loadgen.core.traces.table import TableBuilder
from loadgen.core.traces.texts import BorrowedText, InventedTokenIds
from loadgen.core.units import NS_PER_S

TEXTS = InventedTokenIds(seed=1, low=0, high=10_000)


def placed(*rows: Row) -> list[PlacedRow]:
    return [PlacedRow(row=row, number=10 + n, line=100 + n, offset_ns=n * NS_PER_S) for n, row in enumerate(rows)]


def said(text: str) -> Messages:
    return Messages(messages=({"role": "user", "content": text},))


def chat(*pairs: tuple[str, str | None]) -> Row:
    """A row of several turns, as a chat data set has them."""
    turns = (
        RowTurn(prompt=said(ask), answer=answer, continues_answers=place > 0)
        for place, (ask, answer) in enumerate(pairs)
    )
    return Row(turns=tuple(turns), id="c1", category="talk")


def recorded(start_s: float, took_s: float | None, tokens: int = 50) -> Row:
    elapsed_ns = None if took_s is None else round(took_s * NS_PER_S)
    return Row(
        turns=(RowTurn(input_tokens=tokens, output_tokens=5),),
        time_ns=round(start_s * NS_PER_S),
        elapsed_ns=elapsed_ns,
        session="s",
    )


def test_think_time_is_from_the_end_of_the_answer() -> None:
    """Starts 0 and 10 s, first answer took 8 s: the wait is 2 s, not 10."""
    conversation = conversation_of(placed(recorded(0, 8), recorded(10, 1)), texts=TEXTS)
    assert [turn.think_s for turn in conversation.turns] == [None, 2.0]


@pytest.mark.parametrize(("took", "expected"), [(None, None), (12, 0.0), (0, 10.0)])
def test_think_time_is_absent_or_zero_where_it_must_be(took: float | None, expected: float | None) -> None:
    """Unknown without a recorded end; a turn sent before the answer had ended waited for nothing."""
    assert think_after(recorded(0, took), recorded(10, 1)) == expected


def test_speed_shortens_think_time() -> None:
    """Twice as fast: half the wait."""
    conversation = conversation_of(placed(recorded(0, 8), recorded(10, 1)), texts=TEXTS, speed=2)
    assert conversation.turns[1].think_s == 1.0


def test_turns_carry_where_they_come_from() -> None:
    """Lines, arrivals, lengths, session and category."""
    conversation = conversation_of(placed(recorded(0, 1), recorded(5, 1, tokens=70)), texts=TEXTS)
    assert conversation.session_id == "s"
    assert [(turn.source_line, turn.offset_ns, turn.input_tokens) for turn in conversation.turns] == [
        (100, 0, 50),
        (101, NS_PER_S, 70),
    ]


def test_invented_turns_of_a_session_share_their_beginning() -> None:
    """The later prompt holds the earlier one, as a growing history does."""
    first, second = (
        turn.prompt for turn in conversation_of(placed(recorded(0, 1), recorded(5, 1, tokens=70)), texts=TEXTS).turns
    )
    assert isinstance(first, TokenIds)
    assert isinstance(second, TokenIds)
    assert (len(first.ids), len(second.ids), second.ids[:50]) == (50, 70, first.ids)


def test_all_turns_of_a_chat_go_on_from_the_answers() -> None:
    """Three turns are three requests; only the first has an arrival; each adds its own message."""
    conversation = conversation_of(placed(chat(("a", "A"), ("b", "B"), ("c", None))), texts=None)
    assert [turn.prompt for turn in conversation.turns] == [said("a"), said("b"), said("c")]
    assert [turn.continues_answers for turn in conversation.turns] == [False, True, True]
    assert [turn.offset_ns for turn in conversation.turns] == [0, None, None]
    assert (conversation.session_id, conversation.category) == ("c1", "talk")


def test_a_recorded_history_stands_in_for_the_answers() -> None:
    """Each turn then carries the whole conversation before it, as recorded."""
    conversation = conversation_of(placed(chat(("a", "A"), ("b", "B"), ("c", None))), texts=None, history="recorded")
    last = conversation.turns[2].prompt
    assert isinstance(last, Messages)
    assert [(m["role"], m["content"]) for m in last.messages] == [
        ("user", "a"),
        ("assistant", "A"),
        ("user", "b"),
        ("assistant", "B"),
        ("user", "c"),
    ]
    assert not any(turn.continues_answers for turn in conversation.turns)


def test_a_recorded_history_needs_the_answers() -> None:
    """A missing one is named by line, not replaced by nothing."""
    with pytest.raises(ConfigError, match="line 100: an earlier answer is not recorded"):
        conversation_of(placed(chat(("a", None), ("b", "B"))), texts=None, history="recorded")


def test_the_first_turn_never_continues() -> None:
    """A session whose beginning was cut off starts afresh."""
    row = Row(turns=(RowTurn(prompt=said("later"), continues_answers=True),), session="s")
    assert conversation_of(placed(row), texts=None).turns[0].continues_answers is False


def test_rows_without_text_need_texts() -> None:
    """The error names the line and says what is missing."""
    with pytest.raises(ConfigError, match="line 100 holds lengths and no text"):
        conversation_of(placed(recorded(0, 1)), texts=None)


def test_a_chat_without_a_name_is_named_by_its_line() -> None:
    """Sessions can be told apart; a single request has no session."""
    unnamed = Row(turns=chat(("a", "A"), ("b", "B")).turns)
    single = Row(turns=(RowTurn(prompt=Text(text="x")),), id="7")
    assert conversation_of(placed(unnamed), texts=None).session_id == "line-100"
    assert conversation_of(placed(single), texts=None).session_id is None


@pytest.mark.parametrize(("unique", "expected"), [(False, "x"), (True, "[2] x")])
def test_real_text_of_a_later_pass_can_be_marked(unique: bool, expected: str) -> None:
    """A repeat that is made unique begins with its pass number; otherwise it is the same text."""
    row = Row(turns=(RowTurn(prompt=Text(text="x")),))
    later = conversation_of(placed(row), texts=None, pass_number=2, unique_repeats=unique)
    assert later.turns[0].prompt == Text(text=expected)
    assert conversation_of(placed(row), texts=None, unique_repeats=unique).turns[0].prompt == Text(text="x")


def test_a_marked_conversation_is_marked_once() -> None:
    """Only where it begins: later turns only add to it."""
    row = chat(("a", "A"), ("b", "B"))
    later = conversation_of(placed(row), texts=None, pass_number=1, unique_repeats=True)
    assert [turn.prompt for turn in later.turns] == [said("[1] a"), said("b")]
    assert later.session_id == "c1#2"


def test_invented_prompts_of_a_later_pass_are_new_and_unmarked() -> None:
    """Length and shape stay."""
    now, later = (
        conversation_of(placed(recorded(0, 1)), texts=TEXTS, pass_number=n, unique_repeats=True).turns[0].prompt
        for n in (0, 1)
    )
    assert isinstance(now, TokenIds)
    assert isinstance(later, TokenIds)
    assert now.ids[:16] != later.ids[:16]
    assert len(now.ids) == len(later.ids)


def test_borrowed_prompts_of_a_later_pass_are_marked() -> None:
    """They are real texts that come again."""
    borrowed = BorrowedText([Conversation(turns=(Turn(prompt=Text(text="x"), input_tokens=50),))], seed=0)
    later = conversation_of(placed(recorded(0, 1)), texts=borrowed, pass_number=3, unique_repeats=True)
    assert later.turns[0].prompt == Text(text="[3] x")


class Listed:
    """A source of requests at given seconds."""

    def __init__(self, *seconds: float | None) -> None:
        builder = TableBuilder()
        self._seconds = seconds
        for n, at in enumerate(seconds):
            time_ns = None if at is None else round(at * NS_PER_S)
            builder.add(Row(turns=(RowTurn(prompt=Text(text="x")),), time_ns=time_ns), line=n, position=n, size_bytes=1)
        self.facts: TraceFacts = facts_of(
            builder.build(), name="listed", format="native", rows=len(seconds), dropped={}
        )

    def conversations(self, *, pass_number: int = 0, unique_repeats: bool = False) -> Iterator[Conversation]:
        for at in self._seconds:
            prompt: Prompt = Text(text=f"{pass_number}{unique_repeats}")
            yield Conversation(turns=(Turn(prompt=prompt, offset_ns=None if at is None else round(at * NS_PER_S)),))


def test_passes_follow_one_another_a_mean_gap_apart() -> None:
    """Arrivals at 0, 1, 4: the next pass begins at 6, from whatever pass is the first."""
    for first in (0, 3):
        taken = list(islice(cycle(Listed(0, 1, 4), first_pass=first), 7))
        assert [(n - first, (c.turns[0].offset_ns or 0) / NS_PER_S) for n, c in taken] == [
            (0, 0),
            (0, 1),
            (0, 4),
            (1, 6),
            (1, 7),
            (1, 10),
            (2, 12),
        ]


def test_passes_without_times_have_none() -> None:
    """No arrival is made up."""
    taken = list(islice(cycle(Listed(None, None), unique_repeats=True), 3))
    assert [c.turns[0].offset_ns for _, c in taken] == [None] * 3
    assert [c.turns[0].prompt for _, c in taken] == [Text(text="0True"), Text(text="0True"), Text(text="1True")]


def test_a_source_that_gives_nothing_does_not_spin() -> None:
    """An error instead of an endless search."""
    empty = Listed(0)
    empty._seconds = ()
    with pytest.raises(DataError, match="no conversation"):
        next(cycle(empty))
