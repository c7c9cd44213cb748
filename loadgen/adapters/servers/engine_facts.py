"""What an engine's own pages tell, and how to read values that may be anything."""

from dataclasses import dataclass
from typing import Any

from loadgen.adapters.servers.exposition import read_page
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What is known of a server beyond its list of models; None for what its pages do not tell.

    `page` is its own account of its configuration, as it came. `cache_reset_path` empties its prefix cache when it is
    posted to. `tells_acceptance` is whether answers carry an account of their own speculation.
    """

    version: str | None = None
    max_model_len: int | None = None
    configuration: ServerConfiguration | None = None
    speculation: SpeculationConfiguration | None = None
    page: dict[str, Any] | None = None
    cache_reset_path: str | None = None
    tells_acceptance: bool | None = None


def text(value: Any) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def flag(value: Any) -> bool | None:
    """A truth value, also as labels write it."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None


def count(value: Any) -> int | None:
    """A whole number above 0, also as labels write it; servers write 0 and below for "no limit" and "none"."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def mapping(value: Any) -> dict[str, Any]:
    """A mapping; empty when it is something else."""
    return value if isinstance(value, dict) else {}


def info_labels(metrics: str, *names: str) -> dict[str, str]:
    """The labels of an info metric under the first of its names that is there, for the first process that has it."""
    try:
        found = read_page(metrics, names).named(names)
    except ValueError:
        return {}
    return dict(found[0].labels) if found else {}
