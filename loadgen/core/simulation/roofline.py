"""Step times from a data sheet and a model's configuration: bytes over bandwidth, operations over peak, each times the
efficiency that a real engine reaches.

The efficiencies are not assumed: they are what the measured constants of Llama-3.1-8B on an H100 come to beside its
data sheet, about 81 % for weights, 77 % for arithmetic and 100 % for the KV cache. They are then used for every GPU
and model, which is the model's largest assumption; give measured step times to be rid of it. Several GPUs divide the
work evenly; what they say to each other is not in the model.
"""

from dataclasses import dataclass

from loadgen.core.simulation.gpus import GPUS, Gpu
from loadgen.core.simulation.models import MODELS, Head, Model, eagle3_head, eagle_head, mtp_head
from loadgen.core.simulation.speculator import Method
from loadgen.core.simulation.step_time import (
    EAGLE_8B_ON_H100,
    LLAMA_8B_ON_H100,
    NGRAM_TARGET_RATIO,
    Drafting,
    StepTime,
)

_MEMORY_SHARE = 0.9
_QWEN_DRAFT_SHARE = 0.375
_EAGLE_PASSES = 3
_HEADS = {Method.EAGLE: eagle_head, Method.EAGLE3: eagle3_head, Method.MTP: mtp_head}


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Shares of a data sheet's figures that an engine reaches, and the time it spends beside them each step."""

    weights_ratio: float = 1.0
    arithmetic_ratio: float = 1.0
    kv_ratio: float = 1.0
    overhead_s: float = 0.0


DATA_SHEET = Efficiency()
"""The plain roofline: everything at its peak."""


def step_time(gpu: Gpu, model: Model, efficiency: Efficiency | None = None, *, gpus: int = 1) -> StepTime:
    """The target's step on `gpus` GPUs. Without an efficiency, the measured one."""
    efficiency = MEASURED if efficiency is None else efficiency
    bandwidth = gpu.bandwidth_bytes_per_s * gpus
    weights = bandwidth * efficiency.weights_ratio
    experts = model.experts
    return StepTime(
        fixed_s=(model.weight_bytes - (experts.weight_bytes if experts else 0.0)) / weights,
        per_token_s=2 * model.active_parameters / (gpu.flops_per_s * gpus * efficiency.arithmetic_ratio),
        per_context_token_s=model.kv_bytes_per_token / (bandwidth * efficiency.kv_ratio),
        overhead_s=efficiency.overhead_s,
        experts_s=experts.weight_bytes / weights if experts else 0.0,
        expert_ratio=experts.per_token / experts.count if experts else 0.0,
    )


def head_drafting(gpu: Gpu, head: Head, *, gpus: int = 1) -> Drafting:
    """A head of one layer, run once a draft token."""
    return Drafting(
        pass_time=_pass(
            gpu,
            read_bytes=head.read_bytes,
            operations=head.read_bytes,
            kv_bytes=head.kv_bytes_per_token,
            layers=1,
            gpus=gpus,
        )
    )


def model_drafting(gpu: Gpu, draft: Model) -> Drafting:
    """A small model, run once a draft token, on one GPU."""
    return Drafting(
        pass_time=_pass(
            gpu,
            read_bytes=draft.weight_bytes,
            operations=2 * draft.active_parameters,
            kv_bytes=draft.kv_bytes_per_token,
            layers=draft.layers,
            gpus=1,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """What a method costs on some GPU: time, and memory for weights and for each token of context."""

    drafting: Drafting
    weight_bytes: float = 0.0
    kv_bytes_per_token: int = 0


def drafter(method: Method, gpu: Gpu, target: Model, *, draft: Model | None = None, gpus: int = 1) -> Drafter:
    """The drafter that a method needs for a target. `draft` is the small model of `Method.DRAFT_MODEL`.

    Raises ValueError for that method without one.
    """
    match method:
        case Method.NGRAM | Method.SUFFIX:
            return Drafter(drafting=Drafting(target_ratio=NGRAM_TARGET_RATIO))
        case Method.DRAFT_MODEL:
            if draft is None:
                raise ValueError(f"expected a draft model for {target.name}")
            return Drafter(
                drafting=model_drafting(gpu, draft),
                weight_bytes=draft.weight_bytes,
                kv_bytes_per_token=draft.kv_bytes_per_token,
            )
        case Method.EAGLE | Method.EAGLE3 | Method.MTP:
            head = _HEADS[method](target)
            return Drafter(
                drafting=head_drafting(gpu, head, gpus=gpus),
                weight_bytes=head.weight_bytes,
                kv_bytes_per_token=head.kv_bytes_per_token,
            )


def kv_capacity_tokens(
    gpu: Gpu, model: Model, *, gpus: int = 1, draft_bytes: float = 0, draft_kv_bytes: int = 0
) -> int:
    """Tokens of context that fit beside the weights in 90 % of the memory, vLLM's default share; below 0: they do not.

    A drafter's weights take from it and its cache makes every token larger.
    """
    room = gpu.memory_bytes * gpus * _MEMORY_SHARE - model.weight_bytes - draft_bytes
    return int(room // (model.kv_bytes_per_token + draft_kv_bytes))


def _pass(gpu: Gpu, *, read_bytes: float, operations: float, kv_bytes: int, layers: int, gpus: int) -> StepTime:
    bandwidth = gpu.bandwidth_bytes_per_s * gpus
    return StepTime(
        fixed_s=read_bytes / (bandwidth * MEASURED.weights_ratio),
        per_token_s=operations / (gpu.flops_per_s * gpus * MEASURED.arithmetic_ratio),
        per_context_token_s=kv_bytes / (bandwidth * MEASURED.kv_ratio),
        overhead_s=_PASS_S + layers * _LAYER_S,
    )


def _measured() -> Efficiency:
    peak = step_time(GPUS["h100"], MODELS["llama-3.1-8b"], DATA_SHEET)
    fit = LLAMA_8B_ON_H100
    return Efficiency(
        weights_ratio=peak.fixed_s / fit.fixed_s,
        arithmetic_ratio=peak.per_token_s / fit.per_token_s,
        kv_ratio=peak.per_context_token_s / fit.per_context_token_s,
        overhead_s=fit.overhead_s,
    )


def _launch_s() -> tuple[float, float]:
    """What a drafter's pass takes beyond its bytes: seconds a pass, and seconds a layer.

    From two measurements on an H100 (arXiv 2601.11580): a third of the EAGLE head's three passes (one layer), and one
    pass of Qwen3-0.6B (28 layers), which takes 37.5 % of a pass of Qwen3-8B.
    """
    gpu = GPUS["h100"]
    bandwidth = gpu.bandwidth_bytes_per_s * MEASURED.weights_ratio
    eagle = EAGLE_8B_ON_H100.pass_time
    assert eagle is not None
    head_s = eagle.fixed_s / _EAGLE_PASSES - eagle_head(MODELS["llama-3.1-8b"]).read_bytes / bandwidth
    draft = MODELS["qwen3-0.6b"]
    target_s = step_time(gpu, MODELS["qwen3-8b"]).forward_s(1, 0)
    draft_s = _QWEN_DRAFT_SHARE * target_s - draft.weight_bytes / bandwidth
    layer_s = (draft_s - head_s) / (draft.layers - 1)
    return head_s - layer_s, layer_s


MEASURED = _measured()
"""What vLLM 0.10 reached on an H100."""

_PASS_S, _LAYER_S = _launch_s()
