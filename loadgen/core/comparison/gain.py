"""An arm against the baseline at one level, and whether it is worth running there."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from loadgen.core.comparison.objection import Against, Objection
from loadgen.core.comparison.trade_off import Effect, TradeOff
from loadgen.core.comparison.verdict import Claim, LevelVerdict
from loadgen.core.stats.bootstrap import Estimate


class Worth(StrEnum):
    """What the evidence says of running an arm at a level.

    `PAYS`: TPOT is faster for certain, and nothing decisive is lost. `COSTS`: TPOT is slower for certain, or E2EL,
    throughput or goodput is lost, or it certainly answers fewer requests. `WITHHELD`: TPOT may pay, and something
    speaks against believing it: answers of another length, or what may well be lost. `UNKNOWN`: neither has been shown.
    """

    PAYS = "pays"
    COSTS = "costs"
    WITHHELD = "held back"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """An arm against the baseline at one level.

    `ratios` are arm / baseline by metric (those of `METRICS` that have a value), `verdict` is the speedup of mean TPOT
    and what is claimed of it, `trade_offs` what the other metrics lose or do not gain where that pays, `objections`
    what speaks against the arm whatever its speed. `left_out_ratio` is the share of its requests that lack a TPOT in
    some run. `break_even_length` is tokens per step
    over the speedup: the tokens that a step has to emit for mean TPOT to be the baseline's; None where tokens per step
    are not known. `valid`: all measurements of both sides are; otherwise nothing is claimed. Nor is it where answers
    differ in length (`same_work`), and where one start of each is all that is left of several (`one_start`).
    """

    verdict: LevelVerdict
    ratios: Mapping[str, Estimate]
    trade_offs: tuple[TradeOff, ...] = ()
    objections: tuple[Objection, ...] = ()
    left_out_ratio: float
    break_even_length: Estimate | None
    valid: bool = True
    one_start: bool = False

    @property
    def same_work(self) -> bool:
        """Whether answers are as long as the baseline's, so that time a token compares like with like."""
        return all(each.against is not Against.LENGTHS for each in self.objections)

    @property
    def worth(self) -> Worth:
        """Whether it is worth running there."""
        if not self.valid:
            return Worth.UNKNOWN
        fewer = any(each.certain and each.against is not Against.LENGTHS for each in self.objections)
        if self.verdict.claim is Claim.SLOWER or fewer or any(each.decisive for each in self.trade_offs):
            return Worth.COSTS
        if self.objections or any(each.effect is Effect.MAY_LOSE for each in self.trade_offs):
            return Worth.WITHHELD
        return Worth.PAYS if self.verdict.claim is Claim.FASTER else Worth.UNKNOWN
