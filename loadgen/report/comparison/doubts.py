"""Whether the measurements of a comparison may be believed: its headline, and its doubts with their evidence."""

import re
from collections.abc import Mapping, Sequence

from loadgen.core.analysis.findings.kinds import Severity
from loadgen.core.comparison.arms import ArmLadder, ArmLevel, ArmsComparison
from loadgen.report.comparison.standing import noise_doubt, unfinished_text
from loadgen.report.verdict import Doubt, Headline, valid_headline
from loadgen.report.words import asked, printable

Place = tuple[ArmLadder, ArmLevel]

_MOST_EVIDENCE = 3
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def headline(comparison: ArmsComparison) -> Headline:
    """Whether the measurements may be believed, which may not, and whether all of them are there."""
    unfinished = unfinished_text(comparison)
    bad = [(ladder, level) for ladder in comparison.ladders for level in ladder.levels if not level.measurement.valid]
    if bad:
        words = f"✗ Invalid at {_places(bad)}: do not use those levels"
        return Headline(words=words + (f"; {unfinished}" if unfinished else ""), kind="invalid")
    if unfinished is not None:
        return Headline(words=f"✗ Unfinished: {unfinished}, and what follows is of those alone", kind="unfinished")
    if noise_doubt(comparison) is not None:
        return Headline(words="✓ Valid, but the baseline differs from itself", kind="warning")
    return valid_headline(
        finding for ladder in comparison.ladders for level in ladder.levels for finding in level.measurement.findings
    )


def doubts(comparison: ArmsComparison) -> list[Doubt]:
    """The doubts about measurements, the gravest first: where there are such, and with which evidence.

    Information is left to the reports of the runs.
    """
    groups: dict[tuple[str, str, str], dict[str, list[Place]]] = {}
    for ladder in comparison.ladders:
        for level in ladder.levels:
            for one in level.measurement.findings:
                if one.severity != Severity.INFO:
                    by_evidence = groups.setdefault((one.severity, one.kind, one.advice), {})
                    by_evidence.setdefault(one.evidence, []).append((ladder, level))
    order = [severity.value for severity in Severity]
    itself = noise_doubt(comparison)
    found = [
        Doubt(severity=severity, kind=kind, advice=advice, seen=_seen(by_evidence))
        for (severity, kind, advice), by_evidence in groups.items()
    ]
    return sorted([*([] if itself is None else [itself]), *found], key=lambda each: order.index(each.severity))


def _seen(by_evidence: Mapping[str, Sequence[Place]]) -> tuple[tuple[str, str], ...]:
    """Each evidence with its places; of many the two ends, one of which is the worst, and where the rest is."""
    found = [(places, evidence) for evidence, places in sorted(by_evidence.items(), key=lambda each: _by_size(each[0]))]
    if len(found) <= _MOST_EVIDENCE:
        return tuple((_places(places), evidence) for places, evidence in found)
    (lowest, from_here), *_, (highest, to_there) = found
    ends = from_here, to_there
    rest = _places([place for evidence, places in by_evidence.items() if evidence not in ends for place in places])
    return (_places(lowest), from_here), (_places(highest), to_there), (rest, "between these.")


def _by_size(text: str) -> list[tuple[float, str]]:
    """Orders texts that differ in their numbers by the numbers."""
    numbers, words = _NUMBER.findall(text), _NUMBER.split(text)
    return [(float(each), word) for each, word in zip((*numbers, 0), words, strict=True)]


def _places(places: Sequence[Place]) -> str:
    """`Baseline 1, 16; EAGLE-3 64`."""
    by_arm: dict[str, list[str]] = {}
    for ladder, level in places:
        levels = by_arm.setdefault(printable(ladder.arm.label), [])
        if asked(level.level) not in levels:
            levels.append(asked(level.level))
    return "; ".join(f"{label} {', '.join(levels)}" for label, levels in by_arm.items())
