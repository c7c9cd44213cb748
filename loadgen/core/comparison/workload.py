"""What a run was asked to send, as far as it decides whether two runs can be compared."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from loadgen.core.run import Load, RunManifest

_OF_DATA = ("format", "sha256", "text")
_OF_PLAN = (
    *("endpoint", "extra_body", "input_tokens", "output_tokens", "shared_prefix_tokens", "token_ids"),
    *("trace_from", "trace_to", "max_context", "spread", "history", "ignore_eos", "temperature", "max_tokens"),
    *("stream", "ramp_up", "reset_prefix_cache", "cache_salt"),
)
_PROMPTS = ("messages", "prompt", "input")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting that is another in the candidate."""

    setting: str
    baseline: Any
    candidate: Any


def workload_of(manifest: RunManifest) -> dict[str, Any]:
    """Data, options of the plan and load of a run, by setting. Seeds are not among them: they draw one of its kind."""
    data, options = manifest.data, manifest.options
    part = data.get("part")
    told = {f"data.{name}": data.get(name) for name in _OF_DATA}
    told["data.part"] = {k: v for k, v in part.items() if k != "seed"} if isinstance(part, Mapping) else None
    told |= {name: options.get(name) for name in _OF_PLAN}
    return told | load_settings(manifest.load)


def load_settings(load: Load) -> dict[str, Any]:
    """The load of a run, by setting."""
    return {f"load.{name}": value for name, value in asdict(load).items() if name != "seed"}


def requests_of(manifest: RunManifest) -> str:
    """A word that two runs have in common when they drew the same requests: of workload, seeds and the first prompt.

    The first prompt tells levels of two ladders apart that stand at different places of the data.
    """
    first = manifest.first_request or {}
    prompt = next((first[key] for key in _PROMPTS if key in first), None)
    return digest(
        workload_of(manifest) | {"seeds": [manifest.load.seed, manifest.options.get("seed")], "first": prompt}
    )


def digest(value: Mapping[str, Any]) -> str:
    """SHA-256 of the value as JSON, keys in order."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def differences(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Of settings that both tell, those that differ."""
    return tuple(
        Difference(setting=name, baseline=value, candidate=candidate[name])
        for name, value in baseline.items()
        if name in candidate and candidate[name] != value
    )
