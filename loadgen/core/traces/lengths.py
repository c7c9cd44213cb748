"""Length distributions of synthetic requests: `128`, `128:32` (mean and standard deviation), `64-256` (from and to)."""

import re
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

LONGEST_TOKENS = 10_000_000
"""Longer than any context; an invented prompt of more would not be finished in a person's time."""

_FORMS = re.compile(r"(?P<one>\d+)|(?P<mean>\d+(?:\.\d+)?):(?P<sd>\d+(?:\.\d+)?)|(?P<low>\d+)-(?P<high>\d+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLength:
    """Always the same."""

    tokens: int

    def draw(self, random: np.random.Generator, n: int) -> NDArray[np.int64]:
        """`n` lengths, tokens."""
        return np.full(n, self.tokens, dtype=np.int64)

    def __str__(self) -> str:
        return str(self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalLength:
    """Normal, rounded to whole tokens; a draw below 1 becomes 1, which lifts the mean when sd is large beside it."""

    mean: float
    sd: float

    def draw(self, random: np.random.Generator, n: int) -> NDArray[np.int64]:
        """`n` lengths, tokens."""
        drawn = np.rint(random.normal(self.mean, self.sd, n))
        return np.clip(drawn, 1, LONGEST_TOKENS).astype(np.int64)

    def __str__(self) -> str:
        return f"{self.mean:g}:{self.sd:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformLength:
    """Uniform over whole tokens, both ends included."""

    low: int
    high: int

    def draw(self, random: np.random.Generator, n: int) -> NDArray[np.int64]:
        """`n` lengths, tokens."""
        return random.integers(self.low, self.high, size=n, endpoint=True)

    def __str__(self) -> str:
        return f"{self.low}-{self.high}"


LengthDistribution: TypeAlias = FixedLength | NormalLength | UniformLength


def parse_length(text: str | int) -> LengthDistribution:
    """The distribution meant by `128`, `128:32` or `64-256`. Raises ValueError, saying what was expected."""
    match = _FORMS.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"expected tokens as 128, 128:32 (mean and deviation) or 64-256 (from and to), got {text!r}")
    if match["one"]:
        lengths: LengthDistribution = FixedLength(tokens=int(match["one"]))
        least, most = int(match["one"]), float(match["one"])
    elif match["mean"]:
        lengths = NormalLength(mean=float(match["mean"]), sd=float(match["sd"]))
        least, most = int(float(match["mean"])), max(float(match["mean"]), float(match["sd"]))
    else:
        lengths = UniformLength(low=int(match["low"]), high=int(match["high"]))
        least, most = int(match["low"]), float(match["high"])
        if least > most:
            raise ValueError(f"expected the lower number first, got {text!r}")
    if least < 1 or most > LONGEST_TOKENS:
        raise ValueError(f"expected from 1 to {LONGEST_TOKENS} tokens, got {text!r}")
    return lengths
