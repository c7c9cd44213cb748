"""Analyses, sweeps and records made up for the report tests, hostile strings included."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.core.analysis.analyse import analyse
from loadgen.core.metrics.summary import (
    AcceptanceView,
    Analysis,
    CategoryAcceptance,
    Client,
    Comparison,
    Concurrency,
    Distribution,
    FailureSample,
    Finding,
    Gauge,
    Gpus,
    Knee,
    Latency,
    OutputPositionBin,
    QuantileCurve,
    Rates,
    RequestAcceptance,
    RequestCounts,
    RequestPoint,
    RequestTimes,
    Server,
    Slo,
    Speculation,
    SteadyState,
    Summary,
    Sweep,
    SweepLevel,
    Throughput,
    TimeSeries,
    TokenCounts,
    TpotByAcceptance,
    Verdict,
    WindowFacts,
)
from loadgen.core.record import Failure, FailureKind, Outcome, RequestRecord, RequestSpeculation, TokenSource
from loadgen.core.request import Phase
from loadgen.core.run import Load, LoadMode, RunManifest, Target
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration
from loadgen.core.server.series import ServerSeries
from loadgen.core.simulation.prediction import Memory, Prediction, Setting, Traffic, predict
from loadgen.core.simulation.speculator import Method, Speculator
from loadgen.core.simulation.step_time import EAGLE_8B_ON_H100, LLAMA_8B_ON_H100
from loadgen.core.simulation.workloads import DEPTH, WORKLOADS
from loadgen.core.stats.bootstrap import Estimate

EMPTY = Distribution(n=0, missing=0)
HOSTILE = "</td><svg onload=alert(1)></script><script>alert(2)</script>\x1b[2J\u202eevil <!-- \" ' & `"


def distribution(scale_s: float, n: int = 990, missing: int = 0) -> Distribution:
    """A plausible latency sample around `scale_s`."""
    return Distribution(
        n=n,
        missing=missing,
        mean=scale_s * 1.08,
        min=scale_s * 0.6,
        max=scale_s * 4.1,
        p50=scale_s,
        p75=scale_s * 1.2,
        p90=scale_s * 1.5,
        p95=scale_s * 1.9,
        p99=scale_s * 2.9,
        p99_9=None,
    )


def curve(scale_s: float, points: int = 101) -> QuantileCurve:
    """An ascending curve with a tail."""
    shares = tuple(i / (points - 1) for i in range(points))
    return QuantileCurve(p=shares, value_s=tuple(scale_s * (0.6 + p * 0.7 + 2.8 * p**12) for p in shares))


def series(seconds: int = 60) -> TimeSeries:
    """A run that ramps up, stays level, and drains."""
    busy = [min(i / 5, 1.0, (seconds - i) / 4) for i in range(seconds)]
    wobble = [1 + 0.06 * ((i * 7) % 11 - 5) / 5 for i in range(seconds)]
    return TimeSeries(
        start_s=0.0,
        step_s=1.0,
        due=tuple(round(20 * b) for b in busy),
        sent=tuple(round(20 * b * w) for b, w in zip(busy, wobble, strict=True)),
        completed=tuple(round(19 * b * w) for b, w in zip(busy, reversed(wobble), strict=True)),
        failed=tuple(1 if i in (20, 21, 44) else 0 for i in range(seconds)),
        output_tokens=tuple(2400 * b * w for b, w in zip(busy, wobble, strict=True)),
        concurrency=tuple(8 * b for b in busy),
        ttft_p50_s=tuple(None if i in (0, 58, 59) else 0.05 * w for i, w in enumerate(wobble)),
        ttft_p95_s=tuple(None if i in (0, 58, 59) else 0.11 * w for i, w in enumerate(wobble)),
        tpot_p50_s=tuple(None if i in (0, 57, 58, 59) else 0.0081 * w for i, w in enumerate(wobble)),
    )


def server_series(seconds: int = 60) -> ServerSeries:
    """What the server told meanwhile; a page was missed at the 30th second."""
    busy = [min(i / 5, 1.0, (seconds - i) / 4) for i in range(seconds)]

    def values(scale: float) -> tuple[float | None, ...]:
        return tuple(None if i == 30 else scale * b for i, b in enumerate(busy))

    return ServerSeries(
        edges_s=tuple(float(i) for i in range(seconds + 1)),
        running_requests=values(7.6),
        waiting_requests=values(0.3),
        kv_used_mean_ratio=values(0.4),
        kv_used_max_ratio=values(0.61),
        prompt_tokens_per_s=values(9_700.0),
        generation_tokens_per_s=values(2_390.0),
        preemptions_per_s=values(0.02),
        prefix_hit_ratio=values(0.12),
        acceptance_length=tuple(None if i == 30 else 2.44 for i in range(seconds)),
        gpu_power_w=values(612.0),
        gpu_utilisation_ratio=values(0.93),
        gpu_memory_used_bytes=tuple(None if i == 30 else 148.0 * 2**30 for i in range(seconds)),
    )


SERVER = Server(
    scraped=True,
    notes=("page 0 was last read 0.4 s before the window's end",),
    pages={"0": "http://10.0.0.7:8000/metrics"},
    scrapes=62,
    failed_scrapes=1,
    failed_example="page 0 at 30.2 s: it took longer than 5 s",
    processes=2,
    start_s=1.8,
    end_s=51.6,
    prompt_tokens_delta=520_400.0,
    generation_tokens_delta=121_900.0,
    running_requests=Gauge(mean=18.2, peak=29.0),
    waiting_requests=Gauge(mean=0.4, peak=3.0),
    kv_used_ratio=Gauge(mean=0.4, peak=0.61),
    preemptions=2.0,
    prefix_hit_ratio=0.12,
    request_times=RequestTimes(
        queue_s=0.011, prefill_s=0.028, decode_s=0.95, queue_ratio=0.011, prefill_ratio=0.028, decode_ratio=0.961
    ),
    gpus=Gpus(
        count=2,
        utilisation_ratio=Gauge(mean=0.87, peak=0.99),
        memory_used_bytes=Gauge(mean=148.0 * 2**30, peak=148.0 * 2**30),
        power_w=1_224.0,
        energy_j=61_000.0,
        energy_origin="counter",
        energy_per_output_token_j=0.537,
    ),
    configuration=ServerConfiguration(speculates=True, prefix_caching=True, max_num_seqs=256, dtype="bfloat16"),
    speculation=SpeculationConfiguration(
        method="eagle3", draft_tokens=3, draft_model="eagle3-llama-8b", forced=False, lossy=("posterior_threshold=0.2",)
    ),
)


@pytest.fixture
def prediction() -> Prediction:
    """EAGLE with three draft tokens on mathematics, more of it than memory holds at the last level, two GPUs."""
    workload = WORKLOADS["mathematics"]
    return predict(
        [1, 16, 64, 384],
        setting=Setting(
            gpu="H100 SXM",
            gpus=2,
            target="Llama-3.1-8B",
            draft=None,
            workload="mathematics (GSM8K)",
            acceptance_from="published results",
            step_times_from="a data sheet",
        ),
        speculator=Speculator(
            method=Method.EAGLE,
            draft_tokens=3,
            survival=workload.survival(Method.EAGLE),
            drafting=EAGLE_8B_ON_H100,
        ),
        traffic=Traffic(prompt_tokens=100, output_tokens=171, context_tokens=185.5),
        target=LLAMA_8B_ON_H100,
        memory=Memory(plain_tokens=40_000, speculative_tokens=38_000),
        workload=workload,
        known_draft_tokens=DEPTH,
    )


SPECULATION = Speculation(
    origin="per_request",
    population="drafting_steps",
    acceptance_length=2.44,
    acceptance_ratio=0.48,
    acceptance_by_position=(0.71, 0.46, 0.27),
    steps=49_180,
    drafted_tokens=147_540,
    accepted_tokens=70_819,
    coverage_ratio=0.97,
    tokens_per_step=2.4,
    method="eagle3",
    draft_tokens=3,
    oversize_events=2,
    per_request=RequestAcceptance(
        acceptance_length=Distribution(n=987, missing=1, mean=2.51, min=1.3, max=3.9, p50=2.48, p99=3.7),
        tokens_per_step=Distribution(n=985, missing=3, mean=2.46, min=1.2, max=3.9, p50=2.43, p99=3.7),
    ),
    tpot_by_acceptance=TpotByAcceptance(
        n=981,
        slope=Estimate(value=-0.97, low=-1.01, high=-0.93, confidence_ratio=0.95, method="least squares", n=981),
        correlation=-0.94,
        points=(RequestPoint(tokens_per_step=1.2, tpot_s=0.0162), RequestPoint(tokens_per_step=3.9, tpot_s=0.0051)),
    ),
    by_output_position=(
        OutputPositionBin(first=1, last=8, requests=985, steps=2_910, tokens_per_step=2.2, low=2.15, high=2.25),
        OutputPositionBin(first=9, last=16, requests=12, steps=31, tokens_per_step=2.6, low=None, high=None),
    ),
    by_category=(
        CategoryAcceptance(
            category="summarisation",
            requests=402,
            origin="per_request",
            population="drafting_steps",
            steps=20_011,
            acceptance_length=2.81,
            acceptance_ratio=0.6,
            tokens_per_step=2.75,
        ),
    ),
    views=(
        AcceptanceView(
            origin="counters",
            population="drafting_steps",
            scope="window",
            acceptance_length=2.45,
            acceptance_ratio=0.483,
            by_position=(0.71, 0.47, 0.27),
            conditional_by_position=(0.71, 0.662, 0.574),
            steps=47_012,
            drafted_tokens=141_036,
            accepted_tokens=68_167,
            coverage_ratio=0.97,
            tokens_per_step=2.41,
        ),
        AcceptanceView(
            origin="per_request",
            population="drafting_steps",
            scope="measured_requests",
            acceptance_length=2.44,
            acceptance_ratio=0.48,
            by_position=(0.71, 0.46, 0.27),
            conditional_by_position=(0.71, 0.648, 0.587),
            histogram=(14_262, 12_295, 9_344, 13_279),
            steps=49_180,
            drafted_tokens=147_540,
            accepted_tokens=70_819,
            coverage_ratio=0.97,
            tokens_per_step=2.4,
        ),
        AcceptanceView(
            origin="stream",
            population="decode_steps",
            scope="measured_requests",
            acceptance_length=2.4,
            steps=50_700,
            accepted_tokens=70_980,
            tokens_per_step=2.4,
        ),
        AcceptanceView(
            origin="gauge",
            population="drafting_steps",
            scope="window",
            acceptance_length=2.5,
        ),
    ),
    agreement=(
        Comparison(
            left="counters",
            right="per_request",
            quantity="steps",
            left_value=50_240.0,
            right_value=50_240.0,
            difference=0.0,
            allowed=(0.0, 0.0),
            agrees=True,
            why="The same steps: every request that decoded has a block.",
        ),
        Comparison(
            left="counters",
            right="stream",
            quantity="decode_steps",
            left_value=52_100.0,
            right_value=50_900,
            difference=1_200.0,
            allowed=(0.0, 40.0),
            agrees=False,
            why="Every decode step is an event, but for steps of at most 40 tokens.",
        ),
        Comparison(
            left="counters",
            right="stream",
            quantity="tokens_per_step",
            left_value=2.4,
            right_value=2.4,
            difference=0.0,
            allowed=(0.0, 0.0),
            agrees=True,
            why="Every decode step is an event, but for steps of at most 40 tokens.",
        ),
        Comparison(
            left="per_request",
            right="stream",
            quantity="steps",
            left_value=49_180,
            right_value=50_700,
            difference=-1_520,
            allowed=None,
            agrees=None,
            why="Nothing bounds what was decoded unseen.",
        ),
    ),
    notes=("drafts were not made in 3 % of the steps",),
)


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
        latency=Latency(
            ttft_s=distribution(0.0512, n=988),
            ttft_from_due_s=distribution(0.0531, n=988),
            ttfo_s=distribution(0.0512, n=988),
            tpot_s=distribution(0.0081, n=981, missing=7),
            icl_s=distribution(0.0196, n=48_192),
            itl_s=Distribution(n=0, missing=988),
            e2el_s=distribution(1.018, n=988),
            e2el_from_due_s=distribution(1.0198, n=988),
            schedule_lag_s=distribution(0.00021, n=1000),
            cap_wait_s=EMPTY,
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
        latency=Latency(
            ttft_s=nothing,
            ttft_from_due_s=EMPTY,
            ttfo_s=nothing,
            tpot_s=nothing,
            icl_s=EMPTY,
            itl_s=EMPTY,
            e2el_s=nothing,
            e2el_from_due_s=EMPTY,
            schedule_lag_s=EMPTY,
            cap_wait_s=EMPTY,
        ),
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


def level_summary(concurrency: int) -> Summary:
    """One level of a closed-loop ladder that saturates near 16."""
    speed = 130 * concurrency / (1 + (concurrency / 14) ** 1.6) ** 0.6
    wait = 0.021 * (1 + (concurrency / 12) ** 2)
    tpot = concurrency / speed
    base = rate_summary()
    return replace(
        base,
        run_id=f"20261130T0800{concurrency:02d}-a1b2c3",
        name=None,
        load=Load(mode=LoadMode.CONCURRENCY, concurrency=concurrency, num_requests=100, seed=7),
        requests=RequestCounts(
            planned=100, sent=100, completed=100, failed=0, cancelled=0, dropped=0, resent=0, failed_by_kind={}
        ),
        throughput=Throughput(
            requests_per_s=speed / 64, output_tokens_per_s=speed, input_tokens_per_s=speed * 3, goodput_rps=None
        ),
        rate=Rates(offered_rps=None, sent_rps=speed / 64),
        concurrency=Concurrency(peak=concurrency, mean=concurrency * 0.97),
        latency=Latency(
            ttft_s=distribution(wait, n=100),
            ttft_from_due_s=EMPTY,
            ttfo_s=distribution(wait, n=100),
            tpot_s=distribution(tpot, n=100),
            icl_s=distribution(tpot, n=6300),
            itl_s=distribution(tpot, n=6300),
            e2el_s=distribution(wait + 63 * tpot, n=100),
            e2el_from_due_s=EMPTY,
            schedule_lag_s=EMPTY,
            cap_wait_s=EMPTY,
        ),
        latency_error_adjusted={},
        slo=None,
        speculation=None,
        server=Server(),
        time_series=None,
        server_series=None,
        verdict=Verdict(valid=True),
    )


def with_evidence(summary: Summary, level: float) -> Summary:
    """The level with drafts and a server that runs 16 requests at once."""
    return replace(
        summary,
        speculation=replace(SPECULATION, acceptance_length=2.5 - level / 500, tokens_per_step=2.4 - level / 500),
        server=replace(
            SERVER,
            running_requests=Gauge(mean=level / 2, peak=min(level, 16.0)),
            waiting_requests=Gauge(mean=0.0, peak=max(0.0, level - 16)),
            kv_used_ratio=Gauge(mean=level / 200, peak=level / 100),
        ),
    )


def ladder() -> Sweep:
    """Concurrency 1 to 64; the first level was not scraped, the last is invalid, the knee is at 16."""
    levels = [SweepLevel(level=float(c), summary=level_summary(c)) for c in (1, 2, 4, 8, 16, 32, 64)]
    doubt = Finding(
        kind="client_cpu",
        severity="invalid",
        evidence="The client used 99 % of its core and read 41 ms after the stamp at p99.",
        advice="Use more workers or another machine for the client.",
    )
    levels[-1] = replace(
        levels[-1], summary=replace(levels[-1].summary, verdict=Verdict(valid=False, findings=(doubt,)))
    )
    for place, level in enumerate(levels[1:], start=1):
        levels[place] = replace(level, summary=with_evidence(level.summary, level.level))
    return Sweep(
        sweep_id="20261130T080000-d4e5f6",
        name="ladder on h200",
        variable="concurrency",
        levels=tuple(levels),
        knee=Knee(level=16.0, reason="doubling the load beyond it adds less than 30 % throughput"),
    )


def hostile_ladder() -> Sweep:
    """A level that failed, a level twice, a hostile name, no knee."""
    failed = SweepLevel(level=2.0, summary=invalid_summary())
    good = SweepLevel(level=2.0, summary=level_summary(2))
    return Sweep(sweep_id="x", name=HOSTILE, variable="concurrency", levels=(failed, good), knee=None)


@pytest.fixture
def analysis() -> Analysis:
    """A run with everything in it."""
    return rate_analysis()


@pytest.fixture
def hostile() -> Analysis:
    """A run with nothing in it but hostile text."""
    return hostile_analysis()


@pytest.fixture
def sweep() -> Sweep:
    """A ladder with a knee and an invalid level."""
    return ladder()


@pytest.fixture
def hostile_sweep() -> Sweep:
    """A ladder with duplicates, an empty level and hostile text."""
    return hostile_ladder()


@pytest.fixture
def empty_sweep() -> Sweep:
    """A ladder of which no level has finished."""
    return Sweep(sweep_id="x", name=None, variable="request_rate_rps", levels=(), knee=None)


@pytest.fixture
def hostile_text() -> str:
    """The text that must stay inert."""
    return HOSTILE


@pytest.fixture
def manifest() -> RunManifest:
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


@pytest.fixture
def summary_of() -> Callable[[int], Summary]:
    """One closed-loop level, by its concurrency."""
    return level_summary


def made_records() -> list[RequestRecord]:
    """Six requests: a warm-up, three completed (one speculated, one of one token), one failed, one never sent."""
    ms = 1_000_000
    speculated = RequestRecord(
        seq=1,
        request_id="r-1",
        phase=Phase.MEASURE,
        session_id="s-1",
        turn=0,
        category="=cmd|'/c calc'!A0",
        due_ns=1000 * ms,
        sent_ns=1002 * ms,
        headers_ns=1010 * ms,
        first_ns=1052 * ms,
        first_output_ns=1052 * ms,
        last_ns=1132 * ms,
        closed_ns=1134 * ms,
        event_ns=(1052 * ms, 1092 * ms, 1132 * ms),
        event_tokens=(1, 4, 4),
        input_tokens=20,
        output_tokens=9,
        output_tokens_from=TokenSource.SERVER,
        finish_reason="stop",
        outcome=Outcome.COMPLETED,
        speculation=RequestSpeculation(steps=2, drafted_tokens=6, accepted_tokens=6, histogram=(0, 0, 0, 2)),
        http_status=200,
        streamed=True,
        cap_wait_ns=ms,
        notes=("no_done",),
    )
    one_token = replace(
        speculated,
        seq=2,
        request_id="r-2",
        category=None,
        due_ns=1100 * ms,
        sent_ns=1100 * ms,
        headers_ns=1110 * ms,
        first_ns=1150 * ms,
        first_output_ns=1150 * ms,
        last_ns=1150 * ms,
        closed_ns=1151 * ms,
        event_ns=(1150 * ms,),
        event_tokens=None,
        output_tokens=1,
        speculation=None,
        cap_wait_ns=0,
        notes=(),
    )
    later = replace(
        one_token,
        seq=3,
        request_id="r-3",
        due_ns=2000 * ms,
        sent_ns=2000 * ms,
        first_ns=2100 * ms,
        first_output_ns=2100 * ms,
        last_ns=2400 * ms,
        closed_ns=2401 * ms,
        event_ns=(2100 * ms, 2200 * ms, 2300 * ms, 2400 * ms),
        output_tokens=4,
    )
    failed = RequestRecord(
        seq=4,
        request_id="r-4",
        phase=Phase.MEASURE,
        due_ns=2100 * ms,
        sent_ns=2100 * ms,
        headers_ns=2110 * ms,
        closed_ns=2112 * ms,
        outcome=Outcome.FAILED,
        failure=Failure(kind=FailureKind.HTTP_5XX, http_status=503, message='a "quoted", message\r\non two lines'),
        http_status=503,
    )
    dropped = RequestRecord(
        seq=5, request_id="r-5", phase=Phase.MEASURE, due_ns=2200 * ms, outcome=Outcome.DROPPED, notes=("cap",)
    )
    warm = replace(later, seq=0, request_id="r-0", phase=Phase.WARMUP, due_ns=None, sent_ns=100 * ms)
    return [warm, speculated, one_token, failed, later, dropped]


@pytest.fixture
def records() -> list[RequestRecord]:
    """A handful of records, one of each sort."""
    return made_records()


@pytest.fixture
def recorded(manifest: RunManifest, records: list[RequestRecord]) -> Analysis:
    """The analysis of `records`."""
    return analyse(lambda: records, replace(manifest, planned=6, slo={}, interrupted=False))


class Golden:
    """Compares text with a file under tests/golden/reports; with REGENERATE=1 writes it and fails, once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, name: str, text: str) -> None:
        """Fails when the file says something else."""
        path = self._folder / name
        if os.environ.get("REGENERATE") == "1":
            old = path.read_bytes() if path.exists() else None
            if old != text.encode():
                path.write_bytes(text.encode())
                pytest.fail(f"{path} was written anew: read the difference, then run again without REGENERATE")
        assert text == path.read_bytes().decode(), f"{path} differs; REGENERATE=1 writes it anew"


@pytest.fixture
def golden() -> Golden:
    """The golden files of the reports."""
    return Golden(Path(__file__).parent.parent / "golden" / "reports")
