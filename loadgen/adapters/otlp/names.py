"""What metrics are called in OpenTelemetry: all by names of our own, some by those of its GenAI conventions too.

Our own names are such that Prometheus' OTLP receiver makes those of the page from them: it turns dots into underscores,
appends the unit, and `_total` to what only grows. `docs/prometheus.md` follows the tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_PREFIX, _SECONDS, _TOTAL = "loadgen_", "_seconds", "_total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A metric's name and unit (UCUM), and what its points are told apart by beyond the labels of the page."""

    name: str
    unit: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)


def own_name(name: str) -> Name:
    """The name of our own for a metric of the page."""
    plain = name.removeprefix(_PREFIX).removesuffix(_TOTAL)
    stem = plain.removesuffix(_SECONDS)
    return Name(name=f"loadgen.{stem}", unit="s" if stem != plain else "")


def _seconds(name: str) -> Name:
    return Name(name=name, unit="s")


def _tokens(name: str, kind: str | None = None) -> Name:
    return Name(name=name, unit="{token}", attributes={} if kind is None else {"gen_ai.token.type": kind})


OF_1_41: Mapping[str, Name] = {
    "loadgen_request_duration_seconds": _seconds("gen_ai.client.operation.duration"),
    "loadgen_time_to_first_token_seconds": _seconds("gen_ai.client.operation.time_to_first_chunk"),
    "loadgen_inter_chunk_latency_seconds": _seconds("gen_ai.client.operation.time_per_output_chunk"),
    "loadgen_request_input_tokens": _tokens("gen_ai.client.token.usage", "input"),
    "loadgen_request_output_tokens": _tokens("gen_ai.client.token.usage", "output"),
}
"""By the name on the page: the GenAI conventions as they stood in OpenTelemetry's semantic conventions 1.41."""

LATEST: Mapping[str, Name] = {
    "loadgen_request_duration_seconds": _seconds("gen_ai.client.inference.duration"),
    "loadgen_time_to_first_token_seconds": _seconds("gen_ai.client.inference.time_to_first_chunk"),
    "loadgen_inter_chunk_latency_seconds": _seconds("gen_ai.client.inference.time_per_output_chunk"),
    "loadgen_input_tokens_total": _tokens("gen_ai.client.inference.usage.input_tokens"),
    "loadgen_output_tokens_total": _tokens("gen_ai.client.inference.usage.output_tokens"),
    "loadgen_request_input_tokens": _tokens("gen_ai.client.inference.operation.input_tokens"),
    "loadgen_request_output_tokens": _tokens("gen_ai.client.inference.operation.output_tokens"),
}
"""As they stand in 0.1.0 of the repository that they moved to, with new names."""

_OPT_IN = "gen_ai_latest_experimental"


def conventions(opt_in: str) -> Mapping[str, Name]:
    """The table that a value of OTEL_SEMCONV_STABILITY_OPT_IN asks for; one of the two, as the conventions demand."""
    return LATEST if _OPT_IN in (word.strip() for word in opt_in.split(",")) else OF_1_41
