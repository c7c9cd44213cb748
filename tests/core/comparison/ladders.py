"""Runs of arms over a ladder, from records whose TPOT is known."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from loadgen.core.analysis.columns import Columns
from loadgen.core.comparison.arms import Arm, ArmRun
from loadgen.core.comparison.cell import cell_of
from loadgen.core.run import Load, LoadMode
from tests.core.analysis.factory import answered, summarised

BASELINE = Arm(name="baseline", label="Baseline")
AGAIN = Arm(name="baseline-again", label="Baseline again")
EAGLE = Arm(name="eagle3", label="EAGLE-3 (k = 3)")
_DECODED_TOKENS, _TTFT_MS = 24, 100.0


def ladder(
    arm: Arm,
    tpots_ms: Mapping[int, float],
    *,
    tokens_per_step: int = 1,
    repeats: int = 1,
    requests: int = 40,
    first_seq: int = 0,
    spread: float = 0.02,
) -> list[ArmRun]:
    """A run for each level and repeat: answers of 25 tokens, one after the other in each slot.

    Each request's TPOT is that of its level but for a spread of its own.
    """

    def tpots(tpot_ms: float, repeat: int) -> list[float]:
        phases = (7 * seq + len(arm.name) + repeat for seq in range(requests))
        return [tpot_ms * math.exp(spread * math.sin(phase)) for phase in phases]

    return [
        _run(arm, level, repeat, tpots(tpot_ms, repeat), tokens_per_step, first_seq)
        for level, tpot_ms in tpots_ms.items()
        for repeat in range(repeats)
    ]


def slower(runs: list[ArmRun], level: int, *, ttft: float = 1.0, rate: float = 1.0) -> list[ArmRun]:
    """First tokens that come so much later at that level, and so many tokens a second."""
    made = []
    for run in runs:
        if run.cell.level == level:
            columns = run.cell.columns | {"ttft_s": run.cell.columns["ttft_s"] * ttft}
            rates = run.cell.rates | {"output_tokens_per_s": (run.cell.rates["output_tokens_per_s"] or 0) * rate}
            run = replace(run, cell=replace(run.cell, columns=columns, rates=rates))
        made.append(run)
    return made


def _run(arm: Arm, level: int, repeat: int, tpots_ms: Sequence[float], tokens_per_step: int, first_seq: int) -> ArmRun:
    free_ms = [0.0] * level
    records = []
    for seq, tpot_ms in enumerate(tpots_ms):
        slot = free_ms.index(min(free_ms))
        records.append(
            answered(
                first_seq + seq,
                sent_ms=free_ms[slot],
                ttft_ms=_TTFT_MS,
                gap_ms=tpot_ms * tokens_per_step,
                tokens=1 + _DECODED_TOKENS,
                per_event=tokens_per_step,
            )
        )
        free_ms[slot] += _TTFT_MS + tpot_ms * _DECODED_TOKENS
    drafting = {} if tokens_per_step == 1 else {"speculation": {"method": "eagle3", "draft_tokens": 3}}
    summary = summarised(
        records,
        load=Load(mode=LoadMode.CONCURRENCY, concurrency=level),
        server=drafting,
    )
    columns = Columns({})
    for record in records:
        columns.observe(record)
    cell = cell_of(columns.table(), summary, arm=arm.name, level=level, repeat=repeat)
    return ArmRun(cell=cell, summary=summary)
