"""Fixtures of the report tests; what they hand out is made in `made`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.core.analysis.analyse import analyse
from loadgen.core.comparison.arms import ArmsComparison
from loadgen.core.metrics.summary import Analysis, Summary, Sweep
from loadgen.core.record import RequestRecord
from loadgen.core.run import RunManifest
from loadgen.core.simulation.prediction import Prediction
from tests import needs
from tests.report.browser import Browser
from tests.report.comparisons import three_arms
from tests.report.golden import Golden
from tests.report.made.ladders import hostile_ladder, ladder, level_summary
from tests.report.made.predictions import eagle_prediction
from tests.report.made.records import made_records
from tests.report.made.runs import hostile_analysis, rate_analysis, run_manifest
from tests.report.made.text import HOSTILE


@pytest.fixture
def prediction() -> Prediction:
    """EAGLE with three draft tokens on mathematics, more of it than memory holds at the last level, two GPUs."""
    return eagle_prediction()


@pytest.fixture
def comparison() -> ArmsComparison:
    """One arm that pays throughout, one that stops paying, one that never pays."""
    return three_arms()


@pytest.fixture
def analysis() -> Analysis:
    """A run with everything in it."""
    return rate_analysis()


@pytest.fixture
def hostile() -> Analysis:
    """A run with nothing in it but hostile text."""
    return hostile_analysis()


@pytest.fixture
def sweep() -> Sweep:
    """A ladder with a knee and an invalid level."""
    return ladder()


@pytest.fixture
def hostile_sweep() -> Sweep:
    """A ladder with duplicates, an empty level and hostile text."""
    return hostile_ladder()


@pytest.fixture
def empty_sweep() -> Sweep:
    """A ladder of which no level has finished."""
    return Sweep(sweep_id="x", name=None, variable="request_rate_rps", levels=(), knee=None)


@pytest.fixture
def hostile_text() -> str:
    """The text that must stay inert."""
    return HOSTILE


@pytest.fixture
def manifest() -> RunManifest:
    """The manifest that belongs to `analysis`."""
    return run_manifest()


@pytest.fixture
def summary_of() -> Callable[[int], Summary]:
    """One closed-loop level, by its concurrency."""
    return level_summary


@pytest.fixture
def records() -> list[RequestRecord]:
    """A handful of records, one of each sort."""
    return made_records()


@pytest.fixture
def recorded(manifest: RunManifest, records: list[RequestRecord]) -> Analysis:
    """The analysis of `records`."""
    return analyse(lambda: records, replace(manifest, planned=6, slo={}, interrupted=False))


@pytest.fixture
def golden() -> Golden:
    """The golden files of the reports."""
    return Golden(Path(__file__).parent.parent / "golden" / "reports")


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    """Chromium, as it opens a file."""
    return Browser(needs.chromium(), tmp_path)
