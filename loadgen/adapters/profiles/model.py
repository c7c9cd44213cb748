"""What stands in a profile."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from loadgen.adapters.profiles.values import (
    NAME,
    REFERENCE,
    VARIABLE,
    Argument,
    EngineWords,
    Image,
    Line,
    Sentence,
    Text,
    has_secret,
)
from loadgen.adapters.yaml_file import FieldError, YamlModel
from loadgen.core.redaction import holds_secret, names_secret

EngineName = Literal["vllm", "sglang", "llamacpp", "tensorrt-llm"]

DRAFTER_KEYS: Mapping[EngineName, str] = {
    "vllm": "model",
    "sglang": "speculative_draft_model_path",
    "llamacpp": "model_draft",
    "tensorrt-llm": "speculative_model",
}
"""Under which key an engine's own draft configuration names the drafter."""

_OPTION = re.compile(r"[a-z0-9][a-z0-9-]*")
_PAGE = r"^/[A-Za-z0-9._~/-]*$"
_SIZE = re.compile(r"[1-9]\d*[kmg]")
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+")


class DraftMethod(StrEnum):
    """Where draft tokens come from, by the name that is common to all engines."""

    NGRAM = "ngram"
    SUFFIX = "suffix"
    DRAFT_MODEL = "draft_model"
    EAGLE = "eagle"
    EAGLE3 = "eagle3"
    MTP = "mtp"
    DFLASH = "dflash"
    DSPARK = "dspark"

    @property
    def needs_drafter(self) -> bool:
        """Whether a second checkpoint drafts."""
        return self not in (DraftMethod.NGRAM, DraftMethod.SUFFIX, DraftMethod.MTP)


class _Section(YamlModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ProfileSpeculation(_Section):
    """How a server speculates.

    `model` is the drafter's name. `draft_tokens_by_batch` are draft lengths by the number of requests that decode, as
    ranges with their bounds. `config` are further keys in the engine's own words.
    """

    method: DraftMethod
    draft_tokens: int = Field(gt=0)
    model: Line | None = None
    draft_tokens_by_batch: list[tuple[int, int, int]] = Field(default_factory=list)
    config: EngineWords = Field(default_factory=dict)

    @field_validator("draft_tokens_by_batch")
    @classmethod
    def _ranges_follow_one_another(cls, value: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        expected = 1
        for place, (first, last, tokens) in enumerate(value):
            if first != expected or last < first or tokens < 0:
                raise FieldError(
                    f"expected [FIRST, LAST, TOKENS] that begins at {expected}, got [{first}, {last}, {tokens}]", place
                )
            expected = last + 1
        return value

    @model_validator(mode="after")
    def _drafter_fits(self) -> Self:
        if self.method.needs_drafter and self.model is None:
            raise FieldError(f"expected the model that drafts: {self.method} takes one", "model")
        most = max((tokens for _, _, tokens in self.draft_tokens_by_batch), default=0)
        if most > self.draft_tokens:
            raise FieldError(
                f"expected at most draft_tokens, which is {self.draft_tokens}; got {most}", "draft_tokens_by_batch"
            )
        return self


class ProfileBasics(_Section):
    """What a profile says for itself, whether or not the rest comes from its baseline."""

    name: str
    description: Sentence
    simulator: dict[str, Any] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _names_services(cls, value: str) -> str:
        if NAME.fullmatch(value) is None:
            raise ValueError(
                "expected at most 63 small letters, digits, dots, dashes and underscores, a letter or digit first and"
                f" last, since services are called by it; got {value!r}"
            )
        return value


class Profile(ProfileBasics):
    """One server. Without `speculation` it is a baseline, without `image` it can only be simulated.

    `model` is the name it serves under, usually that on Hugging Face; `weights` is what the engine loads where that is
    something else. `arguments` are the engine's long options without dashes. `packages` are installed on top of the
    image. `gpus` are used together, as tensor parallel ranks; 0 stands for a server on the CPU. `shared_memory` is the
    size of /dev/shm, `simulator` the options of the simulator that stands in for it, with underscores in their names.
    """

    engine: EngineName
    model: Line
    image: Image | None = None
    packages: list[str] = Field(default_factory=list)
    weights: Line | None = None
    arguments: dict[str, Argument] = Field(default_factory=dict)
    environment: dict[str, Text] = Field(default_factory=dict)
    gpus: int = Field(1, ge=0)
    port: int = Field(8000, ge=1, le=65_535)
    health: str = Field("/health", pattern=_PAGE)
    metrics: str = Field("/metrics", pattern=_PAGE)
    shared_memory: str | None = None
    price_per_hour: float | None = Field(None, gt=0)
    speculation: ProfileSpeculation | None = None

    @field_validator("packages")
    @classmethod
    def _packages_are_pinned(cls, value: list[str]) -> list[str]:
        for place, package in enumerate(value):
            if _PACKAGE.fullmatch(package) is None:
                raise FieldError(f"expected NAME==VERSION, got {package!r}", place)
        return value

    @field_validator("arguments")
    @classmethod
    def _arguments_are_options(cls, value: dict[str, Argument]) -> dict[str, Argument]:
        for name, argument in value.items():
            if _OPTION.fullmatch(name) is None:
                raise FieldError("expected a long option without its dashes, such as max-model-len", name)
            if names_secret(name) or has_secret(argument):
                raise FieldError("a command line is seen by others; give a secret by environment", name)
            if isinstance(argument, str) and REFERENCE.search(argument):
                raise FieldError("${NAME} is for environment: a command line is seen by others", name)
        return value

    @field_validator("environment")
    @classmethod
    def _secrets_stand_elsewhere(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if VARIABLE.fullmatch(name) is None:
                raise FieldError("expected the name of a variable: letters, digits and underscores", name)
            literal = REFERENCE.sub("", text)
            if (names_secret(name) and REFERENCE.fullmatch(text) is None) or holds_secret(literal):
                raise FieldError("a secret does not belong in a file; name a variable that holds it: ${NAME}", name)
            if "$" in literal:
                raise FieldError("expected ${NAME} or ${NAME:-}; no other dollar sign has a meaning here", name)
        return value

    @field_validator("shared_memory")
    @classmethod
    def _size(cls, value: str | None) -> str | None:
        if value is not None and _SIZE.fullmatch(value) is None:
            raise ValueError(f"expected a size such as 8g or 512m, got {value!r}")
        return value

    @property
    def method_name(self) -> str:
        """The speculative method, `none` for a baseline."""
        return "none" if self.speculation is None else self.speculation.method


class Arm(ProfileBasics):
    """A profile that is its baseline and speculates: all but these fields is the baseline's, and so stays equal."""

    baseline: str
    speculation: ProfileSpeculation
