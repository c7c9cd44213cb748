"""From what is asked for to a run that may be queued, or to a problem that says what is wrong with it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

from loadgen.adapters.http.destination import Destination
from loadgen.adapters.profiles.files import is_path
from loadgen.core.errors import ConfigError, LoadgenError
from loadgen.core.redaction import secrets_within
from loadgen.options.capacity import CapacityOptions
from loadgen.options.experiment import ArmSection, ExperimentFile
from loadgen.options.experiment.variables import named_in
from loadgen.options.load import CommonOptions, RunOptions, SweepOptions
from loadgen.options.metrics import MetricsOptions
from loadgen.service.admission.files import file_within
from loadgen.service.admission.limits import Limits, LoadOptions
from loadgen.service.admission.policy import Policy
from loadgen.service.admission.targets import check_url
from loadgen.service.problems import FieldProblem, invalid, refused

Kind = Literal["run", "sweep", "capacity", "experiment"]
MODELS: Mapping[str, type[CommonOptions]] = {"run": RunOptions, "sweep": SweepOptions, "capacity": CapacityOptions}

SETTLED_HERE = frozenset(
    {"url", "out", "name", "label", "quiet", "no_progress", "json_output", *MetricsOptions.model_fields}
)
"""Options of the commands that are not for a request: the service settles them, or the request has a place for them."""

NOT_HERE = {
    "proxy": "a proxy would reach what the list of allowed hosts does not name",
    "workers": "connections of further processes are not held against the list of allowed hosts",
}
_FILES = ("trace", "prompts", "ca_file", "client_cert", "client_key")
_EXPERIMENT_FILES = ("trace", "prompts")
_FLAG = re.compile(r"--([a-z][a-z0-9-]*)")
_LAUNCHED = "machine:servers"
Result = TypeVar("Result")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request says, as JSON. For an experiment `options` is its file."""

    kind: Kind
    target: Mapping[str, str]
    options: Mapping[str, Any]
    time_limit_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """What may be queued. `target` says where, for people; `lease_keys` name the servers that it needs to itself."""

    target: dict[str, str]
    lease_keys: list[str]
    time_limit_s: float


def admit(asked: Asked, policy: Policy, limits: Limits) -> Admitted:
    """Checks all that can be known before the run. Raises Problem that names each wrong field."""
    if (found := next(secrets_within(dict(asked.options)), None)) is not None:
        raise invalid(
            "a secret does not belong in a request, which is stored; a key is given by api_key_env",
            FieldProblem(pointer=_pointer("options", *found), detail="a secret stands here"),
        )
    if asked.time_limit_s is not None and asked.time_limit_s > limits.run_time_s:
        raise refused(
            f"a run may take at most {limits.run_time_s:g} s",
            FieldProblem(pointer="/time_limit_s", detail="is longer than that"),
        )
    time_limit_s = asked.time_limit_s or limits.run_time_s
    if asked.kind == "experiment":
        file = experiment_of(asked.options, policy.files)
        _refuse(*limits.exceeded_by_experiment(file))
        keys = _keys_of_experiment(file, policy)
        return Admitted(target={}, lease_keys=sorted(keys), time_limit_s=time_limit_s)
    url = url_of(asked.target, policy)
    options = options_of(asked.kind, asked.options, url)
    _refuse(*limits.exceeded(cast(LoadOptions, options)))
    for name in _FILES:
        if (path := getattr(options, name)) is not None:
            _checked("/options/" + name, partial(file_within, policy.files, str(path)))
    _check_variable("/options/api_key_env", options.api_key_env, policy)
    _checked("/options/header", partial(Destination.from_url, url, headers=options.header))
    keys = set(_checked("/target/url", partial(check_url, url, policy.hosts, policy.resolve)))
    pages = (*options.metrics_url, *([options.gpu_metrics_url] if options.gpu_metrics_url else []))
    for page in pages:
        _checked("/options/metrics_url", partial(check_url, page, policy.hosts, policy.resolve))
    return Admitted(target=dict(asked.target) | {"url": url}, lease_keys=sorted(keys), time_limit_s=time_limit_s)


def url_of(target: Mapping[str, str], policy: Policy) -> str:
    """Where the target of a request is. Raises Problem."""
    if "profile" not in target:
        return target["url"]
    return _checked("/target/profile", partial(policy.url_of, target["profile"]))


def options_of(kind: str, given: Mapping[str, Any], url: str) -> CommonOptions:
    """The command's options as the request has them. Raises Problem that names each wrong field."""
    model = MODELS[kind]
    wrong = [
        FieldProblem(pointer=_pointer("options", name), detail="is settled by the service, or stands beside options")
        for name in SETTLED_HERE.intersection(given)
    ]
    wrong += [
        FieldProblem(pointer=_pointer("options", name), detail=NOT_HERE[name])
        for name in NOT_HERE
        if given.get(name) not in (None, 1)
    ]
    if wrong:
        raise invalid("options that a request cannot have", *wrong)
    return _validated(model, {**given, "url": url})


