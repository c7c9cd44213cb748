"""Runs: one with everything in it, one with nothing but hostile text."""

from dataclasses import replace

from loadgen.core.metrics.summary import (
    Analysis,
    Client,
    Concurrency,
    Distribution,
    FailureSample,
    Finding,
    Rates,
    RequestCounts,
    Server,
    Slo,
    SteadyState,
    Summary,
    Throughput,
    TokenCounts,
    Verdict,
    WindowFacts,
)
from loadgen.core.run import Load, LoadMode, RunManifest, Target
from tests.report.made.evidence import SERVER, SPECULATION
from tests.report.made.over_time import series, server_series
from tests.report.made.samples import EMPTY, curve, distribution, latency
from tests.report.made.text import HOSTILE


def rate_summary() -> Summary:
    """1,000 requests at 20 requests/s, ten of them failed, an SLO, speculation and a warning."""
    return Summary(
        run_id="20261130T061800-a1b2c3",
        name="azure-conv at 20 rps",
        labels={"gpu": "h200", "method": "eagle3"},
        started_at="2026-11-30T06:18:00Z",
        duration_s=60.4,
        interrupted=False,
        target=Target(
            url="http://10.0.0.7:8000/v1",
            endpoint="chat",
            model="meta-llama/Llama-3.1-8B-Instruct",
            engine="vllm",
            engine_version="0.33.0",
        ),
        load=Load(mode=LoadMode.RATE, request_rate_rps=20.0, burstiness=1.0, num_requests=1000, seed=42),
        requests=RequestCounts(
            planned=1000,
            sent=1000,
            completed=988,
            failed=10,
            cancelled=2,
            dropped=0,
            resent=1,
            failed_by_kind={"http_5xx": 7, "truncated": 3},
        ),
        tokens=TokenCounts(
            input=512_300,
            output=119_880,
            output_from_server=True,
            requests_without_server_count=0,
            partial_output=214,
        ),
        throughput=Throughput(
            requests_per_s=18.72, output_tokens_per_s=2271.3, input_tokens_per_s=9702.5, goodput_rps=17.9
        ),
        rate=Rates(offered_rps=20.05, sent_rps=20.04),
        concurrency=Concurrency(peak=31, mean=19.6),
        latency=latency(
            ttft_s=distribution(0.0512, n=988),
            ttft_from_due_s=distribution(0.0531, n=988),
            ttfo_s=distribution(0.0512, n=988),
            tpot_s=distribution(0.0081, n=981, missing=7),
            icl_s=distribution(0.0196, n=48_192),
            itl_s=Distribution(n=0, missing=988),
            e2el_s=distribution(1.018, n=988),
            e2el_from_due_s=distribution(1.0198, n=988),
            schedule_lag_s=distribution(0.00021, n=1000),
        ),
        latency_error_adjusted={"ttft_s": replace(distribution(0.0514, n=998), p99=None), "e2el_s": EMPTY},
        slo=Slo(objectives={"ttft_s": 0.5, "tpot_s": 0.05}, attainment_ratio=0.957, good=957, due=1000),
        speculation=SPECULATION,
        server=SERVER,
        client=Client(
            timing_source="kernel",
            workers=1,
            cpu_ratio=0.31,
            stamp_lag_p99_s=0.00042,
            coalesced_ratio=0.012,
            stalled_ratio=0.0,
            loop_stall_p99_s=0.0011,
        ),
        window=WindowFacts(start_s=2.0, end_s=52.0, kind="until_last_send"),
        steady_state=SteadyState(
            start_s=6.0, end_s=51.0, requests_per_s=19.4, output_tokens_per_s=2360.0, concurrency_mean=20.4
        ),
        warmup_requests=16,
        time_series=series(),
        server_series=server_series(),
        estimator="linear (type 7)",
        verdict=Verdict(
            valid=True,
            findings=(
                Finding(
                    kind="failures",
                    severity="warning",
                    evidence="10 of 1000 planned requests failed (1.0 %): 7 × http_5xx, 3 × truncated.",
                    advice="Percentiles speak of completed requests only; read the rows with failures as infinity.",
                ),
                Finding(
                    kind="too_few_samples",
                    severity="info",
                    evidence="988 values are too few for p99.9 (1,000 are needed).",
                    advice="Send more requests, or leave p99.9 out.",
                ),
            ),
        ),
    )


