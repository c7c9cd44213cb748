"""What the CSV formats share: columns by name, cells, whole numbers."""

import csv
import re
from collections.abc import Sequence

from loadgen.core.traces.row import LARGEST_COUNT, LARGEST_TIME_NS, BadRow, Reason
from loadgen.core.units import NS_PER_S

_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?", re.ASCII)


def cells(data: bytes) -> list[str]:
    """The cells of one line. Raises BadRow when it is not UTF-8 or a quote does not close."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BadRow(Reason.COLUMNS, f"expected UTF-8 text, found byte 0x{data[error.start]:02x}") from None
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise BadRow(Reason.COLUMNS, f"expected comma-separated cells: {error}") from None


def column_names(header: bytes) -> list[str]:
    """The names in a header line, without surrounding space and in lower case."""
    return [name.strip().casefold() for name in cells(header)]


class Columns:
    """Where the wanted columns are. Cells come back in the order in which the names were given."""

    def __init__(self, header: bytes, required: Sequence[str], optional: Sequence[str] = ()) -> None:
        """Raises BadRow when a required column is missing or a wanted one is there twice."""
        names = column_names(header)
        for name in (*required, *optional):
            found = names.count(name.casefold())
            if found > 1 or (found == 0 and name in required):
                shown = ", ".join(name.strip() for name in cells(header))
                expected = f"expected one column {name!r}, found {found} in the header {shown!r}"
                raise BadRow(Reason.COLUMNS, expected, field=name)
        self._count = len(names)
        self._places = [names.index(name.casefold()) for name in required]
        self._optional = [names.index(n.casefold()) if n.casefold() in names else None for n in optional]

    def pick(self, data: bytes) -> list[str]:
        """The wanted cells of a line, an empty one for an optional column that the file lacks. Raises BadRow."""
        row = cells(data)
        if len(row) != self._count:
            raise BadRow(Reason.COLUMNS, f"expected {self._count} cells as in the header, found {len(row)}")
        return [row[place] for place in self._places] + [
            "" if place is None else row[place].strip() for place in self._optional
        ]


def token_count(text: str, field: str) -> int:
    """A whole number of tokens, also written as `374.0`. Raises BadRow."""
    if text.isascii() and text.isdigit():
        count = int(text)
    else:
        text = text.strip()
        if not text:
            raise BadRow(Reason.MISSING_FIELD, "is empty, expected a whole number of tokens", field=field)
        value = float(text) if _NUMBER.fullmatch(text) else 0.5
        if not value.is_integer():
            raise BadRow(Reason.BAD_VALUE, f"expected a whole number of tokens, got {text!r}", field=field)
        count = int(value)
    if count > LARGEST_COUNT:
        raise BadRow(Reason.BAD_VALUE, f"expected at most {LARGEST_COUNT} tokens, got {text}", field=field)
    return count


def seconds_ns(text: str, field: str) -> int | None:
    """Seconds, whole or with a fraction, as ns; None for an empty cell. Raises BadRow."""
    text = text.strip()
    if not text:
        return None
    ns = int(text) * NS_PER_S if text.isascii() and text.isdigit() else None
    if ns is None and _NUMBER.fullmatch(text):
        value = float(text) * NS_PER_S
        ns = round(value) if value < LARGEST_TIME_NS else LARGEST_TIME_NS + 1
    if ns is None or ns > LARGEST_TIME_NS:
        raise BadRow(Reason.BAD_VALUE, f"expected seconds from 0 to the year 2262, got {text!r}", field=field)
    return ns
