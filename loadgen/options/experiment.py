"""The file of an experiment: what is sent, under which loads, to which servers, and what is to be found out."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from loadgen.adapters.servers.redaction import names_secret, without_secrets
from loadgen.adapters.yaml_file import FieldError, load_yaml, validated
from loadgen.core.errors import ConfigError
from loadgen.core.experiment.plan import Order, PlannedArm, Role
from loadgen.core.request import Endpoint
from loadgen.options.fields import DurationSeconds, FloatLadder, IntLadder, JsonField
from loadgen.options.load import CommonOptions, SweepOptions
from loadgen.options.resolve import resolve
from loadgen.options.sim import SimOptions

ServerKind = Literal["profile", "url", "command", "sim"]
SERVER_KINDS: tuple[ServerKind, ...] = get_args(ServerKind)

PORT = "{port}"
"""Stands in a command for the port that the server is to listen on."""

_LENGTH, _ACCEPTED = "{length}", "{accepted}"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_FLAG = re.compile(r"--([a-z-]+)(: )?")
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_ANY_URL = "http://server"
_SIM_ANSWERED_HERE = frozenset({"host", "port", "until_stdin_closes", "json_output"})


def _beside_the_file(path: Path, info: ValidationInfo) -> Path:
    folder: Path = (info.context or {}).get("folder", Path())
    return folder / path


def _text(value: Any) -> Any:
    """Numbers of YAML as the text they were; a truth value has several spellings, so it has to be quoted."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _command(value: Any) -> Any:
    """A line as a shell takes it apart; no shell will run it."""
    return shlex.split(value) if isinstance(value, str) else value


def _slo(value: Any) -> Any:
    """A mapping of objectives in the form that the command line takes."""
    return ",".join(f"{name}={limit}" for name, limit in value.items()) if isinstance(value, dict) else value


def _nothing(value: Any) -> Any:
    return None if value == "none" else value


def _arm_name(name: str) -> str:
    if _SAFE_NAME.fullmatch(name) is None:
        raise ValueError(
            "expected a name of at most 40 letters, digits, dots, dashes and underscores: it names folders"
        )
    return name


