"""Values to store, and the strategies that make many of them."""

from typing import Any

import pytest

from loadgen.core.metrics.summary import (
    Client,
    Concurrency,
    Rates,
    RequestCounts,
    Server,
    Summary,
    Throughput,
    TokenCounts,
    Verdict,
)
from loadgen.core.record import FailureKind, Outcome, RequestRecord
from loadgen.core.request import Phase
from loadgen.core.run import Load, LoadMode, RunManifest, Target
from tests.report.made.samples import EMPTY, latency


def make_record(seq: int, **changes: Any) -> RequestRecord:
    """A completed request of five events."""
    values: dict[str, Any] = {
        "seq": seq,
        "request_id": f"r-{seq}",
        "phase": Phase.MEASURE,
        "outcome": Outcome.COMPLETED,
        "sent_ns": seq * 1000,
        "event_ns": tuple(seq * 1000 + 20_000_000 * k for k in range(5)),
    }
    return RequestRecord(**{**values, **changes})


def make_manifest(**changes: Any) -> RunManifest:
    """A manifest of a run at a concurrency of 8."""
    values: dict[str, Any] = {
        "run_id": "20261130-061400-000-abcdef",
        "started_at": "2026-11-30T06:14:00Z",
        "origin_unix_ns": 1_796_019_240_000_000_000,
        "target": Target(url="http://127.0.0.1:8000", endpoint="chat", model="m"),
        "load": Load(mode=LoadMode.CONCURRENCY, concurrency=8, seed=0),
        "planned": 20,
    }
    return RunManifest(**{**values, **changes})


def make_summary(load: Load, run_id: str = "run", name: str | None = None) -> Summary:
    """The summary of a run in which nothing was measured."""
    return Summary(
        run_id=run_id,
        name=name,
        labels={},
        started_at="2026-11-30T06:14:00Z",
        duration_s=1.5,
        interrupted=False,
        target=Target(url="http://127.0.0.1:8000", endpoint="chat", model="m"),
        load=load,
        requests=RequestCounts(
            planned=2, sent=2, completed=1, failed=1, cancelled=0, dropped=0, resent=0,
            failed_by_kind={FailureKind.HTTP_5XX: 1},
        ),
        tokens=TokenCounts(
            input=1, output=None, output_from_server=False, requests_without_server_count=1, partial_output=0
        ),
        throughput=Throughput(
            requests_per_s=None, output_tokens_per_s=None, input_tokens_per_s=None, goodput_rps=None
        ),
        rate=Rates(offered_rps=None, sent_rps=0.1),
        concurrency=Concurrency(peak=1, mean=0.5),
        latency=latency(),
        latency_error_adjusted={"ttft_s": EMPTY},
        slo=None,
        speculation=None,
        server=Server(),
        client=Client(timing_source="kernel", workers=1),
        window=None,
        steady_state=None,
        warmup_requests=0,
        time_series=None,
        estimator="linear",
        verdict=Verdict(valid=True),
    )  # fmt: skip


@pytest.fixture
def record():
    """The factory of records."""
    return make_record


@pytest.fixture
def manifest():
    """The factory of manifests."""
    return make_manifest


@pytest.fixture
def summary():
    """The factory of summaries."""
    return make_summary
