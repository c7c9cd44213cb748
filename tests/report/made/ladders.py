"""Ladders of runs."""

from dataclasses import replace

from loadgen.core.metrics.summary import (
    Concurrency,
    Finding,
    Gauge,
    Knee,
    Rates,
    RequestCounts,
    Server,
    Summary,
    Sweep,
    SweepLevel,
    Throughput,
    Verdict,
)
from loadgen.core.run import Load, LoadMode
from tests.report.made.evidence import SERVER, SPECULATION
from tests.report.made.runs import invalid_summary, rate_summary
from tests.report.made.samples import distribution, latency
from tests.report.made.text import HOSTILE


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
        latency=latency(
            ttft_s=distribution(wait, n=100),
            ttfo_s=distribution(wait, n=100),
            tpot_s=distribution(tpot, n=100),
            icl_s=distribution(tpot, n=6300),
            itl_s=distribution(tpot, n=6300),
            e2el_s=distribution(wait + 63 * tpot, n=100),
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
