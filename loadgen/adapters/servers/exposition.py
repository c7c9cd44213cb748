"""A metrics page in Prometheus' text form, as far as it is asked for: from text to series to sums over them."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from prometheus_client.parser import text_string_to_metric_families

from loadgen.core.server.sample import Counters

Names = tuple[str, ...]
"""What one figure has been called over an engine's versions, newest first."""

_NAME = re.compile(r"\s*([^\s{]+)")

_PLAIN_LINE = re.compile(r"([^\s{#]+(?:\{[^#]*\})?) (\S+)")
"""A line without a time stamp or an exemplar, and without the sign that an exemplar begins with."""
_HEADS_KEPT = 16_384
_LINE_MOST = 8192
_SERIES_MOST = 10_000
_POSITIONS_MOST = 1024
_VALUE_MOST = 1e300  # so that no sum of series is beyond a float
"""What a page may ask of its reader, who has a load to drive meanwhile."""

PROCESS_START = "process_start_time_seconds"
_SHOWN_CHARACTERS = 120
_SHOWN_MODELS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line of a page; `value` is None where it is no finite number, or next to infinite."""

    name: str
    labels: Mapping[str, str]
    value: float | None


@dataclass(frozen=True, slots=True)
class Page:
    """The series of a page that a reader asked for, each label set once."""

    series: tuple[Series, ...]

    def where(self, label: str, value: str) -> Self:
        """The series with this label value."""
        return type(self)(tuple(each for each in self.series if each.labels.get(label) == value))

    def parts(self, label: str) -> dict[str, Self]:
        """The series by the value of a label, in order of the values; those without it are left out."""
        found: dict[str, list[Series]] = {}
        for each in self.series:
            if label in each.labels:
                found.setdefault(each.labels[label], []).append(each)
        return {value: type(self)(tuple(found[value])) for value in sorted(found)}

    def values(self, label: str) -> tuple[str, ...]:
        """The values that a label takes, in order."""
        return tuple(sorted({each.labels[label] for each in self.series if label in each.labels}))

    def named(self, names: Names) -> tuple[Series, ...]:
        """The series under the first of the names that is on the page."""
        for name in names:
            if found := tuple(each for each in self.series if each.name == name):
                return found
        return ()

    def total(self, names: Names) -> float | None:
        """The sum over label sets; None when there are none, or one of them is no number."""
        return _sum([each.value for each in self.named(names)])

    def by_position(self, names: Names, label: str) -> tuple[float, ...] | None:
        """Sums by a label that counts from 0; a position that never came up is 0. None when there are none.

        Raises ValueError for a position that no draft reaches.
        """
        found = [each for each in self.named(names) if each.labels.get(label, "").isdecimal()]
        places = [int(each.labels[label]) for each in found]
        if not found:
            return None
        if max(places) >= _POSITIONS_MOST:
            raise ValueError(f"{found[0].name} has a position of {max(places)}, which no draft reaches")
        sums = [0.0] * (max(places) + 1)
        for place, each in zip(places, found, strict=True):
            if each.value is None:
                return None
            sums[place] += each.value
        return tuple(sums)

    def counters(self, table: Mapping[str, Names], **others: Any) -> Counters:
        """Counters by field name, each the total of its names."""
        totals: dict[str, Any] = {field: self.total(names) for field, names in table.items()}
        return Counters(**totals, **others)

    def gaps(self, table: Mapping[str, Names]) -> tuple[str, ...]:
        """The fields, of which a series is on the page and is no number."""
        return tuple(field for field, names in table.items() if any(each.value is None for each in self.named(names)))


def counter(*names: str) -> Names:
    """The names of a counter, each with and without the ending that exporters give to counters."""
    return tuple(form for name in names for form in (f"{name}_total", name))


def read_page(text: str, wanted: Collection[str]) -> Page:
    """The series on a page whose names are wanted; other lines, buckets above all, are never parsed.

    A label set that is there twice with one value counts once. Raises ValueError, with a reason for people, for what
    is no complete page, for a wanted line that cannot be read or is endless, for more series than an engine has, and
    for a label set with two values.
    """
    if text.lstrip()[:1] in ("<", "{", "["):
        raise ValueError(f"not a metrics page in text form: it begins with {text.lstrip()[:20]!r}")
    if text and not text.endswith("\n"):
        raise ValueError("the metrics page is cut off: its last line does not end")
    found: dict[tuple[str, frozenset[tuple[str, str]]], Series] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        name = _NAME.match(line)
        if name is None or name[1] not in wanted:
            continue
        if len(line) > _LINE_MOST:
            raise ValueError(f"line {number}: {_shown(line)} is longer than {_LINE_MOST} characters")
        if len(found) >= _SERIES_MOST:
            raise ValueError(f"line {number}: more than {_SERIES_MOST} series of metrics that are read")
        series = _series(line, number)
        known = found.setdefault((series.name, frozenset(series.labels.items())), series)
        if known.value != series.value:
            raise ValueError(f"line {number}: {_shown(line)} was there before with another value")
    return Page(tuple(found.values()))


def started_unix_s(page: Page) -> float | None:
    """When the process behind the page says that it started; None when it does not, or when several do."""
    found = page.named((PROCESS_START,))
    return found[0].value if len(found) == 1 else None


def of_model(page: Page, model: str) -> Page:
    """The series of one model, by `model_name`; all of them where no series names a model.

    A page that names one model alone is about the model asked for, under its first name: servers give their aliases
    and adapters no series of their own. Raises ValueError when it names several others.
    """
    names = page.values("model_name")
    if not names:
        return page
    if model not in names and len(names) > 1:
        shown = ", ".join(names[:_SHOWN_MODELS]) + (", …" if len(names) > _SHOWN_MODELS else "")
        raise ValueError(f"no series of model {model!r}: the page has {shown}")
    return page.where("model_name", model if model in names else names[0])


def expect_some(page: Page, engine: str) -> None:
    """Raises ValueError for a page without a single series that the engine should have."""
    if not any(each.name != PROCESS_START for each in page.series):
        raise ValueError(f"nothing on the page is a metric of {engine} that is known")


def _series(line: str, number: int) -> Series:
    plain = _PLAIN_LINE.fullmatch(line)
    try:
        if plain is None:
            name, labels, value = _parsed(line)
        else:
            (name, labels, _), value = _head(plain[1]), float(plain[2])
    except (ValueError, IndexError, OverflowError) as fault:
        raise ValueError(f"line {number}: {_shown(line)} cannot be read") from fault
    return Series(name=name, labels=labels, value=value if abs(value) < _VALUE_MOST else None)


def _parsed(line: str) -> tuple[str, Mapping[str, str], float]:
    ((sample,),) = [family.samples for family in text_string_to_metric_families(line)]
    return sample.name, sample.labels, float(sample.value)


@lru_cache(maxsize=_HEADS_KEPT)
def _head(text: str) -> tuple[str, Mapping[str, str], float]:
    """A name and its labels, which a page repeats at every reading: to parse them costs most of a line's time."""
    return _parsed(f"{text} 0")


def _shown(line: str) -> str:
    return repr(line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "…")


def _sum(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return math.fsum(there) if values and len(there) == len(values) else None
