"""Panels of how the load generator itself fares: whether what it measures may be believed."""

from dashboards.generator.lines import states, timeseries
from dashboards.generator.panels import GREEN, QUANTILE_COLORS, RED, Panel, Query, words
from dashboards.generator.promql import ARM, LEVEL, chosen, largest, quantile, share

VALIDITY = words({0: ("invalid", RED), 1: ("valid", GREEN)})
_WHO = "{{server}}, {{method}}"
_LEVEL = "{{variable}} {{level}}, {{server}}"


def panels() -> list[Panel]:
    """While it sends, and at each level that is finished."""
    lag = "schedule_lag_seconds"
    return [
        timeseries(
            "Schedule lag",
            "sent - due of an open loop, waiting for a slot included. Without a cap on concurrency it is the "
            "client's own lag, and a measurement with much of it is invalid. A closed loop has none.",
            "s",
            *(
                Query(expr=quantile(ratio, lag), legend=f"p{ratio * 100:g}", color=QUANTILE_COLORS[ratio])
                for ratio in (0.5, 0.95, 0.99)
            ),
        ),
        timeseries(
            "Sent of what was offered",
            "Requests sent / requests due in the window of each finished level of an open loop; under 95 % without a "
            "cap on concurrency the measurement is invalid.",
            "percentunit",
            Query(expr=share(_of_level("level_sent_rate_rps"), _of_level("level_offered_rate_rps")), legend=_LEVEL),
        ),
        states(
            "May it be believed?",
            "The verdict on the latest run that is over, by arm. What is invalid and why stands in the run's report.",
            Query(expr=f"min by ({', '.join(ARM)}) ({chosen('measurement_valid')})", legend=_WHO),
            mappings=[VALIDITY],
            width=8,
            height=8,
        ),
        timeseries(
            "Client's CPU at each level",
            "Share of one core that the load generator used in the window of the latest level. Near 100 % it is the "
            "client that is measured.",
            "percentunit",
            Query(expr=_of_level("level_client_cpu_ratio"), legend=_LEVEL),
            width=12,
        ),
        timeseries(
            "How late the client saw what had arrived",
            "The kernel's stamp of an arrival to the client's own look at it, p99 of requests by their worst read, "
            "at each finished level. Latencies are taken from the kernel's stamps and do not hold it.",
            "s",
            Query(expr=_of_level("level_client_stamp_lag_seconds"), legend=_LEVEL),
            width=12,
        ),
    ]


def _of_level(metric: str) -> str:
    """A result of each finished level, as it is told now."""
    return largest(chosen(metric), *LEVEL)
