"""What the reader of an experiment should know beside its figures, from what its folder holds."""

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from loadgen.adapters.store.experiment_folder import CellEnd, Change, ExperimentFolder, ExperimentManifest
from loadgen.core.comparison.arms import ArmRun
from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.footing import Footing, Standing
from loadgen.core.comparison.lengths import LENGTHS_ERROR_RATIO, lengths_apart
from loadgen.core.comparison.side import level_text
from loadgen.core.experiment.plan import Plan, PlannedArm, Role, Sitting
from loadgen.core.metrics.summary import Summary
from loadgen.core.simulation.gpus import GPUS
from loadgen.core.simulation.workloads import WORKLOADS
from loadgen.core.units import duration_text
from loadgen.options.predict import DEFAULT_GPU


def empty_words(run: Summary) -> str | None:
    """That a run came to nothing, and what became of its requests; None when one completed."""
    counts = run.requests
    if counts.completed:
        return None
    others = {"cancelled": counts.cancelled, "dropped": counts.dropped}
    kinds = {**counts.failed_by_kind, **{name: count for name, count in others.items() if count}}
    listed = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
    return f"ran, and nothing completed ({listed or 'nothing was sent'})"


def empty_notes(folder: ExperimentFolder, plan: Plan, ran: Mapping[str, CellEnd]) -> Iterator[str]:
    """Cells whose runs came to nothing, which is something else than no run."""
    for cell in plan.cells:
        if cell.name in ran and (words := empty_words(folder.cell(cell).load_summary())) is not None:
            yield f"{cell.name}: {words}"


def change_notes(changes: Sequence[Change]) -> Iterator[str]:
    """What was another when the experiment was begun: whoever has seen results may choose by what they are judged."""
    for change in changes:
        yield f"changed at a resume, {change.at}: {change.setting} was {change.was!r} and is {change.now!r}"


def gpu_notes(plan: Plan) -> Iterator[str]:
    """Arms that are known to run on another number of GPUs than the baseline."""
    baseline = plan.baseline
    for arm in plan.arms:
        if arm.role is Role.COMPARED and baseline.gpus and arm.gpus and arm.gpus != baseline.gpus:
            yield (
                f"{arm.label} runs on {arm.gpus} GPUs, {baseline.label} on {baseline.gpus}: how their speeds differ is"
                " not of speculation alone"
            )


def footing_words(found: Footing, arm: PlannedArm) -> Iterator[str]:
    """What people should know of an arm's footing."""
    if found.unverified:
        yield f"not verified to be equal, since not every server tells: {', '.join(found.unverified)}"
    for objection in found.objections:
        yield f"{arm.label}: {objection}"


def footing_remarks(folder: ExperimentFolder, plan: Plan) -> tuple[str, ...]:
    """What people should know of how the servers stood to the baseline at all of their starts, each line once."""
    starts = ((start.footing, sitting.arm) for sitting in plan.sittings for start in folder.sitting(sitting).starts)
    words = (footing_words(found, arm) for found, arm in starts if found is not None)
    return tuple(dict.fromkeys(chain.from_iterable(words)))


def length_notes(runs: Mapping[PlannedArm, Sequence[ArmRun]], baseline: PlannedArm) -> Iterator[str]:
    """Where arms and baseline did not do the same work, by all repeats that both have; `runs` are of one ladder."""
    first = {(run.cell.level, run.cell.repeat): run.cell for run in runs[baseline]}
    pairs: dict[tuple[PlannedArm, float], list[tuple[Cell, Cell]]] = {}
    names = {}
    for arm in runs:
        for run in runs[arm] if arm != baseline else ():
            place = (run.cell.level, run.cell.repeat)
            if place in first:
                pairs.setdefault((arm, run.cell.level), []).append((first[place], run.cell))
                names[arm, run.cell.level] = level_text(run.summary.load)
    for (arm, level), found in pairs.items():
        sides = tuple(zip(*found, strict=True))
        apart = lengths_apart(sides[0], sides[1], error_ratio=LENGTHS_ERROR_RATIO / len(pairs))
        if apart is not None:
            yield f"{arm.label} at {names[arm, level]}: {apart}"


