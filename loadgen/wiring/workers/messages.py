"""What leader and workers say to each other: one object of strict JSON a line, with its `type`."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from loadgen.core.request import RequestTemplate
from loadgen.core.run import Load
from loadgen.core.schedule.share import Share
from loadgen.engine.live import LiveCounts
from loadgen.engine.outlook import Outlook
from loadgen.engine.runner import RunEnd
from loadgen.options.capacity import CapacityOptions
from loadgen.options.load import CommonOptions, RunOptions, SweepOptions
from loadgen.wiring.workers.counted import CountedTotals
from loadgen.wiring.workload import Workload

OPTIONS: Mapping[str, type[CommonOptions]] = {"run": RunOptions, "sweep": SweepOptions, "capacity": CapacityOptions}
LONGEST_LINE_BYTES = 64 * 2**20


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """The run's time axis. `origin_monotonic_ns` is None for a worker on another machine, whose wall clock is
    `clock_ahead_ns` ahead of the leader's."""

    origin_unix_ns: int
    origin_monotonic_ns: int | None = None
    clock_ahead_ns: int = 0


class Job(msgspec.Struct, tag="job", tag_field="type", frozen=True, kw_only=True):
    """What a worker is to do. `load`, `warmup_requests` and `seed` are those of the whole run.

    `options` are the resolved options of the `command`, secrets included. `records` is the file for its records, which
    must not be there yet. `secrets` are kept out of it, beside those that the options hold. `totals`: counts for
    metrics are wanted.
    """

    command: Literal["run", "sweep", "capacity"]
    options: dict[str, Any]
    seed: int
    load: Load
    share: Share
    run_id: str
    template: RequestTemplate
    warmup_requests: int
    first_pass: int
    axis: Axis
    records: str
    secrets: tuple[str, ...] = ()
    totals: bool = False


class Start(msgspec.Struct, tag="start", tag_field="type", frozen=True, kw_only=True):
    """The load begins at that instant."""

    at_ns: int


class Measuring(msgspec.Struct, tag="measuring", tag_field="type", frozen=True, kw_only=True):
    """The measured phase of the run begins at that instant; an earlier one may follow."""

    at_ns: int


class Stop(msgspec.Struct, tag="stop", tag_field="type", frozen=True, kw_only=True):
    """No further request is to start."""

    reason: str


class Abort(msgspec.Struct, tag="abort", tag_field="type", frozen=True, kw_only=True):
    """What is in flight is not waited for either."""


class Ready(msgspec.Struct, tag="ready", tag_field="type", frozen=True, kw_only=True):
    """All is ready for the first request. `requests` and `sha256` are of the data: they must be the leader's."""

    requests: int
    sha256: str | None = None

    @classmethod
    def over(cls, workload: Workload) -> "Ready":
        """With this data."""
        facts = workload.source.facts
        return cls(requests=facts.requests, sha256=facts.sha256)


class Began(msgspec.Struct, tag="began", tag_field="type", frozen=True, kw_only=True):
    """The first measured request of this worker is due, or leaves, at that instant."""

    at_ns: int


class Progress(msgspec.Struct, tag="progress", tag_field="type", frozen=True, kw_only=True):
    """How far it is. `counts` and `outlook` are since its beginning, `totals` since the last message with some."""

    counts: LiveCounts
    outlook: Outlook
    totals: CountedTotals | None = None


class Ended(msgspec.Struct, tag="ended", tag_field="type", frozen=True, kw_only=True):
    """Its part is over, and its records are on the disk; the last message."""

    end: RunEnd
    last: Progress


class Failed(msgspec.Struct, tag="failed", tag_field="type", frozen=True, kw_only=True):
    """It cannot do its part: the class of the LoadgenError and what it says; the last message."""

    kind: str
    message: str


ToWorker: TypeAlias = Job | Start | Measuring | Stop | Abort
FromWorker: TypeAlias = Ready | Began | Progress | Ended | Failed

encode = msgspec.json.Encoder().encode
decode_to_worker = msgspec.json.Decoder(ToWorker).decode
decode_from_worker = msgspec.json.Decoder(FromWorker).decode


def command_of(options: CommonOptions) -> Literal["run", "sweep", "capacity"]:
    """The name of the options' class in a job."""
    match options:
        case RunOptions():
            return "run"
        case CapacityOptions():
            return "capacity"
        case _:
            return "sweep"


def options_in_job(options: CommonOptions) -> dict[str, Any]:
    """The options as JSON, secrets included. The load stands in the job itself: infinite burstiness has no JSON."""
    return options.model_dump(mode="json", exclude={"burstiness"})


def options_of(job: Job) -> CommonOptions:
    """The options again, validated."""
    return OPTIONS[job.command].model_validate(job.options)
