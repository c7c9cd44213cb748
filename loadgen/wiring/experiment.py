"""An experiment from its file to its folder, begun or resumed."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from loadgen import __version__
from loadgen.adapters.store.experiment_folder import (
    EXPERIMENT,
    CellEnd,
    CellState,
    ExperimentFolder,
    ExperimentManifest,
)
from loadgen.adapters.store.kinds import open_experiment
from loadgen.adapters.store.run_folder import new_run_id
from loadgen.core.comparison.footing import Served
from loadgen.core.errors import ConfigError, ExitCode, StoreError
from loadgen.core.experiment.plan import Plan
from loadgen.core.experiment.time_left import TimeLeft
from loadgen.options.experiment import ExperimentFile
from loadgen.wiring.execute import host_facts
from loadgen.wiring.experiment_notes import change_notes, footing_remarks
from loadgen.wiring.experiment_plan import expected_starts_s, planned_over
from loadgen.wiring.experiment_report import ExperimentResult
from loadgen.wiring.experiment_resume import give_up_damaged, resumed
from loadgen.wiring.experiment_servers import check_servers
from loadgen.wiring.sittings import ExperimentDisplay, Sittings
from loadgen.wiring.watch import Watch
from loadgen.wiring.workload import ReadProgress, Workload, open_workload

_ANY_FILE = Path("FILE")
"""Stands in words for a file that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedExperiment:
    """An experiment that is over, or as far as it came.

    `ends` has the cells that ended, now or before. `remarks` is what people should know of its footing.
    """

    folder: ExperimentFolder
    manifest: ExperimentManifest
    ends: Mapping[str, CellEnd]
    remarks: tuple[str, ...]
    interrupted: bool

    @property
    def code(self) -> ExitCode:
        """What the command ends with.

        Interrupted, before a level at which an arm has no run at all, before a run that is missing or invalid.
        """
        plan = self.manifest.plan
        finished = {name for name, end in self.ends.items() if end.state is CellState.FINISHED}
        measured = {(cell.arm.name, cell.level.name) for cell in plan.cells if cell.name in finished}
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if len(measured) < len(plan.arms) * len(plan.levels):
            return ExitCode.TARGET_FAILED
        if all(cell.name in finished and self.ends[cell.name].valid for cell in plan.cells):
            return ExitCode.DONE
        return ExitCode.INVALID_MEASUREMENT

    @property
    def comparable(self) -> bool:
        """Whether the baseline has a run, be it one in which nothing completed: there is something to report then."""
        plan, ran = self.manifest.plan, self.folder.ran()
        return any(cell.arm == plan.baseline and cell.name in ran for cell in plan.cells)

    def code_with(self, result: ExperimentResult) -> ExitCode:
        """What it ends with once its report is made: that of the report where all was run, or where gates failed that
        nothing but requests that did not complete speaks against."""
        decided = self.code is ExitCode.DONE or (result.decided and result.failed_gates)
        return result.code if decided and not self.interrupted else self.code


def resume_command(file: Path, folder: Path) -> str:
    """The command line that goes on in the folder of an experiment."""
    return shlex.join(("loadgen", "experiment", "run", str(file), "--resume", str(folder)))


async def run_experiment(
    experiment: ExperimentFile,
    *,
    out: Path,
    file: Path = _ANY_FILE,
    resume: Path | None = None,
    over_budget: bool = False,
    display: ExperimentDisplay,
    progress: ReadProgress | None = None,
    watch: Watch | None = None,
) -> FinishedExperiment:
    """Runs what the file says into a new folder under `out`, or what is missing in the folder to `resume`.

    A folder of the same experiment that lacks cells is named and left alone; `file` is named where it says what to do.

    What only judges may be another at a resume, and is then stored; see `experiment_resume`.
    Raises ConfigError for what will not be run (beyond its budget, servers on unequal footing, another experiment than
    the one to be resumed), TargetError when the baseline does not come up, StoreError for a folder that cannot be used.
    What was measured until then stays.
    """
    workload = open_workload(experiment.session_options(), seed=experiment.workload.seed, progress=progress)
    try:
        found = planned_over(workload, experiment)
        beyond = None if experiment.budget is None else found.estimate.beyond(experiment.budget)
        if beyond is not None and resume is None and not over_budget:
            raise ConfigError(f"budget: {beyond}; give it more time, or --yes to run it all the same")
        check_servers(experiment, found.plan)
        if resume is None:
            if (earlier := _begun_before(out, found.plan)) is not None:
                goes_on = resume_command(file, earlier)
                display.tell(f"this begins anew; {earlier} lacks cells, and is gone on with by: {goes_on}")
            folder = _new(out, experiment, found.plan, workload)
            display.tell(f"what is measured goes to {folder.path}")
        else:
            folder = open_experiment(resume)
        with folder.locked():
            manifest = folder.load_manifest()
            if resume is not None:
                begun, manifest = manifest, resumed(manifest, experiment, found.plan, at=_now())
                if manifest.client_version != __version__:
                    display.tell(f"begun by version {manifest.client_version}, and this is {__version__}")
                if manifest is not begun:
                    folder.save_manifest(manifest)
                    for note in change_notes(manifest.changes[len(begun.changes) :]):
                        display.tell(note)
                for end in give_up_damaged(folder, found.plan, at=_now()):
                    display.tell(f"{end.cell} is set aside and run again: {end.reason}")
            sittings = Sittings(
                experiment=experiment,
                plan=found.plan,
                folder=folder,
                workload=workload,
                display=display,
                time_left=TimeLeft(
                    estimate=found.estimate, servers=found.servers, starts_s=expected_starts_s(experiment)
                ),
                baseline=_first_served(folder, found.plan),
                watch=watch,
            )
            if watch is not None:
                watch.tell("experiment", folder.path)
            interrupted = await sittings.run()
            remarks = footing_remarks(folder, found.plan)
            return FinishedExperiment(
                folder=folder, manifest=manifest, ends=folder.ends(), remarks=remarks, interrupted=interrupted
            )
    finally:
        workload.close()


def _new(out: Path, experiment: ExperimentFile, plan: Plan, workload: Workload) -> ExperimentFolder:
    experiment_id = f"experiment-{new_run_id()}"
    manifest = ExperimentManifest(
        experiment_id=experiment_id,
        started_at=_now(),
        plan=plan,
        file=experiment.stored(),
        data=asdict(workload.source.facts),
        client_version=__version__,
        host=host_facts(),
    )
    return ExperimentFolder.create(out / experiment_id, manifest)


def _begun_before(out: Path, plan: Plan) -> Path | None:
    """The latest folder of the same experiment that lacks cells."""
    for path in sorted(out.glob(f"*/{EXPERIMENT}"), reverse=True):
        folder = ExperimentFolder(path.parent)
        try:
            if folder.load_manifest().plan.digest == plan.digest and len(folder.finished()) < len(list(plan.cells)):
                return folder.path
        except StoreError:
            continue
    return None


def _first_served(folder: ExperimentFolder, plan: Plan) -> Served | None:
    """The baseline as it told of itself at its first start; None before there was one."""
    starts = (
        start for sitting in plan.sittings if sitting.arm == plan.baseline for start in folder.sitting(sitting).starts
    )
    return next((start.served for start in starts if start.served is not None), None)


def _now() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="milliseconds")
