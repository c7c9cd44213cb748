"""A load against the engine in virtual time, to its end: as fast as it computes, and the same every time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Job
from loadgen.core.simulation.step import Counters, Step
from loadgen.core.speculation.acceptance import Acceptance
from loadgen.core.units import seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One finished request: the instants of its arrival, first and last token."""

    key: int
    arrival_ns: int
    first_ns: int
    last_ns: int
    output_tokens: int

    @property
    def ttft_s(self) -> float:
        """Seconds from arrival to the first token."""
        return seconds(self.first_ns - self.arrival_ns)

    @property
    def tpot_s(self) -> float | None:
        """(last - first) / (N - 1); None for a single token."""
        return seconds(self.last_ns - self.first_ns) / (self.output_tokens - 1) if self.output_tokens > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What came of a load: finished requests in the order of finishing, and the engine's sums."""

    requests: tuple[Served, ...]
    duration_s: float
    counters: Counters

    @property
    def output_tokens_per_s(self) -> float | None:
        """Tokens emitted a second; None for an empty run."""
        return self.counters.output_tokens / self.duration_s if self.duration_s else None

    @property
    def tpot_s(self) -> float | None:
        """Mean over finished requests of more than one token; None without any."""
        values = [value for request in self.requests if (value := request.tpot_s) is not None]
        return sum(values) / len(values) if values else None

    @property
    def acceptance(self) -> Acceptance:
        """Drafts over the whole run, as an engine's counters tell them."""
        counters = self.counters
        return Acceptance(
            steps=counters.drafts,
            drafted_tokens=counters.drafted_tokens,
            accepted_tokens=counters.accepted_tokens,
            histogram=tuple(counters.histogram),
        )

    @property
    def coverage_ratio(self) -> float | None:
        """Share of decode steps that drafted; None without any decode step."""
        return self.counters.drafts / self.counters.decode_steps if self.counters.decode_steps else None


Observer = Callable[[Step], None]


def closed_loop(
    engine: Engine,
    jobs: Iterable[Job],
    *,
    concurrency: int,
    stop_ns: int | None = None,
    observe: Observer | None = None,
) -> Simulation:
    """Keeps `concurrency` requests in the engine until the jobs are used up, or until `stop_ns` if that comes first."""
    book = _Book(engine, observe)
    due = iter(jobs)

    def refill(count: int, now_ns: int) -> None:
        for _, job in zip(range(count), due, strict=False):
            book.arrive(job, now_ns)

    refill(concurrency, 0)
    now_ns = 0
    while stop_ns is None or now_ns < stop_ns:
        step = engine.step(now_ns)
        if step is None:
            break
        now_ns = step.end_ns
        book.note(step)
        if step.finished:
            refill(len(step.finished), now_ns)
    return book.close(now_ns)


def open_loop(engine: Engine, arrivals: Iterable[tuple[int, Job]], *, observe: Observer | None = None) -> Simulation:
    """Takes each job at its instant, ns from the start in rising order, and runs until all are finished."""
    book = _Book(engine, observe)
    due = iter(arrivals)
    coming = next(due, None)
    now_ns = 0
    while True:
        while coming is not None and coming[0] <= now_ns:
            book.arrive(coming[1], coming[0])
            coming = next(due, None)
        step = engine.step(now_ns)
        if step is None:
            if coming is None:
                return book.close(now_ns)
            now_ns = coming[0]
            continue
        now_ns = step.end_ns
        book.note(step)


class _Book:
    """Notes arrivals, first and last tokens."""

    def __init__(self, engine: Engine, observe: Observer | None) -> None:
        self._engine, self._observe = engine, observe
        self._open: dict[int, tuple[int, int]] = {}
        self._first: dict[int, int] = {}
        self._served: list[Served] = []

    def arrive(self, job: Job, now_ns: int) -> None:
        self._engine.submit(job)
        self._open[job.key] = (now_ns, job.output_tokens)

    def note(self, step: Step) -> None:
        for key in step.prompt_ends:
            self._first.setdefault(key, step.end_ns)
        for key in step.finished:
            arrival_ns, tokens = self._open.pop(key)
            self._served.append(
                Served(
                    key=key,
                    arrival_ns=arrival_ns,
                    first_ns=self._first.pop(key),
                    last_ns=step.end_ns,
                    output_tokens=tokens,
                )
            )
        if self._observe is not None:
            self._observe(step)

    def close(self, now_ns: int) -> Simulation:
        return Simulation(
            requests=tuple(self._served),
            duration_s=seconds(now_ns),
            counters=self._engine.counters,
        )
