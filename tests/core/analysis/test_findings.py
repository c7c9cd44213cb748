"""What holds of every doubt; each one's own tests stand beside this module, by what it is about."""

import re

import pytest

from loadgen.core.analysis.findings.judge import RULES
from loadgen.core.analysis.findings.kinds import FindingKind, Severity
from loadgen.core.record import RequestRecord
from tests.core.analysis.factory import (
    arrivals,
    client,
    closed_loop,
    failed,
    open_loop,
    summarised,
)


@pytest.mark.parametrize("records", [closed_loop(), arrivals()], ids=["closed", "open"])
def test_a_sound_run_has_no_finding(records: list[RequestRecord]) -> None:
    """A quiet client, a steady server, complete counts: nothing to say."""
    load = {} if records[0].due_ns is None else {"load": open_loop()}
    summary = summarised(records, client=client(cpu_ratio=0.3, loop_stall_p99_s=0.001), **load)
    assert summary.verdict.findings == ()
    assert summary.verdict.valid


def test_every_kind_has_its_rule() -> None:
    """One function a kind."""
    assert len(RULES) == len(FindingKind)
    assert {rule.__name__ for rule in RULES} == {kind.value for kind in FindingKind}


def test_gravest_first_and_one_invalid_finding_makes_the_run_invalid() -> None:
    """The order in which people read them."""
    verdict = summarised([failed(seq, sent_ms=100 * seq) for seq in range(5)]).verdict
    severities = [Severity(finding.severity) for finding in verdict.findings]
    assert severities == sorted(severities, key=list(Severity).index)
    assert severities[0] is Severity.INVALID
    assert not verdict.valid


def test_findings_speak_plainly() -> None:
    """Every text is a sentence or more, without an unformatted number."""
    records = [failed(seq, sent_ms=100 * seq) for seq in range(5)]
    for finding in summarised(records, planned=9, interrupted=True).verdict.findings:
        for text in (finding.evidence, finding.advice):
            assert text[0].isupper() or text[0].isdigit()
            assert text.endswith(".") or finding.kind == "same_error"
            assert not re.search(r"\d\.\d{5}", text)
