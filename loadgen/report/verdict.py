"""The verdict in words, alike on a terminal and on a page: one headline, and doubts in order with their evidence."""

from collections.abc import Iterable
from dataclasses import dataclass

from loadgen.core.analysis.findings.kinds import Severity
from loadgen.core.metrics.summary import Finding, Sweep, Verdict
from loadgen.report.words import asked

_ORDER = [severity.value for severity in Severity]


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What comes first. `kind` is `valid`, `warning` (valid, with doubts), `unfinished` (some of it is missing) or
    `invalid`.
    """

    words: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Findings of one kind that ask for the same. `seen`: at which levels (empty for a run) which evidence."""

    severity: str
    kind: str
    advice: str
    seen: tuple[tuple[str, str], ...]


def run_headline(verdict: Verdict) -> Headline:
    """Whether a run may be believed."""
    if not verdict.valid:
        return Headline(words="✗ Invalid: do not use these numbers", kind="invalid")
    return valid_headline(verdict.findings)


def sweep_headline(sweep: Sweep) -> Headline:
    """Whether the levels of a ladder may be believed, and which may not."""
    if not sweep.levels:
        return Headline(words="✗ Empty: no level has finished", kind="invalid")
    bad = [asked(level.level) for level in sweep.levels if not level.summary.verdict.valid]
    if bad:
        return Headline(words=f"✗ Invalid at {', '.join(bad)}: do not use those levels", kind="invalid")
    return valid_headline(finding for level in sweep.levels for finding in level.summary.verdict.findings)


def has_doubts(findings: Iterable[Finding]) -> bool:
    """Whether there is more than information among them."""
    return any(finding.severity != Severity.INFO for finding in findings)


def valid_headline(findings: Iterable[Finding]) -> Headline:
    """Of measurements that are valid: whether there are doubts about them."""
    if has_doubts(findings):
        return Headline(words="✓ Valid, with doubts", kind="warning")
    return Headline(words="✓ Valid", kind="valid")


def run_doubts(verdict: Verdict) -> list[Doubt]:
    """The findings of a run, which are in order already."""
    return [
        Doubt(severity=one.severity, kind=one.kind, advice=one.advice, seen=(("", one.evidence),))
        for one in verdict.findings
    ]


def sweep_doubts(sweep: Sweep) -> list[Doubt]:
    """The doubts about the levels of a ladder."""
    return level_doubts((level.level, level.summary.verdict.findings) for level in sweep.levels)


def level_doubts(found: Iterable[tuple[float, Iterable[Finding]]]) -> list[Doubt]:
    """The doubts about levels, the gravest first; a kind stays together, levels with the same evidence share a line.

    Information is left to the levels' own reports.
    """
    groups: dict[tuple[str, str], dict[str, dict[str, list[str]]]] = {}
    for level, findings in found:
        for one in findings:
            if one.severity != Severity.INFO:
                by_advice = groups.setdefault((one.severity, one.kind), {})
                by_advice.setdefault(one.advice, {}).setdefault(one.evidence, []).append(asked(level))
    return [
        Doubt(
            severity=severity,
            kind=kind,
            advice=advice,
            seen=tuple((", ".join(dict.fromkeys(levels)), evidence) for evidence, levels in by_evidence.items()),
        )
        for (severity, kind), by_advice in sorted(groups.items(), key=lambda item: _ORDER.index(item[0][0]))
        for advice, by_evidence in by_advice.items()
    ]
