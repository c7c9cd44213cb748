"""A comparison of arms as terminal text and as a page."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len

from loadgen.core.comparison.arms import Arm, ArmLadder, ArmsComparison
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.crossover import Crossover, NoCrossover
from loadgen.core.comparison.losslessness import Sampling
from loadgen.core.comparison.objection import Against, Objection
from loadgen.core.metrics.summary import Finding, Verdict
from loadgen.report.comparison import comparison_html, comparison_text, document_charts
from loadgen.report.comparison.charts import length_charts, load_charts, pareto_chart, speedup_chart, time_charts
from loadgen.report.comparison.crossing import crossover_beside, crossover_figure, pays_text
from loadgen.report.comparison.doubts import doubts
from loadgen.report.comparison.words import (
    advice,
    conclusion,
    fall_text,
    interval,
    losslessness_text,
    schedule_texts,
)
from loadgen.report.svg import chart_svg
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder
from tests.report.comparisons import explained_arms, hostile_arms, three_arms
from tests.report.test_html import Page, structure


@pytest.fixture
def comparison() -> ArmsComparison:
    """One arm that pays throughout, one that stops paying, one that never pays."""
    return three_arms()


def against(arm_ms: Mapping[int, float], baseline_ms: Mapping[int, float], *, spread: float = 0.002) -> ArmLadder:
    """EAGLE of these TPOTs against a baseline of those."""
    runs = {BASELINE: ladder(BASELINE, baseline_ms, spread=0.002), EAGLE: ladder(EAGLE, arm_ms, spread=spread)}
    (arm,) = compare("x", "concurrency", runs, baseline=BASELINE, expected={}).arms
    return arm


def test_a_comparison_reads_as_agreed(comparison: ArmsComparison, golden) -> None:
    """The whole text at 100 columns."""
    golden.check("comparison.txt", comparison_text(comparison, width=100))


def test_a_comparison_looks_as_agreed(comparison: ArmsComparison, golden) -> None:
    """The structure of its page."""
    golden.check("comparison.html", structure(comparison_html(comparison)))


def test_an_explained_comparison_reads_as_agreed(golden) -> None:
    """With its noise floor, forced runs, bounds, answers, prices and what the servers told."""
    golden.check("comparison-explained.txt", comparison_text(explained_arms(), width=100))


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_of_an_explanation_is_wider_than_the_terminal(width: int) -> None:
    """Columns go before a number is cut."""
    assert all(cell_len(line) <= width for line in comparison_text(explained_arms(), width=width).splitlines())


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_number_of_an_explanation_is_cut(width: int) -> None:
    """Each row of a table that has room for fewer columns is made of cells that the whole table has."""
    whole = set(comparison_text(explained_arms(), width=300).split())
    text = comparison_text(explained_arms(), width=width)
    for title in ("Bounds of the speedup", "Answers against the baseline's", "In the server"):
        body = text[text.index(f"\n{title}\n") :].split("──\n", 1)[1]
        rows = [line.split() for line in body.splitlines() if re.match(r"  (EAGLE|N-gram|Baseline)", line)]
        assert rows
        assert {cell for row in rows for cell in row} <= whole


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(comparison: ArmsComparison, width: int) -> None:
    """Arms go from a table before a number is cut, and are named beneath it."""
    text = comparison_text(comparison, width=width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "…" not in text
    assert ("has no room for" in " ".join(text.split())) == (width < 80)


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


def crossing(
    reason: NoCrossover | None,
    level: float | None = None,
    low: float | None = None,
    high: float | None = None,
    *,
    faster: tuple[float, ...] = (),
    slower: tuple[float, ...] = (),
    unclaimed: tuple[float, ...] = (),
) -> Crossover:
    return Crossover(level=level, low=low, high=high, reason=reason, faster=faster, slower=slower, unclaimed=unclaimed)


@pytest.mark.parametrize(
    ("found", "words", "figure"),
    [
        (
            crossing(None, 33.4, 23.6, 44.2, faster=(1, 16), slower=(64,)),
            "stops paying at about 33 concurrent requests [24, 44]",
            "33",
        ),
        (
            crossing(None, 33.4, 23.6, 44.2, faster=(1, 16), unclaimed=(64,)),
            "seems to stop paying at about 33 concurrent requests [24, 44]",
            "33",
        ),
        (
            crossing(None, 2.5, slower=(64,), unclaimed=(1, 16)),
            "seems to stop paying at about 2.5 concurrent requests [below the ladder, above 64]",
            "2.5",
        ),
        (crossing(NoCrossover.EVERYWHERE, low=64, faster=(1, 64)), "pays at every level measured", "> 64"),
        (
            crossing(NoCrossover.EVERYWHERE, low=64, faster=(1, 16), unclaimed=(64,)),
            "seems to pay at every level measured, for certain at 1 and 16",
            "> 64",
        ),
        (
            crossing(NoCrossover.EVERYWHERE, unclaimed=(1, 64)),
            "seems to pay at every level measured, for certain at none",
            "> 64",
        ),
        (crossing(NoCrossover.NOWHERE, high=1, slower=(1, 64)), "pays at no level measured", "—"),
        (
            crossing(NoCrossover.NOWHERE, slower=(1,), unclaimed=(64,)),
            "pays for certain at no level measured, and costs for certain at 1",
            "—",
        ),
        (crossing(NoCrossover.UNSEEN), "neither pays nor costs for certain at any level measured", "—"),
        (crossing(NoCrossover.RISES, faster=(64,), slower=(1,)), "pays at the higher levels only", "—"),
        (
            crossing(NoCrossover.RISES, faster=(64,), unclaimed=(1,)),
            "seems to pay at the higher levels only, for certain at 64",
            "—",
        ),
        (crossing(NoCrossover.RISES, slower=(1,)), "seems to pay at the higher levels only", "—"),
        (
            crossing(NoCrossover.SEVERAL, low=2, faster=(1, 16), slower=(4, 64)),
            "goes from gain to loss more than once, so there is no one load up to which it pays",
            "—",
        ),
        (
            crossing(NoCrossover.SEVERAL, low=2, faster=(1,), slower=(64,), unclaimed=(4, 16)),
            "pays for certain at 1 and costs for certain at 64, and elsewhere nothing is shown, so no one load is told"
            " up to which it pays",
            "—",
        ),
        (
            crossing(NoCrossover.SEVERAL, low=2, faster=(4,), unclaimed=(1, 16, 64)),
            "pays for certain at 4, and elsewhere nothing is shown, so no one load is told up to which it pays",
            "—",
        ),
    ],
)
def test_every_crossover_has_words(found: Crossover, words: str, figure: str) -> None:
    """With its bounds where there is one level, with the reason where there is none; what levels on both sides of it do
    not show for certain only seems so."""
    assert pays_text(found, "concurrency", top=64) == words
    assert crossover_figure(found, top=64) == figure


@pytest.mark.parametrize(
    ("found", "one_start", "beside"),
    [
        (crossing(None, 33.4, 23.6, 44.2, faster=(1, 16), slower=(64,)), False, "[24, 44]"),
        (crossing(None, 33.4, 23.6, 44.2, faster=(1, 16), slower=(64,)), True, "[24, 44], within this one start"),
        (crossing(None, 33.4, 23.6, 44.2, faster=(1, 16), unclaimed=(64,)), False, "[24, 44], not for certain"),
        (crossing(NoCrossover.NOWHERE, slower=(1, 64)), False, "pays at no level measured"),
    ],
)
def test_a_figure_says_how_far_it_may_be_believed(found: Crossover, one_start: bool, beside: str) -> None:
    """Its bounds, and that levels on either side of it do not show it, or one start of each arm alone."""
    assert crossover_beside(found, "concurrency", top=64, one_start=one_start) == beside


def test_rates_are_no_concurrent_requests() -> None:
    """The unit is that of the ladder."""
    found = crossing(None, 20, 15, 30, faster=(1,), slower=(64,))
    assert pays_text(found, "request_rate_rps", top=64).startswith("stops paying at about 20 requests/s")


def test_doubts_name_their_places_once(comparison: ArmsComparison) -> None:
    """A doubt of many measurements is one line of text: where, and the evidence of one of them."""
    text = " ".join(comparison_text(comparison).split())
    assert text.startswith("✗ Invalid at Suffix (k = 7) 16: do not use those levels")
    assert text.count("client_cpu") == 1
    assert "client_cpu at Suffix (k = 7) 16: The client used 99 % of its core." in text


def doubted(shares: Mapping[float, float]) -> tuple[tuple[str, str], ...]:
    """What is seen of a doubt whose evidence is such a share at each level of EAGLE."""
    found = against(dict.fromkeys(map(int, shares), 10), dict.fromkeys(map(int, shares), 20))
    levels = tuple(
        replace(
            level,
            measurement=Verdict(
                valid=True,
                findings=(
                    Finding(kind="lag", severity="warning", evidence=f"{shares[level.level]}% late.", advice=""),
                ),
            ),
        )
        for level in found.levels
    )
    comparison = replace(three_arms(), arms=(replace(found, levels=levels),), again=None)
    (doubt,) = [each for each in doubts(comparison) if each.kind == "lag"]
    return doubt.seen


def test_the_worst_of_a_doubt_is_shown() -> None:
    """Each evidence once with its places; of many the two ends of their numbers, and where the rest is."""
    label = EAGLE.label
    assert doubted({1: 9.5, 2: 14.5, 4: 9.5}) == ((f"{label} 1, 4", "9.5% late."), (f"{label} 2", "14.5% late."))
    assert doubted({1: 20, 2: 9.5, 4: 100, 8: 14.5}) == (
        (f"{label} 2", "9.5% late."),
        (f"{label} 4", "100% late."),
        (f"{label} 1, 8", "between these."),
    )


def test_requests_without_a_value_are_told(comparison: ArmsComparison) -> None:
    """How many of a level's requests are in no comparison stands beside it, when there are any."""
    assert "left out" not in comparison_text(comparison)
    first, *others = comparison.arms[0].levels
    assert first.gain is not None
    gain = replace(first.gain, left_out_ratio=0.04)
    arm = replace(comparison.arms[0], levels=(replace(first, gain=gain), *others))
    text = " ".join(comparison_text(replace(comparison, arms=(arm,))).split())
    assert "up to 4.0% of a level's requests lack a TPOT in some run and are left out" in text


