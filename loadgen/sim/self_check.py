"""Does this machine's client report the truth? Drives a transport through the engine against a known-truth server.

What the engine recorded is compared, request by request, with what the server's log says that it did: latencies,
events, tokens, and how each scripted failure was classified.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from loadgen.adapters.clock import MonotonicClock
from loadgen.core.record import FailureKind, Outcome, RequestRecord
from loadgen.core.request import (
    Endpoint,
    Messages,
    Phase,
    PlannedConversation,
    PlannedRequest,
    RequestTemplate,
    Turn,
)
from loadgen.core.run import Load, LoadMode
from loadgen.engine.ports import Timeouts, Transport
from loadgen.engine.runner import Run, RunSettings
from loadgen.sim.check import Check, at_most, equal, ought_to_reach
from loadgen.sim.truth import TruthEntry, TruthServer

TransportFactory = Callable[[MonotonicClock, Timeouts], Transport]

_REQUESTS, _WARMUP, _RATE_RPS = 170, 10, 80.0
_TOKENS, _STREAM = 20, {"ttft_ms": 50, "gap_ms": 20}
_CROWD, _CROWD_TOKENS, _CROWD_STREAM = 64, 200, {"ttft_ms": 20, "gap_ms": 5}
_SCRIPTED_TOKENS, _SCRIPTED = 8, {"ttft_ms": 40, "gap_ms": 10}
_AS_SENT = "as sent"
_SHAPE_DELAY_S = 0.025  # a role or a comment comes 33 ms or more before the first token
_IDLE_S = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The stated error of a transport, seconds; `events_per_cpu_s` is the least that a core should manage."""

    ttft_bias_p50_s: float
    ttft_bias_p99_s: float
    tpot_bias_p50_s: float
    schedule_lag_p99_s: float
    events_per_cpu_s: float


NATIVE_LIMITS = Limits(
    ttft_bias_p50_s=0.001,
    ttft_bias_p99_s=0.003,
    tpot_bias_p50_s=0.0001,
    schedule_lag_p99_s=0.003,
    events_per_cpu_s=10_000,
)
HTTPX_LIMITS = Limits(
    ttft_bias_p50_s=0.005,
    ttft_bias_p99_s=0.03,
    tpot_bias_p50_s=0.001,
    schedule_lag_p99_s=0.03,
    events_per_cpu_s=1_000,
)

_Script = dict[str, Any]

SHAPES: dict[str, _Script] = {
    "plain": {},
    "role_first": {"role_ms": 1},
    "keep_alives": {"keep_alive_ms": 7},
    "coalesced": {"coalesce": 3, "tokens": 12},
    "split": {"split": 3, "split_ms": 2, "text": "語"},
    "crlf": {"line_end": "crlf"},
    "cr": {"line_end": "cr"},
    "reasoning": {"reasoning_events": 2},
    "tokens_per_event": {"tokens_per_event": [1, 4], "tokens": 16},
    "usage_final": {"usage": "final"},
    "usage_with_last": {"usage": "with_last"},
    "usage_continuous": {"usage": "continuous"},
    "no_done_marker": {"done_marker": False},
}
"""Streams that say the same in different ways; each must give the server's own counts and times."""

FAULTS: dict[str, tuple[_Script, FailureKind]] = {
    "http_400": ({"status": 400}, FailureKind.HTTP_4XX),
    "http_429": ({"status": 429}, FailureKind.RATE_LIMITED),
    "http_500": ({"status": 500}, FailureKind.HTTP_5XX),
    "http_503": ({"status": 503}, FailureKind.HTTP_5XX),
    "http_503_retry_after": ({"status": 503, "retry_after_s": 1}, FailureKind.RATE_LIMITED),
    "error_event": ({"fault": "error_event"}, FailureKind.SERVER_ERROR_EVENT),
    "truncated": ({"fault": "truncated"}, FailureKind.TRUNCATED),
    "no_finish": ({"fault": "no_finish"}, FailureKind.TRUNCATED),
    "reset": ({"fault": "reset"}, FailureKind.READ),
    "stall": ({"fault": "stall"}, FailureKind.IDLE_TIMEOUT),
    "slow_head": ({"headers_ms": 60_000}, FailureKind.READ_TIMEOUT),
    "empty": ({"fault": "empty"}, FailureKind.EMPTY),
    "wrong_type": ({"fault": "wrong_type"}, FailureKind.PROTOCOL),
}
"""What the server does, and the failure kind that a record must then name."""


