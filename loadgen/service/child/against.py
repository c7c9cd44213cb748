"""A result held against a baseline: its gates, and the ratios that lists show."""

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from loadgen.core.comparison.gates import parse_gate
from loadgen.core.comparison.side_by_side import SideBySide
from loadgen.core.errors import ExitCode, LoadgenError
from loadgen.service.jobs.order import OUT, Baseline, Outcome
from loadgen.wiring.compare import compared

_SHOWN = ("ttft_s.p50", "ttft_s.p99", "tpot_s.p50", "tpot_s.p99", "e2el_s.p50", "output_tokens_per_s", "requests_per_s")
_JUDGED = (ExitCode.DONE, ExitCode.GATE_FAILED)


def held_against(baseline: Baseline, outcome: Outcome, folder: Path, *, kind: str) -> Outcome:
    """The outcome with what the comparison says. One that cannot be compared fails its gates, with the reason."""
    if outcome.exit_code not in _JUDGED or outcome.artefact is None:
        return outcome
    if kind == "capacity":
        failed, comparison = _capacity(baseline, outcome)
    else:
        try:
            gates = [parse_gate(text) for text in baseline.gates]
            found = compared([Path(baseline.folder), folder / OUT / outcome.artefact], gates)
        except LoadgenError as fault:
            failed, comparison = [f"cannot be compared with {baseline.name}: {fault}"], {}
        else:
            failed = [f"{gate.at}: {gate.evidence}" for gate in found.failed]
            comparison = _told(found)
    code = ExitCode.GATE_FAILED if failed else outcome.exit_code
    comparison = {"baseline": baseline.name, **comparison, "failed": failed}
    return replace(
        outcome, exit_code=code, gates=[*outcome.gates, *failed], result={**outcome.result, "comparison": comparison}
    )


def _capacity(baseline: Baseline, outcome: Outcome) -> tuple[list[str], dict[str, Any]]:
    """Lower only where it is for certain: below all that the baseline's may be. Without `high` it has no end above."""
    before, now = baseline.result, outcome.result
    if before.get("variable") != now.get("variable"):
        units = f"its capacity is of {before.get('variable')}, this one of {now.get('variable')}"
        return [f"cannot be compared with {baseline.name}: {units}"], {}
    level, least = now.get("level"), before.get("low") or before.get("level")
    told = {"level": before.get("level"), "low": before.get("low"), "high": before.get("high")}
    if least is None or (level is not None and (now.get("high") or math.inf) > least):
        return [], told
    found = "none" if level is None else f"{level:g}"
    return [f"capacity {found} is for certain below the baseline's, which is at least {least:g}"], told


def _told(found: SideBySide) -> dict[str, Any]:
    return {
        "levels": [
            {
                "at": candidate.at,
                "level": candidate.level,
                "metrics": {name: asdict(candidate.metrics[name]) for name in _SHOWN if name in candidate.metrics},
            }
            for candidate in found.candidates
        ],
    }