def test_what_was_not_expected_is_not_shown(comparison: ArmsComparison) -> None:
    """The table of expectations is there when there is one."""
    arms = tuple(
        replace(arm, levels=tuple(replace(level, expected=None) for level in arm.levels)) for arm in comparison.arms
    )
    assert "expected from the model" in comparison_text(comparison)
    assert "expected from the model" not in comparison_text(replace(comparison, arms=arms))


def test_the_speedup_is_drawn_with_its_interval_and_where_it_ends(comparison: ArmsComparison) -> None:
    """A line with a band for each arm, what was expected of it dashed, the line at 1, a mark at each crossover."""
    chart = speedup_chart(comparison)
    assert [line.label for line in chart.lines] == [
        "EAGLE-3 (k = 3)",
        "EAGLE-3 (k = 3), expected",
        "N-gram (k = 7)",
        "Suffix (k = 7)",
        "no gain",
    ]
    for line in chart.lines:
        assert (line.low is None) == (line.high is None) == (line.label in ("EAGLE-3 (k = 3), expected", "no gain"))
        if line.low is not None and line.high is not None:
            assert all(low < value < high for low, value, high in zip(line.low, line.values, line.high, strict=True))
    assert chart.lines[-1].values == (1.0, 1.0, 1.0)
    (mark,) = chart.marks
    assert 4 < mark.x < 16
    assert mark.text == f"{mark.x:.0f}"
    assert chart.log_x


