"""What an arm gives up where its TPOT pays, and what it does not gain there: the other metrics beside the headline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadgen.core.comparison.ratio import Note, Ratio
from loadgen.core.comparison.verdict import Claim, LevelVerdict, verdicts
from loadgen.core.stats.bootstrap import Estimate

HEADLINE = "tpot_s.mean"
"""What `pays` speaks of."""

BESIDE = ("e2el_s.mean", "ttft_s.mean", "output_tokens_per_s", "goodput_rps")
"""What a reader of the headline takes to pay as well."""

DECISIVE = frozenset({"e2el_s.mean", "output_tokens_per_s", "goodput_rps"})
"""An arm that loses one of these is not recommended: its users wait longer for an answer, or its server yields less."""


MAY_LOSE_FROM = 1.1
"""A decisive metric that is worse by such a factor, for certain or not, holds a recommendation back."""


class Effect(StrEnum):
    """What a metric does where TPOT pays: get worse for certain, look far worse, or be not for certain better."""

    LOSS = "loss"
    MAY_LOSE = "loss not certain"
    NO_GAIN = "no gain seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """One metric at one level at which TPOT pays. `ratio` is arm / baseline, whichever is better."""

    metric: str
    level: float
    effect: Effect
    ratio: Estimate

    @property
    def decisive(self) -> bool:
        """Whether the arm is not to be recommended because of it."""
        return self.effect is Effect.LOSS and self.metric in DECISIVE


def trade_offs(
    headline: Sequence[LevelVerdict], ratios: Mapping[float, Mapping[str, Ratio]], noise: Sequence[Ratio] = ()
) -> dict[float, tuple[TradeOff, ...]]:
    """By level, in the order of `BESIDE`. `ratios` has all metrics by level, `noise` the baseline against itself.

    A loss is told wherever the headline's speedup is above 1, claimed or not: in all metrics and levels together at
    most 5 % of ladders hold a false one (Holm). That there is no gain is told where the headline claims one and the
    ladder of the metric does not, by the same rule for both. It is not told of TTFT, which drafts are not there to
    shorten, and of rates in an open loop, which follow the arrivals. Where the headline claims one and a decisive
    metric is worse by `MAY_LOSE_FROM` or more without certainty, that is told instead: intervals of few starts are so
    wide that nothing is a loss for certain, which is no reason to recommend what looks like one.
    """
    beside = [ratios[each.level][metric] for each in headline for metric in BESIDE if metric in ratios[each.level]]
    lost = {
        (ratio.metric, ratio.level)
        for ratio, verdict in zip(beside, verdicts(beside, noise), strict=True)
        if verdict.claim is Claim.SLOWER
    }
    gained = {
        (metric, verdict.level)
        for metric in DECISIVE
        for verdict in verdicts([ratio for ratio in beside if ratio.metric == metric], noise)
        if verdict.claim is Claim.FASTER
    }
    found: dict[float, list[TradeOff]] = {}
    for verdict in headline:
        of_level = found.setdefault(verdict.level, [])
        for ratio in (each for each in beside if each.level == verdict.level):
            place, effect = (ratio.metric, ratio.level), None
            if verdict.speedup.value > 1 and place in lost:
                effect = Effect.LOSS
            elif verdict.claim is Claim.FASTER and _may_lose(ratio):
                effect = Effect.MAY_LOSE
            elif verdict.claim is Claim.FASTER and _may_gain(ratio) and place not in gained:
                effect = Effect.NO_GAIN
            if effect is not None:
                of_level.append(TradeOff(metric=ratio.metric, level=ratio.level, effect=effect, ratio=ratio.estimate))
    return {level: tuple(each) for level, each in found.items()}


def _may_lose(ratio: Ratio) -> bool:
    return ratio.metric in DECISIVE and ratio.speedup.estimate().value <= 1 / MAY_LOSE_FROM


def _may_gain(ratio: Ratio) -> bool:
    return ratio.metric in DECISIVE and Note.FIXED_RATE not in ratio.notes
