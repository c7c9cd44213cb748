"""Evidence of many requests, as sums."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from loadgen.core.speculation.acceptance import AcceptanceSum, plus
from loadgen.core.speculation.evidence import Evidence


@dataclass(slots=True, kw_only=True)
class RequestPool:
    """Sums over a set of requests, taken one by one.

    `blocks` are over the requests that have one, `steps` over those whose events tell their tokens, `both_blocks` and
    `both_steps` over those that have both and no oversize event. `without_block` counts requests that decoded and have
    no block, `broke_off` those that may have decoded and did not complete. The others are bounds, None when not known:
    `uncounted_tokens` what the requests without a block decoded, `unseen_tokens` as of `Evidence`, `trimmed_tokens` the
    drafts that requests with both were counted to accept and did not show. `block_decode_tokens` are what the requests
    with a block decoded.
    """

    requests: int = 0
    with_block: int = 0
    without_block: int = 0
    broke_off: int = 0
    with_steps: int = 0
    with_both: int = 0
    contradicting: int = 0
    oversize_events: int = 0
    blocks: AcceptanceSum = field(default_factory=AcceptanceSum)
    steps: AcceptanceSum = field(default_factory=AcceptanceSum)
    both_blocks: AcceptanceSum = field(default_factory=AcceptanceSum)
    both_steps: AcceptanceSum = field(default_factory=AcceptanceSum)
    block_decode_tokens: int | None = 0
    uncounted_tokens: int | None = 0
    unseen_tokens: int | None = 0
    both_unseen_tokens: int | None = 0
    trimmed_tokens: int | None = 0

    def observe(self, told: Evidence) -> None:
        """Adds one request."""
        self.requests += 1
        self.broke_off += told.broke_off
        self.contradicting += told.contradicts
        self.oversize_events += told.oversize_events
        self.unseen_tokens = plus(self.unseen_tokens, told.unseen_tokens)
        if told.steps is not None:
            self.with_steps += 1
            self.steps.add(told.steps)
        if told.block is None:
            self.without_block += told.decode_tokens != 0
            self.uncounted_tokens = plus(self.uncounted_tokens, told.decode_tokens)
            return
        self.with_block += 1
        self.blocks.add(told.block)
        self.block_decode_tokens = plus(self.block_decode_tokens, told.decode_tokens)
        if told.steps is None or told.oversize_events:
            return
        self.with_both += 1
        self.both_blocks.add(told.block)
        self.both_steps.add(told.steps)
        self.both_unseen_tokens = plus(self.both_unseen_tokens, told.unseen_tokens)
        # Drafts of the last step are counted before the end of the answer cuts them off.
        self.trimmed_tokens = plus(self.trimmed_tokens, plus(told.draft_tokens, told.unseen_tokens))

    @property
    def complete(self) -> bool:
        """Whether every request that decoded has a block, with steps and accepted tokens."""
        known = self.blocks.steps is not None and self.blocks.accepted_tokens is not None
        return self.with_block > 0 and self.without_block == 0 and known


def merged(pools: Iterable[RequestPool]) -> RequestPool:
    """The sums over all pools."""
    whole = RequestPool()
    for pool in pools:
        for name in (one.name for one in fields(pool)):
            mine, other = getattr(whole, name), getattr(pool, name)
            if isinstance(mine, AcceptanceSum):
                mine.add(other.total())
            else:
                setattr(whole, name, plus(mine, other))
    return whole
