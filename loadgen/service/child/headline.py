"""The figures that lists and charts show of a result. All of them stand in the result itself, too."""

from typing import Any

from loadgen.core.capacity.result import CapacityResult
from loadgen.core.comparison.arms import ArmsComparison
from loadgen.core.comparison.side import level_of
from loadgen.core.metrics.summary import Summary, Sweep

_LATENCIES = ("ttft_s", "tpot_s", "e2el_s")
_STATISTICS = ("mean", "p50", "p90", "p99")


def headline(summary: Summary) -> dict[str, Any]:
    """Of one run."""
    counts, speculation = summary.requests, summary.speculation
    return {
        "run_id": summary.run_id,
        "mode": summary.load.mode.value,
        "level": level_of(summary.load),
        "model": summary.target.model,
        "engine": summary.target.engine,
        "duration_s": summary.duration_s,
        "requests": {"planned": counts.planned, "completed": counts.completed, "failed": counts.failed},
        "requests_per_s": summary.throughput.requests_per_s,
        "output_tokens_per_s": summary.throughput.output_tokens_per_s,
        "goodput_rps": summary.throughput.goodput_rps,
        "slo_attainment_ratio": None if summary.slo is None else summary.slo.attainment_ratio,
        "acceptance_length": None if speculation is None else speculation.acceptance_length,
        "valid": summary.verdict.valid,
        "findings": [finding.kind for finding in summary.verdict.findings if finding.severity != "info"],
        **{
            name: {statistic: getattr(getattr(summary.latency, name), statistic) for statistic in _STATISTICS}
            for name in _LATENCIES
        },
    }


def headline_of_sweep(sweep: Sweep) -> dict[str, Any]:
    """Of a ladder, level by level."""
    return {
        "variable": sweep.variable,
        "levels": [headline(level.summary) for level in sweep.levels],
        "knee": None if sweep.knee is None else {"level": sweep.knee.level, "reason": sweep.knee.reason},
        "no_knee": sweep.no_knee,
    }


def headline_of_search(result: CapacityResult) -> dict[str, Any]:
    """Of a search for a capacity."""
    found = result.capacity
    at = result.attainment.at_capacity
    return {
        "variable": result.variable,
        "objectives": result.attainment.objectives,
        "target_ratio": result.attainment.target_ratio,
        "level": None if found is None else found.level,
        "low": None if found is None else found.low,
        "high": None if found is None else found.high,
        "requests_per_s": None if found is None else found.requests_per_s,
        "output_tokens_per_s": None if found is None else found.output_tokens_per_s,
        "attainment_ratio": None if at is None else at.ratio,
        "next_failed": None if result.next_failed is None else result.next_failed.why,
        "probes": [
            {
                "level": probe.level,
                "verdict": probe.verdict.value,
                "why": probe.why,
                "run_id": probe.run_id,
                "attainment": {
                    "ratio": probe.attainment.ratio,
                    "low": probe.attainment.low,
                    "high": probe.attainment.high,
                },
                "requests_per_s": probe.summary.requests_per_s,
                **{
                    name: {statistic: getattr(distribution, statistic) for statistic in _STATISTICS}
                    for name, distribution in probe.summary.latency.items()
                },
            }
            for probe in result.probes
        ],
    }


def headline_of_comparison(comparison: ArmsComparison) -> dict[str, Any]:
    """Of an experiment over one ladder. An arm that is not `compared` is the baseline again, or explains another."""
    compared = {ladder.arm.name for ladder in comparison.arms}
    return {
        "variable": comparison.variable,
        "arms": [
            {
                "name": ladder.arm.name,
                "label": ladder.arm.label,
                "compared": ladder.arm.name in compared,
                "method": ladder.arm.method,
                "draft_tokens": ladder.arm.draft_tokens,
                "crossover": None if ladder.crossover is None else ladder.crossover.level,
                "levels": [
                    {
                        "level": verdict.level,
                        "speedup": verdict.speedup.value,
                        "low": verdict.speedup.low,
                        "high": verdict.speedup.high,
                        "claim": verdict.claim.value,
                    }
                    for verdict in ladder.verdicts
                ],
            }
            for ladder in comparison.ladders
        ],
        "repeats": comparison.repeats,
        "valid": comparison.valid,
        "complete": comparison.complete,
    }
