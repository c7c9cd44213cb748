"""Rows to conversations: order, sessions, chains of parents."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.request import Body, Messages, Text, TokenIds
from loadgen.core.traces.row import Row, RowTurn
from loadgen.core.traces.table import UNKNOWN, Table, TableBuilder, prompt_characters
from loadgen.core.units import NS_PER_S


def table_of(*rows: Row) -> Table:
    builder = TableBuilder()
    for number, row in enumerate(rows):
        builder.add(row, line=number + 2, position=number * 10, size_bytes=10)
    return builder.build()


def at(seconds: float | None, session: str | None = None, parent: str | None = None, turn: int | None = None) -> Row:
    time_ns = None if seconds is None else round(seconds * NS_PER_S)
    return Row(
        turns=(RowTurn(input_tokens=10, output_tokens=5),), time_ns=time_ns, session=session, parent=parent, turn=turn
    )


def conversations(table: Table) -> list[list[int]]:
    return [table.conversation(index) for index in range(table.conversations)]


def test_the_first_time_is_subtracted() -> None:
    """An epoch time is a moment, not a wait of decades."""
    table = table_of(at(1_735_689_600), at(1_735_689_602.5))
    assert table.time_ns is not None
    assert table.time_ns.tolist() == [0, 2_500_000_000]


def test_unsorted_rows_are_sorted_and_said() -> None:
    """Times 0, 2, 1: the row travels with its time, and a note names the line that was early."""
    table = table_of(at(0), at(2), at(1))
    assert conversations(table) == [[0], [2], [1]]
    assert any("1 rows are earlier" in note and "line 4" in note for note in table.notes)


def test_equal_times_keep_the_order_of_the_file() -> None:
    """Sorting is stable, and nothing is said when nothing moved."""
    table = table_of(*[at(5)] * 4)
    assert conversations(table) == [[0], [1], [2], [3]]
    assert table.notes == ()


@pytest.mark.parametrize("times", [(None, None), (1, None), (None, 1)])
def test_a_missing_time_is_not_zero(times: tuple[float | None, ...]) -> None:
    """Without a time in every row there are no times at all, and the order is the file's."""
    table = table_of(*map(at, times))
    assert table.time_ns is None
    assert conversations(table) == [[0], [1]]
    assert bool(table.notes) == (times != (None, None))


def test_turns_of_a_session_are_one_conversation_in_order() -> None:
    """Rows of two sessions and of none, interleaved."""
    table = table_of(at(0, "a"), at(1), at(2, "b"), at(3, "a"), at(4), at(5, "b"), at(6, "a"))
    assert conversations(table) == [[0, 3, 6], [1], [2, 5], [4]]
    assert table.is_session[table.order[table.starts[:-1]]].tolist() == [True, False, True, False]


def test_without_times_turn_numbers_order_a_session() -> None:
    """Rows may stand in any order when they are numbered."""
    table = table_of(at(None, "a", turn=2), at(None, "b", turn=0), at(None, "a", turn=0), at(None, "a", turn=1))
    assert conversations(table) == [[2, 3, 0], [1]]


def test_times_go_before_turn_numbers_and_the_conflict_is_said() -> None:
    """A turn is sent when it was sent."""
    table = table_of(at(0, "a", turn=1), at(1, "a", turn=0))
    assert conversations(table) == [[0, 1]]
    assert any("lower turn number" in note for note in table.notes)


def test_parents_chain_rows_to_one_conversation() -> None:
    """Each row names the one before it; chains of any length and rows out of order are joined."""
    rows = [at(float(n), str(n), None if n == 0 else str(n - 1)) for n in range(50)]
    assert conversations(table_of(*rows)) == [list(range(50))]
    assert conversations(table_of(*reversed(rows))) == [list(range(49, -1, -1))]


def test_a_parent_outside_the_file_begins_a_conversation_and_is_said() -> None:
    """A cut trace has turns without their beginning."""
    table = table_of(at(0, "7", "3"), at(1, "8", "7"), at(2, "9"))
    assert conversations(table) == [[0, 1], [2]]
    assert any("1 turns follow one that is not in the file" in note for note in table.notes)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7])
def test_parents_in_a_circle_stand_alone(length: int) -> None:
    """Rows that name each other as parents end nothing."""
    rows = [at(n, str(n), str((n + 1) % length)) for n in range(length)] + [at(length, "x"), at(length + 1, "y", "x")]
    assert conversations(table_of(*rows)) == [[n] for n in range(length)] + [[length, length + 1]]


def test_sessions_may_begin_late_in_a_file() -> None:
    """Columns that appear first in a later row are unknown before it."""
    table = table_of(at(0), at(1), at(2, "a", turn=0), at(3), at(4, "a", turn=1))
    assert conversations(table) == [[0], [1], [2, 4], [3]]
    assert table.is_session.tolist() == [False, False, True, False, True]


def test_a_row_of_several_turns_is_a_session() -> None:
    """It counts with all its turns and has no length unless all have."""
    turns = (RowTurn(prompt=Text(text="abc"), output_tokens=2), RowTurn(prompt=Text(text="de"), output_tokens=3))
    table = table_of(Row(turns=turns), Row(turns=turns))
    assert conversations(table) == [[0], [1]]
    assert table.is_session.tolist() == [True, True]
    assert (table.requests.tolist(), table.output_tokens.tolist()) == ([2, 2], [5, 5])
    assert (table.input_tokens.tolist(), table.characters.tolist()) == ([UNKNOWN] * 2, [5, 5])


@given(st.lists(st.tuples(st.none() | st.integers(0, 5), st.none() | st.sampled_from("abc")), min_size=1, max_size=30))
def test_every_row_is_used_once_in_the_order_of_arrival(rows: list[tuple[int | None, str | None]]) -> None:
    """Any mix of sessions and times gives what a plain grouping gives."""
    table = table_of(*(at(time, session) for time, session in rows))
    timed = all(time is not None for time, _ in rows)
    key = (lambda n: (rows[n][0], n)) if timed else (lambda n: (0, n))
    groups: dict[object, list[int]] = defaultdict(list)
    for number, (_, session) in enumerate(rows):
        groups[session if session is not None else number].append(number)
    ordered = [sorted(group, key=key) for group in groups.values()]
    first = (lambda group: (rows[group[0]][0], min(group))) if timed else (lambda group: (0, min(group)))
    assert conversations(table) == sorted(ordered, key=first)


@pytest.mark.parametrize(
    ("prompt", "characters"),
    [
        (Text(text="añb"), 3),
        (Messages(messages=({"role": "system", "content": "ab"}, {"role": "user", "content": "c"})), 3),
        (Messages(messages=({"role": "user", "content": [{"type": "image_url"}]},)), None),
        (Body(body={"messages": [{"role": "user", "content": "abcd"}]}), 4),
        (Body(body={"prompt": "ab"}), 2),
        (Body(body={"input": [1, 2]}), None),
        (TokenIds(ids=(1,)), None),
        (None, None),
    ],
)
def test_characters_are_counted_where_there_is_text(prompt: object, characters: int | None) -> None:
    """Characters, never called tokens; None for what is no text."""
    assert prompt_characters(prompt) == characters  # type: ignore[arg-type]
