"""Doubts about how a run and its requests ended: on the run that deserves them, and not on the one that does not."""

from dataclasses import replace

import pytest

from loadgen.core.record import FailureKind
from tests.core.analysis.factory import (
    answered,
    arrivals,
    closed_loop,
    failed,
    findings,
    manifest,
    unsent,
    window,
)


@pytest.mark.parametrize(
    ("ended_by", "words"), [("refused", "refused every request"), ("unreachable", "could not be reached any more")]
)
def test_a_run_that_was_given_up_says_why(ended_by: str, words: str) -> None:
    """Nobody has to guess why 120 of 500 requests were sent."""
    load = replace(manifest().load, num_requests=500)
    found = findings(closed_loop(), ended_by=ended_by, load=load)["given_up"]
    assert found.severity == "warning"
    assert "given up after 120 of 500 requests" in found.evidence
    assert words in found.evidence


def test_a_run_that_ended_by_its_plan_was_not_given_up() -> None:
    """By requests, by duration, or by hand, which is another finding."""
    for ended_by in ("requests", "duration", "interrupt", None):
        assert "given_up" not in findings(closed_loop(), ended_by=ended_by)


def test_no_completion_in_the_window() -> None:
    """Answers that all end after the window leave nothing to report."""
    records = [answered(seq, sent_ms=0, ttft_ms=3000) for seq in range(5)]
    found = findings(records, window=window(2))["no_completion"]
    assert found.severity == "invalid"
    assert "5 completed at all" in found.evidence


def test_failures_stand_beside_the_percentiles() -> None:
    """250 of 256 failed: the share is said, and that percentiles cover the others."""
    found = findings([*closed_loop(6), *(failed(10 + seq) for seq in range(250))])["failures"]
    assert "250 of 256 requests failed (97.7%): http_5xx 250" in found.evidence
    assert "cover only requests that completed" in found.advice


def test_every_request_refused_alike() -> None:
    """A dropped key answers 401 to everything: the message is shown, and it is no load problem."""
    refused = [failed(seq, kind=FailureKind.HTTP_4XX, status=401, message="no key") for seq in range(20)]
    found = findings(refused)
    assert "Every failure is HTTP 401: no key" in found["same_error"].evidence
    assert "no_completion" in found
    assert "same_error" not in findings([*refused, failed(30)])
    assert "same_error" not in findings([failed(0)])


def test_dropped_arrivals() -> None:
    """Due and never sent is said."""
    assert "2 of 122 requests" in findings([*arrivals(), unsent(200), unsent(201)])["arrivals_dropped"].evidence


def test_interrupted_and_killed_runs_say_so() -> None:
    """Ended by a signal, or without an end and with requests that have no record."""
    stopped = findings(closed_loop(), interrupted=True, ended_by="interrupt")["interrupted"]
    assert stopped.evidence == "The run ended by interrupt."
    killed = findings(closed_loop(), planned=150, interrupted=None, ended_by=None)["interrupted"]
    assert killed.evidence == "The run was killed before its end; 30 planned requests have no record."
