"""Whether experiments find what is true of servers that are known exactly, and claim nothing that is not.

    python -m benchmarks.crossover [--seeds 200] [--aa-seeds 240] [--jobs 2] [--only NAME ...]

Each experiment is planned from its file, run on simulated servers in virtual time (`tests/wiring/virtual_experiments`),
stored as a run is stored, and read from its folder as `loadgen experiment report` reads it. True crossovers come from
the step model alone: a closed form, and simulations of many thousand requests at single concurrencies, which share
nothing with the estimator. Prints tables on standard error and JSON on standard output.
"""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.common import host, print_table
from loadgen.core.comparison.arms import ArmLadder, ArmsComparison
from loadgen.core.comparison.crossover import NoCrossover
from loadgen.core.comparison.verdict import Claim
from loadgen.core.simulation.job import Job
from loadgen.core.simulation.loop import closed_loop
from loadgen.core.traces.lengths import parse_length
from loadgen.options.predict import PredictOptions
from loadgen.options.resolve import resolve
from loadgen.options.sim import SimOptions
from loadgen.wiring.experiment_report import experiment_result
from loadgen.wiring.predict import modelled_server, predicted
from loadgen.wiring.sim import engines_of, facts_of
from tests.wiring.virtual_experiments import Chance, virtual_experiment

SCHEMA = "loadgen.benchmark.crossover/1"
PROMPT, OUTPUT = "64:32", "48:16"
START_SPREAD, NEAR_TIES = 0.01, 0.002
SERVER = {"gpu": "a100", "target": "llama-3.1-8b"}
EAGLE3 = {"method": "eagle3", "draft_tokens": 5, "acceptance": [0.45, 0.2, 0.1, 0.05, 0.02]}
NGRAM = {"method": "ngram", "draft_tokens": 5}
REQUESTS = 8_000
"""Of each simulation for a true speedup, all at one concurrency."""

Found = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """One kind of experiment: the arm against plain decoding over a ladder, in so many repeats."""

    name: str
    arm: dict[str, Any]
    levels: tuple[int, ...]
    about: tuple[int, ...]
    """Concurrencies around the crossover at which the true speedup is simulated."""
    repeats: int = 3
    start: float = START_SPREAD


_STEEP, _SHALLOW = (12, 14, 16, 18, 20, 24), (24, 28, 32, 36, 40, 48)
CROSSOVERS = (
    Scenario("steep", EAGLE3, (4, 8, 16, 32), about=_STEEP),
    Scenario("two repeats", EAGLE3, (4, 8, 16, 32), repeats=2, about=_STEEP),
    Scenario("coarse ladder", EAGLE3, (2, 32), about=_STEEP),
    Scenario("shallow", NGRAM, (8, 16, 32, 64), about=_SHALLOW),
)


def experiment_file(folder: Path, seed: int, arms: dict[str, Any], levels: Sequence[int], **changes: Any) -> Path:
    """The experiment as a user writes it; requests and warm-up of a level are the defaults."""
    told = {
        "name": "known truth",
        "workload": {
            "synthetic": {"input_tokens": PROMPT, "output_tokens": OUTPUT},
            "ignore_eos": True,
            "temperature": 0,
            "seed": seed,
        },
        "load": {"concurrency": list(levels)},
        "arms": {name: {"sim": server} for name, server in arms.items()},
        "repeats": 3,
        "noise": "none",
    }
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(told | changes, sort_keys=False))
    return path


def reported(seed: int, chance: Chance, arms: dict[str, Any], levels: Sequence[int], **changes: Any) -> ArmsComparison:
    """What the report of one experiment is made from."""
    with tempfile.TemporaryDirectory() as place:
        path = experiment_file(Path(place), seed, arms, levels, **changes)
        (ladder,) = experiment_result(virtual_experiment(path, Path(place) / "out", chance).path).ladders
    return ladder


# What is true


def true_speedup(arm: dict[str, Any], concurrency: int, seed: int, requests: int = REQUESTS) -> float:
    """Mean TPOT of plain decoding over the arm's: many requests, none of them an experiment's."""
    plain, speculative = (_mean_tpot_s(server, concurrency, seed, requests) for server in (SERVER, SERVER | arm))
    return plain / speculative


