"""Why speculation pays at a level or does not: the acceptance that it needs there, beside the one that it has."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.ratio import ratio
from loadgen.core.stats.bootstrap import Estimate

_TPOT = "tpot_s.mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The break-even acceptance length at one level, and how far it explains the speedup that was measured.

    `length`: L* = t_SD / t_AR, the tokens that a step must emit to pay. `predicted_speedup` is `tokens_per_step` over
    L*; `residual` is the measured speedup of mean TPOT over the predicted one, 1 where nothing is left to explain. The
    three are None when a run does not tell its tokens per step. Those are over all steps, also the ones that drafted
    nothing, since TPOT is.
    """

    level: float
    length: Estimate
    tokens_per_step: float | None
    predicted_speedup: float | None
    residual: Estimate | None


def break_even(
    baseline: Sequence[Cell], arm: Sequence[Cell], forced: Sequence[Cell], *, forced_length: float
) -> BreakEven | None:
    """From the cells of one level; `forced` is the arm with each step made to emit `forced_length` tokens on average.

    A step takes TPOT times the tokens that it emits. So L* is forced TPOT / baseline TPOT times `forced_length`, and
    the baseline cancels in the residual: it is the forced arm's step over the arm's own, whose length is measured in
    each run. None when mean TPOT cannot be compared.
    """
    needed = ratio(baseline, forced, _TPOT)
    if needed is None:
        return None
    length = needed.log_ratio.times(forced_length).estimate()
    lengths = [cell.tokens_per_step for cell in arm if cell.tokens_per_step is not None]
    explained = ratio([_steps(cell) for cell in arm], forced, _TPOT) if len(lengths) == len(arm) else None
    if explained is None:
        return BreakEven(level=needed.level, length=length, tokens_per_step=None, predicted_speedup=None, residual=None)
    accepted = math.exp(sum(map(math.log, lengths)) / len(lengths))
    return BreakEven(
        level=needed.level,
        length=length,
        tokens_per_step=accepted,
        predicted_speedup=accepted / length.value,
        residual=explained.log_ratio.times(forced_length).estimate(),
    )


def _steps(cell: Cell) -> Cell:
    """The cell with the time of a step for its TPOT."""
    assert cell.tokens_per_step is not None
    return replace(cell, columns={**cell.columns, "tpot_s": cell.columns["tpot_s"] * cell.tokens_per_step})
