"""Records and manifests for tests: a request that went well, from which each test changes what it is about."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loadgen.core.analysis.analyse import analyse
from loadgen.core.metrics.summary import Analysis, Finding, Summary
from loadgen.core.record import Failure, FailureKind, Outcome, RequestRecord, TokenSource
from loadgen.core.request import Phase
from loadgen.core.run import ClientFacts, Load, LoadMode, RunManifest, Target, TimingSource, Window
from loadgen.core.server.sample import Scrape

MS = 1_000_000
S = 1_000_000_000


def answered(
    seq: int,
    *,
    sent_ms: float = 0.0,
    ttft_ms: float = 100.0,
    gap_ms: float = 20.0,
    tokens: int = 10,
    per_event: int = 1,
    lag_ms: float | None = None,
    **changes: Any,
) -> RequestRecord:
    """A completed stream of `tokens` tokens, `per_event` in each event after the first; `lag_ms` adds a due instant."""
    events = 1 + -(-(tokens - 1) // per_event)
    sent_ns = round(sent_ms * MS)
    event_ns = tuple(sent_ns + round((ttft_ms + place * gap_ms) * MS) for place in range(events))
    last = tokens - 1 - (events - 2) * per_event if events > 1 else 0
    event_tokens = (1, *(per_event,) * (events - 2), last)[:events]
    record = RequestRecord(
        seq=seq,
        request_id=f"request-{seq}",
        phase=Phase.MEASURE,
        due_ns=None if lag_ms is None else sent_ns - round(lag_ms * MS),
        sent_ns=sent_ns,
        headers_ns=event_ns[0] - MS,
        first_ns=event_ns[0],
        first_output_ns=event_ns[0],
        last_ns=event_ns[-1],
        closed_ns=event_ns[-1] + MS,
        event_ns=event_ns,
        event_tokens=event_tokens,
        input_tokens=100,
        output_tokens=tokens,
        output_tokens_from=TokenSource.SERVER,
        finish_reason="length",
        outcome=Outcome.COMPLETED,
        http_status=200,
        streamed=True,
    )
    return replace(record, **changes)


def failed(
    seq: int,
    *,
    sent_ms: float = 0.0,
    after_ms: float = 1.0,
    kind: FailureKind = FailureKind.HTTP_5XX,
    status: int | None = 500,
    message: str | None = "engine stopped",
    **changes: Any,
) -> RequestRecord:
    """A request that got no token."""
    sent_ns = round(sent_ms * MS)
    record = RequestRecord(
        seq=seq,
        request_id=f"request-{seq}",
        phase=Phase.MEASURE,
        sent_ns=sent_ns,
        closed_ns=sent_ns + round(after_ms * MS),
        outcome=Outcome.FAILED,
        failure=Failure(kind=kind, http_status=status, message=message),
        http_status=status,
    )
    return replace(record, **changes)


def unsent(
    seq: int, *, due_ms: float | None = 0.0, outcome: Outcome = Outcome.DROPPED, **changes: Any
) -> RequestRecord:
    """A request that never left."""
    due_ns = None if due_ms is None else round(due_ms * MS)
    record = RequestRecord(seq=seq, request_id=f"request-{seq}", phase=Phase.MEASURE, due_ns=due_ns, outcome=outcome)
    return replace(record, **changes)


def closed_loop(n: int = 120, **changes: object) -> list[RequestRecord]:
    """One slot, requests of 280 ms each following the one before."""
    return [answered(seq, sent_ms=281 * seq, **changes) for seq in range(n)]


def arrivals(n: int = 120, every_ms: float = 100, **changes: object) -> list[RequestRecord]:
    """An open loop of 10 requests/s sent on time."""
    return [answered(seq, sent_ms=every_ms * seq, lag_ms=0, **changes) for seq in range(n)]


def window(end_s: float, start_s: float = 0.0) -> Window:
    """One that was asked for as a duration."""
    return Window(start_ns=round(start_s * S), end_ns=round(end_s * S), kind="duration")


def client(**changes: Any) -> ClientFacts:
    """A client with kernel stamps."""
    return ClientFacts(timing_source=TimingSource.KERNEL, **changes)


def manifest(**changes: Any) -> RunManifest:
    """A finished closed loop of one slot."""
    made = RunManifest(
        run_id="20260101-000000-abcd",
        started_at="2026-01-01T00:00:00Z",
        origin_unix_ns=1_767_225_600 * S,
        target=Target(url="http://127.0.0.1:8000", endpoint="chat", model="tiny"),
        load=Load(mode=LoadMode.CONCURRENCY, concurrency=1),
        client=client(),
        interrupted=False,
        ended_by="requests",
        ended_unix_ns=1_767_225_700 * S,
    )
    return replace(made, **changes)


def open_loop(**changes: Any) -> Load:
    """A load at a rate."""
    return replace(Load(mode=LoadMode.RATE, request_rate_rps=10.0), **changes)


def analysed(records: Sequence[RequestRecord], *, scrapes: Sequence[Scrape] = (), **changes: Any) -> Analysis:
    """The analysis of records under `manifest(**changes)`, beside what was scraped."""
    return analyse(lambda: iter(records), manifest(**changes), lambda: iter(scrapes))


def summarised(records: Sequence[RequestRecord], **changes: Any) -> Summary:
    """Its summary."""
    return analysed(records, **changes).summary


def findings(records: Sequence[RequestRecord], **changes: Any) -> dict[str, Finding]:
    """Its findings by kind."""
    return {finding.kind: finding for finding in summarised(records, **changes).verdict.findings}