def _mean_tpot_s(server: dict[str, Any], concurrency: int, seed: int, requests: int) -> float:
    options = resolve(SimOptions, server | {"seed": seed}, environment={})
    model = modelled_server(options)
    rng = np.random.default_rng([seed, concurrency])
    prompts, outputs = (parse_length(text).draw(rng, requests).tolist() for text in (PROMPT, OUTPUT))
    jobs = (
        Job(key=key, prompt_tokens=prompt, output_tokens=output)
        for key, (prompt, output) in enumerate(zip(prompts, outputs, strict=True))
    )
    engine = engines_of(options, facts_of(options, model), model)()
    tpot_s = closed_loop(engine, jobs, concurrency=concurrency).tpot_s
    assert tpot_s is not None
    return tpot_s


def true_crossover(scenario: Scenario, speedups: Sequence[float]) -> float:
    """Where the smooth curve through the simulated speedups is 1: a parabola in the logarithms of both."""
    x = np.log(scenario.about)
    curve = np.polynomial.Polynomial.fit(x, np.log(speedups), 2)
    (root,) = [each.real for each in curve.roots() if abs(each.imag) < 1e-9 and x[0] <= each.real <= x[-1]]
    return math.exp(root)


def closed_form_crossover(scenario: Scenario) -> float | None:
    """The concurrency at which `loadgen predict` expects TPOT to be alike, for requests of the mean lengths."""
    mean = [round(float(text.partition(":")[0])) for text in (PROMPT, OUTPUT)]
    options = resolve(
        PredictOptions,
        SERVER | scenario.arm | {"concurrency": list(range(1, 129)), "input_tokens": mean[0], "output_tokens": mean[1]},
        environment={},
    )
    saved_s = [(point.concurrency, point.tpot_ar_s - point.tpot_sd_s) for point in predicted(options).points]
    for (level, before), (_, after) in pairwise(saved_s):
        if before > 0 >= after:
            return level + before / (before - after)
    return None


# What experiments find


def find_crossover(scenario: Scenario, seed: int) -> Found:
    """One experiment's crossover, with its bounds."""
    ladder = reported(
        seed,
        Chance(seed=seed, start=scenario.start),
        {"baseline": SERVER, "arm": SERVER | scenario.arm},
        scenario.levels,
        repeats=scenario.repeats,
    )
    found = ladder.arms[0].crossover
    assert found is not None
    return {"level": found.level, "low": found.low, "high": found.high, "reason": found.reason}


def judge_crossover(truth: float, found: Found) -> bool:
    """Whether the experiment found it: there is one level, and the truth lies within its bounds."""
    if found["level"] is None:
        return False
    return (found["low"] or 0.0) <= truth <= (found["high"] or math.inf)


def find_claims(kind: str, seed: int) -> Found:
    """What is claimed of an arm that is the baseline, and whether one that is not lossless is caught.

    `speculative`: both draft, so that what is accepted is chance, too.
    """
    server = SERVER | EAGLE3 if kind == "speculative" else SERVER
    lossy = SERVER | EAGLE3 | {"fault": ["lossy=1%"]}
    comparison = reported(
        seed,
        Chance(seed=seed, start=START_SPREAD, near_ties=NEAR_TIES),
        {"baseline": server, "same": server} | ({"lossy": lossy} if kind == "lossy" else {}),
        (2, 4, 8, 16),
        level={"num_requests": 60},
        noise="aa",
        losslessness="greedy",
    )
    same = comparison.arms[0]
    found: Found = {"claims": list(claims_of(same, comparison)), "beyond": list(intervals_beyond(same))}
    if kind == "lossy":
        caught = next(arm for arm in comparison.arms if arm.arm.name == "lossy").losslessness
        assert caught is not None
        found["caught"] = caught.lossy
    return found


def claims_of(ladder: ArmLadder, comparison: ArmsComparison) -> Iterator[str]:
    """Every effect that a report claims of an arm, by name."""
    if any(verdict.claim is not Claim.NO_DIFFERENCE for verdict in ladder.verdicts):
        yield "TPOT"
    crossover = ladder.crossover
    assert crossover is not None
    if crossover.reason is not NoCrossover.UNSEEN:
        yield "crossover"
    if any(level.gain is not None and level.gain.trade_offs for level in ladder.levels):
        yield "E2EL, TTFT, throughput"
    if ladder.faster_up_to is not None:
        yield "faster up to"
    if ladder.fall is not None:
        yield "why the speedup falls"
    if any(choice.arm == ladder.arm.name for choice in comparison.choices):
        yield "what to run"
    if ladder.losslessness is not None and ladder.losslessness.lossy:
        yield "lossy"
    if any(floor.differs for floor in comparison.noise):
        yield "baseline again"


