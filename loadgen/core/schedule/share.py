"""Which part of a run one of several processes drives."""

from dataclasses import dataclass

from loadgen.core.errors import InternalError


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of number `index` of `count`; the default is the whole.

    Slots, which bound the requests in flight, are dealt out in turn: slot s is that of process s modulo `count`, so
    that the first processes have one more where they cannot be split evenly. Conversations are dealt out to the slots
    in turn, so that each process has work in proportion to its slots; where nothing bounds the requests in flight, each
    takes every `count`-th conversation. Numbers stay those of the whole plan.
    """

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise InternalError(f"a share of number {self.index} of {self.count}")

    def slots(self, total: int) -> range:
        """The numbers of its slots among `total`."""
        return range(self.index, total, self.count)

    def has(self, conversation: int, *, slots: int | None) -> bool:
        """Whether the conversation of that number in the plan is its own, with so many slots in all."""
        slot = conversation if slots is None else conversation % slots
        return slot % self.count == self.index


WHOLE = Share()
