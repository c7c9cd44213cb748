"""Per-request columns: the numbers of every record side by side, a few hundred bytes a request."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadgen.core.metrics.per_request import REQUEST_METRICS, is_good, output_tokens, own_lag_s
from loadgen.core.record import Outcome, RequestRecord
from loadgen.core.request import Phase

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_AS_RECORDED = ("seq", "due_ns", "sent_ns", "closed_ns", "cap_wait_ns", "input_tokens")
_OUTCOMES = tuple(Outcome)
_OWN = {"own_lag_s": own_lag_s, "output_tokens": output_tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns in file order; NaN where a record has no value. Instants in ns are exact up to 104 days of a run.

    `measured` marks the requests of the measured phase, `later_turn` those that follow another turn of their session,
    `good` those that met every objective.
    """

    columns: Mapping[str, Floats]
    measured: Mask
    later_turn: Mask
    good: Mask
    outcome: NDArray[np.uint8]

    def __getitem__(self, name: str) -> Floats:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.measured)

    def has(self, outcome: Outcome) -> Mask:
        """Which requests ended so."""
        wanted: Mask = self.outcome == _OUTCOMES.index(outcome)
        return wanted

    @property
    def started_ns(self) -> Floats:
        """When each request's turn came: due, or sent where nothing was planned."""
        due = self["due_ns"]
        return np.where(np.isnan(due), self["sent_ns"], due)

    def ascending(self, name: str, population: Mask) -> Floats:
        """The values that a population has of one metric, sorted."""
        values = self[name][population]
        return np.sort(values[~np.isnan(values)])


class Columns:
    """Takes records one by one; `table` freezes what was taken."""

    def __init__(self, objectives: Mapping[str, float]) -> None:
        self._objectives = objectives
        self._metrics = {**REQUEST_METRICS, **_OWN}
        self._values = {name: array("d") for name in (*_AS_RECORDED, "stamp_lag_s", *self._metrics)}
        self._measured, self._later_turn, self._good, self._outcome = array("B"), array("B"), array("B"), array("B")

    def observe(self, record: RequestRecord) -> None:
        """Adds one record of any phase and outcome."""
        values = self._values
        for name in _AS_RECORDED:
            values[name].append(_number(getattr(record, name)))
        values["stamp_lag_s"].append(_number(record.stamp_lag_ns) / 1e9)
        for name, metric in self._metrics.items():
            values[name].append(_number(metric(record)))
        self._measured.append(record.phase is Phase.MEASURE)
        self._later_turn.append(bool(record.turn))
        self._good.append(is_good(record, self._objectives))
        self._outcome.append(_OUTCOMES.index(record.outcome))

    def table(self) -> Table:
        """Everything taken so far."""
        return Table(
            columns={name: np.array(values, dtype=np.float64) for name, values in self._values.items()},
            measured=np.array(self._measured, dtype=np.bool_),
            later_turn=np.array(self._later_turn, dtype=np.bool_),
            good=np.array(self._good, dtype=np.bool_),
            outcome=np.array(self._outcome, dtype=np.uint8),
        )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
