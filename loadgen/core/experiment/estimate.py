"""How much an experiment asks for and how long it should take, before anything is started."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadgen.core.experiment.plan import Plan, PlannedLevel
from loadgen.core.run import LoadMode
from loadgen.core.units import duration_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What an arm is expected to take: `start_s` for a start, `answer_s` for an answer at each level.

    Without `answer_s` that is not known.
    """

    start_s: float
    answer_s: Mapping[PlannedLevel, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Requests and tokens of the whole experiment, warm-up included, and its time.

    Tokens are what the data tells or asks for, None when it does not. `duration_s` is None when the length of answers
    of some arm is not known, `price` when that or the price of an hour is not. `sittings_s` is by the name of a
    sitting, `cells_s` by that of a cell, without the start. `basis` says what the times rest on.
    """

    requests: int
    warmup_requests: int
    input_tokens: int | None
    output_tokens: int | None
    duration_s: float | None
    price: float | None
    sittings_s: Mapping[str, float]
    cells_s: Mapping[str, float]
    basis: tuple[str, ...]

    def beyond(self, budget_s: float) -> str | None:
        """Why the experiment does not fit into that time; None when it does."""
        if self.duration_s is None:
            return (
                f"the budget is {duration_text(budget_s)}, and how long the experiment takes is not known: the data"
                " does not tell how long answers are, and there is no max_tokens"
            )
        if self.duration_s <= budget_s:
            return None
        return f"it should take {duration_text(self.duration_s)}, and the budget is {duration_text(budget_s)}"


def estimate(
    plan: Plan,
    expected: Mapping[str, Expected],
    *,
    input_tokens: float | None,
    output_tokens: float | None,
    cooldown_s: float,
    together: bool,
    price_per_hour: float | None,
    basis: Sequence[str],
) -> Estimate:
    """What the plan comes to. `expected` is by name of arm, token counts are means of a request.

    Servers that are up `together` start at the same time, once a repeat.
    """
    warmup = sum(level.warmup_requests for level in plan.levels) * len(plan.sittings)
    requests = warmup + sum(level.load.num_requests or 0 for level in plan.levels) * len(plan.sittings)
    starts_s = [expected[sitting.arm.name].start_s for sitting in plan.sittings]
    sittings_s: dict[str, float] = {}
    cells_s: dict[str, float] = {}
    for sitting, start_s in zip(plan.sittings, starts_s, strict=True):
        answer_s = expected[sitting.arm.name].answer_s
        if answer_s is not None:
            each_s = {cell.name: level_s(cell.level, answer_s[cell.level]) + cooldown_s for cell in sitting.cells}
            cells_s |= each_s
            sittings_s[sitting.name] = math.fsum(each_s.values()) + (0.0 if together else start_s)
    duration_s = price = None
    if len(sittings_s) == len(plan.sittings):
        duration_s = math.fsum(sittings_s.values()) + (plan.repeats * max(starts_s) if together else 0.0)
        price = None if price_per_hour is None else duration_s / 3600 * price_per_hour
    return Estimate(
        requests=requests,
        warmup_requests=warmup,
        input_tokens=None if input_tokens is None else round(requests * input_tokens),
        output_tokens=None if output_tokens is None else round(requests * output_tokens),
        duration_s=duration_s,
        price=price,
        sittings_s=sittings_s,
        cells_s=cells_s,
        basis=tuple(basis),
    )


def level_s(level: PlannedLevel, answer_s: float) -> float:
    """Seconds of one run: a closed loop's slots are always taken, an open loop lasts as long as its arrivals.

    The last answer ends alone.
    """
    requests = (level.load.num_requests or 0) + level.warmup_requests
    if level.load.mode is LoadMode.CONCURRENCY:
        return max(1.0, requests / level.value) * answer_s
    return requests / level.value + answer_s
