"""What a request may say, for whoever draws forms: options by kind, and servers by name."""

from functools import lru_cache
from typing import Any

from fastapi import APIRouter

from loadgen.adapters.profiles.files import find_profile, profile_paths, search_path
from loadgen.core.errors import ConfigError
from loadgen.options.experiment import ExperimentFile
from loadgen.service.admission.admit import MODELS, NOT_HERE, SETTLED_HERE
from loadgen.service.routes.common import Parts, Reader, problems
from loadgen.service.wire.common import Kind
from loadgen.service.wire.options import OptionList, TargetList, TargetView

router = APIRouter(prefix="/v1", tags=["options"])


@router.get("/options/{kind}", responses=problems())
def list_options(kind: Kind, _parts: Parts, _who: Reader) -> OptionList:
    """The options of a kind as JSON schema, each with its description, default and bounds."""
    return OptionList(kind=kind, json_schema=_schema(kind))


@router.get("/targets", responses=problems())
def list_targets(parts: Parts, _who: Reader) -> TargetList:
    """Servers that may be named as `profile` of a target, and the hosts that are allowed."""
    named = [TargetView(name=name, url=url, source="settings") for name, url in parts.policy.targets.items()]
    known = set(parts.policy.targets)
    for name in profile_paths(search_path()):
        try:
            port = find_profile(name).profile.port
        except ConfigError:
            continue
        if name not in known:
            named.append(TargetView(name=name, url=f"http://127.0.0.1:{port}", source="profile"))
    return TargetList(items=named, allowed_hosts=list(parts.policy.hosts.text))


@lru_cache(maxsize=8)
def _schema(kind: str) -> dict[str, Any]:
    if kind == "experiment":
        return ExperimentFile.model_json_schema()
    model = MODELS[kind]
    schema = model.model_json_schema()
    left_out = {*SETTLED_HERE, *NOT_HERE}
    schema["properties"] = {name: value for name, value in schema["properties"].items() if name not in left_out}
    schema["required"] = [name for name in schema.get("required", ()) if name not in left_out]
    for name, value in schema["properties"].items():
        value["flag"] = "--" + name.replace("_", "-")
    return schema
