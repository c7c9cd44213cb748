"""Comparisons made up for the report tests."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from loadgen.core.comparison.arms import Arm, ArmLadder, ArmRun, ArmsComparison, Expectation
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.losslessness import Agreement, Losslessness, Sampling
from loadgen.core.metrics.summary import Finding, RequestTimes, Speculation, Verdict
from loadgen.core.server.configuration import ServerConfiguration
from loadgen.core.simulation.prediction import Bounds, CombinedBound
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder


def against(arm_ms: Mapping[int, float], baseline_ms: Mapping[int, float], *, spread: float = 0.002) -> ArmLadder:
    """EAGLE of these TPOTs against a baseline of those."""
    runs = {BASELINE: ladder(BASELINE, baseline_ms, spread=0.002), EAGLE: ladder(EAGLE, arm_ms, spread=spread)}
    (arm,) = compare("x", "concurrency", runs, baseline=BASELINE, expected={}).arms
    return arm


@cache
def three_arms() -> ArmsComparison:
    """Three arms: one that pays throughout, one that stops paying, one that never pays and is invalid at 16."""
    lookup, suffix = Arm(name="ngram", label="N-gram (k = 7)"), Arm(name="suffix", label="Suffix (k = 7)")
    slow = ladder(suffix, {1: 21.0, 4: 24.0, 16: 40.0}, requests=60)
    doubt = Finding(
        kind="client_cpu",
        severity="invalid",
        evidence="The client used 99 % of its core.",
        advice="Use more workers or another machine for the client.",
    )
    slow[-1] = replace(slow[-1], summary=replace(slow[-1].summary, verdict=Verdict(valid=False, findings=(doubt,))))
    return compare(
        "made up",
        "concurrency",
        {
            BASELINE: ladder(BASELINE, {1: 20.0, 4: 22.0, 16: 30.0}, requests=60),
            EAGLE: ladder(EAGLE, {1: 9.0, 4: 11.0, 16: 20.0}, tokens_per_step=3, requests=60),
            lookup: ladder(lookup, {1: 15.0, 4: 18.0, 16: 34.0}, tokens_per_step=2, requests=60, spread=0.3),
            suffix: slow,
        },
        baseline=BASELINE,
        expected={
            EAGLE: {
                1.0: Expectation(speedup=2.3, break_even_length=1.3),
                4.0: Expectation(speedup=2.0, break_even_length=1.5),
                16.0: Expectation(speedup=1.4, break_even_length=2.1),
            }
        },
        notes=("nothing of this was measured",),
    )


@cache
def explained_arms() -> ArmsComparison:
    """A lossless arm that pays throughout and a lossy one that stops paying, with all that explains them."""
    eagle = replace(EAGLE, method="eagle3", draft_tokens=3)
    lookup = Arm(name="ngram", label="N-gram (k = 7)", method="ngram", draft_tokens=7)
    again = Arm(name="baseline-again", label="Baseline again")
    agreed = Agreement(pairs=120, identical_ratio=0.975, shared_words=41.0, words_to_difference=1600.0)
    found = Losslessness(
        sampling=Sampling.GREEDY,
        requests=60,
        left_out_ratio=0.0,
        arm=agreed,
        reference=agreed,
        p_value=0.52,
        differs=False,
        lossy=False,
        cleared=True,
    )
    left = replace(agreed, identical_ratio=0.07, shared_words=10.0, words_to_difference=17.1)
    combined = CombinedBound(lookup_cost=2.9, cost_where_used=2.8, cost_every_step=2.6)
    bounds = Bounds(concurrency=1, draft_free=2.7, oracle_length=2.5, perfect_drafter=3.3, combined=combined)
    return compare(
        "made up, explained",
        "concurrency",
        {
            BASELINE: ladder(BASELINE, {1: 20.0, 4: 22.0, 16: 30.0}, requests=60),
            eagle: drafting(ladder(eagle, {1: 9.0, 4: 11.0, 16: 20.0}, tokens_per_step=3, requests=60), 1.0),
            lookup: drafting(ladder(lookup, {1: 15.0, 4: 18.0, 16: 34.0}, tokens_per_step=2, requests=60), 0.4),
        },
        baseline=BASELINE,
        again=(again, ladder(again, {1: 20.2, 4: 21.9, 16: 30.3}, requests=60)),
        forced={
            eagle: {
                1: drafting(ladder(Arm(name="e1", label="e1"), {1: 24.0, 4: 30.0, 16: 50.0}, requests=60), 1.0),
                4: ladder(Arm(name="e4", label="e4"), {1: 6.0, 4: 7.5, 16: 12.5}, tokens_per_step=4, requests=60),
            },
            lookup: {1: drafting(ladder(Arm(name="n1", label="n1"), {1: 26.0, 4: 33.0}, requests=60), 1.0)},
        },
        expected={eagle: {1.0: Expectation(speedup=2.3, break_even_length=1.3, bounds=bounds)}},
        losslessness={
            "eagle3": found,
            "ngram": replace(found, arm=left, p_value=0.0001, differs=True, lossy=True, cleared=False),
        },
        price_per_hour=3.5,
        notes=("nothing of this was measured",),
    )


def drafting(runs: list[ArmRun], coverage_ratio: float) -> list[ArmRun]:
    """The same runs, of whose steps so many drafted, on a server that tells of itself."""
    made = []
    for run in runs:
        speculation = run.summary.speculation or Speculation(origin="stream")
        server = replace(
            run.summary.server,
            configuration=ServerConfiguration(kv_blocks=25472),
            request_times=RequestTimes(queue_ratio=0.02, prefill_ratio=0.08, decode_ratio=0.9),
            preemptions=2.0,
        )
        told = replace(speculation, coverage_ratio=coverage_ratio)
        made.append(replace(run, summary=replace(run.summary, speculation=told, server=server)))
    return made


@cache
def hostile_arms(text: str) -> ArmsComparison:
    """Nine requests a level, too few to compare, and this text wherever there is text."""
    arm = Arm(name="x", label=text, method=text, draft_tokens=3)
    doubt = Finding(kind=text, severity="warning", evidence=text, advice=text)
    runs = [
        replace(run, summary=replace(run.summary, verdict=Verdict(valid=True, findings=(doubt,))))
        for run in ladder(arm, {1: 15.0, 2: 18.0}, requests=9)
    ]
    return compare(
        text,
        text,
        {BASELINE: ladder(BASELINE, {1: 20.0, 2: 22.0}, requests=9), arm: runs},
        baseline=BASELINE,
        expected={},
        notes=(text,),
    )
