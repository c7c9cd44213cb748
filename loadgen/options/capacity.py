"""The options of `capacity`: those of a run, and what is searched."""

from typing import Literal, Self

from pydantic import AliasChoices, model_validator

from loadgen.core.analysis.ladder import ATTAINMENT
from loadgen.core.schedule.arrivals import HIGHEST_RATE_RPS, LOWEST_RATE_RPS
from loadgen.options.fields import DurationSeconds, option
from loadgen.options.load import MOST_REQUESTS, LoopOptions


class CapacityOptions(LoopOptions):
    """A search for the highest load that meets the objectives."""

    variable: Literal["concurrency", "request-rate"] = option(
        "concurrency",
        "What is raised: requests in flight (closed loop) or requests a second (open loop).",
        panel="Load",
        metavar="concurrency|request-rate",
    )
    start: float = option(1.0, "First level.", panel="Load", metavar="X", gt=0)
    most: float = option(
        512.0,
        "Highest level.",
        panel="Load",
        metavar="X",
        flags=("--max",),
        validation_alias=AliasChoices("max", "most"),  # requests to the service name it as the command line does
        gt=0,
    )
    precision: float = option(
        0.1,
        "The search ends when the level that fails is at most this share above the one that passes.",
        panel="Load",
        metavar="SHARE",
        gt=0,
        le=1,
    )
    repeats: int = option(1, "Runs of every level.", panel="Load", ge=1, le=100)
    further_repeats: int = option(
        2,
        "Further runs of a level that is not decided, each twice as long as the one before.",
        panel="Load",
        ge=0,
        le=10,
    )
    settle: DurationSeconds = option(
        1.0,
        "Pause between runs, where no metrics page tells that the server is idle.",
        panel="Load",
        metavar="TIME",
        ge=0,
    )
    gpus: int | None = option(None, "GPUs of the server, for the rate of each.", panel="Server", gt=0)

    num_requests: int | None = option(
        None,
        "Measured requests of a level's first run. Default: as many as tell the attainment, and 10 for each in flight.",
        panel="End",
        gt=0,
        le=MOST_REQUESTS,
    )
    duration: DurationSeconds | None = option(
        None, "Length of a level's first run instead of a number of requests.", panel="End", metavar="TIME", gt=0
    )
    warmup_requests: int | None = option(
        None,
        "Requests before the measured ones of every run. Default: 2 for each in flight, at least 4.",
        panel="End",
        ge=0,
        le=MOST_REQUESTS,
    )
    slo: str = option(..., "Objectives for each request, such as ttft=500ms,tpot=50ms,e2el=10s.", panel="Judging")
    slo_attainment: float = option(
        ATTAINMENT, "Share of requests that must meet the objectives, below 1.", panel="Judging", gt=0, lt=1
    )
    max_error_ratio: None = option(
        None, "Not for a search: a failed or dropped request counts as one that misses the objectives.", panel="Judging"
    )

    @model_validator(mode="after")
    def _can_be_searched(self) -> Self:
        by_rate = self.variable == "request-rate"
        if self.start > self.most:
            raise ValueError(f"--start {self.start:g} lies above --max {self.most:g}")
        if not by_rate and not (self.start.is_integer() and self.most.is_integer()):
            raise ValueError("--start and --max: expected whole numbers of requests in flight")
        if by_rate and not LOWEST_RATE_RPS <= self.start <= self.most <= HIGHEST_RATE_RPS:
            raise ValueError(
                f"--start and --max: expected rates from {LOWEST_RATE_RPS:g} to {HIGHEST_RATE_RPS:g} requests/s"
            )
        for flag, given in (
            ("--gpus", self.gpus is not None),
            ("--burstiness", self.burstiness is not None),
            ("--max-concurrency", self.max_concurrency is not None),
        ):
            if given and not by_rate:
                raise ValueError(f"{flag} needs --variable request-rate")
        if self.ramp_up > 0 and by_rate:
            raise ValueError("--ramp-up is for a closed loop; an open loop's warm-up is --warmup-requests")
        return self
