"""Doubts about the measurements of a comparison: each once, with its places and what was seen."""

from collections.abc import Mapping
from dataclasses import replace

from loadgen.core.comparison.arms import ArmsComparison
from loadgen.core.metrics.summary import Finding, Verdict
from loadgen.report.comparison import comparison_text
from loadgen.report.comparison.doubts import doubts
from tests.core.comparison.ladders import EAGLE
from tests.report.comparisons import against, three_arms


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
