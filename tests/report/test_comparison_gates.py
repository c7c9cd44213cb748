"""Gates of an experiment as people read them."""

from dataclasses import replace

from loadgen.core.comparison.arms import ArmsComparison
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.gates import parse_gate
from loadgen.core.run import Load, LoadMode
from loadgen.report.comparison.gates import failed_gates, gate_lines
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder

NEVER = replace(EAGLE, name="ngram", label="N-gram")


def gated(*gates: str) -> ArmsComparison:
    """An arm that costs at 4 and lacks 16, and one that was planned and never ran."""
    levels = {float(level): Load(mode=LoadMode.CONCURRENCY, concurrency=level) for level in (1, 4, 16)}
    runs = {
        BASELINE: ladder(BASELINE, {1: 20.0, 4: 20.0, 16: 20.0}),
        EAGLE: ladder(EAGLE, {1: 10.0, 4: 40.0}),
    }
    return compare(
        "made",
        "concurrency",
        runs,
        baseline=BASELINE,
        expected={},
        gates=[parse_gate(gate) for gate in gates],
        gated=dict.fromkeys((EAGLE, NEVER), levels),
    )


def test_each_failure_is_named_and_an_arm_that_never_ran_once() -> None:
    """However many gates and levels it has; what is kept counts all of them."""
    found = gated("tpot_s.mean > 1.05x", "error_ratio > 1%")
    assert len(found.gates) == 12
    costs, *lacks, never = failed_gates(found)
    assert costs.startswith("EAGLE-3 (k = 3) at concurrency 4: tpot_s.mean is ")
    assert costs.endswith(" (tpot_s.mean > 1.05x)")
    assert lacks == [
        f"EAGLE-3 (k = 3) at concurrency 16: {gate} cannot be judged: the arm has no run at this level ({text})"
        for gate, text in (("tpot_s.mean", "tpot_s.mean > 1.05x"), ("error_ratio", "error_ratio > 1%"))
    ]
    assert never == "N-gram: there is no run of it, so none of its gates can be judged"
    assert gate_lines(found) == [
        *(("Failed", line) for line in (costs, *lacks, never)),
        ("Kept", "3 of 12, each gate at each level of each arm"),
    ]


def test_without_gates_there_are_no_lines() -> None:
    """Also of an arm that never ran."""
    assert gate_lines(gated()) == []