def late_p99_s(folder: ExperimentFolder, sitting: Sitting) -> float | None:
    """How far the sitting's simulated server was from its own instants, at the worst of its starts."""
    told = (start.late_p99_s for start in folder.sitting(sitting).starts)
    return max((late_s for late_s in told if late_s is not None), default=None)


def simulation_notes(manifest: ExperimentManifest, folder: ExperimentFolder) -> Iterator[str]:
    """What stands behind figures that no engine made."""
    simulated = {name: arm["sim"] for name, arm in manifest.file["arms"].items() if arm.get("sim") is not None}
    if not simulated:
        return
    modelled: dict[str, list[str]] = {}
    for arm in manifest.plan.arms:
        if arm.name in simulated:
            modelled.setdefault(_modelled(simulated[arm.name]), []).append(arm.label)
    for what, labels in modelled.items():
        yield f"no engine was measured for {', '.join(labels)}: these servers are simulated, {what}"
    late = [late_s for each in manifest.plan.sittings if (late_s := late_p99_s(folder, each)) is not None]
    if late:
        yield f"99% of what the simulated servers sent left within {duration_text(max(late))} of when it was due"


def _modelled(sim: Mapping[str, Any]) -> str:
    gpus = "" if sim["gpus"] == 1 else f"{sim['gpus']} x "
    gpu = GPUS[sim["gpu"] or DEFAULT_GPU].name
    steps = "a given time" if sim["step_time"] is not None else f"a modelled {gpus}{gpu}"
    given = sim["acceptance"] is not None or sim["acceptance_length"] is not None
    acceptance = "as given" if given else f"as modelled for {WORKLOADS[sim['workload']].dataset}"
    return f"with steps of {steps} and acceptance {acceptance}"


def consequence_notes(folder: ExperimentFolder, plan: Plan) -> Iterator[str]:
    """What differs because an arm speculates, and is therefore not held against it: each reason once."""
    settings: dict[str, dict[str, None]] = {}
    labels: dict[str, dict[str, None]] = {}
    for sitting in plan.sittings:
        for start in folder.sitting(sitting).starts:
            for difference in () if start.footing is None else start.footing.of(Standing.CONSEQUENCE):
                reason = difference.reason
                assert reason is not None
                settings.setdefault(reason, {})[difference.setting] = None
                labels.setdefault(reason, {})[sitting.arm.label] = None
    for reason, named in settings.items():
        yield f"{', '.join(named)} differ at {', '.join(labels[reason])}: {reason}"


def missing_notes(plan: Plan, finished: Container[str]) -> Iterator[str]:
    """Cells that are not there, by sitting."""
    for sitting in plan.sittings:
        levels = [cell.level.name for cell in sitting.cells if cell.name not in finished]
        if levels:
            yield f"{sitting.name}: not measured at {', '.join(levels)}"


def floor_notes(plan: Plan, finished: Container[str]) -> Iterator[str]:
    """That effects are held against no noise floor although one was planned, and where."""
    cells = [cell for cell in plan.cells if cell.arm.role is Role.AGAIN]
    there = {cell.level.name for cell in cells if cell.name in finished}
    lacking = [level.name for level in plan.levels if level.name not in there]
    if cells and lacking:
        yield (
            f"no noise floor at {', '.join(lacking)}: {cells[0].arm.label} was not measured there, and nobody knows yet"
            " how far the baseline is from itself"
        )


def restart_notes(plan: Plan, ran: Mapping[str, CellEnd]) -> Iterator[str]:
    """Sittings whose levels come from more than one start of their server, since the experiment was resumed."""
    for sitting in plan.sittings:
        starts = {ran[cell.name].start for cell in sitting.cells if cell.name in ran} - {None}
        if len(starts) > 1:
            yield (
                f"{sitting.name}: resumed within, so that its levels come from {len(starts)} starts of its server:"
                " what differs between starts may look like a difference between levels"
            )
