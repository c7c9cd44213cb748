"""Comparisons made up for the report tests."""

from dataclasses import replace
from functools import cache

from loadgen.core.comparison.arms import Arm, ArmsComparison, Expectation, compare
from loadgen.core.metrics.summary import Finding, Verdict
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder


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
def hostile_arms(text: str) -> ArmsComparison:
    """Nine requests a level, too few to compare, and this text wherever there is text."""
    arm = Arm(name="x", label=text)
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
