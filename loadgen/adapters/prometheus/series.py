"""What a page is made of: series with their labels, by metric."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from loadgen.core.stats.histogram import Histogram

Kind = Literal["counter", "gauge", "histogram"]
PREFIX = "loadgen_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What tells the series of one server under one workload from those of another."""

    server: str
    method: str
    model: str
    workload: str

    def as_dict(self) -> dict[str, str]:
        """By name."""
        return {"server": self.server, "method": self.method, "model": self.model, "workload": self.workload}


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series: a number or a histogram; `unix_s` where it is not of now."""

    labels: Mapping[str, str]
    value: float | Histogram
    unix_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A metric. `unit` is the end of its name where Prometheus knows the unit."""

    name: str
    kind: Kind
    help: str
    series: tuple[Series, ...]
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A metric without its values."""

    name: str
    kind: Kind
    help: str
    unit: str = ""

    @classmethod
    def of(cls, name: str, kind: Kind, text: str, unit: str = "") -> "Spec":
        """By the name after the prefix."""
        return cls(name=PREFIX + name, kind=kind, help=text, unit=unit)

    def family(self, series: Iterable[Series]) -> Family:
        """With values."""
        return Family(name=self.name, kind=self.kind, help=self.help, series=tuple(series), unit=self.unit)
