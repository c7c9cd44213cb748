"""Panels of latencies as clients see them: quantiles, and how values spread."""

from dashboards.generator.lines import heatmap, timeseries
from dashboards.generator.panels import QUANTILE_COLORS, Panel, Query
from dashboards.generator.promql import ARM, buckets, quantile

TTFT = "Time to first token: from sending a request to its first token-bearing event, of completed measured requests."
_WHO = "{{server}}, {{method}}"
_LATENCIES = {
    "time_to_first_token_seconds": (
        "TTFT",
        TTFT,
    ),
    "time_per_output_token_seconds": (
        "TPOT",
        "Time per output token after the first, (last - first) / (tokens - 1), one value a request: the figure that "
        "compares methods.",
    ),
    "inter_chunk_latency_seconds": (
        "Gaps between events (ICL)",
        "Gaps between neighbouring events, pooled over requests. Under speculation an event is a step and holds "
        "several tokens: never compare gaps of a speculative server with those of its baseline.",
    ),
    "request_duration_seconds": (
        "Whole answers (E2EL)",
        "From sending a request to its last token, of completed measured requests.",
    ),
}


def panels() -> list[Panel]:
    """Four lines, and a heat map under each."""
    lines = [
        timeseries(
            title,
            f"{text} By quantile, over the last minute or so; from native histograms where they are stored, else "
            "classic buckets.",
            "s",
            *(
                Query(
                    expr=quantile(ratio, metric, *ARM),
                    legend=f"p{ratio * 100:g} {_WHO}",
                    color=QUANTILE_COLORS[ratio],
                )
                for ratio in (0.5, 0.95, 0.99)
            ),
            width=6,
        )
        for metric, (title, text) in _LATENCIES.items()
    ]
    maps = [
        heatmap(f"{title}: how values spread", f"{text} Observations a second in each bucket.", buckets(metric))
        for metric, (title, text) in _LATENCIES.items()
    ]
    return [*lines, *maps]
