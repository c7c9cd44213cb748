"""Cutting and rescaling a trace."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.errors import ConfigError
from loadgen.core.traces.part import Part, cut, resolution_ns
from loadgen.core.traces.row import Reason, Row, RowTurn
from loadgen.core.traces.table import Table, TableBuilder
from loadgen.core.units import NS_PER_S


def table_of(*rows: tuple[float | None, str | None], tokens: tuple[int, ...] = ()) -> Table:
    builder = TableBuilder()
    for number, (seconds, session) in enumerate(rows):
        turn = RowTurn(input_tokens=tokens[number] if tokens else 10, output_tokens=5)
        time_ns = None if seconds is None else round(seconds * NS_PER_S)
        builder.add(
            Row(turns=(turn,), time_ns=time_ns, session=session), line=number + 1, position=number, size_bytes=1
        )
    return builder.build()


def singles(*times: float) -> Table:
    return table_of(*((time, None) for time in times))


def rows(table: Table) -> list[list[int]]:
    return [table.conversation(index) for index in range(table.conversations)]


def offsets_s(table: Table) -> list[float]:
    assert table.time_ns is not None
    return (table.time_ns[table.order] / NS_PER_S).tolist()


def test_speed_divides_times_after_the_first() -> None:
    """Times 300 and 302 at speed 4 are 0 and 0.5 s, not 75 and 75.5."""
    table, dropped = cut(singles(300, 302), Part(speed=4), resolution_ns=1)
    assert (offsets_s(table), dropped, table.speed) == ([0.0, 0.5], {}, 4)


def test_a_window_begins_at_its_first_row() -> None:
    """[from, to) after the first row; times begin at 0 again; what is outside is counted."""
    table, dropped = cut(singles(100, 110, 115, 120), Part(from_s=10, to_s=20), resolution_ns=1)
    assert (rows(table), offsets_s(table)) == ([[1], [2]], [0.0, 5.0])
    assert dropped == {Reason.OUTSIDE_WINDOW: 2}


def test_a_window_takes_whole_sessions_by_their_first_turn() -> None:
    """A session that begins before the window is not in it, one that begins inside keeps its later turns."""
    table = table_of((0, "a"), (5, "b"), (12, "a"), (30, "b"))
    assert rows(cut(table, Part(from_s=5, to_s=10), resolution_ns=1)[0]) == [[1, 3]]


def test_window_and_speed_apply_in_that_order() -> None:
    """The window is in the trace's own time."""
    table, _ = cut(singles(0, 10, 20, 30), Part(from_s=10, to_s=31, speed=10), resolution_ns=1)
    assert offsets_s(table) == [0.0, 1.0, 2.0]


def test_thinning_keeps_whole_sessions_by_seed() -> None:
    """10 % of 300 sessions of 5 turns: sessions of 5 turns, the same for a seed, others for another."""
    table = table_of(*((float(n), f"s{n % 300}") for n in range(1500)))
    one, dropped = cut(table, Part(thin_ratio=0.1, seed=3), resolution_ns=1)
    assert {len(turns) for turns in rows(one)} == {5}
    assert 10 <= one.conversations <= 55
    assert dropped == {Reason.THINNED: 1500 - 5 * one.conversations}
    assert rows(cut(table, Part(thin_ratio=0.1, seed=3), resolution_ns=1)[0]) == rows(one)
    assert rows(cut(table, Part(thin_ratio=0.1, seed=4), resolution_ns=1)[0]) != rows(one)


def test_a_smaller_share_is_part_of_a_larger_one() -> None:
    """With one seed, what 10 % keeps 20 % keeps too."""
    table = singles(*map(float, range(500)))
    small, large = (cut(table, Part(thin_ratio=share, seed=1), resolution_ns=1)[0] for share in (0.1, 0.2))
    assert {row for turns in rows(small) for row in turns} < {row for turns in rows(large) for row in turns}


def test_a_limit_takes_whole_conversations_from_the_start() -> None:
    """At most N requests, and at least one conversation."""
    table = table_of((0, "a"), (1, "b"), (2, "a"), (3, "a"), (4, "c"))
    assert rows(cut(table, Part(limit=4), resolution_ns=1)[0]) == [[0, 2, 3], [1]]
    assert rows(cut(table, Part(limit=1), resolution_ns=1)[0]) == [[0, 2, 3]]
    assert cut(table, Part(limit=1), resolution_ns=1)[1] == {Reason.OVER_LIMIT: 2}


