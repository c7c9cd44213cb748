"""Arms against a baseline over a ladder of load: all that a report of them says, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from loadgen.core.analysis.findings.outcomes import came_to_nothing
from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.choice import Choice, Schedule
from loadgen.core.comparison.crossover import Crossover
from loadgen.core.comparison.explanation import Explanation, Fall, Told
from loadgen.core.comparison.gain import Gain
from loadgen.core.comparison.gates import JudgedGate
from loadgen.core.comparison.losslessness import Losslessness
from loadgen.core.comparison.noise import NoiseFloor
from loadgen.core.comparison.objection import Objection
from loadgen.core.comparison.pareto import OperatingPoint
from loadgen.core.comparison.trade_off import TradeOff
from loadgen.core.comparison.verdict import LevelVerdict
from loadgen.core.metrics.summary import Summary, Verdict
from loadgen.core.simulation.prediction import Bounds

COMPARISON_SCHEMA = "loadgen.comparison/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to serve: its `name` in cells and folders, its `label` for people.

    `method` and `draft_tokens` are None without speculation, or where nobody says, `gpus` where nobody says on how many
    the server runs. `configuration` is how it was told to speculate, in the engine's own words: keys beside those of
    draft lengths, as far as they are known.
    """

    name: str
    label: str
    method: str | None = None
    draft_tokens: int | None = None
    gpus: int | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRun:
    """One run of an arm: what it is compared by, and its summary."""

    cell: Cell
    summary: Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a model of the server expected of an arm at one level: speedup of TPOT, and break-even tokens per step.

    `bounds` are speedups of decoding that it says cannot be passed.
    """

    speedup: float
    break_even_length: float
    bounds: Bounds | None = None


class Uncompared(StrEnum):
    """Why a level of an arm is not compared with the baseline's."""

    FEW = "too few requests have a TPOT in every run of both"
    NO_PAIR = "there is no repeat in which both were run"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmLevel:
    """One arm at one level, over its repeats: geometric means, and the verdict on all of its measurements together.

    `tpot_s` is the mean over requests, `acceptance_length` and `tokens_per_step` as in a summary.
    `cost_per_million_tokens` is the price of an hour over the output tokens of an hour, at the arm's own throughput at
    this level. `gain` and `explanation` are None for the baseline, and where nothing can be compared: `uncompared` says
    why. `objections` speak against the arm also there.
    """

    level: float
    requests: int
    tpot_s: float | None
    output_tokens_per_s: float | None
    acceptance_length: float | None
    tokens_per_step: float | None
    cost_per_million_tokens: float | None
    told: Told
    measurement: Verdict
    gain: Gain | None
    uncompared: Uncompared | None
    objections: tuple[Objection, ...] = ()
    explanation: Explanation | None
    expected: Expectation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmLadder:
    """One arm over its levels, ascending.

    `crossover`, `faster_up_to` and `fall` are of the speedup of mean TPOT, where the measurements are valid; None for
    the baseline. `losslessness` is None where texts were not compared.
    """

    arm: Arm
    levels: tuple[ArmLevel, ...]
    crossover: Crossover | None
    faster_up_to: float | None
    fall: Fall | None
    losslessness: Losslessness | None

    @property
    def verdicts(self) -> list[LevelVerdict]:
        """Of the levels that could be compared."""
        return [level.gain.verdict for level in self.levels if level.gain is not None]

    @property
    def gains(self) -> dict[float, Gain]:
        """By level, of those that could be compared."""
        return {level.level: level.gain for level in self.levels if level.gain is not None}

    @property
    def objections(self) -> tuple[Objection, ...]:
        """What speaks against it whatever its speed, level by level."""
        return tuple(each for level in self.levels for each in level.objections)

    @property
    def trade_offs(self) -> tuple[TradeOff, ...]:
        """What it loses and does not gain where its TPOT pays, level by level."""
        return tuple(each for gain in self.gains.values() for each in gain.trade_offs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsComparison:
    """Arms over the levels of a `variable`, each against the baseline. `repeats` counts the starts of each arm.

    `again` is the baseline against itself, from a second start in every repeat; None when that was not measured.
    `noise` is how far it is from itself in each metric. Of the runs that were planned, those of `again` and forced ones
    included, `finished_runs` are there; None where nobody planned any.
    `choices` says what to run at each level, `schedules` how many tokens to draft at which batch size, by method.
    `pareto` are the operating points that no other one beats, for each GPU where `per_gpu`. Costs are in the currency
    of `price_per_hour`.
    `gates` are judged for every arm at every level.
    """

    schema: str = COMPARISON_SCHEMA
    name: str
    variable: str
    repeats: int
    baseline: ArmLadder
    arms: tuple[ArmLadder, ...]
    again: ArmLadder | None
    noise: tuple[NoiseFloor, ...]
    choices: tuple[Choice, ...]
    schedules: tuple[Schedule, ...]
    pareto: tuple[OperatingPoint, ...]
    price_per_hour: float | None
    notes: tuple[str, ...]
    gates: tuple[JudgedGate, ...] = ()
    finished_runs: int
    planned_runs: int | None

    @property
    def one_start(self) -> bool:
        """Whether each arm was started once, so that nothing is known of how much starts differ."""
        return self.repeats == 1

    @property
    def ladders(self) -> tuple[ArmLadder, ...]:
        """Of every arm, the baseline's first, its second start last."""
        return (self.baseline, *self.arms, *(() if self.again is None else (self.again,)))

    @property
    def per_gpu(self) -> bool:
        """Whether throughput can be told for each GPU: of every arm it is known on how many it runs."""
        return all(ladder.arm.gpus is not None for ladder in self.ladders)

    @property
    def complete(self) -> bool:
        """Whether every run that was planned is there."""
        return self.planned_runs is None or self.finished_runs >= self.planned_runs

    @property
    def valid(self) -> bool:
        """Whether every measurement of it is."""
        return all(level.measurement.valid for ladder in self.ladders for level in ladder.levels)

    @property
    def decided(self) -> bool:
        """Whether gates may decide: every measurement is valid, or came to nothing, which is a way to fail them."""
        found = (level.measurement for ladder in self.ladders for level in ladder.levels)
        return all(verdict.valid or came_to_nothing(verdict) for verdict in found)
