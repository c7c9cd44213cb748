"""How long what is left of an experiment should take, while it is under way."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.core.experiment.estimate import Estimate
from loadgen.core.experiment.plan import PlannedCell, Sitting


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A sitting with the cells that are still to be run; `place` is its number in the plan."""

    place: int
    sitting: Sitting
    cells: tuple[PlannedCell, ...]


@dataclass(slots=True, kw_only=True)
class TimeLeft:
    """What is still to come, by the estimate and by how cells took longer or shorter than it said."""

    estimate: Estimate
    _expected_s: float = 0.0
    _took_s: float = 0.0

    def took(self, cell: PlannedCell, took_s: float) -> None:
        """A cell has ended."""
        if cell.name in self.estimate.cells_s:
            self._expected_s += self.estimate.cells_s[cell.name]
            self._took_s += took_s

    def after(self, cells: Sequence[PlannedCell], sittings: Sequence[Pending]) -> float | None:
        """Seconds for these cells and then for these sittings; None where the estimate does not know."""
        cells_s, sittings_s = self.estimate.cells_s, self.estimate.sittings_s
        if self.estimate.duration_s is None:
            return None
        runs_s = [cells_s[cell.name] for cell in (*cells, *(cell for each in sittings for cell in each.cells))]
        starts_s = [
            sittings_s[each.sitting.name] - math.fsum(cells_s[cell.name] for cell in each.sitting.cells)
            for each in sittings
        ]
        pace = self._took_s / self._expected_s if self._expected_s else 1.0
        return math.fsum(runs_s) * pace + math.fsum(starts_s)
