"""Whether this machine has what an experiment's servers take, before anything is started."""

import os
from collections.abc import Iterator
from pathlib import Path

from loadgen.adapters.launch.checks import check_program
from loadgen.core.errors import ConfigError
from loadgen.core.experiment.plan import Plan
from loadgen.options.experiment import ArmSection, ExperimentFile
from loadgen.options.experiment.lookups import missing
from loadgen.wiring.launch import launcher_of
from loadgen.wiring.probe import check_local_gpus


def check_servers(experiment: ExperimentFile, plan: Plan) -> None:
    """Raises ConfigError for a profile, a program, a variable, GPUs or Docker Compose that are not there."""
    for where, cause in _faults(experiment, plan):
        raise ConfigError(f"{where}: {cause}")


def missing_here(experiment: ExperimentFile, plan: Plan) -> tuple[str, ...]:
    """The same as sentences, one a cause: a plan may be made where it is not run."""
    found: dict[str, list[str]] = {}
    for where, cause in _faults(experiment, plan):
        found.setdefault(cause, []).append(where)
    return tuple(f"cannot be run here: {', '.join(places)}: {cause}" for cause, places in found.items())


def _faults(experiment: ExperimentFile, plan: Plan) -> Iterator[tuple[str, str]]:
    """Where in the file, and what is missing."""
    try:
        check_local_gpus(experiment.session_options())
    except ConfigError as fault:
        yield "local_gpus", str(fault)
    lacking = list(missing(experiment, os.environ))
    yield from ((".".join(map(str, keys)), cause) for keys, cause in lacking)
    known = dict.fromkeys(arm.of for arm in plan.arms)
    for name in (each for each in known if all(keys[:2] != ("arms", each) for keys, _ in lacking)):
        try:
            _check_server(experiment.arms[name], start_timeout_s=experiment.start_timeout)
        except ConfigError as fault:
            yield f"arms.{name}", str(fault)


def _check_server(section: ArmSection, *, start_timeout_s: float) -> None:
    launcher_of(section, log=Path(), kept=Path(), start_timeout_s=start_timeout_s)
    if section.command is not None and section.launch != "compose":
        environment = {**os.environ, **section.environment(os.environ)}
        folder = Path() if section.workdir is None else section.workdir
        check_program(section.command, environment=environment, folder=folder)
