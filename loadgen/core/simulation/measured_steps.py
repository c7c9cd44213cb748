"""Measured step times as people write them: `1:7.1ms:9.3ms,64:10ms:17ms`, or a CSV file with three columns."""

import csv
import math
import re
from collections.abc import Iterable

from loadgen.core.errors import ConfigError, TraceFormatError
from loadgen.core.simulation.prediction import MeasuredSteps

COLUMNS = ("concurrency", "t_ar_s", "t_sd_s")
"""Columns of a file: how many requests decode, seconds of a step without and with speculation."""

_TIME = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d+)?)\s*(ns|us|µs|ms|s)?")
_SCALES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, None: 1.0}

Row = tuple[float, float, float]


def is_inline(text: str) -> bool:
    """Whether a value holds the times themselves, rather than the name of a file."""
    return re.match(r"\s*[\d.]+\s*:", text) is not None


def parse_inline(text: str) -> MeasuredSteps:
    """`CONCURRENCY:PLAIN:SPECULATIVE` times, separated by commas; a bare number is seconds.

    Raises ConfigError that names the part.
    """
    rows = []
    for part in text.split(","):
        fields = part.strip().split(":")
        if len(fields) != 3:
            raise ConfigError(f"expected CONCURRENCY:PLAIN:SPECULATIVE such as 16:8ms:12ms, got {part.strip()!r}")
        try:
            rows.append((_number(fields[0]), parse_time_s(fields[1]), parse_time_s(fields[2])))
        except ValueError as error:
            raise ConfigError(f"in {part.strip()!r}: {error}") from None
    return _checked(rows, "the step times")


def parse_csv(lines: Iterable[str], path: str) -> MeasuredSteps:
    """A CSV file whose header holds at least the three columns.

    Raises TraceFormatError with file, line and field, or ConfigError for rows that do not fit together.
    """
    reader = csv.DictReader(lines)
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise TraceFormatError(path, 1, f"expected the columns {', '.join(COLUMNS)}; {', '.join(missing)} missing")
    rows = []
    for row in reader:
        values = []
        for name in COLUMNS:
            try:
                values.append(parse_time_s(row[name] or "") if name.endswith("_s") else _number(row[name] or ""))
            except ValueError as error:
                raise TraceFormatError(path, reader.line_num, str(error), field=name) from None
        rows.append((values[0], values[1], values[2]))
    return _checked(rows, path)


def _checked(rows: list[Row], where: str) -> MeasuredSteps:
    if not rows:
        raise ConfigError(f"{where}: expected at least one row")
    rows.sort()
    levels = [row[0] for row in rows]
    if len(set(levels)) < len(levels):
        raise ConfigError(f"{where}: a concurrency stands twice")
    concurrency, plain_s, speculative_s = zip(*rows, strict=True)
    return MeasuredSteps(concurrency=concurrency, plain_s=plain_s, speculative_s=speculative_s)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 1 or math.isinf(value):
        raise ValueError(f"expected a concurrency of 1 or more, got {text.strip()!r}")
    return value


def parse_time_s(text: str) -> float:
    """Seconds meant by `8ms`, `39.3ns` or `0.008`. Raises ValueError for anything but a time above 0."""
    found = _TIME.fullmatch(text.strip())
    value = float(found[1]) * _SCALES[found[2]] if found else 0.0
    if not 0 < value < math.inf:
        raise ValueError(f"expected a time above 0 such as 8ms or 0.008, got {text.strip()!r}")
    return value
