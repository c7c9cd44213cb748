"""What a comparison stands on, as people read it: noise, what is missing, what is not compared."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from loadgen.core.comparison.arms import Arm, ArmRun, ArmsComparison
from loadgen.core.comparison.assembly import compare
from loadgen.core.metrics.summary import Finding, Verdict
from loadgen.report.comparison import comparison_html, comparison_text
from loadgen.report.comparison.doubts import doubts, headline
from loadgen.report.comparison.standing import (
    LONE_START,
    is_noise,
    noise_doubt,
    noise_text,
    uncompared_text,
    unfinished_text,
)
from loadgen.report.comparison.tables import choice_table
from loadgen.report.comparison.words import advice, conclusion, remarks, schedule_texts, subtitle
from tests.core.comparison.ladders import AGAIN, BASELINE, EAGLE, slower
from tests.core.comparison.ladders import ladder as any_ladder
from tests.report.comparisons import explained_arms, three_arms

PLAIN_MS = {1: 20.0, 4: 22.0, 16: 30.0}
PAYS_MS = {1: 10.0, 4: 12.0, 16: 20.0}
DRAFTING = replace(EAGLE, method="eagle3", draft_tokens=3, configuration={"method": "eagle3", "model": "a-drafter"})


def ladder(arm: Arm, tpots_ms: Mapping[int, float], *, requests: int = 60, spread: float = 0.02) -> list[ArmRun]:
    """Of enough requests for a window that is no doubt."""
    return any_ladder(arm, tpots_ms, requests=requests, spread=spread)


def compared(
    arm: list[ArmRun] | None = None,
    again: list[ArmRun] | None = None,
    *,
    baseline: list[ArmRun] | None = None,
    planned_runs: int | None = None,
) -> ArmsComparison:
    runs = {BASELINE: baseline or ladder(BASELINE, PLAIN_MS), DRAFTING: arm or ladder(DRAFTING, PAYS_MS)}
    second = None if again is None else (AGAIN, again)
    return compare("made", "concurrency", runs, baseline=BASELINE, again=second, expected={}, planned_runs=planned_runs)


def few_at_one(arm: Arm, tpots_ms: Mapping[int, float]) -> list[ArmRun]:
    """Eight requests at 1, sixty elsewhere."""
    first, *others = tpots_ms.items()
    return [*ladder(arm, dict([first]), requests=8), *ladder(arm, dict(others))]


def plain(text: str) -> str:
    return " ".join(text.split())


def test_the_distance_of_the_baseline_from_itself_names_its_metrics() -> None:
    """With the level where each is farthest, as a multiple from twice on; what is certain is named, too."""
    comparison = compared(again=slower(ladder(AGAIN, PLAIN_MS, spread=0.021), 16, ttft=3.0))
    told = noise_text(comparison)
    assert told is not None
    assert told.startswith("the baseline may differ from itself by up to ")
    assert " a factor of 3.0 in TTFT (at 16)" in told
    assert "; nothing smaller is claimed of that metric at such a level. " in told
    assert re.search(r"\. Its two starts differ in TTFT .*at 16 by more than the requests within them do: ", told)
    several = noise_text(replace(comparison, repeats=3))
    assert several is not None
    assert re.search(r"\. It differs for certain in TTFT .*at 16: something else changed between starts$", several)
    small = noise_text(explained_arms())
    assert small is not None
    assert "by up to 1.1% in TPOT (at 16), " in small
    assert "Its two starts differ in TPOT, E2EL and output tokens/s at 1, 4 and 16 " in small
    assert noise_text(three_arms()) is None


def test_a_distance_of_nothing_is_not_listed() -> None:
    """Metrics in which the baseline is itself to half a percent share that limit."""
    small = noise_text(explained_arms())
    assert small is not None
    assert " 0%" not in small
    assert " and by less than 0.5% in TTFT; nothing smaller" in small
    same = noise_text(
        compared(again=ladder(AGAIN, PLAIN_MS, spread=0.0), baseline=ladder(BASELINE, PLAIN_MS, spread=0.0))
    )
    assert same is not None
    assert same.startswith("the baseline may differ from itself by less than 0.5% in TPOT, E2EL, TTFT")


def test_a_baseline_that_is_not_itself_is_a_doubt_of_the_whole() -> None:
    """In the headline and among the doubts, with the ratio where it is worst; a percent is in the remarks alone."""
    comparison = compared(again=slower(slower(ladder(AGAIN, PLAIN_MS), 16, ttft=3.0), 4, ttft=0.5))
    assert headline(comparison).words == "✓ Valid, but the baseline differs from itself"
    assert headline(comparison).kind == "warning"
    (doubt,) = doubts(comparison)
    assert (doubt.severity, doubt.kind) == ("warning", "baseline_differs")
    ((where, evidence),) = doubt.seen
    assert where == "4 and 16 in TTFT"
    assert evidence.startswith("second start over first at 16 3.00 [")
    for shown in (comparison_text(comparison), comparison_html(comparison)):
        assert "second start over first at 16 3.00 [" in plain(shown)
    assert noise_doubt(explained_arms()) is None
    assert headline(explained_arms()).words == "✓ Valid"


def test_a_ratio_within_the_noise_of_its_metric_is_marked() -> None:
    """Beside its interval, which may leave out 1; in that metric, at that level, and never the second start's own."""
    arm = slower(slower(ladder(DRAFTING, PAYS_MS), 4, ttft=1.2), 16, ttft=1.2)
    comparison = compared(arm, slower(ladder(AGAIN, PLAIN_MS), 16, ttft=0.5))
    marked = [is_noise(comparison, level, "ttft_s.mean") for level in comparison.arms[0].levels]
    assert marked[1:] == [False, True]
    assert not any(is_noise(comparison, level, "tpot_s.p50") for level in comparison.arms[0].levels)
    assert not any(is_noise(compared(arm), level, "ttft_s.mean") for level in comparison.arms[0].levels)
    page = comparison_html(comparison)
    assert "1.20 [1.20, 1.20] ≈</td>" in page
    assert "0.50 [0.50, 0.50]</td>" in page
    assert "≈" not in comparison_html(compared(arm))


