"""The block pool: counting, sharing, keeping and giving up."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from loadgen.core.errors import InternalError
from loadgen.core.simulation.blocks import BlockPool


def test_released_blocks_with_names_are_found_again_until_the_space_is_needed() -> None:
    """The least recently released content goes first, and of one request its end before its beginning."""
    pool = BlockPool(4)
    pool.take(3)
    pool.release(3, (), (10, 11, 12))
    assert (pool.free, pool.kept, pool.hits((10, 11, 12), 9)) == (4, 3, 3)
    pool.take(2)
    assert pool.hits((10, 11, 12), 9) == 2
    pool.take(2)
    assert (pool.kept, pool.hits((10,), 9)) == (0, 0)


def test_shared_blocks_are_counted_once() -> None:
    """Two users of two blocks hold two, and the blocks stay in use until the second leaves."""
    pool = BlockPool(4)
    pool.take(2)
    mine = pool.publish((1, 2))
    pool.share((1, 2))
    assert (mine, pool.in_use) == ([1, 2], 2)
    pool.release(0, mine)
    assert pool.in_use == 2
    pool.release(0, (1, 2))
    assert (pool.in_use, pool.kept) == (0, 2)


def test_publishing_what_another_holds_names_nothing() -> None:
    """Equal content computed twice stays two blocks, of which one has the name."""
    pool = BlockPool(4)
    pool.take(1)
    assert pool.publish((7,)) == [7]
    pool.take(1)
    assert pool.publish((7,)) == []
    pool.release(1, (), (7,))
    assert (pool.in_use, pool.kept) == (1, 0)


def test_more_than_there_is_is_a_fault_of_ours() -> None:
    """Callers look at `free` first."""
    with pytest.raises(InternalError, match="5 blocks in use of 4"):
        BlockPool(4).take(5)


class PoolMachine(RuleBasedStateMachine):
    """Any sequence of users with named prompts: nothing is lost, nothing exceeds the capacity."""

    @initialize(capacity=st.integers(1, 12))
    def start(self, capacity: int) -> None:
        self.pool = BlockPool(capacity)
        self.users: list[tuple[int, list[int], tuple[int, ...]]] = []

    @rule(family=st.integers(0, 2), length=st.integers(1, 6), tail=st.integers(0, 2))
    def admit(self, family: int, length: int, tail: int) -> None:
        names = tuple(family * 100 + place for place in range(length))
        hits = self.pool.hits(names, length)
        needed = length + tail - hits
        if needed + self.pool.idle_among(names[:hits]) > self.pool.free:
            return
        self.pool.share(names[:hits])
        self.pool.take(needed)
        shared = [*names[:hits], *self.pool.publish(names)]
        self.users.append((length + tail - len(shared), shared, names))

    @rule(place=st.integers(0, 20))
    def leave(self, place: int) -> None:
        if self.users:
            unnamed, shared, names = self.users.pop(place % len(self.users))
            self.pool.release(unnamed, shared, names)

    @invariant()
    def books_agree(self) -> None:
        if hasattr(self, "pool"):
            distinct = {name for _, shared, _ in self.users for name in shared}
            held = len(distinct) + sum(unnamed for unnamed, _, _ in self.users)
            assert self.pool.in_use == held
            assert self.pool.in_use + self.pool.kept <= self.pool.capacity


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
