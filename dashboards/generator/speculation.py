"""The dashboard of an experiment: does speculative decoding pay, up to which load, and why."""

from dashboards.generator import servers, speedup
from dashboards.generator.dashboard import assembled, metric_variable, own_variables
from dashboards.generator.grids import COLUMNS, by_level, table
from dashboards.generator.lines import timeseries
from dashboards.generator.live import run_annotations
from dashboards.generator.panels import Json, Panel, Query, Row
from dashboards.generator.promql import (
    ARM,
    LEVEL,
    latency,
    latest,
    observed,
    quantile,
    rate,
    share,
)
from dashboards.generator.speedup import OTHER

_WHO = "{{server}}, {{method}}"


def dashboard() -> Json:
    """*Speculative decoding*."""
    baseline = metric_variable(
        "baseline", "Baseline", 'loadgen_level_latency_seconds{method="none"}', of="server", several=False
    )
    return assembled(
        uid="loadgen-speculation",
        title="Speculative decoding",
        description="Arms of an experiment beside the baseline that is chosen above: speedup by level, acceptance, "
        "what it would take to break even. Definitions: docs/metrics.md and docs/statistics.md.",
        rows=(
            Row(title="Does it pay?", panels=speedup.paying()),
            Row(title="Why", panels=speedup.why()),
            Row(title="Acceptance", panels=_acceptance()),
            Row(title="Latency and goodput of each arm", panels=_arms()),
            Row(title="While it runs", panels=_running()),
        ),
        variables=[*own_variables("loadgen_requests_in_flight"), baseline, *servers.server_variables()],
        annotations=run_annotations(),
        since="1h",
        refresh="10s",
    )


def _acceptance() -> list[Panel]:
    return [
        by_level(
            "Acceptance length by level",
            "Mean tokens that a drafting step puts out, the bonus token included, as the origin tells it that the "
            "run's report names.",
            "short",
            latest("level_acceptance_length_tokens", OTHER),
            width=8,
        ),
        by_level(
            "Acceptance ratio by level",
            "accepted / drafted tokens: what share of the drafter's work is kept.",
            "percentunit",
            latest("level_acceptance_ratio", OTHER),
            width=8,
        ),
        by_level(
            "Acceptance by position",
            "Share of drafts whose token at this position was accepted, mean over the levels that are shown; "
            "position 0 is the first drafted token. A token counts only when all before it were accepted.",
            "percentunit",
            _by_position(),
            column="server",
            row="position",
            width=8,
        ),
        servers.acceptance_length(),
        servers.draft_acceptance(),
        servers.acceptance_by_position(),
    ]


def _by_position() -> str:
    inner = latest("level_acceptance_by_position_ratio", OTHER, *LEVEL, "position")
    return f"avg by (server, position) ({inner})"


def _arms() -> list[Panel]:
    return [
        by_level(
            "TPOT by level, mean",
            "Time per output token after the first, exact, of each arm.",
            "s",
            latency("tpot", "mean"),
            width=8,
        ),
        by_level(
            "TTFT by level, p95", "Time to first token, exact, of each arm.", "s", latency("ttft", "p95"), width=8
        ),
        by_level(
            "E2EL by level, p95",
            "From sending to the last token, exact, of each arm.",
            "s",
            latency("e2el", "p95"),
            width=8,
        ),
        by_level(
            "Output tokens a second by level",
            "Output tokens that arrived a second in the level's window.",
            "short",
            latest("level_output_tokens_per_second"),
            width=8,
        ),
        by_level(
            "Goodput by level",
            "Requests a second that met every objective; only with objectives (--slo, or slo in the experiment's "
            "file).",
            "reqps",
            latest("level_goodput_rps"),
            width=8,
        ),
        by_level(
            "Attainment by level",
            "Share of due requests that met every objective; only with objectives.",
            "percentunit",
            latest("level_slo_attainment_ratio"),
            width=8,
        ),
    ]


def _running() -> list[Panel]:
    events = f"({observed('inter_chunk_latency_seconds', *ARM)} + {observed('time_to_first_token_seconds', *ARM)})"
    return [
        timeseries(
            "Tokens an event",
            "Output tokens / token-bearing events of completed requests: about 1 without speculation, the tokens of "
            "a step with it where the server sends an event a step.",
            "short",
            Query(expr=share(rate("output_tokens_total", *ARM), events), legend=_WHO),
        ),
        timeseries(
            "TPOT of each arm, p50",
            "Time per output token after the first, one value a request; over the last minute or so.",
            "s",
            Query(expr=quantile(0.5, "time_per_output_token_seconds", *ARM), legend=_WHO),
        ),
        timeseries(
            "TTFT of each arm, p95",
            "Time from sending a request to its first token-bearing event; over the last minute or so.",
            "s",
            Query(expr=quantile(0.95, "time_to_first_token_seconds", *ARM), legend=_WHO),
        ),
        table(
            "Cells",
            "What was measured, by arm and level, and whether it may be believed.",
            (
                ("TPOT mean", "s", latency("tpot", "mean")),
                ("Tokens a step", "short", latest("level_tokens_per_step")),
                ("Acceptance length", "short", latest("level_acceptance_length_tokens")),
                ("Not completed", "percentunit", latest("level_error_ratio")),
                ("Valid", "bool_yes_no", latest("level_measurement_valid")),
            ),
            labels=COLUMNS,
        ),
    ]
