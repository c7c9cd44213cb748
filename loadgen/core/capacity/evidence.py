"""What runs at one level say about the share of requests that meet the objectives."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.core.analysis.columns import Mask
from loadgen.core.stats.proportion import wilson

MOST_CORRELATION = 0.99
"""However alike neighbours are, they are taken to differ at least this little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Requests that were due and those of them that were good, of one run or of several.

    `pairs` are neighbours in the order in which they were due, `bad_pairs` those of which neither was good.
    """

    due: int
    good: int
    pairs: int
    bad_pairs: int

    @classmethod
    def of(cls, good: Mask) -> "Evidence":
        """Of one run, its due requests in order."""
        bad = ~good
        return cls(
            due=len(good),
            good=int(np.count_nonzero(good)),
            pairs=max(0, len(good) - 1),
            bad_pairs=int(np.count_nonzero(bad[1:] & bad[:-1])),
        )

    @property
    def ratio(self) -> float | None:
        """Attainment: good / due. None when nothing was due."""
        return self.good / self.due if self.due else None

    @property
    def independent(self) -> float:
        """How many independent requests would say as much: due * (1 - r) / (1 + r).

        r is the correlation of neighbours, 0 at the least: requests that miss an objective come in crowds, because they
        waited in the same queue.
        """
        bad = 1 - self.good / self.due if self.due else 0.0
        spread = bad * (1 - bad)
        if not spread or not self.pairs:
            return float(self.due)
        r = min(max((self.bad_pairs / self.pairs - bad**2) / spread, 0.0), MOST_CORRELATION)
        return self.due * (1 - r) / (1 + r)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of attainment, by Wilson; from 0 to 1 when nothing was due."""
        return wilson(self.good / self.due, self.independent) if self.due else (0.0, 1.0)


def pooled(runs: Sequence[Evidence]) -> Evidence:
    """All runs together."""
    return Evidence(
        due=sum(run.due for run in runs),
        good=sum(run.good for run in runs),
        pairs=sum(run.pairs for run in runs),
        bad_pairs=sum(run.bad_pairs for run in runs),
    )