DataFile = Annotated[Path, AfterValidator(_beside_the_file)]
Text = Annotated[str, BeforeValidator(_text)]
ArmName = Annotated[str, AfterValidator(_arm_name)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SyntheticSection(_Section):
    """Made-up prompts; lengths as N, MEAN:SD or LOW-HIGH."""

    input_tokens: Text = "128"
    output_tokens: Text = "64"
    shared_prefix_tokens: int = 0


class WorkloadSection(_Section):
    """What every arm is sent, the same at every repeat. The fields are those of `loadgen run`."""

    trace: DataFile | None = None
    trace_format: str = "auto"
    trace_from: DurationSeconds | None = None
    trace_to: DurationSeconds | None = None
    prompts: DataFile | None = None
    synthetic: SyntheticSection | None = None
    on_bad_row: Literal["stop", "skip"] = "stop"
    max_context: int | None = None
    history: Literal["answers", "recorded"] = "answers"
    max_tokens: int | None = None
    ignore_eos: bool = False
    temperature: float | None = None
    extra_body: JsonField = Field(default_factory=dict)
    seed: int = 0

    @model_validator(mode="after")
    def _one_kind_of_data(self) -> Self:
        if self.synthetic is not None and (self.trace is not None or self.prompts is not None):
            raise FieldError("expected a file or made-up prompts, not both", "synthetic")
        if self.synthetic is None and self.trace is None and self.prompts is None:
            raise ValueError("expected trace, prompts or synthetic")
        return self


class LoadSection(_Section):
    """The ladder, or both."""

    concurrency: IntLadder | None = None
    request_rate: FloatLadder | None = None
    burstiness: float | None = Field(None, allow_inf_nan=True)
    max_concurrency: int | None = None

    @model_validator(mode="after")
    def _some_ladder(self) -> Self:
        if self.concurrency is None and self.request_rate is None:
            raise ValueError("expected concurrency, request_rate or both")
        return self


class LevelSection(_Section):
    """How much is sent at each level: as many requests at all, as many as each level is given, or for a duration.

    A duration is for rates: what arrives in that time, the same for every arm.
    """

    num_requests: int | None = None
    num_requests_by_level: dict[float, int] = Field(default_factory=dict)
    duration: DurationSeconds | None = Field(default=None, gt=0)
    warmup_requests: int | None = None

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        given = [name for name in ("num_requests", "num_requests_by_level", "duration") if getattr(self, name)]
        if len(given) > 1:
            raise FieldError(f"expected one of {' and '.join(given)}", given[-1])
        for level, requests in self.num_requests_by_level.items():
            if requests < 1:
                raise FieldError(
                    f"expected a number of 1 or more at {level:g}, got {requests}", "num_requests_by_level"
                )
        return self

    def requests_at(self, level: float) -> int | None:
        """Measured requests that the file names for a level."""
        return self.num_requests_by_level.get(level, self.num_requests)


class ForcedSection(_Section):
    """What a command needs beside what it has to force the acceptance length.

    `{length}` stands for that length in tokens a step, `{accepted}` for the draft tokens of it, one less.
    """

    arguments: list[Text] = Field(default_factory=list)
    env: dict[str, Text] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _tells_the_length(self) -> Self:
        if not any(word in text for text in (*self.arguments, *self.env.values()) for word in (_LENGTH, _ACCEPTED)):
            raise ValueError(f"expected {_LENGTH} or {_ACCEPTED} where the server is told the length")
        return self


class ArmSection(_Section):
    """One way to run the server: by a profile, at a running URL, by a command, or simulated.

    `${NAME}` in `url` and in the values of `env` stands for an environment variable; it is looked up when the server is
    started and nowhere stored. `health` is the path that answers when the server is ready.
    """

    label: str | None = None
    profile: str | None = None
    url: str | None = None
    command: Annotated[list[Text], BeforeValidator(_command), Field(min_length=1)] | None = None
    sim: dict[str, Any] | None = None
    method: Annotated[str | None, BeforeValidator(_nothing)] = None
    draft_tokens: int | None = Field(None, gt=0)
    env: dict[str, Text] = Field(default_factory=dict)
    workdir: DataFile | None = None
    health: str | None = None
    forced: ForcedSection | None = None

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
            values["profile"] = str(_beside_the_file(Path(values["profile"]), info))
        return values

    @model_validator(mode="after")
    def _is_one_server(self) -> Self:
        given = [name for name in SERVER_KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"expected one of {', '.join(SERVER_KINDS)}; got {' and '.join(given) or 'none'}")
        for name, there in (("env", self.env), ("workdir", self.workdir), ("forced", self.forced)):
            if there and self.command is None:
                raise FieldError("this is for an arm with a command", name)
        if self.health is not None and self.command is None and self.url is None:
            raise FieldError("this is for an arm with a command or a url", "health")
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
        return {name: _expanded(text, variables) for name, text in (self.env | told).items()}

    def url_from(self, variables: Mapping[str, str]) -> str:
        """The URL of a server that runs already. Raises ConfigError for a variable that is not set."""
        assert self.url is not None
        return _expanded(self.url, variables)

    def secrets(self, variables: Mapping[str, str]) -> tuple[str, ...]:
        """The values of all variables that `url` and `env` name, for whatever must not store them."""
        texts = [self.url or "", *self.env.values(), *(self.forced.env.values() if self.forced else ())]
        names = [name for text in texts for name in _VARIABLE.findall(text)]
        return tuple(dict.fromkeys(variables[name] for name in names if variables.get(name)))

    def sim_values(self, *, forced_length: int | None = None, repeat: int = 1) -> dict[str, Any]:
        """The options of a simulated server that were given, by field name.

        Each repeat has a seed of its own, so that its luck is that of another start. A forced vLLM says that it is.
        """
        assert self.sim is not None
        values = dict(self.sim)
        values |= {name: value for name, value in self._speculation_given().items() if value is not None}
        values["seed"] = int(values.get("seed", SimOptions.model_fields["seed"].default)) + repeat - 1
        if forced_length is not None:
            values.pop("acceptance", None)
            values["acceptance_length"] = forced_length
            unforced = self.sim_options()
            if unforced.dialect == "vllm":
                told = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": forced_length}
                values["speculation_config"] = unforced.speculation_config | told
        return values

    def sim_options(self, *, forced_length: int | None = None, repeat: int = 1) -> SimOptions:
        """The same, complete. Raises ConfigError for what cannot be."""
        return resolve(SimOptions, self.sim_values(forced_length=forced_length, repeat=repeat), environment={})

    @property
    def speculation(self) -> tuple[str | None, int | None]:
        """Method and draft tokens, None where there are none or the file does not tell."""
        if self.sim is None:
            return self.method, self.draft_tokens
        options = self.sim_options()
        return options.method, None if options.method is None else options.tokens

    @property
    def server(self) -> ServerKind:
        """Which of the ways it is."""
        return next(name for name in SERVER_KINDS if getattr(self, name) is not None)

    def stored(self) -> dict[str, Any]:
        """What the file says of the server, without its label, place and secrets: for manifests and digests.

        `${NAME}` stays as it is. A simulated server is told with all of its options, whatever profile they come from.
        """
        told = self.model_dump(mode="json", exclude_defaults=True, exclude={"label", "workdir"})
        if self.sim is not None:
            told["sim"] = self.sim_options().model_dump(mode="json", exclude={"profile"})
        kept: dict[str, Any] = without_secrets(told)
        return kept

    def _speculation_given(self) -> dict[str, Any]:
        return {"method": self.method, "draft_tokens": self.draft_tokens}

    def _check_command(self) -> None:
        parts = self.arguments()
        if not any(PORT in text for text in (*parts, *self.env.values())):
            raise FieldError(f"expected {PORT} where the server is told its port", "command")
        _check_public(parts, "command")
        _check_secret(self.env, "env")
        if self.forced is not None:
            _check_public(self.forced.arguments, "forced", "arguments")
            _check_secret(self.forced.env, "forced", "env")

    def _check_sim(self) -> None:
        for name, value in self._speculation_given().items():
            assert self.sim is not None
            if value is not None and name in self.sim and _nothing(self.sim[name]) != value:
                raise FieldError(f"expected {name} once, beside sim or in it", "sim", name)
        try:
            self.sim_options()
        except ConfigError as error:
            raise FieldError(str(error), "sim") from None


class ExperimentFile(_Section):
    """An experiment. Durations are seconds."""

    name: str = Field(min_length=1, max_length=100)
    workload: WorkloadSection
    load: LoadSection
    level: LevelSection = LevelSection()
    arms: dict[ArmName, ArmSection] = Field(min_length=1)
    baseline: str = "baseline"
    repeats: int = Field(3, ge=1, le=100)
    order: Order = Order.ABBA
    servers: Literal["one_at_a_time", "together"] = "one_at_a_time"
    noise: Literal["aa", "none"] = "aa"
    explain: Literal["forced", "none"] = "none"
    losslessness: Literal["greedy", "sampled", "none"] = "none"
    allow_unequal: bool = False
    slo: Annotated[str | None, BeforeValidator(_slo)] = None
    slo_attainment: float | None = None
    gates: tuple[str, ...] = ()
    endpoint: Endpoint = Endpoint.CHAT
    model: str | None = None
    api_key_env: str | None = None
    start_time: DurationSeconds | None = None
    start_timeout: DurationSeconds = Field(1200.0, gt=0)
    cooldown: DurationSeconds = 1.0
    timeout: DurationSeconds | None = None
    idle_timeout: DurationSeconds | None = 300.0
    connect_timeout: DurationSeconds = 10.0
    grace: DurationSeconds = 30.0
    budget: DurationSeconds | None = Field(None, gt=0)
    price_per_hour: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        self._check_arms()
        self._check_options()
        if self.level.duration is not None and self.load.concurrency is not None:
            raise FieldError(
                "expected num_requests: in a given time a faster arm would send more requests, and arms are compared by"
                " the same ones; only for rates alone does a duration say which requests come",
                *("level", "duration"),
            )
        if by_level := self.level.num_requests_by_level:
            levels = {*map(float, self.load.concurrency or ()), *(self.load.request_rate or ())}
            if differing := sorted(levels.symmetric_difference(by_level)):
                named = ", ".join(f"{level:g}" for level in differing)
                raise FieldError(
                    f"expected a number for each level of the load and for no other; this differs at {named}",
                    *("level", "num_requests_by_level"),
                )
        if self.losslessness == "greedy" and self.workload.temperature != 0:
            raise FieldError("expected workload.temperature of 0 beside it", "losslessness")
        if self.losslessness == "sampled" and self.workload.temperature == 0:
            raise FieldError("expected a workload.temperature above 0 beside it", "losslessness")
        if self.losslessness != "none" and self.noise == "none":
            raise FieldError(
                "expected noise: aa beside it: texts of one server differ from start to start, and only the baseline's"
                " second start tells how much",
                "losslessness",
            )
        if self.explain == "forced":
            self._check_forced()
        return self

    def session_options(self, url: str = _ANY_URL) -> CommonOptions:
        """What is sent and how, for the server at that URL. The ladder is not in it."""
        return self._options(url)

    def planned_arms(self) -> tuple[PlannedArm, ...]:
        """The arms of the file, what explains them, and the baseline once more."""
        planned = {name: self._planned(name, arm) for name, arm in self.arms.items()}
        arms = [planned.pop(self.baseline), *planned.values()]
        if self.explain == "forced":
            arms += [forced for arm in planned.values() if arm.method is not None for forced in arm.forced]
        return (*arms, arms[0].again) if self.noise == "aa" else tuple(arms)

    def stored(self) -> dict[str, Any]:
        """The whole file as strict JSON with its defaults, without secrets, for a manifest."""
        values = self.model_dump(mode="json", exclude={"arms", "load"})
        load = self.load.model_dump(mode="json", exclude_none=True)
        if load.get("burstiness") == float("inf"):
            load["burstiness"] = "inf"
        return values | {"load": load, "arms": {name: arm.stored() for name, arm in self.arms.items()}}

    def _options(self, url: str, **ladder: Any) -> SweepOptions:
        workload = self.workload.model_dump(exclude={"synthetic"})
        synthetic = {} if self.workload.synthetic is None else self.workload.synthetic.model_dump()
        return SweepOptions(
            url=url,
            **workload,
            **synthetic,
            **ladder,
            **{name: getattr(self, name) for name in _OF_EVERY_RUN},
            num_requests=self.level.num_requests,
            warmup_requests=self.level.warmup_requests,
            save_text=self.losslessness != "none",
        )

    def _planned(self, name: str, arm: ArmSection) -> PlannedArm:
        method, draft_tokens = arm.speculation
        drafting = "" if draft_tokens is None else f" (k = {draft_tokens})"
        return PlannedArm(
            name=name,
            label=arm.label or f"{name}{drafting}",
            role=Role.BASELINE if name == self.baseline else Role.COMPARED,
            of=name,
            method=method,
            draft_tokens=draft_tokens,
        )

    def _check_arms(self) -> None:
        if self.baseline not in self.arms:
            raise FieldError(f"expected one of the arms, {', '.join(self.arms)}; got {self.baseline!r}", "baseline")
        if len(self.arms) == 1 and self.noise == "none":
            raise FieldError("expected a second arm, or noise: aa to compare the baseline with itself", "arms")

    def _check_forced(self) -> None:
        if not self.workload.ignore_eos:
            raise FieldError(
                "expected workload.ignore_eos: true beside it: with forced acceptance the text is made up, so that"
                " answers would end anywhere",
                "explain",
            )
        for name, arm in self.arms.items():
            method, draft_tokens = arm.speculation
            if method is None:
                continue
            if name == self.baseline:
                raise FieldError(
                    "expected a baseline without speculation, which forced runs are held against", "baseline"
                )
            if draft_tokens is None:
                raise FieldError("this field is needed for explain: forced", "arms", name, "draft_tokens")
            if arm.url is not None:
                raise FieldError(
                    "explain: forced needs servers that are started for it, with their acceptance forced; a running one"
                    " does not do. Give a command or a profile, or explain: none",
                    *("arms", name, "url"),
                )
            if arm.command is not None and arm.forced is None:
                raise FieldError(
                    "explain: forced needs the section `forced`: the arguments or the env that make this server accept"
                    f" {_LENGTH} tokens a step. Add it, or explain: none",
                    *("arms", name, "command"),
                )

    def _check_options(self) -> None:
        """What `run` and `sweep` know of their options holds here, too."""
        opened = {"burstiness": self.load.burstiness, "max_concurrency": self.load.max_concurrency}
        ladders: list[dict[str, Any]] = []
        if self.load.concurrency is not None:
            ladders.append({"concurrency": self.load.concurrency})
        if self.load.request_rate is not None:
            ladders.append({"request_rate": self.load.request_rate} | opened)
        elif any(value is not None for value in opened.values()):
            raise FieldError("burstiness and max_concurrency are for a request_rate", "load")
        for ladder in ladders:
            try:
                self._options(_ANY_URL, **ladder)
            except ValidationError as error:
                problem = error.errors(include_url=False)[0]
                message = problem["msg"].removeprefix("Value error, ")
                flag = _FLAG.match(message)
                names = [str(part) for part in problem["loc"][:1]] or ([flag[1].replace("-", "_")] if flag else [])
                message = message[flag.end() :] if flag and flag[2] else message[0].lower() + message[1:]
                raise FieldError(
                    message, *(key for name in names for key in (*_SECTION_OF.get(name, ()), name))
                ) from None


_SECTION_OF: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(LevelSection.model_fields, ("level",)),
    **dict.fromkeys(LoadSection.model_fields, ("load",)),
    **dict.fromkeys(WorkloadSection.model_fields, ("workload",)),
    **dict.fromkeys(SyntheticSection.model_fields, ("workload", "synthetic")),
}
"""Where in this file an option of `run` stands."""

