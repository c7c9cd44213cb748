"""Panels of what servers tell of themselves, by the names that the recording rules give to every engine's."""

from dashboards.generator.dashboard import metric_variable
from dashboards.generator.lines import timeseries
from dashboards.generator.panels import Json, Panel, Query
from dashboards.generator.promql import share

_CHOSEN = 'job=~"$job", instance=~"$instance"'
_WHO = "{{engine}} {{instance}}"
_RULED = "From the recording rules `loadgen_server:*`, which give vLLM's, SGLang's and llama.cpp's names one form."
COARSE = (
    "Buckets of servers are coarse: a percentile from them can be off by as much as its bucket is wide, and under "
    "speculation most gaps lie in the first two. **Not fit to compare methods**; compare the client's."
)


def of_servers(name: str) -> str:
    """What a recording rule made of the chosen servers' metrics."""
    return f"loadgen_server:{name}{{{_CHOSEN}}}"


def by_server(name: str, *more: str) -> str:
    """The same, once for each server whatever other labels its target has."""
    return f"sum by ({', '.join(('engine', 'instance', *more))}) ({of_servers(name)})"


def server_variables() -> list[Json]:
    """Which targets are the servers, by job and instance of Prometheus."""
    return [
        metric_variable("job", "Servers' job", "loadgen_server:requests_running"),
        metric_variable("instance", "Servers' instance", 'loadgen_server:requests_running{job=~"$job"}'),
    ]


def queue() -> Panel:
    """Running and waiting."""
    return timeseries(
        "Server: running and waiting",
        f"Requests that the server works on, and those that wait inside it for a place in the batch. {_RULED}",
        "short",
        Query(expr=by_server("requests_running"), legend=f"running, {_WHO}"),
        Query(expr=by_server("requests_waiting"), legend=f"waiting, {_WHO}"),
    )


def cache() -> Panel:
    """KV cache."""
    return timeseries(
        "Server: KV cache in use",
        "Share of the KV cache that holds tokens; of several engines behind one page the fullest. Near 100 % the "
        f"server preempts. llama.cpp does not tell. {_RULED}",
        "percentunit",
        Query(expr=f"max by (engine, instance) ({of_servers('kv_cache_usage_ratio')})", legend=_WHO),
        maximum=1,
    )


def preemptions() -> Panel:
    """Requests that lost their place."""
    return timeseries(
        "Server: preemptions",
        "Requests a second that lost their place in the batch because the KV cache was full, and are computed again "
        f"(SGLang: retracted). llama.cpp has none. {_RULED}",
        "reqps",
        Query(expr=by_server("preemptions:rate1m"), legend=_WHO),
    )


def tokens() -> Panel:
    """What the server counts."""
    return timeseries(
        "Server: tokens",
        "Output and input tokens a second as the server counts them, whoever asked: above the client's figures "
        f"another client is at work. {_RULED}",
        "short",
        Query(expr=by_server("generation_tokens:rate1m"), legend=f"output, {_WHO}"),
        Query(expr=by_server("prompt_tokens:rate1m"), legend=f"input, {_WHO}"),
    )


def first_tokens() -> Panel:
    """The server's own TTFT."""
    quantile = f"histogram_quantile(0.95, {by_server('time_to_first_token_seconds_bucket:rate1m', 'le')}) >= 0"
    return timeseries(
        "Server: TTFT p95, from its own coarse buckets",
        f"From a request's arrival in the server to its first token. {COARSE} llama.cpp has none. {_RULED}",
        "s",
        Query(expr=quantile, legend=_WHO),
    )


def acceptance_length() -> Panel:
    """Acceptance over time."""
    return timeseries(
        "Acceptance length over time",
        "Mean tokens a drafting step puts out, the bonus token included: 1 + accepted / drafts, from the server's "
        f"counters over a minute; of SGLang, whose counters do not tell, its own gauge. {_RULED}",
        "short",
        Query(
            expr=f"avg by (engine, instance) ({of_servers('acceptance_length')})",
            legend=_WHO,
        ),
        minimum=1,
    )


def acceptance_by_position() -> Panel:
    """Acceptance of each draft position over time."""
    whole = f"on (engine, instance) group_left () ({by_server('drafts:rate1m')} > 0)"
    return timeseries(
        "Acceptance by position over time",
        "Share of drafts whose token at this position was accepted; position 0 is the first drafted token. A token "
        f"counts only when all before it were accepted, so lines never cross. SGLang does not tell. {_RULED}",
        "percentunit",
        Query(
            expr=f"{by_server('accepted_tokens_by_position:rate1m', 'position')} / {whole}",
            legend=f"{{{{position}}}}, {_WHO}",
        ),
        maximum=1,
    )


def draft_acceptance() -> Panel:
    """Accepted over drafted."""
    return timeseries(
        "Acceptance ratio over time",
        f"accepted / drafted tokens over a minute: what share of the drafter's work is kept. SGLang does not tell. "
        f"{_RULED}",
        "percentunit",
        Query(
            expr=share(by_server("accepted_tokens:rate1m"), by_server("drafted_tokens:rate1m")),
            legend=_WHO,
        ),
        maximum=1,
    )
