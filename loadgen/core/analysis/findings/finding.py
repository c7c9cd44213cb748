"""How a rule puts its finding."""

from loadgen.core.analysis.findings.kinds import FindingKind, Severity
from loadgen.core.metrics.summary import Finding


def invalid(kind: FindingKind, evidence: str, advice: str) -> Finding:
    """The numbers do not describe the server."""
    return Finding(kind=kind.value, severity=Severity.INVALID.value, evidence=evidence, advice=advice)


def warning(kind: FindingKind, evidence: str, advice: str) -> Finding:
    """The numbers need care."""
    return Finding(kind=kind.value, severity=Severity.WARNING.value, evidence=evidence, advice=advice)


def info(kind: FindingKind, evidence: str, advice: str) -> Finding:
    """Worth knowing."""
    return Finding(kind=kind.value, severity=Severity.INFO.value, evidence=evidence, advice=advice)


def share(part: float, whole: float) -> str:
    """A part of a whole in percent."""
    return f"{part / whole:.1%}"
