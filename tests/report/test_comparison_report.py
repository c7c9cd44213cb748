"""A comparison of arms as terminal text and as a page."""

import re
from dataclasses import asdict, replace

import pytest
from rich.cells import cell_len

from loadgen.core.comparison.arms import Arm, ArmsComparison
from loadgen.core.comparison.assembly import compare
from loadgen.report.comparison import comparison_html, comparison_text
from loadgen.report.comparison.charts import load_charts
from loadgen.report.comparison.words import (
    interval,
)
from tests.core.comparison.ladders import BASELINE, ladder
from tests.report.comparisons import explained_arms, three_arms
from tests.report.pages import Page, structure


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


def test_two_ladders_share_a_page() -> None:
    """Each has its sections, verdict and charts, with ids of their own; the data has both."""
    page = Page(comparison_html(three_arms(), explained_arms()))
    assert [each["name"] for each in page.script("raw")["ladders"]] == ["made up", "made up, explained"]
    ids = [chart["id"] for chart in page.script("charts")]
    assert len(set(ids)) == len(ids)
    assert {"arms-speedup", "arms-speedup-1"} <= set(ids)


def test_nothing_is_drawn_or_explained_that_is_not_there() -> None:
    """Without crossovers, wide intervals and a second start the chart's caption has no word of them."""
    same = Arm(name="same", label="The same again")
    runs = {arm: ladder(arm, {1: 8, 4: 9}, requests=60) for arm in (BASELINE, same)}
    page = comparison_html(compare("x", "concurrency", runs, baseline=BASELINE, expected={}))
    assert "Above 1 an arm is faster. Bands: 95% intervals.<" in page
    assert "There is no value to draw" not in page
