"""What can be pushed: metrics as the page has them."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from loadgen.core.stats.histogram import Histogram


class Series(Protocol):
    """One series: its labels, and a number or a histogram."""

    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def value(self) -> float | Histogram: ...


class Family(Protocol):
    """A metric with its series."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Literal["counter", "gauge", "histogram"]: ...
    @property
    def help(self) -> str: ...
    @property
    def series(self) -> Sequence[Series]: ...
