"""The verdict in words, alike on terminal and page."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from loadgen.core.metrics.summary import Analysis, Finding, Slo, Summary, Sweep, SweepLevel, Verdict
from loadgen.core.run import RunManifest
from loadgen.report.html import run_html, sweep_html
from loadgen.report.terminal import run_text, sweep_text

WARM = Finding(kind="warmup_drift", severity="warning", evidence="2 x", advice="Warm up with 8.")
LATE = Finding(kind="client_lag", severity="invalid", evidence="late", advice="Lower the rate.")
FEW = Finding(kind="too_few_requests", severity="info", evidence="40 of 100", advice="Send more.")


def flat(text: str) -> str:
    """On one line."""
    return " ".join(text.split())


def judged(summary: Summary, *findings: Finding) -> Summary:
    """The summary with these findings."""
    return replace(summary, verdict=Verdict(valid=LATE not in findings, findings=findings))


def ladder(summary_of: Callable[[int], Summary], *findings: tuple[Finding, ...]) -> Sweep:
    """Levels 1, 2, 4, … with these findings each."""
    levels = tuple(SweepLevel(level=2**i, summary=judged(summary_of(2**i), *found)) for i, found in enumerate(findings))
    asked = tuple(level.level for level in levels)
    return Sweep(sweep_id="s", name=None, variable="concurrency", asked=asked, levels=levels, knee=None)


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ((), "✓ Valid"),
        ((FEW,), "✓ Valid"),
        ((WARM, FEW), "✓ Valid, with doubts"),
        ((LATE, WARM), "✗ Invalid: do not use these numbers"),
    ],
)
def test_a_run_has_one_headline(
    analysis: Analysis, manifest: RunManifest, findings: tuple[Finding, ...], words: str
) -> None:
    """Terminal and page begin with the same words; a doubt takes a warning, information does not."""
    told = replace(analysis, summary=judged(analysis.summary, *findings))
    assert run_text(told).split("  ")[0] == words
    assert f'<p class="headline">{words}</p>' in run_html(told, manifest)


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        (((), ()), "✓ Valid"),
        (((FEW,), ()), "✓ Valid"),
        (((), (WARM,)), "✓ Valid, with doubts"),
        (((LATE,), (WARM,), (LATE,)), "✗ Invalid at 1, 4: do not use those levels"),
    ],
)
def test_a_ladder_has_one_headline(
    summary_of: Callable[[int], Summary], findings: tuple[tuple[Finding, ...], ...], words: str
) -> None:
    """As for a run, and an invalid level is named."""
    sweep = ladder(summary_of, *findings)
    assert sweep_text(sweep).split("  ")[0] == words
    assert f'<p class="headline">{words}</p>' in sweep_html(sweep)


def test_each_level_shows_its_own_evidence(summary_of: Callable[[int], Summary]) -> None:
    """What differs between levels stands beside each; what is the same stands once for all of them."""
    others = replace(WARM, evidence="3 x")
    more = replace(WARM, evidence="4 x", advice="Warm up with 16.")
    sweep = ladder(summary_of, (WARM,), (WARM, FEW), (others,), (more, LATE))
    text = flat(sweep_text(sweep))
    told = "warmup_drift at 1, 2: 2 x warmup_drift at 4: 3 x Warm up with 8. warning warmup_drift at 8: 4 x"
    assert told in text
    assert text.index("client_lag at 8: late") < text.index("warmup_drift"), "the gravest comes first"
    assert "40 of 100" not in text
    page = sweep_html(sweep)
    assert "<p>At 1, 2: <bdi>2 x</bdi></p><p>At 4: <bdi>3 x</bdi></p>" in page
    assert "<p>At 8: <bdi>4 x</bdi></p>" in page
    assert page.index("At 8: <bdi>late</bdi>") < page.index("At 1, 2: ")


def test_levels_that_never_ran_are_said(summary_of: Callable[[int], Summary]) -> None:
    """One of three levels, and whether somebody stopped it; a whole ladder just has its number."""
    one = ladder(summary_of, ())
    for text in (flat(sweep_text(one)), sweep_html(one)):
        assert "1 level of concurrency" in text
        assert "did not run" not in text
    short = replace(one, asked=(1, 2, 4))
    for text in (flat(sweep_text(short)), sweep_html(short)):
        assert "1 of 3 levels of concurrency; the others did not run" in text
    (level,) = short.levels
    stopped = replace(short, levels=(replace(level, summary=replace(level.summary, interrupted=True)),))
    for text in (flat(sweep_text(stopped)), sweep_html(stopped)):
        assert "1 of 3 levels of concurrency; interrupted" in text


def test_without_a_knee_the_reason_is_said(summary_of: Callable[[int], Summary]) -> None:
    """On the terminal and on the page, in the same words."""
    sweep = replace(ladder(summary_of, (), ()), no_knee="none up to 2: throughput still rises")
    assert "Knee none up to 2: throughput still rises" in flat(sweep_text(sweep))
    assert "none up to 2: throughput still rises" in sweep_html(sweep)


def test_a_gate_that_failed_is_named(
    analysis: Analysis, manifest: RunManifest, summary_of: Callable[[int], Summary]
) -> None:
    """At the end of the terminal's report and at the top of the page, of runs and ladders; a kept gate is not."""
    slo = Slo(objectives={"ttft_s": 0.5}, attainment_ratio=0.25, good=1, due=4)
    gate = replace(manifest, options={"slo_attainment": 0.9})
    run = replace(analysis, summary=replace(analysis.summary, slo=slo))
    words = "SLO attainment 25% is below 90% (1 good of 4 due)"
    assert flat(run_text(run, gate)).endswith(f"Gates failed: {words}")
    assert words in run_html(run, gate)
    kept = replace(manifest, options={"slo_attainment": 0.25})
    assert "Gates" not in run_text(run, kept)
    assert "gate failed" not in run_html(run, kept)
    sweep = ladder(summary_of, (), ())
    sweep = replace(sweep, levels=tuple(replace(one, summary=replace(one.summary, slo=slo)) for one in sweep.levels))
    for text in (flat(sweep_text(sweep, gate)), sweep_html(sweep, gate)):
        assert "SLO attainment is below 90% at every level, 25% at best" in text
