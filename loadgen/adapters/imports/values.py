"""Numbers out of JSON that others wrote."""

import math
from typing import Any

LONGEST_S = 1e7
"""No latency is longer: a hundred days."""
LARGEST = 1e15
"""Nothing that is counted, or counted a second, is more."""

_SHOWN_CHARACTERS = 40


class ImpossibleFigureError(ValueError):
    """What no measurement can have come to; `keys` lead to its field."""

    def __init__(self, keys: tuple[str | int, ...], expected: str, found: Any) -> None:
        text = (
            str(found)
            if not isinstance(found, int) or abs(found) < LARGEST
            else f"a number of {found.bit_length()} bits"
        )
        super().__init__(f"field {'.'.join(map(str, keys))}: expected {expected}, found {text[:_SHOWN_CHARACTERS]}")


def at(value: Any, *keys: str | int) -> Any:
    """What stands under the keys, one within the other; None where one is missing."""
    for key in keys:
        if isinstance(key, int):
            value = value[key] if isinstance(value, list) and key < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def time_s(value: Any, *keys: str | int, factor: float | None) -> float | None:
    """A latency in seconds: the number under the keys times `factor`; None without one, and in an unknown unit.

    Raises ImpossibleFigureError for one below zero or beyond all patience.
    """
    if factor is None:
        return None
    found = _measured(value, keys, f"a time of 0 to {LONGEST_S:.0f} s", LONGEST_S / factor)
    return None if found is None else found * factor


def quantity(value: Any, *keys: str | int) -> float | None:
    """What is counted, or counted a second; None without one. Raises ImpossibleFigureError for one that cannot be."""
    return _measured(value, keys, f"a number of 0 to {LARGEST:g}", LARGEST)


def fraction(value: Any, *keys: str | int, of: float = 1.0) -> float | None:
    """A share of 0 to 1, told of 1 or, in percent, of 100; None without one.

    Raises ImpossibleFigureError for one that is none.
    """
    found = _measured(value, keys, f"a share of 0 to {of:g}", of)
    return None if found is None else found / of


def _measured(value: Any, keys: tuple[str | int, ...], expected: str, most: float) -> float | None:
    """The number under the keys. One that is not finite is how tools write that there is none."""
    found = at(value, *keys)
    if (
        isinstance(found, bool)
        or not isinstance(found, int | float)
        or (isinstance(found, float) and not math.isfinite(found))
    ):
        return None
    if not 0 <= found <= most:
        raise ImpossibleFigureError(keys, expected, found)
    return float(found)


def number(value: Any) -> float | None:
    """A finite number of zero or more, as all is that is timed or counted; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if 0 <= found < math.inf else None


def whole(value: Any) -> int | None:
    """A whole number above zero; None for anything else."""
    found = number(value)
    return int(found) if found is not None and found > 0 and found == int(found) else None


def share(part: float | None, of: float | None) -> float | None:
    """A part of a whole; None when either is unknown, the whole is nothing, or the part is less."""
    return part / of if part is not None and part >= 0 and of else None
