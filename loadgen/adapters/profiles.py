"""Server profiles: a YAML file a server, which says what it serves, how it speculates and how it is imitated."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from loadgen.adapters.yaml_file import YamlFile, load_yaml, validated
from loadgen.core.errors import ConfigError
from loadgen.core.simulation.speculator import Method

EngineName = Literal["vllm", "sglang", "llamacpp", "tensorrt-llm"]

DRAFTER_KEYS: Mapping[EngineName, str] = {
    "vllm": "model",
    "sglang": "speculative_draft_model_path",
    "llamacpp": "model_draft",
    "tensorrt-llm": "speculative_model",
}
"""Under which key an engine's own draft configuration names the drafter."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProfileSpeculation(_Section):
    """How a server speculates. `model` is the drafter's name; `config` are further keys in the engine's own words."""

    method: Method
    draft_tokens: int = Field(gt=0)
    model: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)


class Profile(_Section):
    """One server. Without `speculation` it is a baseline.

    `model` is the name it serves under, usually that on Hugging Face. `simulator` are options of the simulator that
    stands in for it, with underscores in their names.
    """

    name: str
    description: str
    engine: EngineName
    model: str
    speculation: ProfileSpeculation | None = None
    simulator: dict[str, Any] = Field(default_factory=dict)

    @property
    def method_name(self) -> str:
        """The speculative method, `none` for a baseline."""
        return "none" if self.speculation is None else self.speculation.method


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile:
    """A profile and the file it stands in, to say where a value came from."""

    profile: Profile
    file: YamlFile


def load_profile(path: Path) -> ProfileFile:
    """Reads a profile. Raises ConfigError that names file, line and field, and what was expected there."""
    file = load_yaml(path)
    profile = validated(file, Profile)
    if profile.name != path.stem:
        raise ConfigError(f"{file.where('name')}: expected the name of the file, {path.stem!r}, got {profile.name!r}")
    return ProfileFile(profile=profile, file=file)
