"""The demonstration: a baseline and speculative arms on simulated servers, as an experiment that is shipped."""

from pathlib import Path

from loadgen.options.experiment import ExperimentFile, load_experiment

DEMO = Path(__file__).with_name("demo.yaml")
"""Its file, a template for one's own."""


def demo_experiment(seed: int) -> ExperimentFile:
    """The file's experiment with that seed for the load and for what is accepted."""
    experiment = load_experiment(DEMO)
    workload = experiment.workload.model_copy(update={"seed": seed})
    arms = {
        name: arm.model_copy(update={"sim": {**(arm.sim or {}), "seed": seed}}) for name, arm in experiment.arms.items()
    }
    return experiment.model_copy(update={"workload": workload, "arms": arms})