def experiment_of(given: Mapping[str, Any], files: Path) -> ExperimentFile:
    """The experiment that a request has. Raises Problem that names each wrong field."""
    if (pointer := next(_profiles_by_path(given), None)) is not None:
        detail = "a profile is named, not given by path"
        raise invalid(detail, FieldProblem(pointer=pointer, detail=detail))
    file = _validated(ExperimentFile, given, context={"folder": files})
    if file.workers > 1:
        problem = FieldProblem(pointer="/options/workers", detail=NOT_HERE["workers"])
        raise invalid("options that a request cannot have", problem)
    return file


def _profiles_by_path(given: Mapping[str, Any]) -> Iterator[str]:
    """Where an experiment names the file of a profile: it is not even read, since what is wrong with it is told."""
    arms = given.get("arms")
    for name, arm in arms.items() if isinstance(arms, dict) else ():
        sections = ((arm, ()), (arm.get("sim"), ("sim",))) if isinstance(arm, dict) else ()
        for section, keys in sections:
            profile = section.get("profile") if isinstance(section, dict) else None
            if isinstance(profile, str) and is_path(profile):
                yield _pointer("options", "arms", name, *keys, "profile")


def with_files(kind: str, given: Mapping[str, Any], files: Path) -> dict[str, Any]:
    """The options with the names of files as paths, for the process that reads them. Raises ConfigError."""
    options = dict(given)
    if kind == "experiment":
        workload = dict(options.get("workload") or {})
        options["workload"] = _with_paths(workload, _EXPERIMENT_FILES, files)
        return options
    return _with_paths(options, _FILES, files)


def _with_paths(options: dict[str, Any], names: tuple[str, ...], files: Path) -> dict[str, Any]:
    paths = {name: str(file_within(files, str(options[name]))) for name in names if options.get(name) is not None}
    return options | paths


def _keys_of_experiment(file: ExperimentFile, policy: Policy) -> set[str]:
    for name in _EXPERIMENT_FILES:
        path: Path | None = getattr(file.workload, name)
        if path is not None:
            relative = str(path)[len(str(policy.files)) + 1 :] if path.is_relative_to(policy.files) else str(path)
            _checked(f"/options/workload/{name}", partial(file_within, policy.files, relative))
    _check_variable("/options/api_key_env", file.api_key_env, policy)
    if file.gpu_metrics_url is not None:
        page = file.gpu_metrics_url
        _checked("/options/gpu_metrics_url", partial(check_url, page, policy.hosts, policy.resolve))
    keys: set[str] = set()
    for name, arm in file.arms.items():
        keys |= _keys_of_arm(_pointer("options", "arms", name), arm, policy)
    return keys


def _keys_of_arm(pointer: str, arm: ArmSection, policy: Policy) -> set[str]:
    for variable in (name for text in (arm.url or "", *arm.env.values()) for name in named_in(text)):
        _check_variable(pointer, variable, policy)
    match arm.server:
        case "url":
            assert arm.url is not None
            if named_in(arm.url):
                raise refused(
                    "the URL of an arm cannot come from a variable here",
                    FieldProblem(pointer=pointer + "/url", detail="names a variable"),
                )
            url = arm.url
            return set(_checked(pointer + "/url", partial(check_url, url, policy.hosts, policy.resolve)))
        case "sim":
            return {_LAUNCHED}
        case _ if policy.launch:
            return {_LAUNCHED}
    raise refused(
        "this service starts no servers; give arms by url, or allow it with --allow-launch",
        FieldProblem(pointer=pointer, detail="needs a server to be started"),
    )


def _check_variable(pointer: str, name: str | None, policy: Policy) -> None:
    if name is not None and name not in policy.environment:
        raise refused(
            f"the environment variable {name} is not one that runs may name (--allow-env)",
            FieldProblem(pointer=pointer, detail="is not allowed"),
        )


def _refuse(*beyond: FieldProblem) -> None:
    if beyond:
        raise refused("more load than is allowed", *beyond)


def _checked(pointer: str, check: Callable[[], Result]) -> Result:
    try:
        return check()
    except PermissionError as error:
        raise refused(str(error), FieldProblem(pointer=pointer, detail=str(error))) from None
    except LoadgenError as error:
        raise invalid(str(error), FieldProblem(pointer=pointer, detail=str(error))) from None


def _validated(model: type[Model], values: Mapping[str, Any], context: Any = None) -> Model:
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        raise invalid("options that are not right", *_field_problems(error)) from None
    except (ConfigError, RecursionError) as error:
        raise invalid("options that are not right", FieldProblem(pointer="/options", detail=str(error))) from None


def _field_problems(error: ValidationError) -> Iterator[FieldProblem]:
    for problem in error.errors(include_url=False, include_input=False):
        keys = [*problem["loc"], *getattr(problem.get("ctx", {}).get("error"), "keys", ())]
        detail = _FLAG.sub(lambda found: found[1].replace("-", "_"), problem["msg"].removeprefix("Value error, "))
        yield FieldProblem(pointer=_pointer("options", *keys), detail=detail)


def _pointer(*keys: object) -> str:
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)
