"""The options of `sim`, and how a server profile supplies what they leave open."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from loadgen.adapters.profiles.files import ProfileFile, find_profile
from loadgen.adapters.profiles.model import DRAFTER_KEYS, DraftMethod, EngineName
from loadgen.core.errors import ConfigError
from loadgen.core.simulation.measured_steps import parse_time_s
from loadgen.core.simulation.models import MODELS
from loadgen.core.simulation.speculator import BatchRange, check_ranges
from loadgen.core.simulation.step_time import StepTime
from loadgen.options.fields import DurationSeconds, JsonField, Texts, VariableName, option, panel_of
from loadgen.options.predict import ModelOptions
from loadgen.options.resolve import Given

_ELSEWHERE = {
    "dialect": "engine",
    "model_name": "model",
    **dict.fromkeys(("method", "draft_tokens", "speculation_config"), "speculation"),
}
"""Options that have a field of their own in a profile, and which."""


def _step_time(value: Any) -> Any:
    """`8ms`, or `FIXED:PER_TOKEN:PER_CONTEXT_TOKEN[:OVERHEAD]` as a StepTime; 0 may stand for any but the first."""
    if not isinstance(value, str | int | float):
        return value
    fixed, *rest = str(value).split(":")
    if len(rest) not in (0, 2, 3):
        raise ValueError(
            "expected one time such as 8ms, or FIXED:PER_TOKEN:PER_CONTEXT_TOKEN with or without :OVERHEAD,"
            f" got {value!r}"
        )
    times = [0.0 if part.strip() == "0" else parse_time_s(part) for part in (*rest, "0", "0", "0")]
    return StepTime(
        fixed_s=parse_time_s(fixed), per_token_s=times[0], per_context_token_s=times[1], overhead_s=times[2]
    )


def _ranges(value: Any) -> Any:
    """`1-64:3,65-128:1` to ranges of batch sizes; vLLM's lists of three numbers do as well."""
    if not isinstance(value, str):
        return value
    ranges = []
    for part in value.split(","):
        sizes, _, tokens = part.partition(":")
        first, _, last = sizes.partition("-")
        try:
            ranges.append((int(first), int(last or first), int(tokens)))
        except ValueError:
            raise ValueError(f"expected FIRST-LAST:TOKENS such as 1-64:3, got {part.strip()!r}") from None
    return tuple(ranges)


