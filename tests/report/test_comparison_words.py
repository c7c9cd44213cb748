"""What a comparison says of an arm in sentences, and what it advises."""

import json
from dataclasses import replace

from loadgen.core.comparison.arms import ArmsComparison
from loadgen.core.comparison.losslessness import Sampling
from loadgen.core.comparison.objection import Against, Objection
from loadgen.report.comparison import comparison_html
from loadgen.report.comparison.words import advice, conclusion, fall_text, losslessness_text, schedule_texts
from tests.report.comparisons import against, explained_arms, hostile_arms


def test_the_answer_for_an_arm_that_fades() -> None:
    """By how much at either end of the ladder, and up to which load."""
    words = conclusion(against({1: 10, 8: 13, 32: 25}, {1: 20, 8: 20, 32: 20}), "concurrency")
    assert words.startswith("lowers TPOT by 50% [50, 50] at 1 and raises TPOT by 25% [25, 25] at 32;")
    assert "it stops paying at about 22 concurrent requests [22, 22]" in words


def test_the_answer_for_an_arm_that_pays_throughout() -> None:
    """The second change is not introduced again."""
    words = conclusion(against({1: 10, 8: 15}, {1: 20, 8: 20}), "concurrency")
    assert words == "lowers TPOT by 50% [50, 50] at 1 and by 25% [25, 25] at 8; it pays at every level measured."


def test_a_change_that_may_be_none_is_not_claimed() -> None:
    """Only from where to where it may lie, with signs."""
    words = conclusion(against({1: 10, 8: 20}, {1: 20, 8: 20}, spread=0.5), "concurrency")
    assert "and shows no certain difference at 8 [-" in words
    assert "%, +" in words


def test_an_interval_that_tells_nothing_is_no_percentage() -> None:
    """Where TPOT may be half as well as twice the baseline's, that is what is said; a narrower one keeps its ends."""
    found = against({1: 10, 8: 20}, {1: 20, 8: 20})
    first, last = found.levels
    assert last.gain is not None
    for low, high, words in (
        (0.0027, 378.0, "and is measured too loosely for anything to be told at 8 (TPOT may be half the baseline's"),
        (0.8, 378.0, "and shows no certain difference at 8 [-20%, +37700%]"),
    ):
        ratio = replace(last.gain.ratios["tpot_s.mean"], low=low, high=high)
        gain = replace(last.gain, ratios={"tpot_s.mean": ratio})
        ladder = replace(found, levels=(first, replace(last, gain=gain)))
        assert words in conclusion(ladder, "concurrency")


def test_an_arm_that_cannot_be_compared_says_so() -> None:
    """No number is made up."""
    (arm,) = hostile_arms("x").arms
    assert conclusion(arm, "concurrency") == "cannot be compared: too few requests have a TPOT in both arms."


def test_why_a_speedup_falls_is_said() -> None:
    """Steps that cost more, or drafts that are accepted less; an arm that does not fall has no such sentence."""
    eagle, _ = explained_arms().arms
    words = fall_text(eagle)
    assert words is not None
    assert words.startswith("gains less from 1 to 16 because its steps cost more there: a step has to emit 1.48 times")
    assert " as many tokens to pay, by forced runs 1.39 times for drafting and verifying alone, and emits 1.00" in words
    assert eagle.fall is not None
    traffic = fall_text(replace(eagle, fall=replace(eagle.fall, length_share=0.8)))
    assert traffic is not None
    assert "because fewer of its drafts are accepted" in traffic
    assert "That is the traffic, not the cost of steps." in traffic
    assert fall_text(replace(eagle, fall=None)) is None


def test_what_texts_say_is_said() -> None:
    """Both ways of being lossy, what rounding does, and that an arm which is not accused was only not caught."""
    eagle, lookup = explained_arms().arms
    reference = "between two starts of the baseline 97.5% are, with a difference every 1600 words"
    assert losslessness_text(eagle) == (
        "leaves answers alone as far as can be seen: one word changed in 20 would be. 97.5% of its answers are the"
        f" baseline's word for word, with a difference every 1600 words; {reference} (p = 0.520)."
    )
    assert losslessness_text(lookup) == (
        "is lossy: its answers leave the baseline's more than those leave one another. 7.0% of its answers"
        f" are the baseline's word for word, with a difference every 17.1 words; {reference} (p < 0.001)."
    )
    found = lookup.losslessness
    assert found is not None
    alike = replace(found, sampling=Sampling.SAMPLED, arm=replace(found.arm, identical_ratio=1.0))
    words = losslessness_text(replace(lookup, losslessness=alike))
    assert words is not None
    assert words.startswith("is lossy: its answers are more alike than the baseline's are.")
    rounded = losslessness_text(replace(lookup, losslessness=replace(found, lossy=False, cleared=True)))
    assert rounded is not None
    assert rounded.startswith(
        "leaves answers alone but for what rounding may do: they leave the baseline's more than those leave one"
        " another, but not for certain in more than one word in 200. 7.0%"
    )
    assert losslessness_text(replace(lookup, losslessness=None)) is None


