"""From the options of a modelled server to its step times, drafter and memory, and to a prediction."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadgen.core.errors import ConfigError
from loadgen.core.simulation.gpus import GPUS, Gpu
from loadgen.core.simulation.measured_steps import is_inline, parse_csv, parse_inline
from loadgen.core.simulation.models import DRAFT_MODELS, MODELS, Model
from loadgen.core.simulation.prediction import MeasuredSteps, Memory, Prediction, Setting, Traffic, predict
from loadgen.core.simulation.roofline import drafter, kv_capacity_tokens, step_time
from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.step_time import StepTime
from loadgen.core.simulation.survival import Survival, forced
from loadgen.core.simulation.workloads import DEPTH, WORKLOADS, Workload, basis
from loadgen.options.predict import DEFAULT_GPU, DEFAULT_TARGET, ModelOptions, PredictOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledServer:
    """What a server of the simulator is made of. `known_draft_tokens`: positions whose acceptance is known.

    Without a method there is no speculator, and its memory is the plain one.
    """

    gpu: Gpu
    target: Model
    draft: Model | None
    step: StepTime
    speculator: Speculator | None
    memory: Memory
    workload: Workload
    known_draft_tokens: int
    acceptance_from: str


def modelled_server(options: ModelOptions) -> ModelledServer:
    """The server that the options name. Raises ConfigError where no draft model is known."""
    gpu, target = GPUS[options.gpu or DEFAULT_GPU], MODELS[options.target or DEFAULT_TARGET]
    workload = WORKLOADS[options.workload]
    plain_tokens = kv_capacity_tokens(gpu, target, gpus=options.gpus)
    step = step_time(gpu, target, gpus=options.gpus)
    if options.method is None:
        return ModelledServer(
            gpu=gpu,
            target=target,
            draft=None,
            step=step,
            speculator=None,
            memory=Memory(plain_tokens=plain_tokens, speculative_tokens=plain_tokens),
            workload=workload,
            known_draft_tokens=0,
            acceptance_from="without speculation",
        )
    draft = _draft_model(options)
    used = drafter(options.method, gpu, target, draft=draft, gpus=options.gpus)
    survival, known, source = _acceptance(options, options.method, workload)
    from_workload = options.acceptance is None and options.acceptance_length is None
    coverage = options.coverage
    if coverage is None:
        coverage = workload.coverage_ratio(options.method) if from_workload else 1.0
    return ModelledServer(
        gpu=gpu,
        target=target,
        draft=draft,
        step=step,
        speculator=Speculator(
            method=options.method,
            draft_tokens=options.tokens,
            survival=survival,
            drafting=used.drafting,
            coverage_ratio=coverage,
            weight_bytes=used.weight_bytes,
            kv_bytes_per_token=used.kv_bytes_per_token,
        ),
        memory=Memory(
            plain_tokens=plain_tokens,
            speculative_tokens=kv_capacity_tokens(
                gpu,
                target,
                gpus=options.gpus,
                draft_bytes=used.weight_bytes,
                draft_kv_bytes=used.kv_bytes_per_token,
            ),
        ),
        workload=workload,
        known_draft_tokens=known,
        acceptance_from=source,
    )


def predicted(options: PredictOptions) -> Prediction:
    """The prediction that the options ask for.

    Raises ConfigError or TraceFormatError for step times that cannot be read or do not reach a level.
    """
    server = modelled_server(options)
    assert server.speculator is not None  # these options always name a method
    measured = None if options.step_times is None else _measured(options.step_times)
    # With measured times the model's server is only meant where the user named one.
    named = measured is None or options.gpu is not None or options.target is not None
    from_workload = options.acceptance is None and options.acceptance_length is None
    source = f"{server.gpu.source}, at the efficiency that vLLM reached on an H100"
    if options.step_times is not None:
        source = f"measured: {options.step_times}"
    return predict(
        _levels(options, measured),
        setting=Setting(
            gpu=server.gpu.name if named else None,
            gpus=options.gpus,
            target=server.target.name if named else None,
            draft=None if server.draft is None else server.draft.name,
            workload=f"{server.workload.name} ({server.workload.dataset})",
            acceptance_from=server.acceptance_from,
            step_times_from=source,
        ),
        speculator=server.speculator,
        traffic=_traffic(options, server.workload),
        target=server.step if named else None,
        measured=measured,
        memory=server.memory if named else None,
        workload=server.workload if from_workload else None,
        known_draft_tokens=server.known_draft_tokens,
    )


def _draft_model(options: ModelOptions) -> Model | None:
    if options.method is not Method.DRAFT_MODEL:
        return None
    target = options.target or DEFAULT_TARGET
    name = options.draft or DRAFT_MODELS.get(target)
    if name is None:
        raise ConfigError(f"--draft: no small relative of {target} is known; expected one of {', '.join(MODELS)}")
    return MODELS[name]


def _acceptance(options: ModelOptions, method: Method, workload: Workload) -> tuple[Survival, int, str]:
    """Acceptance, the positions up to which it is known, and where it is from."""
    if options.acceptance is not None:
        return Survival(rates=tuple(options.acceptance)), len(options.acceptance), "given by position"
    if options.acceptance_length is not None:
        rates = forced(options.acceptance_length, options.tokens)
        return Survival(rates=rates), 0, "given as a length"
    return workload.survival(method), DEPTH, basis(method, workload)


def _traffic(options: PredictOptions, workload: Workload) -> Traffic:
    output = options.output_tokens or workload.output_tokens
    prompt = float(options.input_tokens or workload.prompt_tokens)
    if options.context is not None and options.input_tokens is None:
        prompt = max(1.0, options.context - output / 2)
    context = prompt + output / 2 if options.context is None else float(options.context)
    return Traffic(prompt_tokens=prompt, output_tokens=output, context_tokens=context)


def _levels(options: PredictOptions, measured: MeasuredSteps | None) -> Sequence[int]:
    if measured is not None and options.concurrency is None:
        whole = [int(level) for level in measured.concurrency if level == int(level)]
        if not whole:
            raise ConfigError("--step-times: expected at least one whole concurrency, or --concurrency beside them")
        return whole
    return options.levels


def _measured(text: str) -> MeasuredSteps:
    if is_inline(text):
        try:
            return parse_inline(text)
        except ConfigError as error:
            raise ConfigError(f"--step-times: {error}") from None
    try:
        with Path(text).open(encoding="utf-8", newline="") as lines:
            return parse_csv(lines, text)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--step-times: {text} cannot be read ({error})") from None