async def check_transport(name: str, make: TransportFactory, truth: TruthServer, limits: Limits) -> list[Check]:
    """All checks of one transport. Raises LoadgenError when it cannot be driven at all."""
    streams = await _streams(make, truth)
    crowd = await _crowd(make, truth)
    shapes = await _scripted(make, truth, SHAPES)
    faults = await _scripted(make, truth, {fault: script for fault, (script, _) in FAULTS.items()})
    return [
        *_judge_streams(name, streams, limits),
        _judge_crowd(name, crowd, limits),
        *(_judge_shape(name, shape, shapes[shape]) for shape in SHAPES),
        *(_judge_fault(name, fault, faults[fault]) for fault in FAULTS),
    ]


@dataclass(frozen=True, slots=True)
class _Pair:
    """One request as the client recorded it and as the server logged it. `origin_ns` places the client's axis."""

    record: RequestRecord
    entry: TruthEntry
    origin_ns: int

    @property
    def ttft_bias_s(self) -> float | None:
        """The client's time to first token less the server's."""
        record, entry = self.record, self.entry
        if record.first_ns is None or record.sent_ns is None or entry.first_ns is None:
            return None
        return (record.first_ns - record.sent_ns - (entry.first_ns - entry.recv_ns)) / 1e9

    @property
    def tpot_bias_s(self) -> float | None:
        """The client's time per output token less the server's; None below two tokens."""
        record, entry = self.record, self.entry
        if record.first_ns is None or record.last_ns is None or entry.first_ns is None or entry.last_ns is None:
            return None
        if record.output_tokens is None or record.output_tokens < 2 or entry.tokens < 2:
            return None
        ours = (record.last_ns - record.first_ns) / (record.output_tokens - 1)
        return (ours - (entry.last_ns - entry.first_ns) / (entry.tokens - 1)) / 1e9

    @property
    def first_delay_s(self) -> float | None:
        """The stamp of the first token less the instant at which the server wrote it."""
        if self.record.first_ns is None or self.entry.first_ns is None:
            return None
        return (self.origin_ns + self.record.first_ns - self.entry.first_ns) / 1e9

    @property
    def delays_s(self) -> list[float]:
        """The same for every write with content; none where the counts differ."""
        stamps, emitted = self.record.event_ns, self.entry.event_ns
        if len(stamps) != len(emitted):
            return []
        return [(self.origin_ns + stamp - wrote) / 1e9 for stamp, wrote in zip(stamps, emitted, strict=True)]

    @property
    def same_events(self) -> bool:
        """Whether both counted as many events."""
        return len(self.record.event_ns) == self.entry.events

    @property
    def same_tokens(self) -> bool:
        """Whether both counted as many tokens."""
        return self.record.output_tokens == self.entry.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class _Driven:
    """A run: the source of its stamps, the CPU that it took, its requests."""

    timing_source: str
    cpu_s: float
    pairs: tuple[_Pair, ...]


class _Kept(list[RequestRecord]):
    """A record sink in memory."""

    def put(self, record: RequestRecord) -> None:
        """Accepts one record."""
        self.append(record)


