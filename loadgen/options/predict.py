"""The options of `predict`, and those that name a modelled server for every command that needs one."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, model_validator

from loadgen.adapters.yaml_file import YamlModel
from loadgen.core.simulation.gpus import GPUS
from loadgen.core.simulation.models import MODELS
from loadgen.core.simulation.speculator import Method
from loadgen.core.simulation.survival import Survival, forced
from loadgen.core.simulation.workloads import WORKLOADS
from loadgen.options.checks import check_levels
from loadgen.options.fields import FloatLadder, IntLadder, option

DEFAULT_GPU = "h100"
DEFAULT_TARGET = "llama-3.1-8b"
_OF_A_METHOD = ("draft_tokens", "acceptance", "acceptance_length", "coverage")
_LADDER = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def _known(names: Any) -> AfterValidator:
    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise ValueError(f"expected one of {', '.join(names)}; got {value!r}")
        return value

    return AfterValidator(check)


def _method_or_none(value: Any) -> Any:
    names = ("none", *Method)
    if value is not None and value not in names:
        raise ValueError(f"expected one of {', '.join(names)}; got {value!r}")
    return None if value == "none" else value


class ModelOptions(YamlModel):
    """A modelled server: GPU, target model, speculative method (None: none) and what is accepted."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    ALTERNATIVES: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"acceptance", "acceptance_length"}),)

    gpu: Annotated[str | None, _known(GPUS)] = option(
        None, f"GPU: {', '.join(GPUS)}. Default: {DEFAULT_GPU}.", panel="Server", metavar="NAME"
    )
    gpus: int = option(1, "GPUs that share the target (tensor parallel).", panel="Server", gt=0)
    target: Annotated[str | None, _known(MODELS)] = option(
        None, f"Target model: {', '.join(MODELS)}. Default: {DEFAULT_TARGET}.", panel="Server", metavar="NAME"
    )
    method: Annotated[Method | None, BeforeValidator(_method_or_none)] = option(
        None,
        "Where draft tokens come from. Default: none.",
        panel="Speculation",
        metavar="|".join(("none", *Method)),
    )
    draft: Annotated[str | None, _known(MODELS)] = option(
        None,
        "Draft model of method draft_model. Default: the target's small relative.",
        panel="Speculation",
        metavar="NAME",
    )
    draft_tokens: int | None = option(
        None,
        "Draft tokens a step. Default: 3, or as many as --acceptance has.",
        panel="Speculation",
        metavar="K",
        gt=0,
        le=20,
    )
    acceptance: FloatLadder | None = option(
        None,
        "Share of drafts accepted up to each position, falling. Default: the workload's.",
        panel="Speculation",
        metavar="R1,R2,…",
    )
    acceptance_length: float | None = option(
        None,
        "Mean tokens a drafting step emits, bonus token included, instead of --acceptance.",
        panel="Speculation",
        metavar="L",
        ge=1,
        allow_inf_nan=False,
    )
    coverage: float | None = option(
        None,
        "Share of steps that draft at all. Default: the workload's for lookup methods, else 1.",
        panel="Speculation",
        metavar="X",
        gt=0,
        le=1,
    )
    workload: Annotated[str, _known(WORKLOADS)] = option(
        "chat", f"Kind of traffic: {', '.join(WORKLOADS)}.", panel="Traffic", metavar="NAME"
    )

    @model_validator(mode="after")
    def _acceptance_fits(self) -> Self:
        if self.method is None and (given := [name for name in _OF_A_METHOD if getattr(self, name) is not None]):
            raise ValueError(f"--{given[0].replace('_', '-')} is for a speculative --method; there is none")
        if self.acceptance is not None and self.acceptance_length is not None:
            raise ValueError("expected one of --acceptance and --acceptance-length")
        if self.acceptance is not None:
            if not self.acceptance:
                raise ValueError("--acceptance: expected at least one rate")
            _explained("--acceptance", lambda: Survival(rates=tuple(self.acceptance or ())))
            if self.draft_tokens is not None and self.draft_tokens > len(self.acceptance):
                raise ValueError(
                    f"--acceptance: expected a rate for each of {self.draft_tokens} draft tokens,"
                    f" got {len(self.acceptance)}"
                )
        if self.acceptance_length is not None:
            length = self.acceptance_length
            _explained("--acceptance-length", lambda: forced(length, self.tokens))
        if self.draft is not None and self.method is not Method.DRAFT_MODEL:
            raise ValueError("--draft is for --method draft_model")
        return self

    @property
    def tokens(self) -> int:
        """Draft tokens a step."""
        if self.draft_tokens is not None:
            return self.draft_tokens
        return 3 if self.acceptance is None else len(self.acceptance)


class PredictOptions(ModelOptions):
    """What to predict, and for which load."""

    method: Method = option(
        Method.EAGLE3, "Where draft tokens come from.", panel="Speculation", metavar="|".join(Method)
    )
    concurrency: IntLadder | None = option(
        None,
        "Levels. Default: 1 to 256 in doublings, or the levels of --step-times.",
        panel="Load",
        metavar="N,N,…",
    )
    context: int | None = option(
        None, "Mean tokens of context of a decode step. Default: prompt and half of the output.", panel="Traffic", gt=0
    )
    input_tokens: int | None = option(None, "Mean prompt tokens. Default: the workload's.", panel="Traffic", gt=0)
    output_tokens: int | None = option(None, "Mean output tokens. Default: the workload's.", panel="Traffic", gt=0)
    step_times: str | None = option(
        None,
        "Measured step times instead of the model's: a CSV file with concurrency,t_ar_s,t_sd_s, or 1:7.1ms:9.3ms,…",
        panel="Server",
        metavar="FILE|LIST",
    )
    html: Path | None = option(None, "Write the prediction as a page.", panel="Output", metavar="FILE")
    json_output: bool = option(False, "Print the prediction as JSON.", panel="Output", flags=("--json",))

    @model_validator(mode="after")
    def _levels_can_be(self) -> Self:
        check_levels("--concurrency", self.concurrency)
        return self

    @property
    def levels(self) -> list[int]:
        """Levels in rising order."""
        return sorted(_LADDER if self.concurrency is None else self.concurrency)


def _explained(flag: str, check: Any) -> None:
    try:
        check()
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None
