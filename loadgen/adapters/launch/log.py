"""The end of a growing log."""

from pathlib import Path

_TAIL_BYTES = 32_768
_TAIL_LINES = 20
_LINE_CHARACTERS = 500


def tail(path: Path, *, since: int = 0, lines: int = _TAIL_LINES) -> tuple[str, ...]:
    """The last lines that are not empty, of what was written after byte `since`; none of a file that is not there."""
    try:
        with path.open("rb") as file:
            file.seek(max(since, file.seek(0, 2) - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(line.rstrip()[:_LINE_CHARACTERS] for line in text.splitlines() if line.strip())[-lines:]
