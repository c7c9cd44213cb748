"""What an experiment sends, under which loads, and how much of it."""

from typing import Literal, Self

from pydantic import Field, model_validator

from loadgen.adapters.yaml_file import FieldError
from loadgen.options.experiment.section import DataFile, Section, Text
from loadgen.options.fields import DurationSeconds, FloatLadder, IntLadder, PublicJson


class SyntheticSection(Section):
    """Made-up prompts; lengths as N, MEAN:SD or LOW-HIGH."""

    input_tokens: Text = "128"
    output_tokens: Text = "64"
    shared_prefix_tokens: int = 0


class WorkloadSection(Section):
    """What every arm is sent, the same at every repeat. The fields are those of `loadgen run`."""

    trace: DataFile | None = None
    trace_format: str = "auto"
    trace_from: DurationSeconds | None = None
    trace_to: DurationSeconds | None = None
    prompts: DataFile | None = None
    synthetic: SyntheticSection | None = None
    on_bad_row: Literal["stop", "skip"] = "stop"
    max_context: int | None = None
    history: Literal["answers", "recorded"] = "answers"
    max_tokens: int | None = None
    ignore_eos: bool = False
    temperature: float | None = None
    extra_body: PublicJson = Field(default_factory=dict)
    seed: int = 0

    @model_validator(mode="after")
    def _one_kind_of_data(self) -> Self:
        if self.synthetic is not None and (self.trace is not None or self.prompts is not None):
            raise FieldError("expected a file or made-up prompts, not both", "synthetic")
        if self.synthetic is None and self.trace is None and self.prompts is None:
            raise ValueError("expected trace, prompts or synthetic")
        return self


class LoadSection(Section):
    """The ladder, or both."""

    concurrency: IntLadder | None = None
    request_rate: FloatLadder | None = None
    burstiness: float | None = Field(None, allow_inf_nan=True)
    max_concurrency: int | None = None

    @model_validator(mode="after")
    def _some_ladder(self) -> Self:
        if self.concurrency is None and self.request_rate is None:
            raise ValueError("expected concurrency, request_rate or both")
        return self


class LevelSection(Section):
    """How much is sent at each level: as many requests at all, as many as each level is given, or for a duration.

    A duration is for rates: what arrives in that time, the same for every arm.
    """

    num_requests: int | None = None
    num_requests_by_level: dict[float, int] = Field(default_factory=dict)
    duration: DurationSeconds | None = Field(default=None, gt=0)
    warmup_requests: int | None = None

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        given = [name for name in ("num_requests", "num_requests_by_level", "duration") if getattr(self, name)]
        if len(given) > 1:
            raise FieldError(f"expected one of {' and '.join(given)}", given[-1])
        for level, requests in self.num_requests_by_level.items():
            if requests < 1:
                raise FieldError(
                    f"expected a number of 1 or more at {level:g}, got {requests}", "num_requests_by_level"
                )
        return self

    def requests_at(self, level: float) -> int | None:
        """Measured requests that the file names for a level; None where it leaves that to the data."""
        if self.duration is not None:  # of rates: requests a second times seconds
            return max(1, round(level * self.duration))
        return self.num_requests_by_level.get(level, self.num_requests)
