"""An arm of an experiment: one way to run the server."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from loadgen.adapters.http.destination import Destination
from loadgen.adapters.yaml_file import FieldError
from loadgen.core.errors import ConfigError
from loadgen.core.redaction import holds_secret, without_secrets
from loadgen.options.experiment.profile import Launch, as_seen_from, gpus_of, image_of, with_profile
from loadgen.options.experiment.section import DataFile, Section, Text, folder_of, nothing
from loadgen.options.experiment.variables import check_environment, check_public, expanded, named_in, without_variables
from loadgen.options.resolve import resolve
from loadgen.options.sim import SimOptions

ServerKind = Literal["profile", "url", "command", "sim"]
SERVER_KINDS: tuple[ServerKind, ...] = get_args(ServerKind)

PORT = "{port}"
"""Stands in a command for the port that the server is to listen on."""

LENGTH, ACCEPTED = "{length}", "{accepted}"
"""Stand in what forces a server for the tokens of a step, and for the draft tokens of it, one less."""

_SIM_ANSWERED_HERE = frozenset({"host", "port", "until_stdin_closes", "json_output"})


def _command(value: Any) -> Any:
    """A line as a shell takes it apart; no shell will run it."""
    return shlex.split(value) if isinstance(value, str) else value


class ForcedSection(Section):
    """What a command needs beside what it has to force the acceptance length.

    `{length}` stands for that length in tokens a step, `{accepted}` for the draft tokens of it, one less.
    """

    arguments: list[Text] = Field(default_factory=list)
    env: dict[str, Text] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _tells_the_length(self) -> Self:
        if not any(word in text for text in (*self.arguments, *self.env.values()) for word in (LENGTH, ACCEPTED)):
            raise ValueError(f"expected {LENGTH} or {ACCEPTED} where the server is told the length")
        return self


class ArmSection(Section):
    """One way to run the server: by a profile, at a running URL, by a command, or simulated.

    `${NAME}` in `url` and in the values of `env` stands for an environment variable; it is looked up when the server is
    started and nowhere stored. `health` is the path that answers when the server is ready, `gpus` says on how many GPUs
    it runs. An arm by profile also has all that follows from it: the command or the options of the simulator, by
    `launch`.
    """

    label: str | None = None
    profile: str | None = None
    launch: Launch | None = None
    url: str | None = None
    command: Annotated[list[Text], BeforeValidator(_command), Field(min_length=1)] | None = None
    sim: dict[str, Any] | None = None
    method: Annotated[str | None, BeforeValidator(nothing)] = None
    draft_tokens: int | None = Field(None, gt=0)
    env: dict[str, Text] = Field(default_factory=dict)
    workdir: DataFile | None = None
    health: str | None = None
    gpus: int | None = Field(None, gt=0)
    forced: ForcedSection | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_profile(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, dict) or value.get("profile") is None:
            return value
        return with_profile(value, folder_of(info), port=PORT, length=LENGTH)

    @field_validator("sim")
    @classmethod
    def _sim_by_field_names(cls, value: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        if value is None:
            return None
        values = {str(name).replace("-", "_"): item for name, item in value.items()}
        for name in values:
            if name in _SIM_ANSWERED_HERE:
                raise FieldError("expected no such option: the experiment settles it", name)
            if name not in SimOptions.model_fields:
                raise FieldError("the simulator has no such option; `loadgen sim --help` lists them", name)
        if isinstance(values.get("profile"), str):
            values["profile"] = as_seen_from(folder_of(info), values["profile"])
        return values

    @model_validator(mode="after")
    def _is_one_server(self) -> Self:
        given = [name for name in SERVER_KINDS if getattr(self, name) is not None]
        if self.launch is not None and self.profile is None:
            raise FieldError("this is for an arm with a profile", "launch")
        if len(given) != 1 and self.profile is None:
            raise ValueError(f"expected one of {', '.join(SERVER_KINDS)}; got {' and '.join(given) or 'none'}")
        for name, there in (("env", self.env), ("workdir", self.workdir), ("forced", self.forced)):
            if there and self.command is None:
                raise FieldError("this is for an arm with a command", name)
        if self.health is not None and self.command is None and self.url is None:
            raise FieldError("this is for an arm with a command or a url", "health")
        if self.gpus is not None and (self.sim is not None or self.profile is not None):
            raise FieldError("this is for an arm with a command or a url; profile and sim settle it", "gpus")
        if self.url is not None:
            self._check_url(self.url)
        if self.command is not None:
            self._check_command()
        if self.sim is not None:
            self._check_sim()
        elif self.draft_tokens is not None and self.method is None:
            raise FieldError("expected a method beside it", "draft_tokens")
        return self

    def arguments(self, *, forced_length: int | None = None) -> tuple[str, ...]:
        """The command in its parts, `{port}` still in it; what forces its acceptance stands last."""
        assert self.command is not None
        if forced_length is None or self.forced is None:
            return tuple(self.command)
        return (*self.command, *(_told(part, forced_length) for part in self.forced.arguments))

    def environment(self, variables: Mapping[str, str], *, forced_length: int | None = None) -> dict[str, str]:
        """What is added to the environment of a command. Raises ConfigError for a variable that is not set."""
        forced = {} if forced_length is None or self.forced is None else self.forced.env
        told = {name: _told(text, forced_length) for name, text in forced.items() if forced_length is not None}
        return {name: expanded(text, variables) for name, text in (self.env | told).items()}

    def url_from(self, variables: Mapping[str, str]) -> str:
        """The URL of a server that runs already.

        Raises ConfigError for a variable that is not set, or that makes it no URL.
        """
        assert self.url is not None
        url = expanded(self.url, variables)
        try:
            Destination.from_url(url)
        except ConfigError as error:
            raise ConfigError(f"the experiment's url {self.url}: {error}") from None
        return url

    def secrets(self, variables: Mapping[str, str]) -> tuple[str, ...]:
        """The values of all variables that `url` and `env` name, for whatever must not store them."""
        texts = [self.url or "", *self.env.values(), *(self.forced.env.values() if self.forced else ())]
        names = [name for text in texts for name in named_in(text)]
        return tuple(dict.fromkeys(variables[name] for name in names if variables.get(name)))

    def sim_values(self, *, forced_length: int | None = None, start: int = 1) -> dict[str, Any]:
        """The options of a simulated server that were given, by field name.

        `start` counts the starts of an experiment's servers from 1: each has a seed and so a luck of its own, the
        baseline's second one included. A forced vLLM says that it is.
        """
        assert self.sim is not None
        values = dict(self.sim)
        values |= {name: value for name, value in self._speculation_given().items() if value is not None}
        values["seed"] = int(values.get("seed", SimOptions.model_fields["seed"].default)) + start - 1
        if forced_length is not None:
            values.pop("acceptance", None)
            values["acceptance_length"] = forced_length
            unforced = self.sim_options()
            if unforced.dialect == "vllm":
                told = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": forced_length}
                values["speculation_config"] = unforced.speculation_config | told
        return values

    def sim_options(self, *, forced_length: int | None = None, start: int = 1) -> SimOptions:
        """The same, complete. Raises ConfigError for what cannot be."""
        return resolve(SimOptions, self.sim_values(forced_length=forced_length, start=start), environment={})

    @property
    def speculation(self) -> tuple[str | None, int | None]:
        """Method and draft tokens, None where there are none or the file does not tell."""
        if self.sim is None:
            return self.method, self.draft_tokens
        options = self.sim_options()
        return options.method, None if options.method is None else options.tokens

    @property
    def gpus_used(self) -> int | None:
        """GPUs that the server runs on; None on a CPU, with a step time of its own, or where the file does not tell."""
        if self.sim is not None:
            options = self.sim_options()
            return options.gpus if options.step_time is None else None
        return self.gpus if self.profile is None else gpus_of(self.profile)

    @property
    def server(self) -> ServerKind:
        """Which of the ways it is; a profile that is simulated is a simulated server."""
        if self.sim is not None:
            return "sim"
        return next(name for name in SERVER_KINDS if getattr(self, name) is not None)

    def stored(self) -> dict[str, Any]:
        """What the file says of the server, without its label, place, GPUs and secrets: for manifests and digests.

        `${NAME}` stays as it is. A simulated server is told with all of its options, whatever profile they come from.
        """
        told = self.model_dump(mode="json", exclude_defaults=True, exclude={"label", "workdir", "gpus"})
        if self.profile is not None:
            told["profile"] = Path(self.profile).name.removesuffix(".yaml")
            if self.launch == "compose":
                told["image"] = image_of(self.profile)
        if self.sim is not None:
            told["sim"] = self.sim_options().model_dump(mode="json", exclude={"profile"})
        kept: dict[str, Any] = without_secrets(told)
        return kept

    def _speculation_given(self) -> dict[str, Any]:
        return {"method": self.method, "draft_tokens": self.draft_tokens}

    def _check_url(self, url: str) -> None:
        """What can be known of it before its variables are looked up."""
        if holds_secret(without_variables(url)):
            raise FieldError("a secret does not belong in a file; name a variable that holds it: ${NAME}", "url")
        if not named_in(url):
            try:
                Destination.from_url(url)
            except ConfigError as error:
                raise FieldError(str(error), "url") from None

    def _check_command(self) -> None:
        parts = self.arguments()
        if not any(PORT in text for text in (*parts, *self.env.values())):
            raise FieldError(f"expected {PORT} where the server is told its port", "command")
        check_public(parts, "command")
        check_environment(self.env, "env")
        if self.forced is not None:
            check_public(self.forced.arguments, "forced", "arguments")
            check_environment(self.forced.env, "forced", "env")

    def _check_sim(self) -> None:
        for name, value in self._speculation_given().items():
            assert self.sim is not None
            if value is not None and name in self.sim and nothing(self.sim[name]) != value:
                raise FieldError(f"expected {name} once, beside sim or in it", "sim", name)
        try:
            self.sim_options()
        except ConfigError as error:
            raise FieldError(str(error), "sim") from None


def _told(text: str, forced_length: int) -> str:
    return text.replace(LENGTH, str(forced_length)).replace(ACCEPTED, str(forced_length - 1))