_OF_EVERY_RUN = (
    *("endpoint", "model", "api_key_env", "slo", "slo_attainment"),
    *("timeout", "idle_timeout", "connect_timeout", "grace", "name"),
)


def load_experiment(path: Path) -> ExperimentFile:
    """Reads the file; paths in it are relative to it.

    Raises ConfigError that names file, line and field, and what was expected there.
    """
    return validated(load_yaml(path), ExperimentFile, context={"folder": path.parent})


def _check_public(arguments: Sequence[str], *keys: str) -> None:
    """A command is stored as it is, and other users of its machine see it."""
    for argument in arguments:
        if _VARIABLE.search(argument):
            raise FieldError("${NAME} is for url and env: a command is stored as it is", *keys)
        name = argument.partition("=")[0]
        if name.startswith("-") and names_secret(name.lstrip("-").replace("-", "_")):
            raise FieldError(f"{name}: a command is stored, and seen by others; give the secret by env", *keys)


def _check_secret(environment: Mapping[str, str], *keys: str) -> None:
    for name, text in environment.items():
        if names_secret(name) and _VARIABLE.fullmatch(text) is None:
            raise FieldError("a secret does not belong in a file; name a variable that holds it: ${NAME}", *keys, name)


def _told(text: str, forced_length: int) -> str:
    return text.replace(_LENGTH, str(forced_length)).replace(_ACCEPTED, str(forced_length - 1))


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in variables:
            raise ConfigError(f"the experiment names ${{{match[1]}}}, and this environment variable is not set")
        return variables[match[1]]

    return _VARIABLE.sub(value, text)
