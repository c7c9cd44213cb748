"""Numbers out of JSON that others wrote."""

import math
from typing import Any


def at(value: Any, *keys: str) -> Any:
    """What stands under the keys, one within the other; None where one is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


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


def scaled(value: Any, factor: float) -> float | None:
    """A number in another unit."""
    found = number(value)
    return None if found is None else found * factor


def share(part: float | None, of: float | None) -> float | None:
    """A part of a whole; None when either is unknown, the whole is nothing, or the part is less."""
    return part / of if part is not None and part >= 0 and of else None
