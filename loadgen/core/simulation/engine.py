"""An inference engine in virtual time: continuous batching, advanced one step at a time.

Each step takes one token of every request that decodes, with its draft tokens, and fills the rest of the token budget
with pieces of prompts; it lasts what `step_time` says and ends with what it emitted. Requests are admitted in order of
arrival. When the KV cache is full the youngest request loses its blocks and later computes them again. The engine has
no clock: it is told when a step starts, and says when it ends.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from loadgen.core.errors import ConfigError
from loadgen.core.simulation.blocks import BlockPool
from loadgen.core.simulation.job import Job, Limits
from loadgen.core.simulation.speculator import Speculator
from loadgen.core.simulation.step import Counters, Step
from loadgen.core.simulation.step_time import StepTime
from loadgen.core.units import nanoseconds

_KEY, _CONTEXT, _LEFT, _BLOCKS, _ORDER, _UNDRAFTED = range(6)
_REQUEST_LUCK, _STRETCH_LUCK = range(2)


@dataclass(slots=True, eq=False)
class _Sequence:
    """A request in the engine. `to_compute` is its prompt, and after a preemption what it had generated as well;
    of its `blocks` those named in `shared` may have other users."""

    job: Job
    to_compute: int
    left: int
    luck: float
    stretch_luck: float
    computed: int = 0
    order: int = 0
    blocks: int = 0
    shared: list[int] = field(default_factory=list)


class Engine:
    """The engine. `rng` decides what is accepted; equal generators and calls give equal steps.

    Raises ConfigError for limits under which nothing could run.
    """

    def __init__(
        self, *, target: StepTime, limits: Limits, rng: np.random.Generator, speculator: Speculator | None = None
    ) -> None:
        most = 0 if speculator is None else max([speculator.draft_tokens, *(r[2] for r in speculator.by_batch_size)])
        if limits.token_budget < 1 + most:
            raise ConfigError(
                f"a token budget of {limits.token_budget} a step cannot hold one token and {most} draft tokens"
            )
        if min(limits.kv_blocks, limits.block_tokens, limits.max_sequences) < 1:
            raise ConfigError("expected at least one KV block of one token, and one request at once")
        self._target, self._limits, self._rng, self._speculator = target, limits, rng, speculator
        self._pool = BlockPool(limits.kv_blocks)
        self._waiting: deque[_Sequence] = deque()
        self._filling: list[_Sequence] = []
        self._decoding: dict[int, _Sequence] = {}
        self._state = np.zeros((6, 64), dtype=np.int64)
        self._luck = np.zeros((2, 64))
        self._count = 0
        self._admitted = 0
        self._most_drafted = most
        self._draft_length: int | None = None
        self._thresholds: dict[int, np.ndarray] = {}
        self.counters = Counters(histogram=[0] * (most + 1) if speculator is not None else [])

    @property
    def running(self) -> int:
        """Requests that hold memory."""
        return self._count + len(self._filling)

    @property
    def waiting(self) -> int:
        """Requests that do not."""
        return len(self._waiting)

    @property
    def kv_used_ratio(self) -> float:
        """Share of the KV cache that running requests hold, 0..1."""
        return self._pool.in_use / self._pool.capacity

    def submit(self, job: Job) -> None:
        """Queues a request; it takes part from the next step on.

        Raises ConfigError when it asks for nothing or could never fit into the cache.
        """
        if job.prompt_tokens < 1 or job.output_tokens < 1:
            raise ConfigError(f"request {job.key}: expected at least one prompt token and one output token")
        needed = self._blocks_for(job.prompt_tokens + job.output_tokens - 1 + self._most_drafted)
        if needed > self._limits.kv_blocks:
            raise ConfigError(
                f"request {job.key}: {job.prompt_tokens} + {job.output_tokens} tokens need {needed} KV blocks,"
                f" there are {self._limits.kv_blocks}"
            )
        own, stretch = 0.0, 0.0
        if self._speculator is not None:
            survival = self._speculator.survival
            own = survival.request_share**0.5 * float(self._rng.standard_normal())
            stretch = float(self._rng.standard_normal())
        self._waiting.append(
            _Sequence(job=job, to_compute=job.prompt_tokens, left=job.output_tokens, luck=own, stretch_luck=stretch)
        )

    def cancel(self, key: int) -> bool:
        """Drops a request between steps and frees what it holds; False when it is not here."""
        for sequences in (self._waiting, self._filling):
            for sequence in sequences:
                if sequence.job.key == key:
                    sequences.remove(sequence)
                    if sequences is self._filling:
                        self._free(sequence, full_tokens=sequence.computed)
                    return True
        if key not in self._decoding:
            return False
        place = int(np.flatnonzero(self._state[_KEY, : self._count] == key)[0])
        self._leave(place, key)
        keep = np.ones(self._count, dtype=bool)
        keep[place] = False
        self._compact(keep)
        return True

    def forget_prefixes(self) -> None:
        """Empties the prefix cache of what no running request uses."""
        self._pool.forget()

    def step(self, now_ns: int) -> Step | None:
        """Runs the step that starts at `now_ns`; None when there is nothing to do."""
        if not (self._count or self._filling or self._waiting):
            return None
        draft = self._speculator.draft_tokens_at(self._count) if self._speculator is not None and self._count else 0
        preempted = self._make_room(draft)
        decoding = min(self._count, self._limits.token_budget // (1 + draft))
        budget = self._limits.token_budget - decoding * (1 + draft)
        cached: dict[int, int] = {}
        if not preempted:
            self._admit(budget, cached)
        chunks = self._chunks(budget)
        state = self._state[:, :decoding]
        drafted, accepted = self._accept(decoding, draft)

        drafted_tokens = int(drafted.sum()) if draft else 0
        prompt_tokens = sum(tokens for _, tokens in chunks)
        seconds = self._seconds(
            decoding=decoding,
            decode_context=int(state[_CONTEXT].sum()),
            draft=draft,
            drafted_tokens=drafted_tokens,
            prompt_tokens=prompt_tokens,
            prompt_context=sum(sequence.computed for sequence, _ in chunks),
        )

        emitted = np.minimum(accepted + 1, state[_LEFT])
        keys = state[_KEY].copy()
        state[_CONTEXT] += emitted
        state[_LEFT] -= emitted
        if self._speculator is not None:
            if draft:
                state[_UNDRAFTED] = 0
            else:
                state[_UNDRAFTED] += emitted
        self._count_up(draft, drafted, accepted, drafted_tokens, decoding, int(emitted.sum()))

        finished = self._finish(decoding)
        prompt_ends = self._compute_prompts(chunks, finished)
        self.counters.prompt_tokens += prompt_tokens
        return Step(
            start_ns=now_ns,
            end_ns=now_ns + nanoseconds(seconds),
            tokens=decoding + drafted_tokens + prompt_tokens,
            prompt_tokens=prompt_tokens,
            draft_tokens=draft,
            keys=keys,
            emitted=emitted,
            drafted=drafted,
            accepted=accepted,
            prompt_ends=tuple(prompt_ends),
            finished=tuple(finished),
            preempted=preempted,
            cached_tokens=cached,
        )

    # Time and acceptance

    def _seconds(
        self,
        *,
        decoding: int,
        decode_context: int,
        draft: int,
        drafted_tokens: int,
        prompt_tokens: int,
        prompt_context: int,
    ) -> float:
        tokens = decoding + drafted_tokens + prompt_tokens
        forward_s = self._target.forward_s(tokens, decode_context + prompt_context)
        seconds = forward_s + self._target.overhead_s
        if self._limits.graph_tokens is not None and tokens > self._limits.graph_tokens:
            seconds += self._limits.graph_miss_s
        if self._speculator is None:
            return seconds
        seconds += self._speculator.drafting.prompt_token_s * prompt_tokens
        if decoding:
            drafting_ratio = drafted_tokens / (decoding * draft) if draft else 0.0
            seconds += self._switch_s(draft) + drafting_ratio * self._speculator.drafting.seconds(
                sequences=decoding, context_tokens=decode_context, draft_tokens=draft, target_forward_s=forward_s
            )
        return seconds

    def _switch_s(self, draft: int) -> float:
        """What it costs to draft again after steps without it: the drafter takes in what was generated meanwhile."""
        before, self._draft_length = self._draft_length, draft
        if self._speculator is None or before != 0 or not draft:
            return 0.0
        missed = int(self._state[_UNDRAFTED, : self._count].sum())
        return self._speculator.switch_s + self._speculator.catch_up_token_s * missed

    def _accept(self, decoding: int, draft: int) -> tuple[np.ndarray, np.ndarray]:
        """Draft tokens of each decoding request, and how many of them are accepted."""
        none = np.zeros(decoding, dtype=np.int64)
        if self._speculator is None or not draft or not decoding:
            return none, none
        survival = self._speculator.survival
        luck = self._luck[_REQUEST_LUCK, :decoding]
        rest = 1 - survival.request_share - survival.stretch_share
        luck = luck + rest**0.5 * self._rng.standard_normal(decoding)
        if survival.stretch_share:
            stretch = self._luck[_STRETCH_LUCK, :decoding]
            kept = float(np.exp(-1 / survival.stretch_steps))
            stretch *= kept
            stretch += (1 - kept * kept) ** 0.5 * self._rng.standard_normal(decoding)
            luck += survival.stretch_share**0.5 * stretch
        thresholds = self._thresholds.get(draft)
        if thresholds is None:
            thresholds = self._thresholds[draft] = survival.thresholds(draft)
        accepted = np.searchsorted(thresholds, luck)
        if self._speculator.coverage_ratio == 1:
            return np.full(decoding, draft, dtype=np.int64), accepted
        drafts = self._rng.random(decoding) < self._speculator.coverage_ratio
        return drafts * draft, accepted * drafts

    def _count_up(
        self, draft: int, drafted: np.ndarray, accepted: np.ndarray, drafted_tokens: int, decoding: int, emitted: int
    ) -> None:
        counters = self.counters
        counters.steps += 1
        counters.decode_steps += decoding
        counters.output_tokens += emitted
        if not drafted_tokens:
            return
        drafts = drafted_tokens // draft
        counters.drafts += drafts
        counters.drafted_tokens += drafted_tokens
        counts = np.bincount(accepted, minlength=draft + 1).tolist()
        counts[0] -= decoding - drafts
        for place, count in enumerate(counts):
            counters.histogram[place] += count

    # Scheduling and memory

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self._limits.block_tokens)

    def _make_room(self, draft: int) -> tuple[int, ...]:
        """Blocks for each decoding request's last token and its drafts; the youngest requests go until they suffice."""
        preempted: list[int] = []
        size = self._limits.block_tokens
        while self._count:
            state = self._state[:, : self._count]
            needed = np.maximum((state[_CONTEXT] + (draft + size - 1)) // size, state[_BLOCKS])
            growth = int(needed.sum()) - int(state[_BLOCKS].sum())
            if growth <= self._pool.free:
                if growth:
                    self._pool.take(growth)
                    state[_BLOCKS] = needed
                break
            preempted.append(self._preempt_youngest())
        return tuple(preempted)

    def _preempt_youngest(self) -> int:
        place = int(self._state[_ORDER, : self._count].argmax())
        youngest = int(self._state[_ORDER, place])
        filling = max(self._filling, key=lambda sequence: sequence.order, default=None)
        if filling is not None and filling.order > youngest:
            self._filling.remove(filling)
            sequence = filling
            self._free(sequence, full_tokens=sequence.computed)
        else:
            context, left = (int(self._state[row, place]) for row in (_CONTEXT, _LEFT))
            sequence = self._leave(place, int(self._state[_KEY, place]))
            sequence.to_compute, sequence.left = context, left
            keep = np.ones(self._count, dtype=bool)
            keep[place] = False
            self._compact(keep)
        sequence.computed = 0
        self._waiting.appendleft(sequence)
        self.counters.preemptions += 1
        return sequence.job.key

    def _admit(self, budget: int, cached: dict[int, int]) -> None:
        """Takes waiting requests in order while there are tokens, places and memory for their whole prompt."""
        budget -= sum(sequence.to_compute - sequence.computed for sequence in self._filling)
        while self._waiting and budget > 0 and self.running < self._limits.max_sequences:
            sequence = self._waiting[0]
            names = sequence.job.blocks
            hits = 0
            if self._limits.prefix_caching:
                # The last token is always computed, for its logits.
                most = (sequence.to_compute - 1) // self._limits.block_tokens
                hits = self._pool.hits(names, most)
                if hits and self._speculator is not None and self._speculator.method.reads_hidden_states:
                    hits -= 1
            needed = self._blocks_for(sequence.to_compute)
            if needed - hits + self._pool.idle_among(names[:hits]) > self._pool.free:
                return
            self._waiting.popleft()
            self._pool.share(names[:hits])
            self._pool.take(needed - hits)
            sequence.shared, sequence.blocks = list(names[:hits]), needed
            sequence.computed = hits * self._limits.block_tokens
            self._admitted += 1
            sequence.order = self._admitted
            self._filling.append(sequence)
            budget -= sequence.to_compute - sequence.computed
            cached[sequence.job.key] = sequence.computed
            if self._limits.prefix_caching:
                self.counters.prefix_query_tokens += sequence.to_compute
                self.counters.prefix_hit_tokens += sequence.computed

    def _chunks(self, budget: int) -> list[tuple[_Sequence, int]]:
        """The pieces of prompts that this step computes, oldest request first."""
        chunks: list[tuple[_Sequence, int]] = []
        for sequence in self._filling:
            piece = min(sequence.to_compute - sequence.computed, budget)
            if piece <= 0:
                break
            chunks.append((sequence, piece))
            budget -= piece
        return chunks

    def _compute_prompts(self, chunks: Iterable[tuple[_Sequence, int]], finished: list[int]) -> list[int]:
        """Computes the pieces; the keys of requests whose prompt ended, which emit a token. Adds to `finished`."""
        ended = []
        for sequence, piece in chunks:
            sequence.computed += piece
            if sequence.computed < sequence.to_compute:
                continue
            self._filling.remove(sequence)
            ended.append(sequence.job.key)
            sequence.left -= 1
            self.counters.output_tokens += 1
            if self._limits.prefix_caching:
                self._publish(sequence)
            if sequence.left:
                self._start_decoding(sequence)
            else:
                self._free(sequence, full_tokens=sequence.computed)
                finished.append(sequence.job.key)
        return ended

    def _start_decoding(self, sequence: _Sequence) -> None:
        if self._count == self._state.shape[1]:
            self._state = np.concatenate([self._state, np.zeros_like(self._state)], axis=1)
            self._luck = np.concatenate([self._luck, np.zeros_like(self._luck)], axis=1)
        place = self._count
        key = sequence.job.key
        self._state[:, place] = (key, sequence.to_compute + 1, sequence.left, sequence.blocks, sequence.order, 0)
        self._luck[:, place] = (sequence.luck, sequence.stretch_luck)
        self._decoding[key] = sequence
        self._count += 1

    def _finish(self, decoding: int) -> list[int]:
        left = self._state[_LEFT, :decoding]
        if left.all():
            return []
        finished = []
        for place in np.flatnonzero(left == 0).tolist():
            key = int(self._state[_KEY, place])
            self._leave(place, key)
            finished.append(key)
        self._compact(self._state[_LEFT, : self._count] > 0)
        return finished

    def _leave(self, place: int, key: int) -> _Sequence:
        """Takes a decoding request out of the books and frees its memory; its column is the caller's to remove."""
        sequence = self._decoding.pop(key)
        sequence.blocks = int(self._state[_BLOCKS, place])
        sequence.stretch_luck = float(self._luck[_STRETCH_LUCK, place])
        # The last token's keys and values are not computed yet.
        self._free(sequence, full_tokens=int(self._state[_CONTEXT, place]) - 1)
        return sequence

    def _free(self, sequence: _Sequence, *, full_tokens: int) -> None:
        names: tuple[int, ...] = ()
        if self._limits.prefix_caching:
            names = sequence.job.blocks[: full_tokens // self._limits.block_tokens]
        self._pool.release(sequence.blocks - len(sequence.shared), sequence.shared, names)
        sequence.blocks, sequence.shared = 0, []

    def _publish(self, sequence: _Sequence) -> None:
        """Lets others share the full blocks of a computed prompt."""
        names = sequence.job.blocks[: sequence.computed // self._limits.block_tokens]
        sequence.shared.extend(self._pool.publish(names))

    def _compact(self, keep: np.ndarray) -> None:
        kept = int(keep.sum())
        self._state[:, :kept] = self._state[:, : self._count][:, keep]
        self._luck[:, :kept] = self._luck[:, : self._count][:, keep]
        self._count = kept