def intervals_beyond(ladder: ArmLadder) -> Iterator[str]:
    """Metrics whose own 95 % interval leaves out 1 at some level: shown, not claimed."""
    gains = [level.gain for level in ladder.levels if level.gain is not None]
    for metric in dict.fromkeys(metric for gain in gains for metric in gain.ratios):
        ratios = [gain.ratios[metric] for gain in gains if metric in gain.ratios]
        if any(ratio.low > 1 or ratio.high < 1 for ratio in ratios):
            yield metric


# Tables


def _crossover_figures(scenario: Scenario, speedups: Sequence[float], found: Sequence[Found]) -> Found:
    truth = true_crossover(scenario, speedups)
    hits = [judge_crossover(truth, each) for each in found]
    known = [each for each in found if each["level"] is not None]
    bounded = [each["high"] / each["low"] for each in known if each["low"] and each["high"]]
    tens = [sum(hits[start : start + 10]) for start in range(0, len(hits) - 9, 10)]
    return {
        "scenario": scenario.name,
        "truth": truth,
        "closed_form": closed_form_crossover(scenario),
        "experiments": len(found),
        "found_ratio": sum(hits) / len(hits),
        "tens_with_9": sum(ten >= 9 for ten in tens) / len(tens) if tens else None,
        "median_level": float(np.median([each["level"] for each in known])) if known else None,
        "median_width": float(np.median(bounded)) if bounded else None,
        "without_level": len(found) - len(known),
        "missed": [each for each, hit in zip(found, hits, strict=True) if not hit],
    }


def _claim_figures(kind: str, found: Sequence[Found]) -> Found:
    names = sorted({name for each in found for name in each["claims"]})
    shown = sorted({name for each in found for name in each["beyond"]})
    figures: Found = {
        "kind": kind,
        "experiments": len(found),
        "nothing_claimed_ratio": sum(not each["claims"] for each in found) / len(found),
        "claimed": {name: sum(name in each["claims"] for each in found) for name in names},
        "shown": {name: sum(name in each["beyond"] for each in found) for name in shown},
    }
    if kind == "lossy":
        figures["caught_ratio"] = sum(each["caught"] for each in found) / len(found)
    return figures


def _counted(name: str, work: Callable[[int], Found], seeds: int, pool: ProcessPoolExecutor) -> list[Found]:
    found = list(pool.map(work, range(1, seeds + 1)))
    print(f"{name}: {seeds} experiments", file=sys.stderr)
    return found


def _print(crossovers: Sequence[Found], claims: Sequence[Found]) -> None:
    names = ("scenario", "truth", "closed_form", "median_level", "median_width", "found_ratio", "tens_with_9")
    if crossovers:
        print_table("crossovers", names, [[each[name] for name in names] for each in crossovers])
    for each in claims:
        rows = [("nothing", each["nothing_claimed_ratio"])]
        rows += [(name, count / each["experiments"]) for name, count in each["claimed"].items()]
        if "caught_ratio" in each:
            rows.append(("a lossy arm beside it: lossy", each["caught_ratio"]))
        print_table(f"claimed of {each['kind']} A/A, {each['experiments']} experiments", ("claim", "ratio"), rows)


def main() -> None:
    """Parses, simulates, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=200, help="experiments of each scenario with a crossover")
    parser.add_argument("--aa-seeds", type=int, default=240, help="experiments of each A/A kind")
    parser.add_argument("--jobs", type=int, default=2)
    kinds = ("plain", "speculative", "lossy")
    parser.add_argument("--only", nargs="*", choices=[*(scenario.name for scenario in CROSSOVERS), *kinds])
    arguments = parser.parse_args()

    def wanted(name: str) -> bool:
        return arguments.only is None or name in arguments.only

    crossovers = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for scenario in (each for each in CROSSOVERS if wanted(each.name)):
            speedups = list(pool.map(partial(true_speedup, scenario.arm, seed=1), scenario.about))
            found = _counted(scenario.name, partial(find_crossover, scenario), arguments.seeds, pool)
            crossovers.append(_crossover_figures(scenario, speedups, found))
        claims = [
            _claim_figures(kind, _counted(kind, partial(find_claims, kind), arguments.aa_seeds, pool))
            for kind in filter(wanted, kinds)
        ]
    _print(crossovers, claims)
    print(json.dumps({"schema": SCHEMA, "host": host(), "crossovers": crossovers, "claims": claims}, indent=2))


if __name__ == "__main__":
    main()
