"""How much load a run may ask for."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from loadgen.options.capacity import CapacityOptions
from loadgen.options.experiment import ExperimentFile
from loadgen.options.load import RunOptions, SweepOptions
from loadgen.service.problems import FieldProblem

LoadOptions = RunOptions | SweepOptions | CapacityOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most of each that a run may ask for."""

    concurrency: int
    rate_rps: float
    run_time_s: float

    def narrowed(self, given: dict[str, Any]) -> "Limits":
        """With those of a key, where they are lower."""
        mine = asdict(self)
        return Limits(**{name: min(value, given.get(name) or value) for name, value in mine.items()})

    def exceeded(self, options: LoadOptions) -> Iterator[FieldProblem]:
        """What a run asks for beyond them."""
        match options:
            case RunOptions():
                yield from self._loop("/options/concurrency", options.concurrency)
                yield from self._rate("/options/request_rate", options.request_rate)
                if options.replay and (options.max_concurrency or self.concurrency + 1) > self.concurrency:
                    yield FieldProblem(
                        pointer="/options/max_concurrency",
                        detail=f"a replay needs one of at most {self.concurrency}: its rate stands in the trace",
                    )
            case SweepOptions():
                yield from self._loop("/options/concurrency", max(options.concurrency or [1]))
                yield from self._rate("/options/request_rate", max(options.request_rate or [0.0]))
            case CapacityOptions(variable="concurrency"):
                yield from self._loop("/options/max", options.most)
            case CapacityOptions():
                yield from self._rate("/options/max", options.most)
        if options.max_concurrency is not None:
            yield from self._loop("/options/max_concurrency", options.max_concurrency)

    def exceeded_by_experiment(self, file: ExperimentFile) -> Iterator[FieldProblem]:
        """The same of an experiment's levels."""
        yield from self._loop("/options/load/concurrency", max(file.load.concurrency or [1]))
        yield from self._rate("/options/load/request_rate", max(file.load.request_rate or [0.0]))

    def _loop(self, pointer: str, asked: float | None) -> Iterator[FieldProblem]:
        if asked is not None and asked > self.concurrency:
            yield FieldProblem(pointer=pointer, detail=f"at most {self.concurrency} requests in flight are allowed")

    def _rate(self, pointer: str, asked: float | None) -> Iterator[FieldProblem]:
        if asked is not None and asked > self.rate_rps:
            yield FieldProblem(pointer=pointer, detail=f"at most {self.rate_rps:g} requests a second are allowed")
