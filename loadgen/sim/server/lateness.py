"""How far a server in real time is behind its own plan, and when that is worth a word."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadgen.core.units import NS_PER_S, duration_text, seconds

LATE_NS = 1_000_000
_BEHIND_NS = 50_000_000
_UNSTEADY_NS = 5_000_000
_WINDOW_NS = NS_PER_S
_SILENCE_NS = 5 * NS_PER_S
_STEPS_PER_OCTAVE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LatenessReport:
    """Emissions so far; `late` of them more than 1 ms after they were due. The quantiles are of the distance from the
    instant at which one was due, either way, as upper bounds within 13 %.

    `missed` are requests that were not ready for the first step they should have been part of. None without emissions.
    """

    emissions: int
    late: int
    missed: int
    p50_s: float | None
    p99_s: float | None
    max_s: float | None


class Lateness:
    """Counts how late emissions were, and warns at most every few seconds: when they are more than 50 ms behind, and
    when one in a hundred of the last second's came more than 5 ms late.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._all, self._recent = _Histogram(), _Histogram()
        self._recent_since_ns = 0
        self._warned_ns: int | None = None
        self._late = 0
        self.missed = 0

    def note(self, late_ns: Sequence[int], now_ns: int) -> None:
        """Emissions of one burst, by how much each came after it was due; those that came before have less than 0."""
        if not late_ns:
            return
        for late in late_ns:
            self._all.add(abs(late))
            self._recent.add(abs(late))
            self._late += late > LATE_NS
        if min(late_ns) > _BEHIND_NS:
            self._say(f"the server is {duration_text(seconds(min(late_ns)))} behind its steps", now_ns)
        if now_ns - self._recent_since_ns >= _WINDOW_NS:
            p99_ns = self._recent.quantile_ns(0.99)
            if p99_ns is not None and p99_ns > _UNSTEADY_NS:
                self._say(f"one emission in a hundred is {duration_text(seconds(p99_ns))} late", now_ns)
            self._recent, self._recent_since_ns = _Histogram(), now_ns

    def report(self) -> LatenessReport:
        """The figures so far."""
        p50_ns, p99_ns = self._all.quantile_ns(0.5), self._all.quantile_ns(0.99)
        return LatenessReport(
            emissions=self._all.count,
            late=self._late,
            missed=self.missed,
            p50_s=None if p50_ns is None else seconds(p50_ns),
            p99_s=None if p99_ns is None else seconds(p99_ns),
            max_s=seconds(self._all.max_ns) if self._all.count else None,
        )

    def _say(self, text: str, now_ns: int) -> None:
        if self._warned_ns is None or now_ns - self._warned_ns >= _SILENCE_NS:
            self._warned_ns = now_ns
            self._warn(f"{text}: this machine is too slow for what it simulates, or busy")


class _Histogram:
    """Counts of durations, ns, in eight buckets an octave."""

    def __init__(self) -> None:
        self.count = 0
        self.max_ns = 0
        self._counts: dict[int, int] = {}

    def add(self, ns: int) -> None:
        octave = ns.bit_length() - 4
        bucket = ns if octave <= 0 else octave * _STEPS_PER_OCTAVE + (ns >> octave)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.count += 1
        if ns > self.max_ns:
            self.max_ns = ns

    def quantile_ns(self, p: float) -> int | None:
        """Nearest rank, as the upper end of its bucket; None when empty."""
        rank = math.ceil(p * self.count)
        seen = 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen >= rank:
                octave = bucket // _STEPS_PER_OCTAVE - 1
                steps = bucket - octave * _STEPS_PER_OCTAVE
                return min(self.max_ns, bucket if octave <= 0 else ((steps + 1) << octave) - 1)
        return None
