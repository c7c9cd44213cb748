"""Whether scatter between starts may be pooled over the levels of a ladder: how often such intervals hold the truth.

    python -m benchmarks.pooling [--experiments 20000]

Prints a table on standard error and JSON on standard output. What a start does to the logarithm of a level is shared by
all levels of that start for a part, and the level's own for the rest; one level may scatter more than the others.
Three ways to make the variance of a level: from its own starts, as the package does; from all levels, as mean squares
of starts and of what is left (two-way random effects; degrees of freedom by Satterthwaite, 1946); and midway, each
weighed by its degrees of freedom, as moderated variances are (Smyth, 2004). Coverage is of the level that scatters
most and of one of the others, widths are medians of high / low.
"""

import argparse
import itertools
import json
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import host, print_table
from loadgen.core.stats.student import critical

SCHEMA = "loadgen.benchmark.pooling/1"
LEVELS, REPEATS = (4, 6), (2, 3)
SHARED_RATIOS, FACTORS = (0.0, 0.5, 1.0), (1.0, 3.0)
SPREAD = 0.02
SETTING = ("levels", "repeats", "shared", "factor")
_DEGREES = np.geomspace(1, 500, 200)
_CRITICAL = np.array([critical(0.95, degrees) for degrees in _DEGREES])

Floats = NDArray[np.float64]
Parts = Sequence[tuple[Floats, float | Floats]]
"""Variances of the mean of an arm, by level, each with its degrees of freedom."""


def of_each(logs: Floats) -> Parts:
    """From the starts of the level alone; `logs` are by experiment, level and start."""
    starts = logs.shape[-1]
    return [(logs.var(axis=-1, ddof=1) / starts, starts - 1.0)]


def of_all(logs: Floats) -> Parts:
    """The same for every level: what starts share, and what is left beside it."""
    _, levels, starts = logs.shape
    apart = logs - logs.mean(axis=-1, keepdims=True)
    shared = apart.mean(axis=1, keepdims=True)
    between = (shared**2).sum(axis=-1) / (starts - 1)
    left = ((apart - shared) ** 2).sum(axis=(1, 2), keepdims=True)[..., 0] / ((starts - 1) * levels)
    alike = np.ones((1, levels))
    return [(between / starts * alike, starts - 1.0), (left / starts * alike, (starts - 1.0) * (levels - 1))]


def midway(logs: Floats) -> Parts:
    """The level's own and that of all, each by its degrees of freedom, which are those of all together."""
    ((own, own_degrees),) = of_each(logs)
    variance, degrees = total(of_all(logs))
    return [((own * own_degrees + variance * degrees) / (own_degrees + degrees), degrees)]


WAYS: dict[str, Callable[[Floats], Parts]] = {"each level": of_each, "all levels": of_all, "midway": midway}


def total(parts: Parts) -> tuple[Floats, Floats]:
    """The sum of variances with its degrees of freedom, by Satterthwaite."""
    variance = np.sum([part for part, _ in parts], axis=0)
    return variance, 1 / np.sum([(part / variance) ** 2 / degrees for part, degrees in parts], axis=0)


def drawn(
    rng: np.random.Generator, *, experiments: int, levels: int, repeats: int, shared: float, factor: float
) -> Floats:
    """Logarithms of one arm whose truth is 0; the variance of the last level is `factor` times that of the others."""
    own = rng.normal(size=(experiments, levels, repeats))
    common = rng.normal(size=(experiments, 1, repeats))
    spreads = np.full((levels, 1), SPREAD)
    spreads[-1] *= factor**0.5
    return np.asarray(spreads * (shared**0.5 * common + (1 - shared) ** 0.5 * own))


def figures(arms: Sequence[Floats], way: Callable[[Floats], Parts]) -> dict[str, float]:
    """Of the level that scatters most and of one of the others."""
    difference = arms[1].mean(axis=-1) - arms[0].mean(axis=-1)
    variance, degrees = total([part for logs in arms for part in way(logs)])
    half = np.interp(degrees, _DEGREES, _CRITICAL) * np.sqrt(variance)
    held = (np.abs(difference) <= half).mean(axis=0)
    widths = np.exp(2 * np.median(half, axis=0))
    return {
        "most_coverage_ratio": float(held[-1]),
        "most_width": float(widths[-1]),
        "other_coverage_ratio": float(held[0]),
        "other_width": float(widths[0]),
    }


def main() -> None:
    """Parses, simulates, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--experiments", type=int, default=20_000)
    experiments = parser.parse_args().experiments
    rng, found = np.random.default_rng(1), []
    for levels, repeats, shared, factor in itertools.product(LEVELS, REPEATS, SHARED_RATIOS, FACTORS):
        setting = dict(zip(SETTING, (levels, repeats, shared, factor), strict=True))
        arms = [
            drawn(rng, experiments=experiments, levels=levels, repeats=repeats, shared=shared, factor=factor)
            for _ in range(2)
        ]
        found.append({**setting, "ways": {name: figures(arms, way) for name, way in WAYS.items()}})
    rows = [
        [
            *(each[name] for name in SETTING),
            *(
                f"{100 * of[f'{place}_coverage_ratio']:.1f} % ({of[f'{place}_width']:.2f})"
                for of in each["ways"].values()
                for place in ("most", "other")
            ),
        ]
        for each in found
    ]
    titles = (*SETTING, *(f"{name}: {place}" for name in WAYS for place in ("most", "other")))
    print_table("intervals by where the scatter of starts is taken from", titles, rows)
    print(json.dumps({"schema": SCHEMA, "host": host(), "experiments": experiments, "settings": found}, indent=2))


if __name__ == "__main__":
    main()