async def _drive(
    make: TransportFactory,
    truth: TruthServer,
    requests: Sequence[PlannedRequest],
    load: Load,
    *,
    idle_s: float = 10.0,
) -> _Driven:
    """Runs the requests through the engine and pairs each record with the log's entry."""
    clock, kept = MonotonicClock(), _Kept()
    transport = make(clock, Timeouts(connect_s=5.0, idle_s=idle_s))
    settings = RunSettings(
        load=load,
        endpoint=Endpoint.CHAT,
        template=RequestTemplate(endpoint=Endpoint.CHAT, model=truth.model),
        grace_s=10.0,
    )
    plan = (PlannedConversation(requests=(request,)) for request in requests)
    cpu_s = time.process_time()
    try:
        await Run(plan, settings, clock=clock, transport=transport, sink=kept).execute()
    finally:
        clock.close()
    cpu_s = time.process_time() - cpu_s
    entries = await _entries(truth, {record.request_id for record in kept})
    return _Driven(
        timing_source=transport.timing_source,
        cpu_s=cpu_s,
        pairs=tuple(_Pair(record, entries[record.request_id], clock.origin_monotonic_ns) for record in kept),
    )


async def _entries(truth: TruthServer, wanted: set[str]) -> dict[str, TruthEntry]:
    """The log's entries about these requests; the server notes an abandoned request a moment after the client left."""
    for _ in range(200):
        log = await asyncio.to_thread(truth.log)
        found = {entry.request_id: entry for entry in log.entries if entry.request_id in wanted}
        if len(found) == len(wanted):
            break
        await asyncio.sleep(0.02)
    return found


def _request(seq: int, request_id: str, script: _Script, tokens: int, **more: Any) -> PlannedRequest:
    """A chat request that brings its script with it."""
    message = {"role": "user", "content": "tell me"}
    body = {
        "model": "truth",
        "messages": [message],
        "stream": True,
        "max_tokens": tokens,
        "stream_options": {"include_usage": True},
        "truth": script,
    }
    return PlannedRequest(
        seq=seq,
        request_id=request_id,
        phase=Phase.MEASURE,
        due_ns=None,
        body=msgspec.json.encode(body | more),
        turn=Turn(prompt=Messages(messages=(message,))),
    )


async def _streams(make: TransportFactory, truth: TruthServer) -> _Driven:
    """Streams started one by one at a constant rate, so that neither side has a crowd to excuse it."""
    label = os.urandom(4).hex()
    requests = [
        replace(
            _request(seq, f"{label}-{seq}", _STREAM, _TOKENS),
            due_ns=round(seq * 1e9 / _RATE_RPS),
            phase=Phase.WARMUP if seq < _WARMUP else Phase.MEASURE,
        )
        for seq in range(_REQUESTS)
    ]
    load = Load(mode=LoadMode.RATE, request_rate_rps=_RATE_RPS, num_requests=_REQUESTS)
    return await _drive(make, truth, requests, load)


async def _scripted(make: TransportFactory, truth: TruthServer, scripts: Mapping[str, _Script]) -> dict[str, _Pair]:
    """One request a script, all at once."""
    label = os.urandom(4).hex()
    ids = {f"{label}-{script}": script for script in scripts}
    requests = [
        _request(seq, request_id, _SCRIPTED | scripts[script], _SCRIPTED_TOKENS, return_token_ids=True)
        for seq, (request_id, script) in enumerate(ids.items())
    ]
    driven = await _drive(make, truth, requests, _all_at_once(len(requests)), idle_s=_IDLE_S)
    return {ids[pair.record.request_id]: pair for pair in driven.pairs}


async def _crowd(make: TransportFactory, truth: TruthServer) -> _Driven:
    """Many fast streams at once, which the server still carries with ease."""
    label = os.urandom(4).hex()
    requests = [_request(seq, f"{label}-{seq}", _CROWD_STREAM, _CROWD_TOKENS) for seq in range(_CROWD)]
    return await _drive(make, truth, requests, _all_at_once(_CROWD))


def _all_at_once(count: int) -> Load:
    return Load(mode=LoadMode.CONCURRENCY, concurrency=count, num_requests=count)


def _judge_crowd(name: str, driven: _Driven, limits: Limits) -> Check:
    events = sum(len(pair.record.event_ns) for pair in driven.pairs)
    return ought_to_reach(
        f"{name}.events_per_cpu_s",
        round(events / driven.cpu_s),
        limits.events_per_cpu_s,
        advice="this core cannot read many streams at once: use fewer, or a faster machine",
    )


