"""Runs side by side as terminal text and as Markdown."""

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from loadgen.core.comparison.gates import parse_gate
from loadgen.core.comparison.side_by_side import SideBySide, side_by_side
from loadgen.report.compare import compare_markdown, compare_text
from tests.core.comparison.sides import at_level, records, side, source

HOSTILE = "<img src=x onerror=alert(1)> `|\n# @everyone [x](javascript:1)\x1b[31m"


@pytest.fixture(scope="module")
def found() -> SideBySide:
    """A ladder against one that speculates and is slower at its second level, with gates that pass and fail."""
    slo = {"tpot_s": 0.02}
    old = [at_level(side(records(100), slo=slo), level) for level in (1, 4, 8)]
    new = [
        at_level(side(records(100, slower=slower, noise=2, speculates=True), slo=slo), level)
        for level, slower in ((1, 1.0), (4, 4.0))
    ]
    gates = [
        parse_gate("tpot_s.p90 > 1.2x"),
        parse_gate("icl_s.p50 > 1x"),
        parse_gate("e2el_s.p50 > +5%", certain=True),
    ]
    return side_by_side(source("last week", *old), [source("new", *new)], gates)


@pytest.fixture(scope="module")
def hostile() -> SideBySide:
    """Names, and a setting that differs, that try to be markup and a terminal's commands."""
    run = side(records(20))
    other = replace(run, workload={**run.workload, "extra_body": {"a": HOSTILE}}, valid=False)
    pair = [at_level(run, 2), at_level(run, 4)]
    found = side_by_side(
        source(HOSTILE, run, *pair),
        [source(HOSTILE, other, pair[0])],
        [parse_gate("tpot_s.mean > 1x")],
        allow_unlike=True,
    )
    assert found.unmatched
    assert found.invalid
    assert found.failed
    return found


def test_a_comparison_of_runs_reads_as_agreed(found: SideBySide, golden) -> None:
    """The whole text at 100 columns."""
    golden.check("compare.txt", compare_text(found, width=100))


def test_its_markdown_is_as_agreed(found: SideBySide, golden) -> None:
    """What a pull request shows."""
    golden.check("compare.md", compare_markdown(found))


@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_line_is_wider_than_the_terminal(found: SideBySide, width: int) -> None:
    """And no number is cut."""
    text = compare_text(found, width=width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "…" not in text


def test_names_add_no_markup(hostile: SideBySide) -> None:
    """Outside of code spans there is no tag but our own fold, no link, no mention, and no line is theirs."""
    text = compare_markdown(hostile)
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert text.count("`") % 2 == 0
    assert set(re.findall(r"<[^>]*>", outside)) == {"<details>", "<summary>", "</summary>", "</details>"}
    for words in ("img", "@", "javascript", "onerror", "\x1b"):
        assert words not in outside
    assert not [line for line in text.splitlines() if line.startswith("# ")]


def test_names_are_no_commands_to_a_terminal(hostile: SideBySide) -> None:
    """Control characters are shown, not sent."""
    text = compare_text(hostile, width=200)
    assert "\x1b" not in text
    assert "\\x1b[31m" in text


def test_what_gates_name_is_shown(found: SideBySide) -> None:
    """Percentiles that the short table leaves out, when a gate is on them; all of them when it is unfolded."""
    short, folded = compare_markdown(found).split("<details>")
    assert "TPOT p90" in short
    assert "TPOT p95" not in short
    assert "TPOT p95" in folded
