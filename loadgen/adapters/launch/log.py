"""The end of a growing log."""

import re
from pathlib import Path

from loadgen.report.words import printable

_TAIL_BYTES = 32_768
_TAIL_LINES = 20
_LINE_CHARACTERS = 500
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def tail(path: Path, *, since: int = 0, lines: int = _TAIL_LINES) -> tuple[str, ...]:
    """The last lines that are not empty, of what was written after byte `since`; none of a file that is not there.

    Without colours, and with other control characters as escapes: a log has no say in the terminal that shows it.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(since, file.seek(0, 2) - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    plain = (_COLOUR.sub("", line).rstrip() for line in text.splitlines())
    return tuple(printable(line[:_LINE_CHARACTERS]) for line in [line for line in plain if line][-lines:])
