"""The dashboard of a load test that is under way, or was."""

from dashboards.generator import client, latencies, servers
from dashboards.generator.dashboard import annotation, assembled, own_variables
from dashboards.generator.grids import COLUMNS, table
from dashboards.generator.lines import stat, timeseries
from dashboards.generator.panels import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Json,
    Panel,
    Query,
    Row,
    note,
)
from dashboards.generator.promql import (
    chosen,
    latency,
    latest,
    quantile,
    rate,
    share,
    summed,
)

_WHO = "{{server}}, {{method}}"


def dashboard() -> Json:
    """*Live load test*."""
    return assembled(
        uid="loadgen-live",
        title="Live load test",
        description="What a load test sends, what comes back and how fast, whether the client keeps up, and what the "
        "server says of itself meanwhile. Definitions: docs/metrics.md.",
        rows=(
            Row(title="Now", panels=_now()),
            Row(title="Load", panels=_load()),
            Row(title="Latency", panels=latencies.panels()),
            Row(title="Failures", panels=_failures()),
            Row(title="Client", panels=client.panels()),
            Row(title="Server", panels=_server()),
            Row(title="Finished levels", panels=[_levels()]),
        ),
        variables=[*own_variables("loadgen_requests_in_flight"), *servers.server_variables()],
        annotations=run_annotations(),
        since="15m",
        refresh="5s",
    )


def run_annotations() -> list[Json]:
    """One for each run, one for each level."""
    return [
        annotation("Runs", "loadgen_run_info", "{{command}}", BLUE, text="{{run_id}}", shown=False),
        annotation(
            "Levels", chosen("level_under_way"), "{{variable}} {{level}}", ORANGE, text="{{server}}, {{method}}"
        ),
    ]


def _now() -> list[Panel]:
    over = summed(f"rate({chosen('requests_total')}[$__rate_interval])")
    failed = summed(f"rate({chosen('requests_total', _FAILED)}[$__rate_interval])")
    return [
        stat(
            "Measurement",
            "The verdict on the latest run that is over: may it be believed? None before the first is over.",
            "short",
            Query(expr=f"min({chosen('measurement_valid')})"),
            mappings=[client.VALIDITY],
        ),
        stat(
            "In flight",
            "Requests that are sent and not over, warm-up included.",
            "short",
            Query(expr=summed(chosen("requests_in_flight"))),
            decimals=0,
        ),
        stat(
            "Completions",
            "Completed measured requests a second.",
            "reqps",
            Query(expr=rate("requests_total", more='outcome="completed"')),
        ),
        stat(
            "Output tokens",
            "Output tokens a second of completed measured requests, counted as each ends.",
            "short",
            Query(expr=rate("output_tokens_total")),
        ),
        stat(
            "TTFT p95",
            latencies.TTFT,
            "s",
            Query(expr=quantile(0.95, "time_to_first_token_seconds")),
        ),
        stat(
            "Not completed",
            "(failed + dropped) / requests that are over, measured ones.",
            "percentunit",
            Query(expr=share(failed, over)),
            steps=((None, GREEN), (0.001, ORANGE), (0.01, RED)),
        ),
    ]


_FAILED = 'outcome=~"failed|dropped"'


def _load() -> list[Panel]:
    return [
        timeseries(
            "Requests a second",
            "Offered: what the open loop under way is to send (none in a closed loop). Sent: requests that were sent, "
            "counted when they are over. Completed: those that brought a whole answer. Measured ones.",
            "reqps",
            Query(expr=summed(chosen("target_rate_rps")), legend="offered", color=BLUE),
            Query(expr=rate("requests_sent_total"), legend="sent", color=ORANGE),
            Query(expr=rate("requests_total", more='outcome="completed"'), legend="completed", color=GREEN),
        ),
        timeseries(
            "Concurrency, client and server",
            "Target: what a closed loop keeps in flight (none in an open loop). In flight: sent and not over, warm-up "
            "included. Running and waiting: the server's own count. In flight above their sum is on the way or in "
            "front of the server.",
            "short",
            Query(expr=summed(chosen("target_concurrency")), legend="target", color=BLUE),
            Query(expr=summed(chosen("requests_in_flight")), legend="in flight", color=ORANGE),
            Query(expr=f"sum({servers.of_servers('requests_running')})", legend="server: running", color=GREEN),
            Query(expr=f"sum({servers.of_servers('requests_waiting')})", legend="server: waiting", color=RED),
        ),
        timeseries(
            "Tokens a second",
            "Tokens of completed measured requests, counted as each ends: long answers show late. Output on the "
            "server's side: as it makes them, whoever asked.",
            "short",
            Query(expr=rate("output_tokens_total"), legend="output", color=GREEN),
            Query(expr=rate("input_tokens_total"), legend="input", color=BLUE),
            Query(expr=f"sum({servers.of_servers('generation_tokens:rate1m')})", legend="server: output", color=GREY),
        ),
    ]


def _failures() -> list[Panel]:
    return [
        timeseries(
            "Failures by kind",
            "Measured requests that failed, a second, by the kind of failure (docs/metrics.md); kinds without one "
            "are left out.",
            "reqps",
            Query(expr=f"{rate('request_failures_total', 'kind')} > 0", legend="{{kind}}"),
            width=12,
        ),
        timeseries(
            "How requests end",
            "Measured requests that are over, a second: completed, failed (the server's fault or the network's), "
            "cancelled (the run ended first), dropped (never sent).",
            "reqps",
            Query(expr=rate("requests_total", "outcome"), legend="{{outcome}}"),
            width=12,
        ),
    ]


def _server() -> list[Panel]:
    return [
        note(f"What servers tell of themselves, one form for all engines (docs/dashboards.md). {servers.COARSE}"),
        servers.queue(),
        servers.cache(),
        servers.preemptions(),
        servers.tokens(),
        servers.first_tokens(),
        servers.acceptance_length(),
    ]


def _levels() -> Panel:
    return table(
        "Results by level",
        "Exact figures of finished levels, from their records. Throughput is over the level's window; attainment is "
        "good / due, with objectives only.",
        (
            ("Completed", "reqps", latest("level_request_rate_rps")),
            ("Output tokens/s", "short", latest("level_output_tokens_per_second")),
            ("In flight", "short", latest("level_concurrency")),
            ("TTFT p50", "s", latency("ttft", "p50")),
            ("TTFT p95", "s", latency("ttft", "p95")),
            ("TPOT mean", "s", latency("tpot", "mean")),
            ("TPOT p95", "s", latency("tpot", "p95")),
            ("E2EL p95", "s", latency("e2el", "p95")),
            ("Goodput", "reqps", latest("level_goodput_rps")),
            ("Attainment", "percentunit", latest("level_slo_attainment_ratio")),
            ("Not completed", "percentunit", latest("level_error_ratio")),
            ("Valid", "bool_yes_no", latest("level_measurement_valid")),
        ),
        labels=COLUMNS,
    )
