"""One thing that was looked at, and how it came out."""

from dataclasses import dataclass

Value = float | int | str | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at. `relation` says how `value` must stand to `limit`; without a limit it is told only.

    A check that is not `required` is advice: it fails nothing.
    """

    name: str
    ok: bool
    value: Value
    limit: Value = None
    relation: str = "equal"
    required: bool = True
    advice: str | None = None


def at_most(name: str, value: float | None, limit: float, *, advice: str) -> Check:
    """A figure that must be there and must not exceed a limit."""
    ok = value is not None and value <= limit
    return Check(name=name, ok=ok, value=value, limit=limit, relation="at_most", advice=advice)


def ought_to_reach(name: str, value: float | None, limit: float, *, advice: str) -> Check:
    """A figure that had better reach a limit; where it is unknown there is nothing to advise."""
    ok = value is None or value >= limit
    return Check(name=name, ok=ok, value=value, limit=limit, relation="at_least", required=False, advice=advice)


def equal(name: str, value: Value, limit: Value, *, advice: str | None = None) -> Check:
    """A figure or a word that must be as expected."""
    return Check(name=name, ok=value == limit, value=value, limit=limit, advice=advice)
