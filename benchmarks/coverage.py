"""How often intervals of ratios hold the truth, on synthetic experiments whose true ratios are known.

    python -m benchmarks.coverage [--experiments 1000]

Prints tables on standard error and JSON on standard output: three ways to make the interval of a metric; the same when
starts differ in one arm alone, against what the package assumes; and every metric as the package gives it. Widths are
medians of high / low.
"""

import argparse
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.common import host, print_table
from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.ratio import METRICS, ratio
from loadgen.core.stats.student import critical
from tests.core.comparison.factory import World, experiment, true_ratios

SCHEMA = "loadgen.benchmark.coverage/1"
REPEATS, REQUESTS = (2, 3, 5), (50, 150, 500)
STARTS, INTERACTIONS = (0.0, 0.02, 0.05), (0.0, 0.2)
EFFECT = math.log(0.75)
METHOD_REQUESTS = REQUESTS[1]
RESAMPLES = 500
SETTING = ("repeats", "requests", "start", "interaction")

Interval = tuple[float, float]
Found = dict[str, list[tuple[bool, float]]]


def ours(baseline: Sequence[Cell], arm: Sequence[Cell], _: np.random.Generator) -> Interval:
    """What the package gives."""
    found = ratio(baseline, arm, "tpot_s.mean")
    assert found is not None
    return found.estimate.low, found.estimate.high


def paired_t(baseline: Sequence[Cell], arm: Sequence[Cell], _: np.random.Generator) -> Interval:
    """Student's t over the logarithms of the repeats' ratios."""
    before, after = (_tpot(cells).mean(axis=1) for cells in (baseline, arm))
    logs = np.log(after / before)
    half = critical(0.95, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
    return math.exp(logs.mean() - half), math.exp(logs.mean() + half)


def hierarchical(baseline: Sequence[Cell], arm: Sequence[Cell], rng: np.random.Generator) -> Interval:
    """Percentile bootstrap: repeats are drawn, then the requests in each, the same of both arms."""
    before, after = _tpot(baseline), _tpot(arm)
    repeats, requests = before.shape
    drawn = rng.integers(0, repeats, (RESAMPLES, repeats))[:, :, None]
    places = rng.integers(0, requests, (RESAMPLES, repeats, requests))
    low, high = np.quantile(after[drawn, places].mean((1, 2)) / before[drawn, places].mean((1, 2)), [0.025, 0.975])
    return float(low), float(high)


METHODS: dict[str, Callable[[Sequence[Cell], Sequence[Cell], np.random.Generator], Interval]] = {
    "bootstrap": hierarchical,
    "paired t": paired_t,
    "ours": ours,
}


def of_methods(repeats: int, requests: int, world: World, experiments: int) -> Found:
    """Whether the interval of mean TPOT held the truth, and how wide it was, by method."""
    rng = np.random.default_rng(1)
    truth = true_ratios(world)["tpot_s.mean"]
    found: Found = defaultdict(list)
    for _ in range(experiments):
        cells = experiment(world, rng, repeats=repeats, requests=requests)
        for name, method in METHODS.items():
            low, high = method(*cells, rng)
            found[name].append((low <= truth <= high, high / low))
    return found


def of_metrics(repeats: int, requests: int, world: World, experiments: int) -> Found:
    """The same of the package's intervals, by metric."""
    rng = np.random.default_rng(2)
    truth = true_ratios(world)
    found: Found = defaultdict(list)
    for _ in range(experiments):
        cells = experiment(world, rng, repeats=repeats, requests=requests)
        for name in METRICS:
            each = ratio(*cells, name)
            if each is not None:
                low, high = each.estimate.low, each.estimate.high
                found[name].append((low <= truth[name] <= high, high / low))
    return found


def grid() -> Iterator[tuple[int, int, World]]:
    """Every combination of repeats, requests and spreads."""
    for repeats, requests, start, interaction in itertools.product(REPEATS, REQUESTS, STARTS, INTERACTIONS):
        yield repeats, requests, World(effect=EFFECT, start=start, interaction=interaction)


def _tpot(cells: Sequence[Cell]) -> np.ndarray:
    return np.array([cell.columns["tpot_s"] for cell in cells])


def _figures(found: Found) -> dict[str, dict[str, float]]:
    return {
        name: {
            "coverage_ratio": float(np.mean([hit for hit, _ in each])),
            "width": float(np.median([w for _, w in each])),
        }
        for name, each in found.items()
    }


def _rows(results: Sequence[dict[str, Any]]) -> list[list[object]]:
    return [
        [
            *(result[name] for name in SETTING),
            *(f"{100 * each['coverage_ratio']:.1f} % ({each['width']:.2f})" for each in result["methods"].values()),
        ]
        for result in results
    ]


def main() -> None:
    """Parses, simulates, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--experiments", type=int, default=1000)
    experiments = parser.parse_args().experiments

    def setting(repeats: int, requests: int, world: World) -> dict[str, float]:
        return dict(zip(SETTING, (repeats, requests, world.start, world.interaction), strict=True))

    by_method = [
        {**setting(*each), "methods": _figures(of_methods(*each, experiments))}
        for each in grid()
        if each[1] == METHOD_REQUESTS
    ]
    unequal = World(effect=EFFECT, start=STARTS[-1], baseline_start=0.0)
    one_sided = [
        {**setting(*each), "methods": _figures(of_methods(*each, experiments))}
        for each in ((repeats, METHOD_REQUESTS, unequal) for repeats in REPEATS)
    ]
    by_metric = [{**setting(*each), "metrics": _figures(of_metrics(*each, experiments))} for each in grid()]

    print_table("tpot_s.mean by method", (*SETTING, *METHODS), _rows(by_method))
    print_table("tpot_s.mean when only the arm's starts differ", (*SETTING, *METHODS), _rows(one_sided))
    rows: list[list[object]] = []
    for name in METRICS:
        given = [each["metrics"][name]["coverage_ratio"] for each in by_metric if name in each["metrics"]]
        rows.append([name, len(given), *(f"{100 * of(given):.1f} %" for of in (min, np.mean, max))])
    print_table("every metric over the grid", ("metric", "settings", "least", "mean", "most"), rows)
    results = {"by_method": by_method, "one_sided": one_sided, "by_metric": by_metric}
    print(json.dumps({"schema": SCHEMA, "host": host(), "experiments": experiments} | results, indent=2))


if __name__ == "__main__":
    main()