def test_other_doubts_keep_their_order() -> None:
    """An invalid measurement is graver than a baseline that differs from itself."""
    arm = ladder(DRAFTING, PAYS_MS)
    finding = Finding(kind="client_cpu", severity="invalid", evidence="e", advice="a")
    arm[0] = replace(arm[0], summary=replace(arm[0].summary, verdict=Verdict(valid=False, findings=(finding,))))
    comparison = compared(arm, slower(ladder(AGAIN, PLAIN_MS), 16, ttft=3.0))
    assert [each.kind for each in doubts(comparison)] == ["client_cpu", "baseline_differs"]
    assert headline(comparison).kind == "invalid"


def test_what_is_no_difference_for_certain_says_why() -> None:
    """An interval that leaves out no change is not passed over: the baseline may differ as much from itself."""
    comparison = compared(ladder(DRAFTING, {1: 10.0, 4: 20.0, 16: 32.0}), ladder(AGAIN, {1: 20.0, 4: 22.0, 16: 33.0}))
    words = conclusion(comparison.arms[0], "concurrency")
    assert re.search(
        r"and shows no certain difference at 16 \[\+6%, \+\d%\], no more than the baseline may differ from itself there"
        r" \(10\.\d%\); it seems to stop paying at about ",
        words,
    ), words
    quiet = conclusion(compared(ladder(DRAFTING, {1: 10.0, 4: 20.0, 16: 32.0})).arms[0], "concurrency")
    assert re.search(r"and raises TPOT by 6\.\d% \[[\d., ]+\] at 16; it stops paying at about ", quiet), quiet


def test_too_few_requests_are_not_a_finding() -> None:
    """What is not compared says so: in the sentence, in what to run, and as what the dash means."""
    comparison = compared(few_at_one(DRAFTING, PAYS_MS), baseline=few_at_one(BASELINE, PLAIN_MS))
    assert conclusion(comparison.arms[0], "concurrency").endswith(
        "; it pays at every level measured; without 1, where too few requests can be compared."
    )
    assert advice(comparison) == (
        "at 1 Baseline, since too few requests can be compared there; at 4 to 16 EAGLE-3 (k = 3)"
    )
    assert [row[-1] for row in choice_table(comparison).rows] == ["too few requests can be compared", "—", "—"]
    assert "too few requests can be compared</td>" in comparison_html(comparison)
    assert uncompared_text(comparison) in remarks(comparison)
    assert uncompared_text(comparison) == (
        "not compared, hence a dash: EAGLE-3 (k = 3) at 1. A ratio of means takes 10 requests that have a TPOT in every"
        " run of both: give those levels more (num_requests_by_level)"
    )
    assert uncompared_text(compared()) is None


def test_runs_that_have_no_partner_are_not_called_few() -> None:
    """An arm that was only run at a level, or in a repeat, that the baseline lacks is not compared yet."""
    comparison = compared(baseline=ladder(BASELINE, {1: 20.0, 4: 22.0}))
    assert conclusion(comparison.arms[0], "concurrency").endswith(
        "; without 16, where there is no pair of runs to compare."
    )
    assert uncompared_text(comparison) is None
    alone = compared(ladder(DRAFTING, {16: 20.0}), baseline=ladder(BASELINE, {1: 20.0, 4: 22.0}))
    assert conclusion(alone.arms[0], "concurrency") == (
        "is not compared yet: it has no run in a repeat in which the baseline has one."
    )
    assert advice(alone) == "at 1 to 4 Baseline, since nothing is compared there"
    assert [row[-1] for row in choice_table(alone).rows] == ["nothing is compared"] * 2


