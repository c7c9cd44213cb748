"""Runs whose difference is known, as sides of a comparison."""

from dataclasses import replace
from typing import Any

import numpy as np

from loadgen.core.analysis.columns import Columns
from loadgen.core.comparison.cell import cell_of
from loadgen.core.comparison.side import Side, Source, level_of, side_of
from loadgen.core.record import RequestRecord, RequestSpeculation
from loadgen.core.run import Load, LoadMode
from tests.core.analysis.factory import analysed, answered, manifest

OPTIONS = {"seed": 5, "ignore_eos": True, "temperature": 0.0}
DATA = {"format": "prompts", "sha256": "ab" * 32, "text": "real"}
TOKENS = 10


def records(
    n: int = 60, *, slower: float = 1.0, noise: int = 1, speculates: bool = False, **changes: Any
) -> list[RequestRecord]:
    """`n` streams, each heavy or light by its number, `slower` times as long as they would be, with 2 % of noise."""
    heavy = np.random.default_rng(0).uniform(10, 30, n)
    chance = np.random.default_rng(noise).normal(1, 0.02, n)
    drafted = {"speculation": RequestSpeculation(steps=4, drafted_tokens=8, accepted_tokens=5)} if speculates else {}
    return [
        answered(
            seq,
            sent_ms=seq * 400.0,
            ttft_ms=50.0 * slower,
            gap_ms=float(heavy[seq] * chance[seq] * slower),
            tokens=TOKENS,
            per_event=2 if speculates else 1,
            **drafted,
            **changes,
        )
        for seq in range(n)
    ]


def side(
    made: list[RequestRecord], *, options: dict[str, Any] | None = None, load: Load | None = None, **changes: Any
) -> Side:
    """A run with these records; `changes` are of its manifest."""
    told = manifest(
        data=DATA,
        options=OPTIONS | (options or {}),
        load=load or Load(mode=LoadMode.CONCURRENCY, concurrency=1, num_requests=len(made), seed=5),
        **changes,
    )
    summary = analysed(made, **{name: getattr(told, name) for name in ("data", "options", "load")}, **changes).summary
    columns = Columns(told.slo)
    for record in made:
        columns.observe(record)
    cell = cell_of(columns.table(), summary, arm="a", level=level_of(told.load) or 0.0, repeat=0)
    return side_of(summary, manifest=told, cell=cell)


def source(name: str, *sides: Side) -> Source:
    """An argument of a comparison."""
    return Source(name=name, sides=sides)


def at_level(made: Side, concurrency: int) -> Side:
    """The run as a level of a ladder."""
    load = replace(made.load, concurrency=concurrency)
    return replace(made, load=load, workload={**made.workload, "load.concurrency": concurrency})