def test_steps_are_drawn_beside_what_they_have_to_emit(comparison: ArmsComparison) -> None:
    """A chart an arm; an arm whose steps are not known has none to draw."""
    charts = length_charts(comparison)
    assert [chart.title for chart in charts] == [ladder.arm.label for ladder in comparison.arms]
    assert [chart.drawable for chart in charts] == [True, True, False]
    emits, needs, expected = charts[0].lines
    assert emits.values == (3.0, 3.0, 3.0)
    assert needs.values == pytest.approx((3 * 9 / 20, 3 * 11 / 22, 3 * 20 / 30), rel=0.02)
    assert expected.values == (1.3, 1.5, 2.1)


def test_load_is_drawn_with_the_baseline(comparison: ArmsComparison) -> None:
    """TPOT in ms, the baseline first and in the colour of what is nobody's."""
    tpot, tokens = load_charts(comparison)
    assert tpot.lines[0].label == "Baseline"
    assert tpot.lines[0].values == pytest.approx((20, 22, 30), rel=0.02)
    assert len({line.tone for line in tpot.lines}) == 4
    assert tokens.drawable


def test_the_page_holds_the_comparison(comparison: ArmsComparison) -> None:
    """As data to copy, and as a row of each arm and level."""
    page = Page(comparison_html(comparison))
    raw = page.script("raw")
    assert isinstance(raw, dict)
    assert raw["schema"] == "loadgen.comparison/1"
    assert [ladder["arm"]["name"] for ladder in raw["arms"]] == ["eagle3", "ngram", "suffix"]
    assert raw.keys() == asdict(comparison).keys()
    assert page.texts["td"].count("✓ faster") == 5
    assert page.texts["td"].count("invalid measurement") == 1


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
        "leaves answers alone but for rounding: they leave the baseline's more than those leave one another, but in"
        " fewer than one word in 200. 7.0%"
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