def test_an_invalid_measurement_shows_nothing_of_a_level() -> None:
    """Not that no arm is faster there, either."""
    arm = ladder(DRAFTING, PAYS_MS)
    arm[-1] = replace(arm[-1], summary=replace(arm[-1].summary, verdict=Verdict(valid=False)))
    comparison = compared(arm)
    assert advice(comparison) == "at 1 to 4 EAGLE-3 (k = 3); at 16 Baseline, since a measurement is invalid there"
    assert [row[-1] for row in choice_table(comparison).rows] == ["—", "—", "a measurement is invalid"]


def test_the_page_says_what_to_run_before_its_doubts() -> None:
    """In one sentence beneath the verdict, and over the table of levels again; without an arm there is none."""
    comparison = compared(again=slower(ladder(AGAIN, PLAIN_MS), 16, ttft=3.0))
    page = comparison_html(comparison)
    answer = "<b>So run</b>, by concurrency: at 1 to 16 EAGLE-3 (k = 3).</p>"
    assert page.count(answer) == 2
    assert page.index("✓ Valid, but") < page.index(answer) < page.index("second start over first")
    assert page.index('id="run">') < page.rindex(answer) < page.index('aria-label="Choices"')
    nobody = compare("made", "concurrency", {BASELINE: ladder(BASELINE, PLAIN_MS)}, baseline=BASELINE, expected={})
    assert "So run" not in comparison_html(nobody)


def test_an_unfinished_experiment_is_headed_so() -> None:
    """However good what is there may be; nothing is said of a comparison that is through, or that nobody planned."""
    part = compared(planned_runs=48)
    assert unfinished_text(part) == "6 of 48 runs are there"
    assert headline(part).words == "✗ Unfinished: 6 of 48 runs are there, and what follows is of those alone"
    assert headline(part).kind == "unfinished"
    assert "\x1b[1;31m✗ Unfinished" in comparison_text(part, color=True)
    assert subtitle(part).endswith("; at most one start of each so far")
    assert "✗ Unfinished: 6 of 48 runs are there" in plain(comparison_text(part))
    for whole in (compared(planned_runs=6), compared()):
        assert unfinished_text(whole) is None
        assert headline(whole).words == "✓ Valid"
        assert subtitle(whole).endswith("; one start of each")


def test_an_unfinished_experiment_with_an_invalid_level_says_both() -> None:
    """The graver first."""
    arm = ladder(DRAFTING, PAYS_MS)
    arm[0] = replace(arm[0], summary=replace(arm[0].summary, verdict=Verdict(valid=False)))
    assert headline(compared(arm, planned_runs=48)).words == (
        "✗ Invalid at EAGLE-3 (k = 3) 1: do not use those levels; 6 of 48 runs are there"
    )


@pytest.mark.parametrize("configuration", [{"method": "eagle3", "model": "a-drafter", "quantization": "fp8"}, {}])
def test_what_is_pasted_is_a_whole_configuration(configuration: dict[str, str]) -> None:
    """With the drafter and whatever else the arm was told, beside the lengths by batch size."""
    arm = replace(DRAFTING, configuration=configuration)
    runs = {BASELINE: ladder(BASELINE, PLAIN_MS), arm: ladder(arm, PAYS_MS)}
    comparison = compare("made", "concurrency", runs, baseline=BASELINE, expected={})
    (pasted,) = map(json.loads, schedule_texts(comparison))
    assert pasted == {
        "method": "eagle3",
        **configuration,
        "num_speculative_tokens": 3,
        "num_speculative_tokens_per_batch_size": [[1, 16, 3]],
    }
    assert "Rests on EAGLE-3 (k = 3) measured to pay" in plain(comparison_text(comparison))


def test_a_level_with_one_start_left_says_so() -> None:
    """In the sentence and in what to run; an arm of which nothing else is left is not judged."""
    baseline, whole = (
        any_ladder(arm, ms, repeats=2, requests=60) for arm, ms in ((BASELINE, PLAIN_MS), (DRAFTING, PAYS_MS))
    )
    top = max(PLAIN_MS)

    def told(arm: list[ArmRun]) -> ArmsComparison:
        return compare("made", "concurrency", {BASELINE: baseline, DRAFTING: arm}, baseline=BASELINE, expected={})

    part = told([run for run in whole if (run.cell.level, run.cell.repeat) != (top, 1)])
    assert conclusion(part.arms[0], "concurrency").endswith(f"; without {top}, where {LONE_START}.")
    assert advice(part).endswith(f"at {top} Baseline, since {LONE_START} there")
    alone = told([run for run in whole if run.cell.repeat == 0])
    assert conclusion(alone.arms[0], "concurrency") == f"is not judged: {LONE_START}."
