"""The options of `loadgen locust`: those of a ladder, what else its form offers, and where its page and workers are."""

import ipaddress
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from pydantic import ValidationError, model_validator
from pydantic_core import PydanticSerializationError, to_json

from loadgen.core.analysis.ladder import DEFAULT_LADDER
from loadgen.core.errors import ConfigError
from loadgen.core.redaction import holds_secret
from loadgen.options.checks import only_one
from loadgen.options.experiment import ArmSection, ExperimentFile
from loadgen.options.experiment.profile import Launch
from loadgen.options.experiment.workload import LoadSection, WorkloadSection
from loadgen.options.fields import Pairs, VariableName, option
from loadgen.options.load import CommonOptions, SweepOptions
from loadgen.options.resolve import resolve

NOTHING_TOLD: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

_HIGHEST_PORT = 65_535

_SYNTHETIC = frozenset({"input_tokens", "output_tokens", "shared_prefix_tokens"})
_WORKLOAD = frozenset(WorkloadSection.model_fields) - {"synthetic"}
_LADDER, _LEVEL = frozenset(LoadSection.model_fields), frozenset({"num_requests", "duration", "warmup_requests"})
_OF_RUNS = frozenset(CommonOptions.model_fields) & frozenset(ExperimentFile.model_fields) - {"name"}


class LocustOptions(SweepOptions):
    """A ladder that Locust drives. Nothing of the load has to be given for the page: its form asks for it."""

    url: str = option(
        "", "Base URL of the server, with or without /v1. Default: the form asks for it.", panel="Target", metavar="URL"
    )
    server_profile: str | None = option(
        None, "Server profile to start the server from, instead of a URL.", panel="Serving", metavar="NAME|FILE"
    )
    server_launch: Launch = option(
        "process",
        "How the profile's server is started: process, compose or sim.",
        panel="Serving",
        metavar="process|compose|sim",
    )
    arm: Pairs = option(
        {},
        "A server of a comparison, as NAME=URL; two or more, the first is the baseline unless --baseline names one.",
        panel="Serving",
        metavar="NAME=URL",
    )
    baseline: str | None = option(None, "The arm that the others are compared with.", panel="Serving", metavar="NAME")
    repeats: int = option(3, "Repeats of each arm of a comparison.", panel="Serving", ge=1, le=100)

    web_host: str = option("127.0.0.1", "Address of Locust's page.", panel="Client", metavar="ADDRESS")
    port: int = option(
        8089,
        "Port of Locust's page.",
        panel="Client",
        flags=("--port", "--web-port", "-P"),
        ge=0,
        le=_HIGHEST_PORT,
    )
    web_login_env: VariableName | None = option(
        None,
        "Name of the environment variable that holds USER:PASSWORD for the page; needed beyond this machine.",
        panel="Client",
        metavar="NAME",
    )
    web_login_file: Path | None = option(
        None, "The same from a file, which nobody but its owner may write.", panel="Client", metavar="FILE"
    )
    headless: bool = option(
        False, "Run the ladder at once, without a page, and end with its exit code.", panel="Client"
    )
    master: bool = option(False, "Have Locust workers send the load, on this machine or others.", panel="Client")
    worker: bool = option(False, "Be one of a master's workers.", panel="Client")
    master_host: str = option("127.0.0.1", "Address of the master, for a worker.", panel="Client", metavar="ADDRESS")
    master_port: int = option(5557, "Port of the master.", panel="Client", ge=0, le=_HIGHEST_PORT)
    master_bind_host: str = option(
        "127.0.0.1", "Address at which the master waits for workers.", panel="Client", metavar="ADDRESS"
    )
    expect_workers: int | None = option(
        None, "Workers to wait for before a ladder begins. Default: 1, or those of --processes.", panel="Client", gt=0
    )
    processes: int | None = option(
        None, "Start this many workers on this machine, beside a master.", panel="Client", gt=0, le=256
    )

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        targets = {"--url": bool(self.url), "--server-profile": self.server_profile is not None}
        given = only_one("kind of target", targets | {"--arm": bool(self.arm)})
        if len(self.arm) == 1:
            raise ValueError("--arm: expected two servers or more; one alone is given by --url")
        if named := [name for name, url in self.arm.items() if holds_secret(url)]:
            raise ValueError(
                f"--arm: {', '.join(named)}: a secret does not belong here, where everybody sees it; give --api-key-env"
            )
        if self.baseline is not None and self.baseline not in self.arm:
            raise ValueError(f"--baseline: expected the name of an arm, got {self.baseline!r}")
        if self.headless and given is None and not self.worker:
            raise ValueError("--headless needs --url, --server-profile or --arm: there is no form to ask")
        return self

    @model_validator(mode="after")
    def _one_role(self) -> Self:
        if self.master and self.worker:
            raise ValueError("expected one of --master and --worker")
        if self.worker and self.processes is not None:
            raise ValueError("--processes starts a master and its workers; on another machine start each --worker")
        if self.expect_workers is not None and not self.distributed:
            raise ValueError("--expect-workers needs --master or --processes")
        if self.distributed and self.workers > 1:
            raise ValueError("--workers is for one process and its own; with --master each Locust worker is one")
        if self.prometheus_linger:
            raise ValueError("--prometheus-linger: expected nothing; Locust's page has the metrics at /metrics")
        return self

    @model_validator(mode="after")
    def _page_of_known_people(self) -> Self:
        logins = {
            "--web-login-env": self.web_login_env is not None,
            "--web-login-file": self.web_login_file is not None,
        }
        login = only_one("login of the page", logins)
        if not _is_loopback(self.web_host) and login is None and not (self.headless or self.worker):
            raise ValueError(
                "--web-host: whoever reaches the page can send load; give --web-login-file or --web-login-env, or keep"
                " it on this machine"
            )
        return self

    @property
    def distributed(self) -> bool:
        """Whether a master and workers send the load."""
        return self.master or self.processes is not None

    @property
    def workers_expected(self) -> int:
        """Workers that a ladder waits for."""
        return self.expect_workers or self.processes or 1

    def given(self) -> dict[str, Any]:
        """The options that were given, as JSON holds them, from which `resolve` makes the same again.

        Raises ConfigError for a text that JSON cannot hold, as a path may be.
        """
        values = {name: getattr(self, name) for name in self.model_fields_set}
        try:
            found: dict[str, Any] = json.loads(to_json(values, inf_nan_mode="strings"))
        except PydanticSerializationError:
            raise ConfigError("expected UTF-8 in every option") from None
        return found