def test_one_start_shows_nothing_for_certain() -> None:
    """Intervals have no word of how much starts differ, so no sentence, table, legend or note speaks of certainty."""
    one = explained_arms()
    text = " ".join(comparison_text(one).split())
    assert one.repeats == 1
    assert "for certain" not in text
    assert "false claim" not in text
    assert "within this one start: how much starts differ is in no interval" in text
    assert "seems to stop paying at about" in text
    several = " ".join(comparison_text(replace(one, repeats=3)).split())
    assert "within this one start" not in several
    assert "hold a false claim" in several
    assert "it stops paying at about" in several
    assert "differs for certain" in several


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


def test_the_noise_floor_is_drawn_around_no_gain() -> None:
    """As a band, which never makes the chart higher than the arms do."""
    comparison = explained_arms()
    *arms, line = speedup_chart(comparison).lines
    assert line.low is not None
    assert line.high is not None
    assert all(low is not None and 0.9 < low < 1 for low in line.low)
    assert all(high is not None and 1 < high < 1.1 for high in line.high)
    assert comparison.again is not None
    first, *others = comparison.again.levels
    assert first.gain is not None
    wild = replace(first.gain.verdict, speedup=replace(first.gain.verdict.speedup, high=90.0))
    again = replace(comparison.again, levels=(replace(first, gain=replace(first.gain, verdict=wild)), *others))
    chart = speedup_chart(replace(comparison, again=again))
    assert chart.lines[-1].high is not None
    assert chart.lines[-1].high[0] == 90.0
    assert chart.top == 1.5 * max(value for arm in arms for value in arm.values if value is not None)
    assert "↑ 90.0" in chart_svg(chart)


