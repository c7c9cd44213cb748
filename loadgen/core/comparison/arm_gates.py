"""The gates of an experiment, held against every arm at every level."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from loadgen.core.comparison.arms import Arm, ArmRun
from loadgen.core.comparison.cell import RATES
from loadgen.core.comparison.gates import Gate, JudgedGate, judged
from loadgen.core.comparison.metric_pair import MetricPair, name_of, pair
from loadgen.core.comparison.ratio import ratio
from loadgen.core.comparison.side import level_text, side_of
from loadgen.core.comparison.side_by_side import withheld
from loadgen.core.metrics.slo import SLO_METRICS
from loadgen.core.run import Load

Levels = Mapping[float, Sequence[ArmRun]]
"""The runs of an arm by level, one for each repeat."""


def judged_at_every_level(
    gates: Sequence[Gate], baseline: Levels, arms: Mapping[Arm, Levels], planned: Mapping[Arm, Mapping[float, Load]]
) -> tuple[JudgedGate, ...]:
    """Each gate for each arm at each level that is `planned` for it, or at which the baseline was run.

    Of the repeats that both sides have: values are means over them, a ratio is that of the comparison where requests
    allow one, else of the two values. Where one of the two has no run nothing is known, and the gate fails.
    """
    run = {level: found[0].summary.load for level, found in baseline.items()}
    judged_at = {arm: dict(sorted((run | dict(planned.get(arm, {}))).items())) for arm in (*arms, *planned)}
    return tuple(
        _judged(gate, arm.label, load, baseline.get(level, ()), arms.get(arm, {}).get(level, ()))
        for gate in gates
        for arm, levels in judged_at.items()
        for level, load in levels.items()
    )


def _judged(gate: Gate, label: str, load: Load, baseline: Sequence[ArmRun], arm: Sequence[ArmRun]) -> JudgedGate:
    at = level_text(load)
    common = {run.cell.repeat for run in baseline} & {run.cell.repeat for run in arm}
    first, second = ([run for run in side if run.cell.repeat in common] for side in (baseline, arm))
    if not common:
        return judged(gate, None, candidate=label, at=at, reason=_no_pair(baseline, arm))
    apart = dict(withheld(side_of(first[0].summary), side_of(second[0].summary)))
    reason = apart.get(name_of(gate.metric))
    return judged(gate, None if reason else _pair(gate.metric, first, second), candidate=label, at=at, reason=reason)


def _no_pair(baseline: Sequence[ArmRun], arm: Sequence[ArmRun]) -> str:
    if baseline and arm:
        return "there is no repeat in which both were run"
    return f"the {'baseline' if arm else 'arm'} has no run at this level"


def _pair(metric: str, baseline: Sequence[ArmRun], arm: Sequence[ArmRun]) -> MetricPair:
    found = None
    if name_of(metric) in (*SLO_METRICS, *RATES):
        found = ratio([run.cell for run in baseline], [run.cell for run in arm], metric)
    return pair(_value(metric, baseline), _value(metric, arm), None if found is None else found.estimate)


def _value(metric: str, runs: Sequence[ArmRun]) -> float | None:
    values = [side_of(run.summary).values.get(metric) for run in runs]
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(runs) else None
