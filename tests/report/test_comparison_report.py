"""A comparison of arms as terminal text and as a page."""

from collections.abc import Mapping
from dataclasses import asdict, replace

import pytest
from rich.cells import cell_len

from loadgen.core.comparison.arms import ArmLadder, ArmsComparison, compare
from loadgen.core.comparison.crossover import Crossover, NoCrossover
from loadgen.report.comparison import comparison_html, comparison_text
from loadgen.report.comparison.charts import length_charts, load_charts, speedup_chart
from loadgen.report.comparison.words import conclusion, crossover_figure, pays_text
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder
from tests.report.comparisons import hostile_arms, three_arms
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


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(comparison: ArmsComparison, width: int) -> None:
    """Arms go from a table before a number is cut, and are named beneath it."""
    text = comparison_text(comparison, width=width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "…" not in text
    assert ("no room for" in text) == (width < 80)


def test_the_answer_for_an_arm_that_fades() -> None:
    """By how much at either end of the ladder, and up to which load."""
    words = conclusion(against({1: 10, 8: 13, 32: 25}, {1: 20, 8: 20, 32: 20}), "concurrency")
    assert words.startswith("lowers TPOT by 50% [50, 50] at 1 and raises TPOT by 25% [25, 25] at 32;")
    assert "it stops paying at about 20 concurrent requests [20, 20]" in words


def test_the_answer_for_an_arm_that_pays_throughout() -> None:
    """The second change is not introduced again."""
    words = conclusion(against({1: 10, 8: 15}, {1: 20, 8: 20}), "concurrency")
    assert words == "lowers TPOT by 50% [50, 50] at 1 and by 25% [25, 25] at 8; it pays at every level measured."


def test_a_change_that_may_be_none_is_not_claimed() -> None:
    """Only from where to where it may lie, with signs."""
    words = conclusion(against({1: 10, 8: 20}, {1: 20, 8: 20}, spread=0.5), "concurrency")
    assert "and shows no certain difference at 8 [-" in words
    assert "%, +" in words


def test_an_arm_that_cannot_be_compared_says_so() -> None:
    """No number is made up."""
    (arm,) = hostile_arms("x").arms
    assert conclusion(arm, "concurrency") == "cannot be compared: too few requests have a TPOT in both arms."


def crossing(
    reason: NoCrossover | None, level: float | None = None, low: float | None = None, high: float | None = None
) -> Crossover:
    return Crossover(level=level, low=low, high=high, reason=reason)


@pytest.mark.parametrize(
    ("found", "words", "figure"),
    [
        (crossing(None, 33.4, 23.6, 44.2), "stops paying at about 33 concurrent requests [24, 44]", "33"),
        (crossing(None, 2.5), "stops paying at about 2.5 concurrent requests [below the ladder, above 64]", "2.5"),
        (crossing(NoCrossover.EVERYWHERE, low=64), "pays at every level measured", "> 64"),
        (
            crossing(NoCrossover.EVERYWHERE, low=16),
            "seems to pay at every level measured, for certain up to 16",
            "> 64",
        ),
        (crossing(NoCrossover.EVERYWHERE), "seems to pay at every level measured, for certain at none", "> 64"),
        (crossing(NoCrossover.NOWHERE, high=1), "pays at no level measured", "—"),
        (crossing(NoCrossover.RISES), "pays at the higher levels only", "—"),
        (
            crossing(NoCrossover.SEVERAL, low=2),
            "goes from gain to loss more than once, so there is no one load up to which it pays",
            "—",
        ),
    ],
)
def test_every_crossover_has_words(found: Crossover, words: str, figure: str) -> None:
    """With its bounds where there is one level, with the reason where there is none."""
    assert pays_text(found, "concurrency", top=64) == words
    assert crossover_figure(found, top=64) == figure


def test_rates_are_no_concurrent_requests() -> None:
    """The unit is that of the ladder."""
    assert pays_text(crossing(None, 20, 15, 30), "request_rate_rps", top=64).startswith(
        "stops paying at about 20 requests/s"
    )


def test_doubts_name_their_places_once(comparison: ArmsComparison) -> None:
    """A doubt of many measurements is one line of text: where, and the evidence of one of them."""
    text = " ".join(comparison_text(comparison).split())
    assert text.startswith("✗ Invalid at Suffix (k = 7) 16: do not use those levels")
    assert text.count("client_cpu") == 1
    assert "client_cpu at Suffix (k = 7) 16: The client used 99 % of its core." in text


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
    assert page.texts["td"].count("faster") == 5
    assert page.texts["td"].count("invalid measurement") == 1