def test_the_ticks_of_a_document_s_chart_are_round() -> None:
    """Also where the axis ends at a limit for bands that go beyond."""
    chart = replace(speedup_chart(three_arms()), top=3.45)
    texts = list(ElementTree.fromstring(chart_svg(chart)).iter("{http://www.w3.org/2000/svg}text"))
    ticks = [each.text for each in texts if each.attrib["text-anchor"] == "end" and each.text != "×"]
    assert ticks == ["0", "1", "2", "3"]


def test_a_band_that_is_cut_off_stays_beside_its_line() -> None:
    """Its ends lie on the limit of the axis: halfway from a narrow interval to an endless one it is half as high."""
    chart = speedup_chart(three_arms())
    line = replace(chart.lines[0], values=(1.0, 1.0, 1.0), low=(0.9, -50.0, 0.9), high=(1.1, 90.0, 1.1))
    drawn = ElementTree.fromstring(chart_svg(replace(chart, lines=(line,), top=2.0)))
    (band,) = [element for element in drawn.iter() if "fill-opacity" in element.attrib]
    heights = [float(corner.split()[1]) for corner in re.split("[MLZ]", band.attrib["d"]) if corner]
    axis = [
        float(found[1])
        for each in drawn.iter()
        if (found := re.match(r"M64 (.+)H", each.attrib.get("d", ""))) is not None
    ]
    assert (min(heights), max(heights)) == (min(axis), max(axis))


def test_labels_of_marks_keep_clear_of_lines() -> None:
    """A halo of paper is beneath the letters; the chart's other texts need none."""
    chart = speedup_chart(three_arms())
    texts = list(ElementTree.fromstring(chart_svg(chart)).iter("{http://www.w3.org/2000/svg}text"))
    haloed = [each for each in texts if "paint-order" in each.attrib]
    assert [each.text for each in haloed] == [mark.text for mark in chart.marks]
    assert {(each.attrib["stroke"], each.attrib["paint-order"]) for each in haloed} == {("#ffffff", "stroke")}


def test_the_time_of_requests_is_drawn() -> None:
    """Shares of a request's time in the server, an arm a line; a server that tells none has no such chart."""
    queue, prefill, decode = time_charts(explained_arms())
    assert [line.label for line in queue.lines] == ["EAGLE-3 (k = 3)", "N-gram (k = 7)"]
    assert [chart.lines[0].values[0] for chart in (queue, prefill, decode)] == pytest.approx([2.0, 8.0, 90.0])
    assert not any(chart.drawable for chart in time_charts(three_arms()))
    assert "Time in the queue" in comparison_html(explained_arms())
    assert "Time in the queue" not in comparison_html(three_arms())


def test_two_crossovers_close_together_have_labels_apart() -> None:
    """Each in the colour of its arm, the second beneath the first."""
    chart = speedup_chart(three_arms())
    (mark,) = chart.marks
    assert mark.tone == next(line.tone for line in chart.lines if line.label == "N-gram (k = 7)")
    close = replace(chart, marks=(replace(mark, text="first"), replace(mark, x=mark.x * 1.02, text="second", tone=5)))
    places = {
        element.text: element.attrib
        for element in ElementTree.fromstring(chart_svg(close)).iter("{http://www.w3.org/2000/svg}text")
    }
    assert float(places["second"]["y"]) - float(places["first"]["y"]) >= float(places["second"]["font-size"])
    assert places["first"]["fill"] != places["second"]["fill"]


