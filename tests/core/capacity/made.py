"""Runs and searches made up for the tests of a search for a capacity."""

from collections.abc import Callable
from typing import Any

import numpy as np

from loadgen.core.capacity.evidence import Evidence
from loadgen.core.capacity.probe import Excerpt, Probe, Rule, Run, judge
from loadgen.core.capacity.result import CapacityResult, replayed
from loadgen.core.capacity.search import Search, Step, next_step
from loadgen.core.metrics.summary import Distribution, RequestCounts


def made_run(good: int, due: int, *, together: bool = False, run_id: str = "r", **said: str) -> Run:
    """A run with so many good requests, the others spread evenly or `together` at its end."""
    bad = due - good
    order = np.ones(due, dtype=np.bool_)
    if bad:
        places = np.arange(due - bad, due) if together else np.linspace(0, due - 1, bad).astype(int)
        order[places] = False
    return Run(run_id=run_id, evidence=Evidence.of(order), summary=EXCERPT, **said)


EXCERPT = Excerpt(
    requests=RequestCounts(planned=1, sent=1, completed=1, failed=0, cancelled=0, dropped=0, resent=0),
    requests_per_s=9.5,
    output_tokens_per_s=95.0,
    concurrency_mean=4.0,
    window_s=10.0,
    latency={name: Distribution(n=100, missing=0, mean=0.2, p95=0.4) for name in ("ttft_s", "tpot_s", "e2el_s")},
    findings=(),
)


def search(
    *,
    variable: str = "concurrency",
    start: float = 1,
    most: float = 512,
    precision: float = 0.1,
    target: float = 0.9,
    repeats: int = 1,
    further: int = 2,
    allow_invalid: bool = False,
) -> Search:
    """A search with what most tests do not care about filled in."""
    rule = Rule(attainment_ratio=target, repeats=repeats, further_repeats=further, allow_invalid=allow_invalid)
    return Search(variable=variable, start=start, most=most, precision_ratio=precision, rule=rule)


def searched(wanted: Search, serve: Callable[[Step], Run], **kept: Any) -> CapacityResult:
    """The whole search against a server that answers each step with a run."""
    seen: list[tuple[float, Run]] = []
    probes: list[Probe] = []
    while (step := next_step(wanted, probes)) is not None:
        seen.append((step.level, serve(step)))
        probes.append(judge(wanted.rule, step.level, [run for level, run in seen if level == step.level]))
    return replayed(wanted, seen, objectives={"ttft_s": 0.5}, **kept)


def levels(result: CapacityResult) -> list[float]:
    """The levels in the order in which they were tried."""
    return [probe.level for probe in result.probes]
