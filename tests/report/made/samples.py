"""Latency samples."""

from dataclasses import fields

from loadgen.core.metrics.summary import Distribution, Latency, QuantileCurve

EMPTY = Distribution(n=0, missing=0)


def distribution(scale_s: float, n: int = 990, missing: int = 0) -> Distribution:
    """A plausible latency sample around `scale_s`."""
    return Distribution(
        n=n,
        missing=missing,
        mean=scale_s * 1.08,
        min=scale_s * 0.6,
        max=scale_s * 4.1,
        p50=scale_s,
        p75=scale_s * 1.2,
        p90=scale_s * 1.5,
        p95=scale_s * 1.9,
        p99=scale_s * 2.9,
        p99_9=None,
    )


def latency(**measured: Distribution) -> Latency:
    """All that is not given was not measured."""
    return Latency(**dict.fromkeys((each.name for each in fields(Latency)), EMPTY) | measured)


def curve(scale_s: float, points: int = 101) -> QuantileCurve:
    """An ascending curve with a tail."""
    shares = tuple(i / (points - 1) for i in range(points))
    return QuantileCurve(p=shares, value_s=tuple(scale_s * (0.6 + p * 0.7 + 2.8 * p**12) for p in shares))
