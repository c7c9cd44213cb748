"""What options of several commands are held to, in the same words."""

from collections.abc import Mapping, Sequence


def only_one(kind: str, given: Mapping[str, bool]) -> str | None:
    """The flag that is given of those that exclude each other, None for none. Raises ValueError for several."""
    found = [flag for flag, there in given.items() if there]
    if len(found) > 1:
        raise ValueError(f"expected one {kind}, got {' and '.join(found)}")
    return found[0] if found else None


def check_levels(flag: str, levels: Sequence[float] | None) -> None:
    """Raises ValueError for a ladder that is empty, goes down to 0, or has a level twice; None is no ladder."""
    if levels is None:
        return
    if not levels or min(levels) <= 0:
        raise ValueError(f"{flag}: expected numbers above 0, got {levels}")
    if len(set(levels)) < len(levels):
        raise ValueError(f"{flag}: a level stands twice in {levels}")