def ladder_of(options: LocustOptions, *, url: str | None = None) -> SweepOptions:
    """The same ladder as `loadgen sweep` takes it, of another server where a URL is given.

    Raises ConfigError for one without a target.
    """
    given = {name: value for name, value in options.given().items() if name in SweepOptions.model_fields}
    if url is not None:
        given["url"] = url
    if not given.get("url"):
        raise ConfigError("expected a target: the URL of a server (host), server_profile, or arms")
    return resolve(SweepOptions, given, environment={})


def comparison_of(options: LocustOptions, told: Mapping[str, Mapping[str, Any]] = NOTHING_TOLD) -> ExperimentFile:
    """The experiment that compares the arms over the ladder. Raises ConfigError for what it cannot take.

    `told` are further fields of arms by name: what their servers say of their speculation.
    """
    given = {name: value for name, value in options.given().items() if value is not None}
    known = _WORKLOAD | _SYNTHETIC | _LADDER | _LEVEL | _OF_RUNS | _OF_LOCUST
    if foreign := sorted(set(given) - known):
        raise ConfigError(f"arms: expected no {', '.join(foreign)} beside them; `loadgen experiment` takes a file")

    def chosen(fields: frozenset[str]) -> dict[str, Any]:
        return {name: given[name] for name in sorted(fields & set(given))}

    invented = options.trace is None and options.prompts is None
    values = chosen(_OF_RUNS) | {
        "name": options.name or " and ".join(options.arm),
        "workload": chosen(_WORKLOAD) | ({"synthetic": chosen(_SYNTHETIC)} if invented else {}),
        "load": {"concurrency": list(DEFAULT_LADDER)} | chosen(_LADDER),
        "level": chosen(_LEVEL),
        "arms": {name: {"url": url, **told.get(name, {})} for name, url in options.arm.items()},
        "baseline": options.baseline or next(iter(options.arm)),
        "repeats": options.repeats,
    }
    if options.request_rate is not None:
        del values["load"]["concurrency"]
    try:
        return ExperimentFile.model_validate(values)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, (*problem["loc"], *getattr(problem.get("ctx", {}).get("error"), "keys", ()))))
        raise ConfigError(f"{where}: {problem['msg'].removeprefix('Value error, ')}") from None


def server_of(options: LocustOptions) -> ArmSection:
    """What starts the server of the profile. Raises ConfigError for a profile that will not do."""
    try:
        return ArmSection.model_validate({"profile": options.server_profile, "launch": options.server_launch})
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(f"--server-profile: {message}") from None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_OF_LOCUST = frozenset(LocustOptions.model_fields) - frozenset(SweepOptions.model_fields) | {
    *("out", "name", "settle", "no_progress", "quiet", "json_output", "prometheus_port", "otlp_endpoint"),
}
"""Options that a comparison has a use of its own for, or none."""
