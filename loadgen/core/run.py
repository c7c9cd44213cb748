"""What a run is: its load, its target, the client's own facts, and the manifest that holds them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MANIFEST_SCHEMA = "loadgen.manifest/1"


class LoadMode(StrEnum):
    """`concurrency` keeps N requests in flight; `rate` starts them at drawn instants; `replay` at the trace's."""

    CONCURRENCY = "concurrency"
    RATE = "rate"
    REPLAY = "replay"


class TimingSource(StrEnum):
    """Who stamped the arrivals: the kernel as the segment came in, this process at the read, or a coroutine later."""

    KERNEL = "kernel"
    USER = "user"
    COROUTINE = "coroutine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The server under test. `url` has no user info, `engine` and `engine_version` only what the server said."""

    url: str
    endpoint: str
    model: str
    engine: str | None = None
    engine_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load that was asked for. `burstiness` is the gamma shape: 1 Poisson, None for constant spacing (infinity)."""

    mode: LoadMode
    concurrency: int | None = None
    request_rate_rps: float | None = None
    burstiness: float | None = None
    max_concurrency: int | None = None
    speed: float | None = None
    num_requests: int | None = None
    duration_s: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The measured span [start_ns, end_ns) on the run's axis, and how its ends were chosen.

    `kind`: `duration` (asked for), `until_last_send` (ends when no further request could be started, so the drain is
    outside), `whole` (too few requests for anything but first send to last close).
    """

    start_ns: int
    end_ns: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFacts:
    """What the load generator measured of itself over the measured window.

    `cpu_ratio` is CPU time over wall time (1 = one full core); `loop_stall_p99_s` and `loop_stall_max_s` are how late a
    timer of the event loop fired. Of several `workers` each is that of the worst; `workers_lost` left before their end.
    """

    timing_source: TimingSource
    workers: int = 1
    cpu_ratio: float | None = None
    loop_stall_p99_s: float | None = None
    loop_stall_max_s: float | None = None
    workers_lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """Everything needed to repeat a run or to refuse a comparison. Holds no secret.

    `options` are the resolved options as strict JSON, `data` says what was replayed (file name, digest, counts, what
    was dropped), `slo` maps a metric (`ttft_s`) to its limit in seconds, `planned` counts the requests that are to have
    a record, warm-up included, None where that is not known. `window`, `client`, `interrupted`, `ended_by` and
    `ended_unix_ns` are written when the run ends; until then they are None. So is `exhausted_ns`, of a closed loop that
    several workers drove: the instant at which the first of them had no request left, up to which the load was whole.
    """

    schema: str = MANIFEST_SCHEMA
    run_id: str
    name: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    started_at: str
    origin_unix_ns: int
    target: Target
    load: Load
    options: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    slo: dict[str, float] = field(default_factory=dict)
    planned: int | None = None
    client_version: str = ""
    host: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    first_request: dict[str, Any] | None = None
    window: Window | None = None
    exhausted_ns: int | None = None
    client: ClientFacts | None = None
    interrupted: bool | None = None
    ended_by: str | None = None
    ended_unix_ns: int | None = None
    notes: tuple[str, ...] = ()
