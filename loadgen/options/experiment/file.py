"""The file of an experiment: what is sent, under which loads, to which servers, and what is to be found out."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from loadgen.adapters.yaml_file import FieldError, load_yaml, validated
from loadgen.core.comparison.gates import never_kept, parse_gate
from loadgen.core.errors import ConfigError
from loadgen.core.experiment.plan import Order, PlannedArm, Role
from loadgen.core.redaction import without_secrets
from loadgen.core.request import Endpoint
from loadgen.options.experiment.arm import LENGTH, ArmSection
from loadgen.options.experiment.lookups import check_places, missing
from loadgen.options.experiment.profile import LAUNCHES, Launch, price_per_hour
from loadgen.options.experiment.section import Section
from loadgen.options.experiment.workload import LevelSection, LoadSection, SyntheticSection, WorkloadSection
from loadgen.options.fields import DurationSeconds, Texts, VariableName
from loadgen.options.load import MOST_WORKERS, CommonOptions, SweepOptions

_FLAG = re.compile(r"--([a-z-]+)(: )?")
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_ANY_URL = "http://server"


def _slo(value: Any) -> Any:
    """A mapping of objectives in the form that the command line takes."""
    return ",".join(f"{name}={limit}" for name, limit in value.items()) if isinstance(value, dict) else value


def _arm_name(name: str) -> str:
    if _SAFE_NAME.fullmatch(name) is None:
        raise ValueError(
            "expected a name of at most 40 letters, digits, dots, dashes and underscores: it names folders"
        )
    return name


def _gate(text: str) -> str:
    try:
        parse_gate(text)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return text


ArmName = Annotated[str, AfterValidator(_arm_name)]
GateText = Annotated[str, AfterValidator(_gate)]


class ExperimentFile(Section):
    """An experiment. Durations are seconds."""

    name: str = Field(min_length=1, max_length=100)
    workload: WorkloadSection
    load: LoadSection
    level: LevelSection = LevelSection()
    arms: dict[ArmName, ArmSection] = Field(min_length=1)
    baseline: str = "baseline"
    launch: Launch = "process"
    repeats: int = Field(3, ge=1, le=100)
    order: Order = Order.ABBA
    servers: Literal["one_at_a_time", "together"] = "one_at_a_time"
    noise: Literal["aa", "none"] = "aa"
    explain: Literal["forced", "none"] = "none"
    losslessness: Literal["greedy", "sampled", "none"] = "none"
    allow_unequal: bool = False
    slo: Annotated[str | None, BeforeValidator(_slo)] = None
    slo_attainment: float | None = None
    gates: tuple[GateText, ...] = ()
    endpoint: Endpoint = Endpoint.CHAT
    model: str | None = None
    api_key_env: VariableName | None = None
    start_time: DurationSeconds | None = None
    start_timeout: DurationSeconds = Field(1200.0, gt=0)
    cooldown: DurationSeconds = 1.0
    timeout: DurationSeconds | None = None
    idle_timeout: DurationSeconds | None = 300.0
    connect_timeout: DurationSeconds = 10.0
    grace: DurationSeconds = 30.0
    scrape_interval: DurationSeconds = Field(1.0, ge=0.2)
    workers: int = Field(1, ge=1, le=MOST_WORKERS)
    gpu_metrics_url: str | None = None
    local_gpus: Texts = Field([])
    budget: DurationSeconds | None = Field(None, gt=0)
    price_per_hour: float | None = Field(None, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _variables_where_they_are_looked_up(cls, values: Any) -> Any:
        check_places(values)
        return values

    @model_validator(mode="before")
    @classmethod
    def _launch_of_profiles(cls, values: Any) -> Any:
        """An arm by profile is launched as the file says, unless it says so itself."""
        arms = values.get("arms") if isinstance(values, dict) else None
        if not isinstance(arms, dict) or values.get("launch") not in LAUNCHES:
            return values
        launched = {
            name: {"launch": values["launch"], **arm} if isinstance(arm, dict) and "profile" in arm else arm
            for name, arm in arms.items()
        }
        return {**values, "arms": launched}

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
        self._check_gates()
        return self

    @property
    def price(self) -> float | None:
        """What an hour of the machine costs: as the file says, else as the profiles of all arms do."""
        started = [arm.profile for arm in self.arms.values() if arm.server == "profile" and arm.profile is not None]
        if self.price_per_hour is not None or len(started) < len(self.arms):
            return self.price_per_hour
        return price_per_hour(started)

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
        values: dict[str, Any] = without_secrets(self.model_dump(mode="json", exclude={"arms", "load"}))
        load = self.load.model_dump(mode="json", exclude_none=True)
        if load.get("burstiness") == float("inf"):
            load["burstiness"] = "inf"
        values["price_per_hour"] = self.price
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
            gpus=arm.gpus_used,
        )

    def _check_arms(self) -> None:
        if self.baseline not in self.arms:
            raise FieldError(f"expected one of the arms, {', '.join(self.arms)}; got {self.baseline!r}", "baseline")
        taken: dict[str, str] = {}
        for name, arm in self.arms.items():
            other = taken.setdefault(self._planned(name, arm).label, name)
            if other != name:
                raise FieldError(
                    f"expected another label than that of {other}: reports go by it", "arms", name, "label"
                )
        if len(self.arms) == 1 and self.noise == "none":
            raise FieldError("expected a second arm, or noise: aa to compare the baseline with itself", "arms")

    def _check_gates(self) -> None:
        for level in (*(self.load.concurrency or ()), *(self.load.request_rate or ())):
            requests = self.level.requests_at(level)
            for place, text in enumerate(self.gates):
                if requests is not None and (why := never_kept(parse_gate(text), requests)) is not None:
                    raise FieldError(f"at level {level:g} {why}", "gates", place)

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
                    f" {LENGTH} tokens a step. Add it, or explain: none",
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
    *("scrape_interval", "gpu_metrics_url", "local_gpus", "workers"),
)


def load_experiment(path: Path, *, variables: Mapping[str, str] | None = None) -> ExperimentFile:
    """Reads the file; paths in it are relative to it. All that it names of the environment is to be in `variables`.

    Without them that is not asked, as for a plan, which may be made elsewhere than where it is run.
    Raises ConfigError that names file, line and field, and what was expected there.
    """
    file = load_yaml(path)
    found = validated(file, ExperimentFile, context={"folder": path.parent})
    lacking = (
        [] if variables is None else [f"{file.where(*keys)}: {cause}" for keys, cause in missing(found, variables)]
    )
    if lacking:
        raise ConfigError("\n".join(lacking))
    return found
