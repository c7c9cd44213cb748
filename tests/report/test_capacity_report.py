"""A search for a capacity as text and as a page."""

from dataclasses import replace
from typing import Any

import pytest

from loadgen.core.capacity.probe import Miss, Run, Shortfall
from loadgen.core.capacity.result import CapacityResult
from loadgen.core.capacity.search import Search, Step
from loadgen.core.metrics.summary import Finding
from loadgen.core.run import Load, LoadMode, RunManifest, Target
from loadgen.report.html import capacity_html
from loadgen.report.terminal import capacity_text
from tests.core.capacity.made import made_run, search, searched
from tests.report.made.text import HOSTILE

SHORT = Shortfall(
    bad=40,
    lost=3,
    misses=(
        Miss(metric="ttft_s", limit_s=0.5, over=30, without_value=0, needed_s=0.75),
        Miss(metric="tpot_s", limit_s=0.05, over=4, without_value=3, needed_s=None),
    ),
    by_third=(1, 2, 37),
    seqs=(61, 62),
    input_tokens_bad_p50=900.0,
    input_tokens_good_p50=120.0,
)
MANIFEST = RunManifest(
    run_id="r",
    name=HOSTILE,
    started_at="2026-01-01T00:00:00.000+00:00",
    origin_unix_ns=0,
    target=Target(url="http://x", endpoint="chat", model=HOSTILE),
    load=Load(mode=LoadMode.RATE, request_rate_rps=1),
)


def serve(step: Step) -> Run:
    """Meets its objectives up to five; at four only in the light of a second run."""
    if step.level == 4 and step.repeat == 1:
        return made_run(88, 100)
    return made_run(200, 200) if step.level <= 5 else replace(made_run(60, 100), shortfall=SHORT)


def found(**wanted: Any) -> tuple[Search, CapacityResult]:
    """A search by rate with that server."""
    asked = search(variable="request_rate_rps", **wanted)
    return asked, searched(asked, serve, gpus=2)


def test_the_text_says_what_was_found_and_why_not_more() -> None:
    """Headline, interval, noise, each objective with what it would have needed, which requests missed, every probe."""
    text = capacity_text(*found(precision=0.5), MANIFEST, width=140)
    for said in (
        "✓ Capacity 4 requests/s",
        "with 95% confidence 4 passes and 5.66 fails",
        "Per GPU      2.00 requests/s",
        "attainment of 2 runs at one level spread",
        "5.66 requests/s fails: 60 of 100 requests met the objectives",
        "TTFT: 30 over 500 ms; 90% of requests are within 750 ms, 1.50 × the limit.",
        "TPOT: 4 over 50 ms, 3 without a value; no limit would hold for 90% of requests.",
        "3 requests did not complete.",
        "1, 2 and 37 were in the run's first, second and last third; the first are #61, #62.",
        "Their median input is 900 tokens, that of the others 120.",
        "undecided",
    ):
        assert " ".join(said.split()) in " ".join(text.split())
    assert "\x1b[2J" not in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_narrow_text_leaves_columns_out_and_cuts_no_number(width: int) -> None:
    """Level, attainment and verdict stay; what went is named."""
    text = capacity_text(*found(precision=0.5), MANIFEST, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "no room" in " ".join(text.split()).lower()
    assert "5.66" in text


def test_headlines_follow_how_the_search_ended() -> None:
    """No capacity, one that lies above, one by its share alone, and a search that came to no end."""

    def headline(asked: Search, run: Run) -> str:
        return capacity_text(asked, searched(asked, lambda step: run), replace(MANIFEST, name="n")).splitlines()[0]

    assert headline(search(), made_run(0, 100)).startswith("✗ No capacity: the first level misses the objectives")
    assert headline(search(most=2), made_run(100, 100)).startswith("✓ Capacity concurrency 2 or more")
    assert headline(search(), made_run(1, 9, cut_short="gone")).startswith("✗ Not finished")
    assert headline(search(), made_run(9, 9, invalid="late")).startswith("✗ Invalid")
    by_share = search(further=0)
    result = searched(by_share, lambda step: made_run(91 if step.level < 3 else 10, 100))
    assert "✓ Capacity concurrency 2, with doubts" in capacity_text(by_share, result, MANIFEST)


def test_doubts_about_probes_stand_below_the_headline() -> None:
    """Each with its level and what to do, on the page too; a doubt about a level that decides is in the headline."""
    busy = Finding(kind="client_busy", severity="warning", evidence=f"late {HOSTILE}", advice="Give it a free core.")

    def doubted(step: Step) -> Run:
        run = made_run(100 if step.level < 3 else 10, 100) if step.repeat > 1 or step.level != 2 else made_run(88, 100)
        return replace(run, summary=replace(run.summary, findings=(busy,))) if step.level == 2 else run

    asked = search()
    result = searched(asked, doubted)
    text = " ".join(capacity_text(asked, result, MANIFEST).split())
    assert "✓ Capacity concurrency 2, with doubts" in text
    assert "warning client_busy at 2: late" in text
    assert "Give it a free core." in text
    page = capacity_html(asked, result, MANIFEST)
    assert "Give it a free core." in page
    assert "<svg onload" not in page


def test_the_page_holds_the_same_and_nothing_foreign_runs() -> None:
    """The same words, a chart of attainment with its band, the search as JSON; markup from outside is text."""
    page = capacity_html(*found(precision=0.5), MANIFEST)
    for said in ("✓ Capacity 4 requests/s", "750 ms, 1.50 × the limit", "loadgen.capacity/1", '"id": "attainment"'):
        assert said in page
    assert "<svg onload" not in page
    assert "<script>alert" not in page


def test_a_search_without_a_name_is_headed_by_what_it_searched() -> None:
    """The model, on a page and in a text."""
    nameless = replace(MANIFEST, name=None, target=replace(MANIFEST.target, model="llama"))
    search, result = found(precision=0.5)
    assert "<h1><bdi>Capacity of llama</bdi></h1>" in capacity_html(search, result, nameless)
    assert "capacity of llama" in capacity_text(search, result, nameless).splitlines()[0]
