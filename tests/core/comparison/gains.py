"""Gains of one arm at one level, as given."""

from collections.abc import Sequence

from loadgen.core.comparison.gain import Gain
from loadgen.core.comparison.trade_off import Effect, TradeOff
from loadgen.core.comparison.verdict import Claim, LevelVerdict
from loadgen.core.stats.bootstrap import Estimate


def around(value: float, factor: float = 1.05) -> Estimate:
    """An estimate whose interval goes from value / factor to value x factor."""
    return Estimate(value=value, low=value / factor, high=value * factor, confidence_ratio=0.95, method="given", n=100)


def gain(level: float, speedup: float, *, lost: Sequence[str] = (), valid: bool = True) -> Gain:
    """Claimed where the interval leaves out 1; metrics that are `lost` are 10 % worse."""
    estimate = around(speedup)
    claim = Claim.FASTER if estimate.low > 1 else Claim.SLOWER if estimate.high < 1 else Claim.NO_DIFFERENCE
    return Gain(
        verdict=LevelVerdict(level=level, speedup=estimate, claim=claim, noise_floor=None),
        ratios={"tpot_s.mean": around(1 / speedup)},
        trade_offs=tuple(
            TradeOff(metric=metric, level=level, effect=Effect.LOSS, ratio=around(1.1 if "_s." in metric else 0.9))
            for metric in lost
        ),
        left_out_ratio=0.0,
        break_even_length=None,
        valid=valid,
    )


def gains(*speedups: float | None, levels: Sequence[float] = (1, 4, 16, 64)) -> dict[float, Gain]:
    """By level; None where there was nothing to compare."""
    return {level: gain(level, speedup) for level, speedup in zip(levels, speedups, strict=True) if speedup is not None}
