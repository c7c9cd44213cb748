"""A prediction."""

from loadgen.core.simulation.prediction import Memory, Prediction, Setting, Traffic, predict
from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.step_time import EAGLE_8B_ON_H100, LLAMA_8B_ON_H100
from loadgen.core.simulation.workloads import DEPTH, WORKLOADS


def eagle_prediction() -> Prediction:
    """EAGLE with three draft tokens on mathematics, more of it than memory holds at the last level, two GPUs."""
    workload = WORKLOADS["mathematics"]
    return predict(
        [1, 16, 64, 384],
        setting=Setting(
            gpu="H100 SXM",
            gpus=2,
            target="Llama-3.1-8B",
            draft=None,
            workload="mathematics (GSM8K)",
            acceptance_from="published results",
            step_times_from="a data sheet",
        ),
        speculator=Speculator(
            method=Method.EAGLE,
            draft_tokens=3,
            survival=workload.survival(Method.EAGLE),
            drafting=EAGLE_8B_ON_H100,
        ),
        traffic=Traffic(prompt_tokens=100, output_tokens=171, context_tokens=185.5),
        target=LLAMA_8B_ON_H100,
        memory=Memory(plain_tokens=40_000, speculative_tokens=38_000),
        workload=workload,
        known_draft_tokens=DEPTH,
    )
