"""Whoever asks."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Scope(StrEnum):
    """What a key lets its holder do; each holds those before it."""

    READ = "read"
    RUN = "run"
    ADMIN = "admin"


_RANK = {scope: rank for rank, scope in enumerate(Scope)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """`id` is that of the key, `open` where no key is needed. `limits` are of load, those of the settings at most."""

    id: str
    name: str
    scopes: frozenset[Scope]
    limits: dict[str, Any] = field(default_factory=dict)

    def may(self, scope: Scope) -> bool:
        """Whether a scope of its own holds that one."""
        return any(_RANK[mine] >= _RANK[scope] for mine in self.scopes)


ANYBODY = Principal(id="open", name="this machine", scopes=frozenset({Scope.ADMIN}))
"""Whoever reaches a service that listens on this machine alone and has no keys."""