def test_a_conversation_ends_before_the_turn_that_exceeds_the_context() -> None:
    """A single request that is too long is gone; a session keeps its earlier turns; both are counted."""
    table = table_of((0, "a"), (1, None), (2, "a"), (3, "a"), (4, None), tokens=(10, 96, 96, 10, 95))
    part, dropped = cut(table, Part(max_context_tokens=100), resolution_ns=1)
    assert (rows(part), dropped) == ([[0], [4]], {Reason.OVER_CONTEXT: 3})


def test_equal_times_stay_equal_unless_they_are_spread() -> None:
    """Five rows with one stamp are sent together by default."""
    assert offsets_s(cut(singles(*[317_402] * 5), Part(), resolution_ns=NS_PER_S)[0]) == [0.0] * 5


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(0, 99))
def test_spread_rows_stay_inside_their_tick_and_in_order(seconds: list[int], seed: int) -> None:
    """Rows that share a second are moved by less than it; the others and the order stay; the seed decides."""
    times = sorted(seconds)
    table = singles(*map(float, times))
    spread, dropped = cut(table, Part(spread=True, seed=seed), resolution_ns=NS_PER_S)
    assert dropped == {}
    assert rows(spread) == rows(table)
    got = offsets_s(spread)
    assert got == sorted(got)
    first = got[0]
    for time, offset in zip(times, got, strict=True):
        moved = offset - first - (time - times[0])
        assert -1 < moved < 1
        if times.count(time) == 1 and times.count(times[0]) == 1:
            assert moved == 0
    again = cut(table, Part(spread=True, seed=seed), resolution_ns=NS_PER_S)[0]
    assert offsets_s(again) == got


def test_turns_of_a_session_at_one_time_stay_in_order_when_spread() -> None:
    """A later turn never moves before an earlier one."""
    table = table_of(*[(0, "a"), (0, "b")] * 20)
    spread, _ = cut(table, Part(spread=True, seed=5), resolution_ns=NS_PER_S)
    assert spread.time_ns is not None
    for turns in rows(spread):
        times = spread.time_ns[turns].tolist()
        assert times == sorted(times)
        assert len(set(times)) > 1


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0, 5, 9], 1),
        ([0] * 4, 1),
        ([0, 0, 0, 3000, 3000, 3000, 6000, 6000, 6000, 8997, 8997, 8997], 3000),
        ([0, 0, 1000, 5000, 9000], 1),
    ],
)
def test_a_grid_is_recognised_by_rows_that_share_times(times: list[int], expected: int) -> None:
    """More than half of the rows on shared stamps: the median gap is the clock's step; else the format's unit."""
    assert resolution_ns(np.array(times), 1) == expected


@pytest.mark.parametrize("part", [Part(from_s=1), Part(to_s=1), Part(speed=2), Part(spread=True)])
def test_what_needs_times_refuses_a_table_without(part: Part) -> None:
    """No time is made up."""
    with pytest.raises(ConfigError, match="time stamp in every row"):
        cut(table_of((None, None)), part, resolution_ns=1)


def test_what_needs_no_times_takes_a_table_without() -> None:
    """Thinning and limits work on prompts too."""
    table, _ = cut(table_of((None, None), (None, None)), Part(limit=1, thin_ratio=1), resolution_ns=1)
    assert (rows(table), table.time_ns) == ([[0]], None)


@pytest.mark.parametrize(
    "values",
    [
        {"speed": 0},
        {"speed": -1},
        {"speed": math.inf},
        {"speed": math.nan},
        {"thin_ratio": 0},
        {"thin_ratio": 1.1},
        {"limit": 0},
        {"max_context_tokens": 0},
        {"from_s": -1},
        {"from_s": math.nan},
        {"from_s": 5, "to_s": 5},
        {"to_s": 0},
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, float]) -> None:
    """Each with the name and what was expected."""
    with pytest.raises(ConfigError, match="expected"):
        Part(**values)  # type: ignore[arg-type]


def test_a_speed_that_makes_times_no_clock_can_hold_is_refused() -> None:
    """Times divided by next to nothing would wrap round to negative ones."""
    for speed in (1e-300, 1e-12):
        with pytest.raises(ConfigError, match="speed"):
            cut(singles(0, 3600), Part(speed=speed), resolution_ns=1)


def test_an_empty_part_has_no_conversations() -> None:
    """A window with nothing in it is no error here; the reader of files says so."""
    table, dropped = cut(singles(0, 1), Part(from_s=10), resolution_ns=1)
    assert (table.conversations, dropped) == (0, {Reason.OUTSIDE_WINDOW: 2})
