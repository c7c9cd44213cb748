"""Runs side by side: which are compared, in what, and how."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.core.comparison.gates import parse_gate
from loadgen.core.comparison.metric_pair import METRICS
from loadgen.core.comparison.side_by_side import Candidate, SideBySide, side_by_side
from loadgen.core.comparison.workload import differences, workload_of
from loadgen.core.errors import ConfigError
from loadgen.core.run import Load, LoadMode
from tests.core.analysis.factory import failed, manifest, open_loop, unsent
from tests.core.comparison.sides import DATA, at_level, records, side, source


def compared(baseline: object, candidate: object, *gates: str, allow_unlike: bool = False) -> SideBySide:
    """One run against another."""
    return side_by_side(
        source("old", baseline),  # type: ignore[arg-type]
        [source("new", candidate)],  # type: ignore[arg-type]
        [parse_gate(text) for text in gates],
        allow_unlike=allow_unlike,
    )


def only(found: SideBySide) -> Candidate:
    """Its one candidate."""
    (candidate,) = found.candidates
    return candidate


@settings(max_examples=10, deadline=None)
@given(n=st.integers(min_value=1, max_value=60), slower=st.floats(min_value=0.5, max_value=5), lost=st.booleans())
def test_a_run_is_like_itself(n: int, slower: float, lost: bool) -> None:
    """Every ratio is 1, within its interval; no gate that asks for a difference fails where it has a value."""
    made = records(n, slower=slower) + ([failed(n)] if lost else [])
    run = side(made)
    gates = [f"{metric} {change}" for metric in METRICS for change in ("> 1.001x", "< 0.999x")]
    found = compared(run, run, *gates)
    candidate = only(found)
    assert candidate.metrics
    assert list(candidate.metrics) == [metric for metric in METRICS if metric in candidate.metrics]
    for pair in candidate.metrics.values():
        assert pair.ratio is None or pair.ratio == pytest.approx(1)
        if pair.low is not None and pair.high is not None:
            assert pair.low <= 1 + 1e-9
            assert pair.high >= 1 - 1e-9
    assert not [gate for gate in found.failed if gate.metric in candidate.metrics]


def test_runs_of_the_same_requests_are_paired() -> None:
    """10 % slower, and sure of it, though requests differ by a factor of three."""
    candidate = only(compared(side(records()), side(records(slower=1.1, noise=2))))
    pair = candidate.metrics["tpot_s.mean"]
    assert candidate.paired
    assert pair.ratio == pytest.approx(1.1, rel=0.02)
    assert pair.low is not None
    assert 1.08 < pair.low < pair.ratio < pair.high < 1.12  # type: ignore[operator]
    assert only(compared(side(records()), side(records(slower=1.1)))).metrics["ttft_s.p50"].ratio == pytest.approx(1.1)


def test_another_seed_draws_other_requests() -> None:
    """Still the same workload, yet what requests differ by is in the interval, and a note says so."""
    other = side(records(slower=1.1), options={"seed": 6})
    candidate = only(compared(side(records()), other))
    pair = candidate.metrics["tpot_s.mean"]
    assert not candidate.paired
    assert pair.low is not None
    assert pair.low < 1.03
    assert any("other requests" in note for note in candidate.notes)


def test_the_same_seed_at_another_place_of_the_data_draws_other_requests() -> None:
    """Levels of two ladders may share seeds and not prompts; the first prompt tells, the model's name does not."""
    first, model, prompt = (
        side(records(), first_request={"model": name, "messages": [text]})
        for name, text in (("a", "one"), ("b", "one"), ("a", "two"))
    )
    assert only(compared(first, model)).paired
    assert not only(compared(first, prompt)).paired


def test_a_run_that_was_cut_is_not_paired() -> None:
    """Without its last requests it did not measure the same ones."""
    whole, cut = side(records()), side(records()[:50], load=side(records()).load)
    assert not only(compared(whole, cut)).paired


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"options": {"temperature": 0.7}}, "new at concurrency 1: temperature is 0.7, at the baseline 0.0"),
        ({"load": Load(mode=LoadMode.CONCURRENCY, concurrency=2, num_requests=60)}, "load.concurrency is 2, at the"),
    ],
)
def test_unlike_workloads_are_refused(other: dict[str, object], said: str) -> None:
    """With what differs, unless that is allowed; then it is in the result."""
    run, unlike = side(records()), side(records(), **other)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="--allow-unlike") as raised:
        compared(run, unlike)
    assert said in str(raised.value)
    candidate = only(compared(run, unlike, allow_unlike=True))
    assert len(candidate.differences) == 1
    assert not candidate.paired
    assert not only(compared(run, run)).differences


@pytest.mark.parametrize("both", [True, False])
def test_gaps_of_steps_are_not_compared_with_gaps_of_tokens(both: bool) -> None:
    """Withheld with the reason when one run speculates, which fails a gate on them; not when both do."""
    first, second = side(records(speculates=both)), side(records(speculates=True))
    found = compared(first, second, "icl_s.p50 > 2x")
    candidate = only(found)
    assert ("icl_s.p50" in candidate.metrics) is both
    assert ("icl_s" in candidate.withheld) is not both
    assert bool(found.failed) is not both
    if not both:
        assert "an event of speculative decoding is a step" in found.failed[0].evidence