def invalid_summary() -> Summary:
    """A run that measured its own client: nothing completed, everything absent, strings hostile."""
    nothing = Distribution(n=0, missing=3)
    return replace(
        rate_summary(),
        run_id="20261130T070000-ffffff",
        name=HOSTILE,
        labels={HOSTILE: HOSTILE},
        target=Target(url=HOSTILE, endpoint="chat", model=HOSTILE, engine=HOSTILE, engine_version=HOSTILE),
        load=Load(mode=LoadMode.CONCURRENCY, concurrency=3, num_requests=3, seed=0),
        requests=RequestCounts(
            planned=3,
            sent=3,
            completed=0,
            failed=3,
            cancelled=0,
            dropped=0,
            resent=0,
            failed_by_kind={"http_5xx": 3},
        ),
        tokens=TokenCounts(
            input=None, output=None, output_from_server=False, requests_without_server_count=0, partial_output=0
        ),
        throughput=Throughput(requests_per_s=None, output_tokens_per_s=None, input_tokens_per_s=None, goodput_rps=None),
        rate=Rates(offered_rps=None, sent_rps=None),
        concurrency=Concurrency(peak=3, mean=None),
        latency=latency(ttft_s=nothing, ttfo_s=nothing, tpot_s=nothing, e2el_s=nothing),
        latency_error_adjusted={},
        slo=None,
        speculation=None,
        server=Server(),
        client=Client(timing_source="user", workers=1),
        window=None,
        steady_state=None,
        warmup_requests=0,
        time_series=None,
        server_series=None,
        verdict=Verdict(
            valid=False,
            findings=(Finding(kind="nothing_completed", severity="invalid", evidence=HOSTILE, advice=HOSTILE),),
        ),
    )


def rate_analysis() -> Analysis:
    """The analysis of `rate_summary`."""
    return Analysis(
        summary=rate_summary(),
        curves={
            "ttft_s": curve(0.0512),
            "ttft_from_due_s": curve(0.0531),
            "tpot_s": curve(0.0081),
            "icl_s": curve(0.0196),
            "e2el_s": curve(1.018),
        },
        failures=(
            FailureSample(kind="http_5xx", http_status=503, count=7, example='{"error": "engine overloaded"}'),
            FailureSample(kind="truncated", http_status=200, count=3, example=None),
        ),
    )


def hostile_analysis() -> Analysis:
    """The analysis of `invalid_summary`; the failure's message is markup."""
    return Analysis(
        summary=invalid_summary(),
        curves={},
        failures=(FailureSample(kind="http_5xx", http_status=502, count=3, example=HOSTILE),),
    )


def run_manifest() -> RunManifest:
    """The manifest that belongs to `analysis`."""
    summary = rate_summary()
    return RunManifest(
        run_id=summary.run_id,
        name=summary.name,
        labels=summary.labels,
        started_at=summary.started_at,
        origin_unix_ns=1_764_483_480_000_000_000,
        target=summary.target,
        load=summary.load,
        options={"trace": "azure-conv.csv", "temperature": 0.0, "ignore_eos": False},
        data={"file": "azure-conv.csv", "rows": 19366, "used": 1000, "text": "invented"},
        slo={"ttft_s": 0.5, "tpot_s": 0.05},
        planned=1000,
        client_version="0.1.0",
        host={"system": "Linux", "cpu_count": 2},
        server={"engine_version": "0.33.0", "configuration_page": "a long page", "configuration": {"speculates": True}},
        first_request={"model": summary.target.model, "stream": True},
        ended_by="requests",
    )
