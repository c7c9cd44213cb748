"""Azure's public LLM inference traces of 2023, 2024 and 2025: CSV with `TIMESTAMP`, `ContextTokens`, `GeneratedTokens`.

Time stamps come as `2023-11-16 18:15:46.6805900`, `2024-05-10 00:00:00.009930+00:00` (also without a fraction) and
`2024-10-15T12:00:00.269Z`. Without a zone they are taken as UTC; only differences matter.
"""

import re
from datetime import date
from functools import lru_cache

from loadgen.core.traces.csv_rows import Columns, token_count
from loadgen.core.traces.row import LARGEST_TIME_NS, BadRow, Reason, Row, RowTurn
from loadgen.core.units import NS_PER_S

_STAMP = re.compile(
    r"\s*(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d+))?\s*(?:Z|([+-])(\d\d):?(\d\d)?)?\s*", re.ASCII
)
_EPOCH = date(1970, 1, 1).toordinal()


class AzureParser:
    """Rows of one file, read by its header."""

    def __init__(self, header: bytes) -> None:
        """Raises BadRow when a column is missing."""
        self._columns = Columns(header, ("TIMESTAMP", "ContextTokens", "GeneratedTokens"))

    def parse(self, data: bytes) -> Row | Reason:
        """One request; zero tokens are left out."""
        stamp, context, generated = self._columns.pick(data)
        time_ns = stamp_ns(stamp)
        input_tokens = token_count(context, "ContextTokens")
        output_tokens = token_count(generated, "GeneratedTokens")
        if not input_tokens or not output_tokens:
            return Reason.ZERO_TOKENS
        turn = RowTurn(input_tokens=input_tokens, output_tokens=output_tokens)
        return Row(turns=(turn,), time_ns=time_ns)


def stamp_ns(text: str) -> int | None:
    """Nanoseconds since 1970 of a date and time; None for an empty cell. Raises BadRow."""
    match = _STAMP.fullmatch(text)
    if match is None:
        if not text.strip():
            return None
        raise _bad_stamp(text)
    day, hours, minutes, seconds, fraction, sign, zone_hours, zone_minutes = match.groups()
    h, m, s = int(hours), int(minutes), int(seconds)
    if h > 23 or m > 59 or s > 60:
        raise _bad_stamp(text)
    try:
        days = _days(day)
    except ValueError:
        raise _bad_stamp(text) from None
    whole = days * 86_400 + h * 3_600 + m * 60 + s
    if sign:
        zone = int(zone_hours) * 3_600 + int(zone_minutes or 0) * 60
        whole -= zone if sign == "+" else -zone
    ns = whole * NS_PER_S + (int(fraction[:9].ljust(9, "0")) if fraction else 0)
    if not 0 <= ns <= LARGEST_TIME_NS:
        raise _bad_stamp(text)
    return ns


@lru_cache(maxsize=64)
def _days(day: str) -> int:
    return date.fromisoformat(day).toordinal() - _EPOCH


def _bad_stamp(text: str) -> BadRow:
    expected = "expected a date and time such as 2023-11-16 18:15:46.6805900"
    return BadRow(Reason.BAD_VALUE, f"{expected}, got {text.strip()!r}", field="TIMESTAMP")