def test_goodput_is_compared_for_the_same_objectives_only() -> None:
    """Withheld with the reason; the rest is compared."""
    tight, loose = (side(records(), slo={"tpot_s": limit}) for limit in (0.015, 0.025))
    candidate = only(compared(tight, loose))
    assert set(candidate.withheld) == {"goodput_rps", "attainment_ratio"}
    assert "requests_per_s" in candidate.metrics
    assert only(compared(tight, tight)).metrics["attainment_ratio"].ratio == 1


def test_acceptance_of_other_steps_is_not_compared() -> None:
    """A length over the steps that drafted is another quantity than one over all of them."""
    drafting, all_steps = (
        replace(side(records(speculates=True)), population=population)
        for population in ("drafting_steps", "decode_steps")
    )
    candidate = only(compared(drafting, all_steps))
    assert candidate.withheld["acceptance_length"] == "counted over drafting steps and over decode steps"
    assert "tokens_per_step" in candidate.metrics
    assert "acceptance_length" in only(compared(drafting, drafting)).metrics


def test_what_another_tool_defines_otherwise_is_said() -> None:
    """Of metrics that both have, and only between tools; and that a file tells part of the workload."""
    run = side(records())
    theirs = replace(run, tool="other", requests=None, otherwise={"ttft_s": "they stamp late", "goodput_rps": "theirs"})
    notes = only(compared(run, theirs)).notes
    assert "ttft_s: they stamp late" in notes
    assert not any(note.startswith("goodput_rps") for note in notes)
    assert "not verified that both had the same workload: a file tells only part of it" in notes
    assert only(compared(theirs, theirs)).notes == tuple(note for note in notes if not note.startswith("ttft_s"))
    assert not any("not verified" in note for note in only(compared(run, run)).notes)


def test_errors_are_failed_and_dropped_requests() -> None:
    """Of all that were planned."""
    run = side([*records(17), failed(17), unsent(18), unsent(19)])
    assert run.values["error_ratio"] == pytest.approx(3 / 20)


def test_a_seed_is_no_difference_of_workloads() -> None:
    """Neither that of the load nor that of the part of a trace; another part is one."""
    one, other, longer = (
        workload_of(manifest(data=DATA | {"part": {"to_s": to_s, "seed": seed}}, load=replace(open_loop(), seed=seed)))
        for to_s, seed in ((60.0, 1), (60.0, 2), (90.0, 1))
    )
    assert differences(one, other) == ()
    assert [each.setting for each in differences(one, longer)] == ["data.part"]


def test_without_records_there_are_no_intervals() -> None:
    """The ratio is that of the two values."""
    run = side(records())
    bare = replace(side(records(slower=2.0)), cells=())
    candidate = only(compared(run, bare))
    pair = candidate.metrics["tpot_s.p50"]
    assert (pair.low, pair.high) == (None, None)
    assert pair.ratio == pytest.approx(2.0)
    assert any(note.startswith("no intervals") for note in candidate.notes)


def test_ladders_meet_level_by_level() -> None:
    """Levels of one ladder alone are said; one that the candidate lacks fails every gate there."""
    run = side(records(20))
    ladder = [at_level(run, level) for level in (1, 2, 4, 8)]
    found = side_by_side(
        source("old", *ladder[:3]), [source("new", ladder[2], ladder[3], ladder[0])], [parse_gate("error_ratio > 0")]
    )
    assert [(each.name, each.level, each.at) for each in found.candidates] == [
        ("new", 1, "concurrency 1"),
        ("new", 4, "concurrency 4"),
    ]
    assert [str(place) for place in found.unmatched] == ["old at concurrency 2", "new at concurrency 8"]
    assert [(gate.at, gate.failed) for gate in found.gates] == [
        ("concurrency 1", False),
        ("concurrency 4", False),
        ("concurrency 2", True),
    ]


def test_ladders_that_do_not_meet_are_refused() -> None:
    """Nothing in common, or a level twice."""
    run = side(records(20))
    one, two, four = (at_level(run, level) for level in (1, 2, 4))
    with pytest.raises(ConfigError, match="no level in common: concurrency 1, concurrency 2 and concurrency 4"):
        side_by_side(source("old", one, two), [source("new", four)])
    with pytest.raises(ConfigError, match="new: has concurrency 1 twice"):
        side_by_side(source("old", one, two), [source("new", one, one)])


def test_an_invalid_measurement_is_named() -> None:
    """Of the baseline and of candidates."""
    run = side(records(20))
    bad = replace(run, valid=False)
    assert [str(place) for place in compared(bad, bad).invalid] == ["old at concurrency 1", "new at concurrency 1"]
    assert compared(run, run).invalid == ()