def test_arms_are_told_apart_without_colour() -> None:
    """Every one of eight has a shape of points of its own; the baseline has none, nor has any arm its colour."""
    arms = tuple(replace(EAGLE, name=f"arm-{place}", label=f"arm {place}") for place in range(8))
    runs = {BASELINE: ladder(BASELINE, {1: 20.0, 8: 22.0})} | {
        arm: ladder(arm, {1: 10.0 + place, 8: 15.0 + place}) for place, arm in enumerate(arms)
    }
    lines = load_charts(compare("x", "concurrency", runs, baseline=BASELINE, expected={}))[0].lines
    assert [line.shape for line in lines] == [None, *range(8)]
    assert lines[0].tone not in {line.tone for line in lines[1:]}
    drawn = chart_svg(load_charts(compare("x", "concurrency", runs, baseline=BASELINE, expected={}))[0])
    shapes = set()
    for point in re.findall(r"<g><(?:path|circle) (.*?)/>", drawn):
        corners = [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", point)]
        shapes.add(tuple((round(x - corners[0][0], 1), round(y - corners[0][1], 1)) for x, y in corners))
    assert len(shapes) == 8
    lone = compare("x", "concurrency", {BASELINE: ladder(BASELINE, {8: 22.0})}, baseline=BASELINE, expected={})
    assert chart_svg(load_charts(lone)[0]).count("<circle") == 1


def test_the_baseline_s_second_start_is_shown_beside_the_arms() -> None:
    """As a row of every level over the first start, and dashed in the charts of load."""
    comparison = explained_arms()
    assert comparison.again is not None
    page = comparison_html(comparison)
    ratios = page[page.index('aria-label="Ratio table"') :]
    ratios = ratios[ratios.index("<bdi>Baseline again</bdi>") : ratios.index("</table>")]
    for level in comparison.again.levels:
        assert level.gain is not None
        assert interval(level.gain.ratios["output_tokens_per_s"]) in ratios
    for chart in load_charts(comparison):
        assert (chart.lines[-1].label, chart.lines[-1].dashed) == ("Baseline again", True)


def test_captions_explain_the_columns_that_are_there() -> None:
    """What is under a title is said where there is such a column, and nowhere else; on a narrow terminal, too."""
    full, plain = comparison_html(explained_arms()), comparison_html(three_arms())
    assert "<dt>perfect drafter</dt>" in full
    assert "<dt>perfect drafter</dt>" not in plain
    assert "<dt>E2EL at best</dt>" in plain
    wide, narrow = (" ".join(comparison_text(explained_arms(), width=width).split()) for width in (200, 80))
    assert "combined: if each step" in wide
    assert "combined: if each step" not in narrow
    assert re.search(r"has no room for: [^.]*combined", narrow)


def test_without_an_arm_nothing_is_asked_of_it() -> None:
    """A baseline with itself, or arms that never came up: no heading with nothing beneath."""
    alone = replace(explained_arms(), arms=(), choices=(), schedules=())
    assert "Does it pay" not in comparison_text(alone) + comparison_html(alone)


def test_users_and_servers_are_drawn_against_each_other() -> None:
    """A line an arm, each point a level: tokens a second for one user over tokens a second in all."""
    comparison = explained_arms()
    chart = pareto_chart(comparison)
    assert [line.label for line in chart.lines] == ["Baseline", "EAGLE-3 (k = 3)", "N-gram (k = 7)", "Baseline again"]
    assert list(chart.x) == sorted(chart.x)
    for line in chart.lines:
        assert sum(value is not None for value in line.values) == 3
    assert max(value for value in chart.lines[1].values if value is not None) == pytest.approx(1000 / 9, rel=0.01)


def test_users_are_drawn_against_each_gpu_where_every_arm_says_how_many_it_has() -> None:
    """An arm on twice as many GPUs gives half as much for each of the same; without its number servers are drawn."""
    runs = {replace(arm, gpus=gpus): ladder(arm, {1: 20.0, 4: 22.0}) for arm, gpus in ((BASELINE, 2), (EAGLE, 4))}
    baseline, eagle = runs
    found = compare("x", "concurrency", runs, baseline=baseline, expected={})
    chart = pareto_chart(found)
    assert (chart.title, chart.x_label) == (
        "Speed for one user, against all that a GPU gives",
        "output tokens/s per GPU",
    )
    rates = [level.output_tokens_per_s for arm in (found.baseline, *found.arms) for level in arm.levels]
    assert list(chart.x) == sorted([rates[0] / 2, rates[1] / 2, rates[2] / 4, rates[3] / 4])
    unknown = pareto_chart(replace(found, arms=(replace(found.arms[0], arm=replace(eagle, gpus=None)),)))
    assert (unknown.title, unknown.x_label) == (
        "Speed for one user, against all that a server gives",
        "output tokens/s per server",
    )
    assert list(unknown.x) == sorted(rates)


def test_charts_go_into_documents() -> None:
    """Well-formed SVG files that hold no script, with every line, its band and its label in them."""
    charts = document_charts(explained_arms())
    assert [chart.id for chart in charts] == [
        "arms-speedup",
        "arms-pareto",
        "arms-positions",
        "arms-tpot",
        "arms-tokens",
        "arms-length-eagle3",
        "arms-length-ngram",
        "arms-time-queue",
        "arms-time-prefill",
        "arms-time-decode",
    ]
    for chart in charts:
        drawn = ElementTree.fromstring(chart_svg(chart))
        texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
        assert {chart.title, chart.x_label, *(line.label for line in chart.lines)} <= set(texts)
        assert not [element for element in drawn.iter() if "script" in element.tag]
        points = [point for group in drawn.iter("{http://www.w3.org/2000/svg}g") for point in group]
        pointed = [line for line in chart.lines if line.shape is not None]
        assert len(points) == sum(value is not None for line in pointed for value in line.values)
        width, height = (float(value) for value in drawn.attrib["viewBox"].split()[2:])
        circles = [point.attrib for point in points if "cx" in point.attrib]
        assert all(0 <= float(circle["cx"]) <= width for circle in circles)
        assert all(0 <= float(circle["cy"]) <= height for circle in circles)
    bands = chart_svg(charts[0]).count("fill-opacity")
    assert bands == sum(line.low is not None for line in charts[0].lines)


def test_hostile_labels_stay_text_in_an_svg(hostile_text: str) -> None:
    """Nothing of them becomes an element."""
    for chart in document_charts(hostile_arms(hostile_text)):
        drawn = ElementTree.fromstring(chart_svg(chart))
        names = {element.tag.rpartition("}")[2] for element in drawn.iter()}
        assert names <= {"svg", "rect", "text", "path", "circle", "clipPath", "g"}


def test_two_ladders_share_a_page() -> None:
    """Each has its sections, verdict and charts, with ids of their own; the data has both."""
    page = Page(comparison_html(three_arms(), explained_arms()))
    assert [each["name"] for each in page.script("raw")["ladders"]] == ["made up", "made up, explained"]
    ids = [chart["id"] for chart in page.script("charts")]
    assert len(set(ids)) == len(ids)
    assert {"arms-speedup", "arms-speedup-1"} <= set(ids)


def test_one_level_has_its_intervals_drawn() -> None:
    """As bars about its points, since a band needs two."""
    found = against({8: 10}, {8: 20}, spread=0.05)
    comparison = replace(three_arms(), arms=(found,), baseline=replace(three_arms().baseline, levels=found.levels))
    drawn = ElementTree.fromstring(chart_svg(speedup_chart(comparison)))
    (band,) = [element for element in drawn.iter() if "fill-opacity" in element.attrib]
    corners = [tuple(map(float, corner.split())) for corner in re.split("[MLZ]", band.attrib["d"]) if corner]
    assert len({x for x, _ in corners}) == len({y for _, y in corners}) == 2


def test_nothing_is_drawn_or_explained_that_is_not_there() -> None:
    """Without crossovers, wide intervals and a second start the chart's caption has no word of them."""
    same = Arm(name="same", label="The same again")
    runs = {arm: ladder(arm, {1: 8, 4: 9}, requests=60) for arm in (BASELINE, same)}
    page = comparison_html(compare("x", "concurrency", runs, baseline=BASELINE, expected={}))
    assert "Above 1 an arm is faster. Bands: 95% intervals.<" in page
    assert "There is no value to draw" not in page
