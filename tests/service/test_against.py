"""A capacity held against that of a baseline: it fails where it is for certain lower, and where nobody can tell."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.core.errors import ExitCode
from loadgen.service.child.against import held_against
from loadgen.service.jobs.order import Baseline, Outcome

BEFORE = {"variable": "concurrency", "level": 64.0, "low": 56.0, "high": 72.0}


def held(now: dict[str, Any], before: dict[str, Any] = BEFORE) -> Outcome:
    baseline = Baseline(name="0.33.0", folder="before", gates=[], result=before)
    outcome = Outcome(exit_code=ExitCode.DONE, artefact="now", valid=True, result=now)
    return held_against(baseline, outcome, Path("runs"), kind="capacity")


@pytest.mark.parametrize(
    ("level", "low", "high", "fails"),
    [
        (64.0, 60.0, 70.0, False),
        (52.0, 48.0, 57.0, False),
        (52.0, 48.0, 56.0, True),
        (None, None, None, True),
        (None, None, 1.0, True),
        (48.0, 48.0, None, False),  # the highest level that was asked for
    ],
)
def test_lower_for_certain_fails(level: float | None, low: float | None, high: float | None, fails: bool) -> None:
    """All that it may be lies at or below the least that the baseline may be."""
    outcome = held({"variable": "concurrency", "level": level, "low": low, "high": high})
    assert (outcome.exit_code is ExitCode.GATE_FAILED, bool(outcome.gates)) == (fails, fails)
    assert outcome.result["comparison"]["level"] == 64.0


def test_the_same_again_is_never_lower() -> None:
    """Also where the search ended at the highest level that it may try, and nothing failed."""
    for before in (BEFORE, {"variable": "concurrency", "level": 2.0, "low": 2.0, "high": None}):
        assert held(before, before).gates == []


def test_another_unit_is_not_compared() -> None:
    """Requests in flight say nothing about requests a second: the gate fails, and says why."""
    outcome = held({"variable": "request_rate_rps", "level": 100.0, "low": 90.0, "high": 110.0})
    assert outcome.exit_code is ExitCode.GATE_FAILED
    (gate,) = outcome.gates
    assert gate.startswith("cannot be compared with 0.33.0: ")
    assert "concurrency" in gate
    assert "request_rate_rps" in gate
