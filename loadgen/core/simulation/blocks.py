"""Memory for context, in blocks of tokens: counted, shared by equal beginnings, and taken back from the least recent.

A block is in use while a running request refers to it. A full block whose content has a name stays when its last user
leaves, idle until somebody asks for the name again or the space is needed.
"""

from collections import OrderedDict
from collections.abc import Sequence

from loadgen.core.errors import InternalError


class BlockPool:
    """A fixed number of blocks. Names are integers: equal names mean equal content of the block and all before it."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.in_use = 0
        self._users: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def free(self) -> int:
        """Blocks that can be taken; idle ones are given up for it."""
        return self.capacity - self.in_use

    @property
    def kept(self) -> int:
        """Idle blocks that still hold named content."""
        return len(self._idle)

    def hits(self, names: Sequence[int], most: int) -> int:
        """How many of the first `most` names are held, counted up to the first that is not."""
        found = 0
        for name in names[:most]:
            if name not in self._users and name not in self._idle:
                break
            found += 1
        return found

    def idle_among(self, names: Sequence[int]) -> int:
        """How many of these held names are idle: sharing them takes that many free blocks."""
        return sum(name in self._idle for name in names)

    def share(self, names: Sequence[int]) -> None:
        """Refers to held blocks once more."""
        for name in names:
            if name in self._idle:
                del self._idle[name]
                self.in_use += 1
                self._users[name] = 1
            else:
                self._users[name] += 1
        self._check()

    def take(self, count: int) -> None:
        """Puts so many blocks of no name into use; the least recent idle ones make room."""
        self.in_use += count
        self._check()
        while self.in_use + len(self._idle) > self.capacity:
            self._idle.popitem(last=False)

    def publish(self, names: Sequence[int]) -> list[int]:
        """Names blocks that their only user has filled; returns those that were not held already."""
        fresh = [name for name in names if name not in self._users and name not in self._idle]
        for name in fresh:
            self._users[name] = 1
        return fresh

    def release(self, unnamed: int, shared: Sequence[int], names: Sequence[int] = ()) -> None:
        """Ends one user's hold on `unnamed` blocks and on `shared` ones; full ones get their `names` and are kept."""
        # The last blocks of a sequence go first, so that beginnings, which others may share, are given up last.
        for name in reversed(names):
            if unnamed and name not in self._users and name not in self._idle:
                self._idle[name] = None
                unnamed -= 1
                self.in_use -= 1
        self.in_use -= unnamed
        for name in reversed(shared):
            users = self._users[name] - 1
            if users:
                self._users[name] = users
            else:
                del self._users[name]
                self._idle[name] = None
                self.in_use -= 1
        self._check()

    def forget(self) -> None:
        """Gives up all idle content, as a reset of the prefix cache does."""
        self._idle.clear()

    def _check(self) -> None:
        if not 0 <= self.in_use <= self.capacity:
            raise InternalError(f"{self.in_use} blocks in use of {self.capacity}")