class SimOptions(ModelOptions):
    """A simulated server: where it listens, what it imitates, how fast it is and what goes wrong with it."""

    host: str = option("127.0.0.1", "Address to listen on.", panel="Serving", metavar="HOST", min_length=1)
    port: int = option(8000, "Port to listen on; 0 takes any free one.", panel="Serving", ge=0, le=65_535)
    dialect: EngineName = option(
        "vllm",
        "Server whose answers, errors and metrics it gives.",
        panel="Serving",
        metavar="vllm|sglang|llamacpp|tensorrt-llm",
    )
    model_name: str | None = option(
        None,
        "Model name it serves under. Default: the target's on Hugging Face.",
        panel="Serving",
        metavar="NAME",
        min_length=1,
    )
    api_key_env: VariableName | None = option(
        None,
        "Name of the environment variable with the API key that requests must carry.",
        panel="Serving",
        metavar="NAME",
    )
    per_request_spec_decode_metrics: Literal["off", "summary", "detailed"] = option(
        "detailed",
        "What vLLM's answers tell of their own speculation.",
        panel="Serving",
        metavar="off|summary|detailed",
    )

    step_time: Annotated[StepTime | None, BeforeValidator(_step_time)] = option(
        None,
        "Step time instead of the GPU's: one for every step, drafting included, or the target's in three or four"
        " parts: fixed, a token, a token of context, overhead. Default: from --gpu and --target.",
        panel="Server",
        metavar="TIME|F:T:C:O",
    )
    kv_blocks: int | None = option(
        None, "KV cache in blocks of 16 tokens. Default: what fits into the GPU's memory.", panel="Server", gt=0
    )
    max_num_seqs: int = option(256, "Most requests in one step.", panel="Server", gt=0)
    max_num_batched_tokens: int = option(8192, "Most tokens in one step.", panel="Server", gt=0)
    max_model_len: int | None = option(
        None, "Longest context in tokens. Default: the target's, or what fits into the KV cache.", panel="Server", gt=1
    )
    prefix_caching: bool = option(True, "Keep computed prompts for later requests.", panel="Server")
    graph_tokens: int | None = option(
        None, "Tokens above which a step runs without a captured graph. Default: never.", panel="Server", gt=0
    )
    graph_miss_time: DurationSeconds = option(
        0.0, "How much longer a step without a captured graph takes.", panel="Server", metavar="TIME"
    )

    draft_tokens_by_batch: Annotated[tuple[BatchRange, ...], BeforeValidator(_ranges)] = option(
        (),
        "Draft tokens by the number of requests that decode, such as 1-64:3,65-128:1,129-512:0.",
        panel="Speculation",
        metavar="A-B:K,…",
    )
    request_share: float | None = option(
        None,
        "How much of the luck of acceptance belongs to the request, 0 to 1. Default: the workload's, or 0 with given"
        " acceptance.",
        panel="Speculation",
        metavar="X",
        ge=0,
        lt=1,
    )
    switch_time: DurationSeconds = option(
        0.0, "What it costs to draft again after steps without drafts.", panel="Speculation", metavar="TIME"
    )

    speculation_config: JsonField = option(
        {},
        "JSON object of further keys that the server tells of its draft configuration, in its own words.",
        panel="Speculation",
        metavar="JSON",
    )

    fault: Texts = option(
        [],
        "Something that goes wrong, such as delay=500ms@10%, reset=3@1%, 429=2s@5% or restart=30s; may be given several"
        " times.",
        panel="Faults",
        metavar="FAULT",
    )

    profile: str | None = option(
        None, "Server profile, for all that is not said otherwise.", panel="Run", metavar="NAME|FILE", min_length=1
    )
    speed: float = option(
        1.0, "Run this many times as fast as the server imitated.", panel="Run", metavar="X", ge=0.001, le=1000
    )
    seed: int = option(0, "Seed of what is accepted and of what goes wrong.", panel="Run", ge=0, lt=2**63)
    until_stdin_closes: bool = option(False, "End when standard input does, as when a parent dies.", panel="Run")
    json_output: bool = option(
        False, "Print a line of JSON with the address once it listens.", panel="Output", flags=("--json",)
    )

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        if self.method is None:
            for flag, given in (
                ("--draft-tokens-by-batch", self.draft_tokens_by_batch),
                ("--request-share", self.request_share is not None),
                ("--switch-time", self.switch_time),
                ("--speculation-config", self.speculation_config),
            ):
                if given:
                    raise ValueError(f"{flag} is for a speculative --method; there is none")
        if self.draft_tokens_by_batch:
            try:
                check_ranges(self.draft_tokens_by_batch, self.tokens)
            except ValueError as error:
                raise ValueError(f"--draft-tokens-by-batch: {error}") from None
        if self.graph_miss_time and self.graph_tokens is None:
            raise ValueError("--graph-miss-time needs --graph-tokens")
        return self

    @property
    def step_is_whole(self) -> bool:
        """Whether one time was given for every step, drafting included."""
        step = self.step_time
        return step is not None and not (step.per_token_s or step.per_context_token_s or step.overhead_s)

    @classmethod
    def beneath(cls, given: Mapping[str, Given]) -> dict[str, Given]:
        """What the profile says for options that `given` leaves open.

        Its model gives way to another target, and its speculation as a whole to another method.
        """
        if "profile" not in given:
            return {}
        found = find_profile(str(given["profile"].value))
        same_method = "method" not in given or given["method"].value == found.profile.method_name
        values = {"dialect": Given(found.profile.engine, found.where("engine"))}
        if "target" not in given:
            values |= _served(found)
        if same_method:
            values |= _drafting(found, named="draft" in given)
        for name, value in found.profile.simulator.items():
            where = found.where("simulator", name)
            if name in _ELSEWHERE:
                raise ConfigError(f"{where}: in a profile this stands under {_ELSEWHERE[name]!r}")
            if name not in cls.model_fields or name == "profile":
                raise ConfigError(f"{where}: the simulator has no such option")
            if same_method or panel_of(cls.model_fields[name]) != "Speculation":
                values[name] = Given(value, where)
        return values


def _served(found: ProfileFile) -> dict[str, Given]:
    """Served name, and the target of this name unless the simulator's options name one."""
    where = found.where("model")
    values = {"model_name": Given(found.profile.model, where)}
    if "target" not in found.profile.simulator:
        values["target"] = Given(_known(found.profile.model, where, "target"), where)
    if found.profile.gpus > 1:
        values["gpus"] = Given(found.profile.gpus, found.where("gpus"))
    return values | _limits(found)


def _limits(found: ProfileFile) -> dict[str, Given]:
    """The limits of vLLM that the simulator has under the same names."""
    arguments = found.profile.arguments if found.profile.engine == "vllm" else {}
    return {
        name.replace("-", "_"): Given(arguments[name], found.where("arguments", name))
        for name in ("max-num-seqs", "max-num-batched-tokens", "max-model-len")
        if name in arguments
    }


def _drafting(found: ProfileFile, *, named: bool) -> dict[str, Given]:
    """Method, draft length, and the draft model unless another was `named` or the simulator's options name one."""
    speculation = found.profile.speculation
    if speculation is None:
        return {}
    model = None if named else speculation.model
    own_words = {} if model is None else {DRAFTER_KEYS[found.profile.engine]: model}
    values = {
        "method": Given(speculation.method.value, found.where("speculation", "method")),
        "draft_tokens": Given(speculation.draft_tokens, found.where("speculation", "draft_tokens")),
        "speculation_config": Given(own_words | speculation.config, found.where("speculation", "config")),
    }
    if ranges := speculation.draft_tokens_by_batch:
        values["draft_tokens_by_batch"] = Given(ranges, found.where("speculation", "draft_tokens_by_batch"))
    if speculation.method is DraftMethod.DRAFT_MODEL and model is not None and "draft" not in found.profile.simulator:
        where = found.where("speculation", "model")
        values["draft"] = Given(_known(model, where, "draft"), where)
    return values


def _known(repository: str, where: str, option_name: str) -> str:
    for name, model in MODELS.items():
        if model.repository == repository:
            return name
    raise ConfigError(
        f"{where}: the simulator does not know {repository!r}; expected simulator.{option_name} to name a model"
        f" like it, one of {', '.join(MODELS)}"
    )
