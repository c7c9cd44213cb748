"""Gates held against every arm at every level."""

from dataclasses import replace

import pytest

from loadgen.core.comparison.arms import ArmRun
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.gates import JudgedGate, parse_gate
from loadgen.core.run import Load, LoadMode
from loadgen.core.server.configuration import ServerConfiguration
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder

PLAIN = ServerConfiguration(speculates=False)
PLAIN_MS, FAST_MS = {1: 20.0, 4: 20.0}, {1: 10.0, 4: 40.0}


def judged(gate: str, arm: list[ArmRun] | None = None, baseline: list[ArmRun] | None = None) -> tuple[JudgedGate, ...]:
    """The gate at 1 and at 4, of an arm that takes half the TPOT at 1 and twice as much at 4."""
    runs = {
        BASELINE: ladder(BASELINE, PLAIN_MS, repeats=2) if baseline is None else baseline,
        EAGLE: ladder(EAGLE, FAST_MS, repeats=2) if arm is None else arm,
    }
    return compare("made", "concurrency", runs, baseline=BASELINE, expected={}, gates=[parse_gate(gate)]).gates


def test_a_relative_gate_is_held_against_the_ratio_of_the_comparison() -> None:
    """At each level by itself; the arm is named as people know it."""
    found = judged("tpot_s.mean > 1.05x")
    assert [(each.candidate, each.at, each.failed) for each in found] == [
        ("EAGLE-3 (k = 3)", "concurrency 1", False),
        ("EAGLE-3 (k = 3)", "concurrency 4", True),
    ]
    assert [each.value for each in found] == pytest.approx([0.5, 2.0], rel=0.02)


def test_a_ratio_is_of_the_requests_that_both_have() -> None:
    """As the comparison has it, which differs from that of the two summaries when one lacks slow requests."""

    def without_tpot(runs: list[ArmRun]) -> list[ArmRun]:
        made = []
        for run in runs:
            tpot_s = run.cell.columns["tpot_s"].copy()
            tpot_s[:20] *= 3
            lost = tpot_s.copy()
            lost[:20] = float("nan")
            columns = run.cell.columns | {"tpot_s": lost}
            mean = replace(run.summary.latency.tpot_s, mean=float(tpot_s.mean()))
            latency = replace(run.summary.latency, tpot_s=mean)
            cell, summary = replace(run.cell, columns=columns), replace(run.summary, latency=latency)
            made.append(ArmRun(cell=cell, summary=summary))
        return made

    (first, _) = judged("tpot_s.mean > 0.6x", arm=without_tpot(ladder(EAGLE, FAST_MS, repeats=2)))
    assert first.value == pytest.approx(0.5, rel=0.02)
    assert not first.failed


def test_an_absolute_gate_is_held_against_the_mean_of_the_repeats() -> None:
    """10 ms in one repeat and 14 in the other are 12."""
    runs = [run for ms, repeat in ((10.0, 0), (14.0, 1)) for run in ladder(EAGLE, {1: ms}, repeats=2)[repeat::2]]
    (first, second) = judged("tpot_s.mean > 11.5ms", arm=runs)
    assert first.value == pytest.approx(0.012, rel=0.01)
    assert first.failed
    assert second.failed
    assert "the arm has no run at this level" in second.evidence


def test_only_repeats_that_both_have_count() -> None:
    """One that the arm lacks, in which the baseline was slow, is not held against anybody."""
    arm = [run for run in ladder(EAGLE, FAST_MS, repeats=2) if run.cell.repeat == 0]
    slow = [*ladder(BASELINE, PLAIN_MS, repeats=1), *ladder(BASELINE, {1: 90.0, 4: 90.0}, repeats=2)[1::2]]
    assert [each.value for each in judged("tpot_s.mean > 1.05x", arm=arm, baseline=slow)] == pytest.approx(
        [0.5, 2.0], rel=0.02
    )


def test_a_value_that_one_repeat_lacks_is_missing() -> None:
    """And fails its gate, since nobody can say that it is kept."""
    runs = ladder(EAGLE, {1: 10.0}, repeats=2)
    throughput = replace(runs[0].summary.throughput, input_tokens_per_s=None)
    runs[0] = replace(runs[0], summary=replace(runs[0].summary, throughput=throughput))
    found = judged("input_tokens_per_s < 1", arm=runs)[0]
    assert (found.failed, found.value) == (True, None)
    assert "cannot be judged" in found.evidence


def test_gaps_of_an_arm_that_speculates_are_not_compared() -> None:
    """An event is a step there: the gate cannot be judged, and says why."""
    baseline = [
        replace(run, summary=replace(run.summary, server=replace(run.summary.server, configuration=PLAIN)))
        for run in ladder(BASELINE, PLAIN_MS, repeats=2)
    ]
    arm = ladder(EAGLE, FAST_MS, repeats=2, tokens_per_step=3)
    found = judged("icl_s.mean > 50x", arm=arm, baseline=baseline)
    assert all(each.failed for each in found)
    assert "an event of speculative decoding is a step, not a token" in found[0].evidence


def test_what_was_planned_and_never_run_passes_no_gate() -> None:
    """An arm without a single run, and levels that the baseline or the arm lacks: each fails, and says who was not run.
    Arms are told apart by more than their labels."""
    never, twin = replace(EAGLE, name="ngram", label="N-gram"), replace(EAGLE, name="twin")
    runs = {BASELINE: ladder(BASELINE, {1: 20.0}), EAGLE: ladder(EAGLE, {4: 10.0}), twin: ladder(twin, {1: 10.0})}
    levels = {float(level): Load(mode=LoadMode.CONCURRENCY, concurrency=level) for level in (4, 1)}
    gates = [parse_gate("tpot_s.mean > 1.05x")]
    gated = dict.fromkeys((EAGLE, twin, never), levels)
    found = compare("made", "concurrency", runs, baseline=BASELINE, expected={}, gates=gates, gated=gated).gates
    nobody = "tpot_s.mean cannot be judged: the arm has no run at this level"
    assert [(each.candidate, each.at, each.failed) for each in found] == [
        (label, f"concurrency {level}", failed)
        for label, failures in ((EAGLE.label, (True, True)), (EAGLE.label, (False, True)), (never.label, (True, True)))
        for level, failed in zip((1, 4), failures, strict=True)
    ]
    evidence = [each.evidence for each in found]
    assert [evidence[place] for place in (0, 3, 4, 5)] == [nobody] * 4
    assert evidence[1] == "tpot_s.mean cannot be judged: the baseline has no run at this level"


def test_without_gates_nothing_is_judged() -> None:
    """And the baseline's second start is no arm."""
    runs = {BASELINE: ladder(BASELINE, PLAIN_MS), EAGLE: ladder(EAGLE, FAST_MS)}
    again = (replace(BASELINE, name="again"), ladder(replace(BASELINE, name="again"), FAST_MS))
    assert compare("made", "concurrency", runs, baseline=BASELINE, expected={}).gates == ()
    gates = [parse_gate("tpot_s.mean > 1.05x")]
    found = compare("made", "concurrency", runs, baseline=BASELINE, again=again, expected={}, gates=gates).gates
    assert {each.candidate for each in found} == {"EAGLE-3 (k = 3)"}
