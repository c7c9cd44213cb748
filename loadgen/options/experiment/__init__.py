"""The file of an experiment, section by section, and what it stands for."""

from loadgen.options.experiment.arm import ArmSection, ServerKind
from loadgen.options.experiment.file import ExperimentFile, load_experiment
from loadgen.options.experiment.workload import LevelSection, LoadSection, WorkloadSection

__all__ = [
    "ArmSection",
    "ExperimentFile",
    "LevelSection",
    "LoadSection",
    "ServerKind",
    "WorkloadSection",
    "load_experiment",
]
