"""The gates of a comparison in words: which failed, where and why."""

from loadgen.core.comparison.arms import ArmsComparison
from loadgen.report.words import printable


def gate_lines(comparison: ArmsComparison) -> list[tuple[str, str]]:
    """Each gate that failed, with where and why, and how many were kept; nothing where there are no gates."""
    gates = comparison.gates
    if not gates:
        return []
    kept = sum(not gate.failed for gate in gates)
    failed = [("Failed", line) for line in failed_gates(comparison)]
    return [*failed, ("Kept", f"{kept} of {len(gates)}, each gate at each level of each arm")]


def failed_gates(comparison: ArmsComparison) -> list[str]:
    """A line for each gate at each level of an arm that failed; for an arm that never ran, one for all of its gates."""
    there = {ladder.arm.label for ladder in comparison.arms}
    lines = [
        f"{printable(gate.candidate)} at {gate.at}: {gate.evidence} ({gate.gate})"
        for gate in comparison.gates
        if gate.failed and gate.candidate in there
    ]
    never = dict.fromkeys(gate.candidate for gate in comparison.gates if gate.candidate not in there)
    return lines + [f"{printable(label)}: there is no run of it, so none of its gates can be judged" for label in never]
