"""How punctual a simulated server was, and what that means for what was measured on it."""

from dataclasses import replace

import httpx2
import msgspec

from loadgen.adapters.http.destination import Destination
from loadgen.core.analysis.findings.kinds import Severity
from loadgen.core.metrics.summary import Finding, Summary
from loadgen.core.units import duration_text
from loadgen.sim.server.lateness import LatenessReport
from loadgen.wiring.target import controlled

_PATH = "/sim/lateness"
_LATE_S = 0.005


async def lateness_p99_s(destination: Destination) -> float | None:
    """By how much 1 % of what a simulated server sent missed its instant; None when it does not tell."""
    try:
        async with controlled(destination) as control:
            page = await control.fetch("GET", _PATH)
        return msgspec.json.decode(page.body, type=LatenessReport).p99_s
    except (httpx2.HTTPError, msgspec.DecodeError):
        return None


def with_lateness(summary: Summary, late_s: float | None) -> Summary:
    """The summary of a run on such a server, with a doubt where it was late."""
    if late_s is None or late_s <= _LATE_S:
        return summary
    late = Finding(
        kind="simulator_late",
        severity=Severity.WARNING,
        evidence=f"1% of what the simulated server sent left more than {duration_text(late_s)} away from its instant.",
        advice="This machine was busy: what was measured there is its lateness too. Run it again when it is idle.",
    )
    return replace(summary, verdict=replace(summary.verdict, findings=(*summary.verdict.findings, late)))
