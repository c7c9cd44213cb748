"""Units and the only conversions between them.

Instants are integer nanoseconds on a run's monotonic axis (suffix `_ns`); durations that are metrics are float seconds
(suffix `_s`). Milliseconds appear only in rendered text.
"""

import re

NS_PER_S = 1_000_000_000

_LONGEST_S = 1e9
_DURATION = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>ns|us|µs|ms|s|min|m|h)?")
_UNIT_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}


def seconds(ns: int) -> float:
    """A difference of instants, ns, as seconds."""
    return ns / NS_PER_S


def nanoseconds(s: float) -> int:
    """Seconds as whole nanoseconds, rounded to nearest."""
    return round(s * NS_PER_S)


def parse_duration_ns(text: str | float) -> int:
    """Nanoseconds meant by `500ms`, `60s`, `2m`, `1m30s`, `1h`; a bare number is seconds.

    Raises ValueError, saying what was expected, for anything else, and for more than 1e9 s, some thirty years.
    """
    if isinstance(text, int | float):
        if isinstance(text, bool) or not 0 <= text <= _LONGEST_S:
            raise ValueError(f"expected a duration of zero or more, at most {_LONGEST_S:.0f} s, got {text!r}")
        return nanoseconds(text)
    total, position, stripped = 0, 0, text.strip()
    for match in _DURATION.finditer(stripped):
        unit = match["unit"]
        if match.start() != position or (unit is None and match.end() != len(stripped)):
            break
        part = float(match["number"]) * _UNIT_NS[unit or "s"]
        if part > _LONGEST_S * NS_PER_S:
            raise ValueError(f"expected a duration of at most {_LONGEST_S:.0f} s, got {text!r}")
        total += round(part)
        position = match.end()
    if not stripped or position != len(stripped):
        raise ValueError(f"expected a duration such as 500ms, 60s, 2m or 1m30s, got {text!r}")
    return total


def duration_text(s: float) -> str:
    """A duration for people: three significant digits in the unit that suits, such as `1.23 ms` or `2m 05s`."""
    if s < 0:
        return "-" + duration_text(-s)
    if s == 0:
        return "0 s"
    if s >= 60:
        minutes, rest = divmod(round(s), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s"
    if s >= 1:
        return f"{s:.3g} s"
    if s >= 1e-3:
        return f"{s * 1e3:.3g} ms"
    return f"{s * 1e6:.3g} µs"
