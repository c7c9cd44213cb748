"""What a prediction says that it is about, where a test does not care."""

from loadgen.core.simulation.prediction import Setting

SETTING = Setting(
    gpu="a GPU",
    gpus=1,
    target="a model",
    draft=None,
    workload="chat",
    acceptance_from="given",
    step_times_from="given",
)