def _judge_streams(name: str, driven: _Driven, limits: Limits) -> list[Check]:
    """Latencies, counts and stamps of ordinary streams."""
    measured = [pair for pair in driven.pairs if pair.record.phase is Phase.MEASURE]
    whole = [pair for pair in measured if pair.record.outcome is Outcome.COMPLETED]
    ttft = [bias for pair in whole if (bias := pair.ttft_bias_s) is not None]
    tpot = [abs(bias) for pair in whole if (bias := pair.tpot_bias_s) is not None]
    delays = [delay for pair in whole for delay in pair.delays_s]
    lag = [
        (pair.record.sent_ns - pair.record.due_ns) / 1e9
        for pair in measured
        if pair.record.sent_ns is not None and pair.record.due_ns is not None
    ]
    busy = "something else uses this machine, or it is too slow for this client: run the doctor alone, then again"
    return [
        equal(f"{name}.completed", len(whole), len(measured), advice=_first_failure(measured)),
        at_most(f"{name}.ttft_bias_p50_s", _percentile(ttft, 50), limits.ttft_bias_p50_s, advice=busy),
        at_most(f"{name}.ttft_bias_p99_s", _percentile(ttft, 99), limits.ttft_bias_p99_s, advice=busy),
        at_most(f"{name}.tpot_bias_p50_s", _percentile(tpot, 50), limits.tpot_bias_p50_s, advice=busy),
        at_most(f"{name}.stamp_delay_p99_s", _percentile(delays, 99), limits.ttft_bias_p99_s, advice=busy),
        at_most(f"{name}.schedule_lag_p99_s", _percentile(lag, 99), limits.schedule_lag_p99_s, advice=busy),
        equal(f"{name}.requests_with_other_events", sum(not pair.same_events for pair in whole), 0),
        equal(f"{name}.requests_with_other_tokens", sum(not pair.same_tokens for pair in whole), 0),
        Check(
            name=f"{name}.timing_source",
            ok=True,
            value=driven.timing_source,
            required=False,
            advice=None if driven.timing_source == "kernel" else "arrivals are stamped when this process reads them",
        ),
    ]


def _judge_shape(name: str, shape: str, pair: _Pair) -> Check:
    """A shape of stream passes when events, tokens and the first arrival are the server's."""
    record, delay = pair.record, pair.first_delay_s
    found = _AS_SENT
    if record.outcome is not Outcome.COMPLETED:
        found = f"{record.outcome}: {record.failure.kind if record.failure else 'no reason'}"
    elif not pair.same_events:
        found = f"{len(record.event_ns)} events of {pair.entry.events}"
    elif not pair.same_tokens:
        found = f"{record.output_tokens} tokens of {pair.entry.tokens}"
    elif delay is None or abs(delay) > _SHAPE_DELAY_S:
        found = "no first token" if delay is None else f"first token off by {delay:.3f} s"
    elif shape == "reasoning" and record.first_output_ns != record.event_ns[2]:
        found = "reasoning taken for output"
    elif shape == "tokens_per_event" and record.event_tokens != (1, 4, 1, 4, 1, 4, 1):
        found = f"tokens per event {record.event_tokens}"
    return equal(f"{name}.shape.{shape}", found, _AS_SENT)


def _judge_fault(name: str, fault: str, pair: _Pair) -> Check:
    """A scripted failure passes when the record names its kind and keeps what had arrived."""
    record = pair.record
    found: str = record.failure.kind if record.failure is not None else record.outcome
    if not pair.same_events:
        found += f", {len(record.event_ns)} events of {pair.entry.events}"
    return equal(f"{name}.failure.{fault}", found, str(FAULTS[fault][1]))


def _first_failure(pairs: Sequence[_Pair]) -> str | None:
    failures = [pair.record.failure for pair in pairs if pair.record.failure is not None]
    return f"an ordinary stream failed: {failures[0].kind}: {failures[0].message}" if failures else None


def _percentile(values: Sequence[float], p: float) -> float | None:
    return float(np.percentile(values, p)) if values else None
