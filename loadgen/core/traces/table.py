"""The columns of all rows of a file: what facts and cuts need, a few dozen bytes a row. Texts stay in the file."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import repeat
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from loadgen.core.request import Body, Messages, Prompt, Text
from loadgen.core.traces.row import LARGEST_COUNT, Row

Ints: TypeAlias = NDArray[np.signedinteger[Any]]
Bools: TypeAlias = NDArray[np.bool_]
Value = TypeVar("Value", bound=np.generic)

UNKNOWN = -1
"""Stands for an absent value inside these columns only, where None cannot be: no count, time or key is negative."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Rows by number, and the order in which they are used.

    `line`, `position` and `size_bytes` say where a row is; `input_tokens`, `output_tokens` and `characters` (of its
    prompts) are UNKNOWN where a row does not tell; `requests` counts its turns; `has_text` is whether it holds the
    prompts themselves. `time_ns` is None when not every row has a time. `order` lists row numbers conversation by
    conversation (by first arrival) and turn by turn; conversation i is `order[starts[i]:starts[i + 1]]`. `is_session`
    marks rows of named or several-turn conversations. `speed` is what the times were divided by.
    """

    line: Ints
    position: Ints
    size_bytes: Ints
    time_ns: Ints | None
    input_tokens: Ints
    output_tokens: Ints
    characters: Ints
    requests: Ints
    has_text: Bools
    is_session: Bools
    order: Ints
    starts: Ints
    speed: float = 1.0
    notes: tuple[str, ...] = ()

    @property
    def conversations(self) -> int:
        """How many conversations the rows make."""
        return len(self.starts) - 1

    def conversation(self, index: int) -> list[int]:
        """Row numbers of a conversation, in turn order."""
        rows: list[int] = self.order[self.starts[index] : self.starts[index + 1]].tolist()
        return rows

    def per_place(self, by_conversation: NDArray[Value]) -> NDArray[Value]:
        """A value a conversation, repeated for each of its rows, in `order`."""
        return np.repeat(by_conversation, np.diff(self.starts))

    def kept(self, keep: Bools) -> "Table":
        """The table with those places of `order` only; conversations left without a row are gone."""
        if not len(keep):
            return self
        counts = np.add.reduceat(keep.astype(np.int64), self.starts[:-1])
        starts = np.concatenate(([0], np.cumsum(counts[counts > 0])))
        return replace(self, order=self.order[keep], starts=starts)


class TableBuilder:
    """Collects rows in file order."""

    def __init__(self) -> None:
        self._line, self._size, self._requests = array("i"), array("i"), array("i")
        self._position, self._time = array("q"), array("q")
        self._input, self._output, self._characters = array("i"), array("i"), array("i")
        self._has_text = bytearray()
        # Only some formats have these: as long as the rows before the first that does, UNKNOWN.
        self._session, self._parent, self._turn = array("q"), array("q"), array("i")

    def __len__(self) -> int:
        return len(self._line)

    def add(self, row: Row, *, line: int, position: int, size_bytes: int) -> None:
        """Appends a row."""
        turns, before = row.turns, len(self._line)
        self._line.append(line)
        self._position.append(position)
        self._size.append(size_bytes)
        self._time.append(UNKNOWN if row.time_ns is None else row.time_ns)
        self._requests.append(len(turns))
        self._input.append(_total(turn.input_tokens for turn in turns))
        self._output.append(_total(turn.output_tokens for turn in turns))
        self._characters.append(_total(prompt_characters(turn.prompt) for turn in turns))
        self._has_text.append(all(turn.prompt is not None for turn in turns))
        name = f"\0{line}" if row.session is None and len(turns) > 1 else row.session
        _append(self._session, before, None if name is None else _key(name))
        _append(self._parent, before, None if row.parent is None else _key(row.parent))
        _append(self._turn, before, row.turn)

    def build(self) -> Table:
        """The table, rows stable-sorted by time where each row has one.

        A turn comes after another of its session by time, then turn number, then place in the file.
        """
        notes: list[str] = []
        line = _column(self._line, np.int32)
        time = _column(self._time, np.int64)
        timeless = int(np.count_nonzero(time == UNKNOWN))
        has_times = len(time) > 0 and timeless == 0
        if has_times:
            backwards = np.flatnonzero(time[1:] < time[:-1]) + 1
            if len(backwards):
                first = f"the first on line {line[backwards[0]]}"
                notes.append(f"{len(backwards)} rows are earlier than the row before them ({first}): sorted by time")
            time = time - time.min()
        elif timeless < len(time):
            notes.append(f"{timeless} of {len(time)} rows have no time stamp: times are not used")
        order, starts = self._ordered(time if has_times else None, notes)
        return Table(
            line=line,
            position=_column(self._position, np.int64),
            size_bytes=_column(self._size, np.int32),
            time_ns=time if has_times else None,
            input_tokens=_column(self._input, np.int32),
            output_tokens=_column(self._output, np.int32),
            characters=_column(self._characters, np.int32),
            requests=_column(self._requests, np.int32),
            has_text=np.frombuffer(self._has_text, dtype=np.bool_),
            is_session=self._optional(self._session, np.int64) != UNKNOWN,
            order=order,
            starts=starts,
            notes=tuple(notes),
        )

    def _optional(self, values: "array[int]", kind: type[np.int64] | type[np.int32]) -> Ints:
        return _column(values, kind) if values else np.full(len(self), UNKNOWN, dtype=np.int8)

    def _ordered(self, time: Ints | None, notes: list[str]) -> tuple[Ints, Ints]:
        n = len(self)
        if not self._session:
            order = np.arange(n) if time is None else np.argsort(time, kind="stable")
            return order.astype(np.int32), np.arange(n + 1)
        group = self._groups(notes)
        turn = self._optional(self._turn, np.int32)
        order = np.lexsort((turn, group) if time is None else (turn, time, group))
        begins = np.concatenate(([True], group[order[1:]] != group[order[:-1]]))
        starts = np.concatenate((np.flatnonzero(begins), [n]))
        against = (turn[order[1:]] < turn[order[:-1]]) & (turn[order[1:]] != UNKNOWN) & ~begins[1:]
        if against.any():
            notes.append(f"{np.count_nonzero(against)} turns come before a lower turn number: ordered by time")
        first_row = np.minimum.reduceat(order, starts[:-1])
        first_time = first_row if time is None else time[order[starts[:-1]]]
        by_arrival = np.lexsort((first_row, first_time))
        lengths = np.diff(starts)[by_arrival]
        new_starts = np.concatenate(([0], np.cumsum(lengths)))
        shift = np.repeat(starts[:-1][by_arrival] - new_starts[:-1], lengths)
        return order[np.arange(n) + shift].astype(np.int32), new_starts

    def _groups(self, notes: list[str]) -> Ints:
        """A number for each row, equal within a conversation: the number of one of its rows."""
        n = len(self)
        session = _column(self._session, np.int64)
        rows = np.arange(n)
        by_name = np.argsort(session, kind="stable")
        names = session[by_name]
        if not self._parent:
            first = by_name[np.searchsorted(names, session)]
            return np.where(session == UNKNOWN, rows, first)
        parent = _column(self._parent, np.int64)
        place = np.minimum(np.searchsorted(names, parent), n - 1)
        found = (names[place] == parent) & (parent != UNKNOWN)
        orphans = np.count_nonzero((parent != UNKNOWN) & ~found)
        if orphans:
            notes.append(f"{orphans} turns follow one that is not in the file: each begins a conversation")
        above = np.where(found, by_name[place], rows)
        for _ in range(n.bit_length()):  # each pass doubles the distance that is followed
            above = above[above]
        return np.where(above[above] == above, above, rows)  # rows in a circle stand alone


def prompt_characters(prompt: Prompt | None) -> int | None:
    """Characters of a prompt's text; None where it is not text, or not there."""
    match prompt:
        case Text():
            return len(prompt.text)
        case Messages():
            return _message_characters(prompt.messages)
        case Body():
            asked = prompt.body.get("messages") or prompt.body.get("prompt") or prompt.body.get("input")
            if isinstance(asked, str):
                return len(asked)
            return _message_characters(asked) if isinstance(asked, list) else None
        case _:
            return None


def _message_characters(messages: Sequence[object]) -> int | None:
    total = 0
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, str):
            return None
        total += len(content)
    return total


def _total(values: Iterable[int | None]) -> int:
    """Their sum; UNKNOWN when one is absent."""
    total = 0
    for value in values:
        if value is None:
            return UNKNOWN
        total += value
    return min(total, LARGEST_COUNT)


def _append(column: "array[int]", before: int, value: int | None) -> None:
    """Adds a value to a column that stays empty until the first that is known."""
    if value is not None:
        column.extend(repeat(UNKNOWN, before - len(column)))
        column.append(value)
    elif column:
        column.append(UNKNOWN)


def _key(name: str) -> int:
    """A name as a number of 63 bits: among a million, two are equal with a chance below 1e-7."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") >> 1


def _column(values: "array[int]", kind: type[np.int64] | type[np.int32]) -> Ints:
    return np.frombuffer(values, dtype=kind) if len(values) else np.empty(0, dtype=kind)
