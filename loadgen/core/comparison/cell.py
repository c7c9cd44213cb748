"""One run of an experiment, cut down to what comparisons need."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadgen.core.analysis.columns import Floats, Mask, Table
from loadgen.core.metrics.slo import SLO_METRICS
from loadgen.core.metrics.summary import Summary
from loadgen.core.record import Outcome
from loadgen.core.run import LoadMode

LATENCIES = ("ttft_s", "tpot_s", "e2el_s")
RATES = ("output_tokens_per_s", "requests_per_s", "goodput_rps")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The measured requests of one arm at one level in one repeat: columns in ascending order of `seq`.

    `columns` holds the latencies and the output tokens, NaN where a request has no value; a request that did not
    complete has none. `rates` are the run's own, over its window. `acceptance_length` and `tokens_per_step` as in the
    summary.
    """

    arm: str
    level: float
    repeat: int
    seq: NDArray[np.int64]
    columns: Mapping[str, Floats]
    good: Mask
    rates: Mapping[str, float | None]
    closed_loop: bool
    acceptance_length: float | None
    tokens_per_step: float | None

    def __str__(self) -> str:
        return f"{self.arm!r} at level {self.level:g}, repeat {self.repeat}"


def cell_of(table: Table, summary: Summary, *, arm: str, level: float, repeat: int) -> Cell:
    """The cell of a run from its columns and its summary."""
    speculation = summary.speculation
    places = np.flatnonzero(table.measured)
    places = places[np.argsort(table["seq"][places])]
    completed = table.has(Outcome.COMPLETED)[places]
    return Cell(
        arm=arm,
        level=level,
        repeat=repeat,
        seq=table["seq"][places].astype(np.int64),
        columns={name: np.where(completed, table[name][places], np.nan) for name in (*SLO_METRICS, "output_tokens")},
        good=table.good[places],
        rates={name: getattr(summary.throughput, name) for name in RATES},
        closed_loop=summary.load.mode is LoadMode.CONCURRENCY,
        acceptance_length=None if speculation is None else speculation.acceptance_length,
        tokens_per_step=None if speculation is None else speculation.tokens_per_step,
    )
