"""Why speculation pays at a level or does not: the acceptance that it needs there, beside the one that it has."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadgen.core.analysis.columns import Floats
from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.ratio import ratio
from loadgen.core.stats.bootstrap import Estimate

_TPOT = "tpot_s.mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The break-even acceptance length at one level, and how far it explains the speedup that was measured.

    `length`: L* = t_SD / t_AR, the tokens that a step must emit to pay, for steps that draft as often as the arm's.
    `predicted_speedup` is `tokens_per_step` over L*; `residual` is the measured speedup of mean TPOT over the predicted
    one, 1 where nothing is left to explain. The three are None when a run does not tell its tokens per step. Those are
    over all steps, also the ones that drafted nothing, since TPOT is.
    """

    level: float
    length: Estimate
    tokens_per_step: float | None
    predicted_speedup: float | None
    residual: Estimate | None


def break_even(
    baseline: Sequence[Cell],
    arm: Sequence[Cell],
    forced: Sequence[Cell],
    *,
    forced_length: float,
    drafting_share: float = 1.0,
) -> BreakEven | None:
    """From the cells of one level; `forced` is the arm with each step made to emit `forced_length` tokens on average.

    A step takes TPOT times the tokens that it emits. The forced steps may draft more often than the arm's own, as those
    of lookup do; `drafting_share` is the arm's coverage over theirs. A step without a draft is a plain one, and drafts
    add to a step in proportion to their number, so a step of the arm takes that share of a forced step, and for the
    rest a plain one: L* is its time over the plain step's, and the residual its time over the one measured, the arm's
    own TPOT times its length in each run. None when mean TPOT cannot be compared.
    """
    steps = [
        _with_tpot(made, drafting_share * forced_length * _tpot(made) + (1 - drafting_share) * _tpot(plain))
        for plain, made in zip(
            *(sorted(side, key=lambda cell: cell.repeat) for side in (baseline, forced)), strict=True
        )
    ]
    needed = ratio(baseline, steps, _TPOT)
    if needed is None:
        return None
    length = needed.estimate
    lengths = [cell.tokens_per_step for cell in arm if cell.tokens_per_step is not None]
    explained = ratio([_step(cell) for cell in arm], steps, _TPOT) if len(lengths) == len(arm) else None
    if explained is None:
        return BreakEven(level=needed.level, length=length, tokens_per_step=None, predicted_speedup=None, residual=None)
    accepted = math.exp(sum(map(math.log, lengths)) / len(lengths))
    return BreakEven(
        level=needed.level,
        length=length,
        tokens_per_step=accepted,
        predicted_speedup=accepted / length.value,
        residual=explained.estimate,
    )


def _step(cell: Cell) -> Cell:
    """The cell with the time of a step for its TPOT."""
    assert cell.tokens_per_step is not None
    return _with_tpot(cell, _tpot(cell) * cell.tokens_per_step)


def _tpot(cell: Cell) -> Floats:
    return cell.columns["tpot_s"]


def _with_tpot(cell: Cell, tpot_s: Floats) -> Cell:
    return replace(cell, columns={**cell.columns, "tpot_s": tpot_s})
