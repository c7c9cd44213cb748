"""Every number of a summary: its name, unit and definition. `docs/metrics.md` follows this list."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Better(StrEnum):
    """Which way an improvement goes; `neither` for what describes the load or the measurement."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


class Scope(StrEnum):
    """What has a value: each request, each event (pooled over requests), or the run."""

    REQUEST = "request"
    EVENT = "event"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """`path` leads to the number in `summary.json`; `display_unit` is what people are shown."""

    name: str
    path: str
    unit: str
    display_unit: str
    better: Better
    scope: Scope
    definition: str
    no_value: str


def _latency(name: str, definition: str, no_value: str, *, scope: Scope = Scope.REQUEST) -> MetricSpec:
    return MetricSpec(
        name=name,
        path=f"latency.{name}",
        unit="s",
        display_unit="ms",
        better=Better.LOWER,
        scope=scope,
        definition=definition,
        no_value=no_value,
    )


def _run(
    path: str, unit: str, better: Better, definition: str, no_value: str, *, name: str | None = None
) -> MetricSpec:
    return MetricSpec(
        name=path.rpartition(".")[2] if name is None else name,
        path=path,
        unit=unit,
        display_unit=unit,
        better=better,
        scope=Scope.RUN,
        definition=definition,
        no_value=no_value,
    )


_SPECS = (
    _latency("ttft_s", "first token-bearing event - sent", "a reply that was not streamed; no event"),
    _latency("ttft_from_due_s", "first token-bearing event - due", "no due instant (closed loop); as ttft_s"),
    _latency("ttfo_s", "first event that is not reasoning - sent", "reasoning only; as ttft_s"),
    _latency(
        "tpot_s",
        "(last event - first event) / (N - 1)",
        "N unknown or below 2; first and last event not timed apart; most tokens in the first event; not streamed",
    ),
    _latency("icl_s", "gap between neighbouring events", "fewer than two events; not streamed", scope=Scope.EVENT),
    _latency(
        "itl_s",
        "gap between neighbouring events of requests whose every event held one token",
        "some event held several tokens, or the number is not known; the run has speculation; as icl_s",
        scope=Scope.EVENT,
    ),
    _latency("e2el_s", "last token - sent", "never, for a completed request"),
    _latency("e2el_from_due_s", "last token - due", "no due instant (closed loop)"),
    _latency("schedule_lag_s", "sent - due", "no due instant (closed loop); never sent"),
    _latency("cap_wait_s", "part of sent - due spent waiting for a slot or a previous turn", "nothing to wait for"),
    _run("throughput.requests_per_s", "1/s", Better.HIGHER, "completions in the window / window", "no window"),
    _run(
        "throughput.output_tokens_per_s",
        "tokens/s",
        Better.HIGHER,
        "output tokens that arrived in the window / window",
        "no window; no request's tokens could be counted",
    ),
    _run(
        "throughput.input_tokens_per_s",
        "tokens/s",
        Better.HIGHER,
        "input tokens of requests sent in the window / window",
        "no window; the server counted none",
    ),
    _run(
        "throughput.goodput_rps",
        "1/s",
        Better.HIGHER,
        "good completions in the window / window",
        "no window; no objectives",
    ),
    _run(
        "rate.offered_rps", "1/s", Better.NEITHER, "requests due in the window / window", "no due instants; no window"
    ),
    _run("rate.sent_rps", "1/s", Better.NEITHER, "requests sent in the window / window", "no window"),
    _run(
        "concurrency.peak",
        "requests",
        Better.NEITHER,
        "largest number in flight in the window",
        "never: 0",
        name="concurrency_peak",
    ),
    _run(
        "concurrency.mean",
        "requests",
        Better.NEITHER,
        "time-weighted mean in flight in the window",
        "no window",
        name="concurrency_mean",
    ),
    _run("slo.attainment_ratio", "ratio", Better.HIGHER, "good / due in the window", "nothing due; no objectives"),
    _run(
        "speculation.acceptance_length",
        "tokens",
        Better.HIGHER,
        "1 + accepted draft tokens / steps",
        "no step is known to have drafted",
    ),
    _run(
        "speculation.acceptance_ratio",
        "ratio",
        Better.HIGHER,
        "accepted / drafted tokens",
        "drafted tokens not known",
    ),
    _run(
        "speculation.acceptance_by_position",
        "ratio",
        Better.HIGHER,
        "steps that accepted at least i draft tokens / steps",
        "accepted tokens of each step not known",
    ),
    _run(
        "speculation.coverage_ratio",
        "ratio",
        Better.NEITHER,
        "steps that drafted / all decode steps",
        "tokens of each event not known; more drafting steps than events or decode steps",
    ),
    _run(
        "speculation.tokens_per_step",
        "tokens",
        Better.HIGHER,
        "tokens of decode steps / decode steps, drafted or not",
        "neither events nor the server tell the decode steps",
    ),
    _run("client.cpu_ratio", "ratio", Better.LOWER, "CPU time / wall time, of the busiest worker", "not measured"),
    _run(
        "client.stamp_lag_p99_s",
        "s",
        Better.LOWER,
        "p99 over requests of the worst delay of a read",
        "no kernel stamps",
    ),
    _run("client.coalesced_ratio", "ratio", Better.LOWER, "gaps of zero / all gaps", "no gaps"),
    _run("client.stalled_ratio", "ratio", Better.LOWER, "events with a later segment's stamp / events", "no events"),
    _run(
        "client.loop_stall_p99_s", "s", Better.LOWER, "p99 of how late a timer of the event loop fired", "not measured"
    ),
)

CATALOGUE: Mapping[str, MetricSpec] = {spec.name: spec for spec in _SPECS}
"""By name."""
