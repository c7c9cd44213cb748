"""How long what is left of an experiment should take, while it is under way."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from loadgen.core.experiment.estimate import Estimate
from loadgen.core.experiment.plan import PlannedArm, PlannedCell, Sitting


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A sitting with the cells that are still to be run; `place` is its number in the plan."""

    place: int
    sitting: Sitting
    cells: tuple[PlannedCell, ...]


@dataclass(slots=True, kw_only=True)
class TimeLeft:
    """What is still to come, by the estimate and by how it went so far.

    Cells take longer or shorter than estimated as those before did. A start takes the median of those seen of its kind
    of server, and before the first what was expected: `starts_s`, by kind. `servers` are the kinds, by arm of the file.
    """

    estimate: Estimate
    servers: Mapping[str, str]
    starts_s: Mapping[str, float]
    _expected_s: float = 0.0
    _took_s: float = 0.0
    _seen_s: dict[str, list[float]] = field(default_factory=dict)

    def took(self, cell: PlannedCell, took_s: float) -> None:
        """A cell has ended."""
        if cell.name in self.estimate.cells_s:
            self._expected_s += self.estimate.cells_s[cell.name]
            self._took_s += took_s

    def started(self, arm: PlannedArm, start_s: float | None) -> None:
        """A server took that long to start; None for one that did not come up, from which nothing is learned."""
        if start_s is not None:
            self._seen_s.setdefault(self.servers[arm.of], []).append(start_s)

    def of(self, cells: Iterable[PlannedCell], *, starts: Iterable[Sequence[PlannedArm]]) -> float | None:
        """Seconds for these cells and for these starts, each of servers that start at the same time.

        None where the estimate does not know.
        """
        if self.estimate.duration_s is None:
            return None
        pace = self._took_s / self._expected_s if self._expected_s else 1.0
        runs_s = math.fsum(self.estimate.cells_s[cell.name] for cell in cells) * pace
        return runs_s + math.fsum(max(map(self._start_s, arms)) for arms in starts)

    def _start_s(self, arm: PlannedArm) -> float:
        kind = self.servers[arm.of]
        seen_s = self._seen_s.get(kind)
        return median(seen_s) if seen_s else self.starts_s[kind]