def test_answers_that_are_too_few_or_not_compared_are_said() -> None:
    """An arm that is not lossy by the test is not cleared by that; nor are answers that no text was seen of."""
    eagle, _ = explained_arms().arms
    assert eagle.losslessness is not None
    words = losslessness_text(
        replace(eagle, losslessness=replace(eagle.losslessness, cleared=False, left_out_ratio=0.25))
    )
    assert words is not None
    assert words.startswith(
        "has too few answers to tell whether it leaves them alone: one word changed in 20 could go unseen."
    )
    assert words.endswith(" 25.0% of all answers are not compared: they failed, or call tools.")


def objected(*found: Objection, worth_at: float = 4, passed_over: bool = False) -> ArmsComparison:
    """EAGLE pays at 1 to 16; of one level this is said, and the baseline is run there."""
    comparison = explained_arms()
    eagle, lookup = comparison.arms
    levels = []
    for level in eagle.levels:
        of_level = tuple(each for each in found if each.level == level.level)
        assert level.gain is not None
        levels.append(replace(level, objections=of_level, gain=replace(level.gain, objections=of_level)))
    arm = replace(eagle, levels=tuple(levels))
    kind = {"passed_over" if passed_over else "held_back": ("eagle3",)}
    choices = [
        replace(each, arm="baseline", speedup=None, **kind) if each.level == worth_at else each
        for each in comparison.choices
    ]
    return replace(comparison, arms=(arm, lookup), choices=tuple(choices))


def test_requests_that_fail_are_said_in_the_sentence() -> None:
    """How many where that is worst, beside the baseline's; what may be chance only seems so."""
    failed = Objection(against=Against.FAILURES, level=4, baseline=0.0, arm=0.6, certain=True)
    late = Objection(against=Against.ATTAINMENT, level=4, baseline=0.9, arm=0.3, certain=True)
    comparison = objected(failed, replace(failed, level=16, arm=0.5), late, passed_over=True)
    words = conclusion(comparison.arms[0], "concurrency")
    assert words.endswith(
        "; it pays at every level measured, but fails more requests at 4 and 16 (at 4 60.0%, the baseline 0%) and meets"
        " the objectives of fewer requests at 4 (30.0%, the baseline 90.0%)."
    )
    assert "at 4 Baseline, since EAGLE-3 (k = 3) with the faster TPOT answers fewer requests; at 16" in advice(
        comparison
    )
    page = comparison_html(comparison)
    assert "; answers fewer requests at 4 and 16" in page
    maybe = conclusion(objected(replace(failed, arm=0.1, certain=False)).arms[0], "concurrency")
    assert maybe.endswith(", but seems to fail more requests at 4 (10.0%, the baseline 0%: measure more).")


def test_answers_of_another_length_are_said_and_not_judged() -> None:
    """The level is left out of the sentence; where it is every level there is no sentence of TPOT at all."""
    longer = Objection(against=Against.LENGTHS, level=4, baseline=12.0, arm=24.0, certain=True)
    comparison = objected(longer)
    told = "its answers have 24.0 tokens on average, by its server's count, and the baseline's 12.0: not the same work"
    assert conclusion(comparison.arms[0], "concurrency").endswith(f"; without 4, where {told}.")
    assert "at 4 Baseline, since EAGLE-3 (k = 3) is held back by what is said above; at 16" in advice(comparison)
    everywhere = objected(*(replace(longer, level=level, arm=24 + level) for level in (1, 4, 16)))
    assert conclusion(everywhere.arms[0], "concurrency") == (
        "is not judged: its answers have 40.0 tokens on average at 16, by its server's count, and the baseline's 12.0:"
        " not the same work."
    )


def test_too_few_answers_to_compare_say_that_they_failed() -> None:
    """A dash hides no failures."""
    failed = Objection(against=Against.FAILURES, level=1, baseline=0.0, arm=0.9, certain=True)
    (arm,) = hostile_arms("x").arms
    first, *others = arm.levels
    words = conclusion(replace(arm, levels=(replace(first, objections=(failed,)), *others)), "concurrency")
    assert words == (
        "cannot be compared: too few requests have a TPOT in both arms. It fails more requests at 1 (90.0%, the"
        " baseline 0%)."
    )


def test_what_to_run_is_said_and_can_be_pasted() -> None:
    """By level and by batch size; methods that pay nowhere are not offered."""
    comparison = explained_arms()
    assert advice(comparison) == "at 1 to 16 EAGLE-3 (k = 3)"
    alone = replace(comparison, choices=tuple(replace(each, arm="baseline") for each in comparison.choices))
    assert advice(alone) == "at 1 to 16 Baseline, since nothing is faster within this one start"
    again = replace(alone, repeats=3)
    assert advice(again) == "at 1 to 16 Baseline, since nothing is faster for certain"
    lossy = tuple(replace(each, arm="ngram") for each in comparison.choices)
    assert advice(replace(comparison, choices=lossy)) == "at 1 to 16 N-gram (k = 7) (lossy)"
    first, second = map(json.loads, schedule_texts(comparison))
    assert first == {
        "method": "eagle3",
        "num_speculative_tokens": 3,
        "num_speculative_tokens_per_batch_size": [[1, 16, 3]],
    }
    assert second["num_speculative_tokens_per_batch_size"][-1][-1] == 0
    never = tuple(replace(each, draft_tokens_by_batch=((1, 16, 0),)) for each in comparison.schedules)
    assert schedule_texts(replace(comparison, schedules=never)) == []
