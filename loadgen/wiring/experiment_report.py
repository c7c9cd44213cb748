"""What an experiment came to, from its folder alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from loadgen.adapters.store.experiment_folder import ExperimentFolder, ExperimentManifest
from loadgen.adapters.store.kinds import open_experiment
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.analysis.analyse import analyse
from loadgen.core.analysis.columns import Columns
from loadgen.core.comparison.arms import Arm, ArmRun, ArmsComparison, Expectation
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.cell import cell_of
from loadgen.core.comparison.gates import JudgedGate, parse_gate
from loadgen.core.comparison.losslessness import Losslessness, Sampling, losslessness
from loadgen.core.errors import ExitCode, StoreError
from loadgen.core.experiment.plan import PlannedArm, PlannedCell, Role
from loadgen.core.metrics.slo import parse_slo
from loadgen.core.metrics.summary import Summary
from loadgen.core.record import Outcome
from loadgen.core.request import Phase
from loadgen.core.run import LoadMode
from loadgen.options.predict import ModelOptions, PredictOptions
from loadgen.wiring.experiment_notes import (
    change_notes,
    consequence_notes,
    empty_notes,
    floor_notes,
    footing_remarks,
    gpu_notes,
    late_p99_s,
    length_notes,
    missing_notes,
    restart_notes,
    simulation_notes,
)
from loadgen.wiring.predict import predicted
from loadgen.wiring.punctuality import with_lateness
from loadgen.wiring.speculative_config import speculative_config
from loadgen.wiring.stored_summary import believable_summary

RESULT_SCHEMA = "loadgen.result/1"

_VARIABLES = {LoadMode.CONCURRENCY: "concurrency", LoadMode.RATE: "request_rate_rps"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResult:
    """The comparison over each ladder of load that the experiment has, concurrency before rates."""

    schema: str = RESULT_SCHEMA
    experiment_id: str
    name: str
    started_at: str
    ladders: tuple[ArmsComparison, ...]

    @property
    def failed_gates(self) -> tuple[JudgedGate, ...]:
        """The gates that an arm failed at a level."""
        return tuple(gate for comparison in self.ladders for gate in comparison.gates if gate.failed)

    @property
    def code(self) -> ExitCode:
        """What a report of it ends with: a run that is invalid or missing before a failed gate, and that before runs
        in which nothing completed."""
        if self.decided and self.failed_gates:
            return ExitCode.GATE_FAILED
        whole = all(comparison.valid and comparison.complete for comparison in self.ladders)
        return ExitCode.DONE if whole else ExitCode.INVALID_MEASUREMENT

    @property
    def decided(self) -> bool:
        """Whether nothing is missing or wrong that gates cannot judge."""
        return all(comparison.complete and comparison.decided for comparison in self.ladders)


@dataclass(slots=True, kw_only=True)
class _ArmData:
    """What all runs of one planned arm left; texts by level and request, then by repeat."""

    runs: dict[LoadMode, list[ArmRun]] = field(default_factory=dict)
    texts: dict[tuple[str, int], dict[int, str | None]] = field(default_factory=dict)


def experiment_result(path: Path) -> ExperimentResult:
    """Everything that the runs of an experiment say, also of one that is not through.

    Raises StoreError for a folder that is none, or in which the baseline has no run.
    """
    folder = open_experiment(path)
    manifest = folder.load_manifest()
    plan, ran, objectives = manifest.plan, folder.ran(), _new_objectives(manifest)
    found: dict[PlannedArm, _ArmData] = {arm: _ArmData() for arm in plan.arms}
    for sitting in plan.sittings:
        late_s = late_p99_s(folder, sitting)
        for cell in sitting.cells:
            if cell.name in ran:
                try:
                    _add(found[cell.arm], cell, folder.cell(cell), late_s, objectives)
                except StoreError as fault:
                    again = f"loadgen experiment run FILE --resume {path} runs {cell.name} again"
                    raise StoreError(f"{fault}; {again}") from fault
    if not found[plan.baseline].runs:
        raise StoreError(f"{path}: {plan.baseline.label}, which all is compared with, has no run")
    notes = [
        *simulation_notes(manifest, folder),
        *gpu_notes(plan),
        *footing_remarks(folder, plan),
        *consequence_notes(folder, plan),
        *chain.from_iterable(length_notes(_of(found, mode), plan.baseline) for mode in found[plan.baseline].runs),
        *restart_notes(plan, ran),
        *change_notes(manifest.changes),
        *floor_notes(plan, ran),
        *empty_notes(folder, plan, ran),
        *missing_notes(plan, ran),
    ]
    texts = _losslessness(manifest, found)
    if texts is not None:
        notes += [
            f"{arm.label}: its answers could not be compared with the baseline's: of each request one failed, calls"
            " tools or is missing"
            for arm, data in found.items()
            if arm.role is Role.COMPARED and data.runs and arm.name not in texts
        ]
    arms = {arm: _arm(manifest, folder, arm) for arm in plan.arms}
    return ExperimentResult(
        experiment_id=manifest.experiment_id,
        name=plan.name,
        started_at=manifest.started_at,
        ladders=tuple(
            _comparison(mode, variable, manifest, found, arms, texts or {}, notes)
            for mode, variable in _VARIABLES.items()
            if mode in found[plan.baseline].runs
        ),
    )


def _new_objectives(manifest: ExperimentManifest) -> Mapping[str, float] | None:
    """Those that hold for all runs, whatever they were measured with; None when they were never changed."""
    if all(change.setting != "slo" for change in manifest.changes):
        return None
    text: str | None = manifest.file["slo"]
    return {} if text is None else parse_slo(text)


def _add(
    data: _ArmData, cell: PlannedCell, run: RunFolder, late_s: float | None, objectives: Mapping[str, float] | None
) -> None:
    stored, told = believable_summary(run), run.load_manifest()
    for _ in run.whole_scrapes(stored):  # its figures are in the summary; whether they still have their evidence is not
        pass
    if objectives is not None and objectives != told.slo:
        told = replace(told, slo=dict(objectives))
        stored = analyse(run.records, told, run.scrapes).summary
    summary = with_lateness(stored, late_s)
    columns = Columns(told.slo)
    for record in run.whole_records(stored):
        columns.observe(record)
        if record.phase is Phase.MEASURE:
            whole = record.outcome is Outcome.COMPLETED and not record.tool_calls  # whose arguments are not kept
            data.texts.setdefault((cell.level.name, record.seq), {})[cell.repeat] = record.text if whole else None
    found = cell_of(columns.table(), summary, arm=cell.arm.name, level=cell.level.value, repeat=cell.repeat)
    data.runs.setdefault(cell.level.load.mode, []).append(ArmRun(cell=found, summary=summary))


def _comparison(
    mode: LoadMode,
    variable: str,
    manifest: ExperimentManifest,
    found: Mapping[PlannedArm, _ArmData],
    arms: Mapping[PlannedArm, Arm],
    texts: Mapping[str, Losslessness],
    notes: list[str],
) -> ArmsComparison:
    baseline, planned = manifest.plan.baseline, [cell for cell in manifest.plan.cells if cell.level.load.mode is mode]
    runs = _of(found, mode)
    compared = [arm for arm in runs if arm.role is Role.COMPARED]
    summaries = [run.summary for run in runs[baseline]]
    again = next((arm for arm in runs if arm.role is Role.AGAIN), None)
    return compare(
        manifest.plan.name,
        variable,
        {arms[arm]: runs[arm] for arm in (baseline, *compared)},
        baseline=arms[baseline],
        again=None if again is None else (arms[again], runs[again]),
        forced={
            arms[arm]: {
                other.forced_length: runs[other]
                for other in runs
                if other.of == arm.of and other.forced_length is not None
            }
            for arm in compared
        },
        expected={arms[arm]: _expected(manifest, arm, summaries) for arm in compared}
        if variable == "concurrency"
        else {},
        losslessness=texts,
        price_per_hour=manifest.file["price_per_hour"],
        notes=notes,
        gates=[parse_gate(text) for text in manifest.file["gates"]],
        gated={
            arms[arm]: {cell.level.value: cell.level.load for cell in planned if cell.arm == arm}
            for arm in manifest.plan.arms
            if arm.role is Role.COMPARED
        },
        planned_runs=len(planned),
    )


def _of(found: Mapping[PlannedArm, _ArmData], mode: LoadMode) -> dict[PlannedArm, list[ArmRun]]:
    """The runs of one ladder, by arm that has any."""
    return {arm: data.runs[mode] for arm, data in found.items() if mode in data.runs}


def _arm(manifest: ExperimentManifest, folder: ExperimentFolder, planned: PlannedArm) -> Arm:
    sittings = (sitting for sitting in manifest.plan.sittings if sitting.arm == planned)
    served = [
        start.served for sitting in sittings for start in folder.sitting(sitting).starts if start.served is not None
    ]
    return Arm(
        name=planned.name,
        label=planned.label,
        method=planned.method,
        draft_tokens=planned.draft_tokens,
        gpus=planned.gpus,
        configuration=speculative_config(manifest.file["arms"][planned.of], planned.method, served),
    )


def _losslessness(
    manifest: ExperimentManifest, found: Mapping[PlannedArm, _ArmData]
) -> Mapping[str, Losslessness] | None:
    """Of the arms whose texts mean something; their draws are the same each time. None where it was not asked for."""
    again = next((data for arm, data in found.items() if arm.role is Role.AGAIN), None)
    asked = manifest.file["losslessness"]
    if asked == "none" or again is None:
        return None
    return losslessness(
        found[manifest.plan.baseline].texts,
        again.texts,
        {arm.name: data.texts for arm, data in found.items() if arm.role is Role.COMPARED},
        Sampling(asked),
        np.random.default_rng(0),
    )


def _expected(manifest: ExperimentManifest, arm: PlannedArm, baseline: list[Summary]) -> dict[float, Expectation]:
    """What `loadgen predict` says of a simulated arm, for requests of the mean lengths that the baseline's had.

    Empty for other servers, and for simulated ones with a step time of their own.
    """
    told: dict[str, Any] | None = manifest.file["arms"][arm.of].get("sim")
    completed = sum(summary.requests.completed for summary in baseline)
    if told is None or told["step_time"] is not None or arm.method is None or not completed:
        return {}
    prediction = predicted(
        PredictOptions(
            **{name: told[name] for name in ModelOptions.model_fields},
            concurrency=sorted({int(summary.load.concurrency or 0) for summary in baseline}),
            input_tokens=round(sum(summary.tokens.input or 0 for summary in baseline) / completed) or None,
            output_tokens=round(sum(summary.tokens.output or 0 for summary in baseline) / completed) or None,
        )
    )
    found = {}
    for point, bounds in zip(prediction.points, prediction.bounds, strict=True):
        speedup = point.tpot_ar_s / point.tpot_sd_s
        found[float(point.concurrency)] = Expectation(
            speedup=speedup, break_even_length=point.acceptance_length / speedup, bounds=bounds
        )
    return found
