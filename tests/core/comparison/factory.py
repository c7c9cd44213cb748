"""Runs of a closed loop from a model whose true ratios are known."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from loadgen.core.comparison.cell import Cell

Floats = NDArray[np.float64]

SLOTS = 8
GOOD_E2EL_S = 2.5
STATISTICS = {
    "mean": lambda values: values.mean(),
    "p50": lambda values: np.quantile(values, 0.5),
    "p99": lambda values: np.quantile(values, 0.99),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Log-normal latencies; every spread is a standard deviation of the logarithm.

    A request is heavy or light in both arms (`request`), and suits the arm more or less (`interaction`, as acceptance
    differs by prompt); a start is fast or slow as a whole (`start`, of the baseline `baseline_start` if given); each
    answer has its own `noise`. The arm's TPOT is exp(`effect`) times the baseline's for a request that suits it as most
    do. Both arms have the same output tokens.
    """

    effect: float = 0.0
    start: float = 0.02
    baseline_start: float | None = None
    interaction: float = 0.0
    request: float = 0.5
    noise: float = 0.2


def experiment(
    world: World, rng: np.random.Generator, *, repeats: int, requests: int, level: float = 8.0
) -> tuple[list[Cell], list[Cell]]:
    """The cells of the baseline and of the arm at one level."""
    heavy, suits, tokens = _requests(world, rng, requests)
    effects = (np.zeros(requests), world.effect + suits)
    made = [
        [
            _cell(
                *_latencies(world, rng, heavy, effect, tokens, math.exp(rng.normal(0, spread))),
                tokens,
                arm=arm,
                level=level,
                repeat=repeat,
            )
            for repeat in range(repeats)
        ]
        for arm, effect, spread in zip(("baseline", "arm"), effects, _starts(world), strict=True)
    ]
    return made[0], made[1]


@cache
def true_ratios(world: World, *, requests: int = 400_000) -> dict[str, float]:
    """arm / baseline of every metric over very many requests, and over the starts as a geometric mean."""
    rng = np.random.default_rng(0)
    heavy, suits, tokens = _requests(world, rng, requests)
    ttft, tpot, e2el = zip(
        *(_latencies(world, rng, heavy, effect, tokens, 1.0) for effect in (np.zeros(requests), world.effect + suits)),
        strict=True,
    )
    truth = {
        f"{name}.{statistic}": float(of(pair[1]) / of(pair[0]))
        for name, pair in (("ttft_s", ttft), ("tpot_s", tpot), ("e2el_s", e2el))
        for statistic, of in STATISTICS.items()
    }
    throughput = float(e2el[0].mean() / e2el[1].mean())
    good = [
        np.log(np.searchsorted(np.sort(each), GOOD_E2EL_S / np.exp(rng.normal(0, spread, 2000)))).mean()
        for each, spread in zip(e2el, _starts(world), strict=True)
    ]
    goodput = throughput * math.exp(good[1] - good[0])
    return truth | {"output_tokens_per_s": throughput, "requests_per_s": throughput, "goodput_rps": goodput}


def with_column(cell: Cell, name: str, values: Floats) -> Cell:
    """The cell with another column."""
    return replace(cell, columns={**cell.columns, name: values})


def reordered(cell: Cell, order: Sequence[int] | NDArray[np.int64]) -> Cell:
    """The cell with its requests in another order, each with its own values."""
    return replace(
        cell,
        seq=cell.seq[order],
        good=cell.good[order],
        columns={name: values[order] for name, values in cell.columns.items()},
    )


def _starts(world: World) -> tuple[float, float]:
    return world.start if world.baseline_start is None else world.baseline_start, world.start


def _requests(world: World, rng: np.random.Generator, n: int) -> tuple[Floats, Floats, Floats]:
    tokens = np.round(np.exp(rng.normal(math.log(60), 0.3, n))) + 2
    return rng.normal(0, world.request, n), rng.normal(0, world.interaction, n), tokens


def _latencies(
    world: World, rng: np.random.Generator, heavy: Floats, effect: Floats, tokens: Floats, start: float
) -> tuple[Floats, Floats, Floats]:
    n = len(heavy)
    ttft = 0.1 * start * np.exp(heavy + rng.normal(0, world.noise, n))
    tpot = 0.02 * start * np.exp(heavy + effect + rng.normal(0, world.noise, n))
    return ttft, tpot, ttft + (tokens - 1) * tpot


def _cell(ttft: Floats, tpot: Floats, e2el: Floats, tokens: Floats, *, arm: str, level: float, repeat: int) -> Cell:
    good = e2el <= GOOD_E2EL_S
    window_s = float(e2el.sum()) / SLOTS
    return Cell(
        arm=arm,
        level=level,
        repeat=repeat,
        seq=np.arange(len(tokens)),
        columns={"ttft_s": ttft, "tpot_s": tpot, "e2el_s": e2el, "output_tokens": tokens},
        good=good,
        rates={
            "output_tokens_per_s": float(tokens.sum()) / window_s,
            "requests_per_s": len(tokens) / window_s,
            "goodput_rps": int(good.sum()) / window_s,
        },
        closed_loop=True,
        acceptance_length=None,
        tokens_per_step=None,
    )
