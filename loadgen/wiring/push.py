"""Metrics pushed to a collector of OpenTelemetry beside a command: from an address and variables to a pusher."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from loadgen.adapters.otlp.names import conventions
from loadgen.adapters.otlp.pusher import Pusher, Source
from loadgen.core.errors import ConfigError
from loadgen.core.request import Endpoint

_PATH = "/v1/metrics"
_OPERATIONS = {Endpoint.CHAT: "chat", Endpoint.COMPLETIONS: "text_completion", Endpoint.RESPONSES: "chat"}
_INTERVAL, _INTERVAL_MS = "OTEL_METRIC_EXPORT_INTERVAL", 10_000
_AGGREGATION = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"
_OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"


@contextmanager
def pushing(
    url: str | None,
    source: Source,
    *,
    endpoint: Endpoint,
    tell: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> Iterator[None]:
    """Pushes to the collector at `url`, if any, until the block is left, and its last state then.

    Raises ConfigError without the extra `otlp`, and for an interval that is none.
    """
    if url is None:
        yield
        return
    try:
        from loadgen.adapters.otlp.collector import Collector
        from loadgen.adapters.otlp.points import Form
    except ImportError as fault:
        raise ConfigError(
            f"--otlp-endpoint needs OpenTelemetry's exporter ({fault.name} is missing): pip install '.[otlp]' in a"
            " clone of Loadgen adds it"
        ) from fault
    form = Form(
        conventions=conventions(environment.get(_OPT_IN, "")),
        operation=_OPERATIONS[endpoint],
        start_ns=time.time_ns(),
        exponential=environment.get(_AGGREGATION, "").strip().lower() == "base2_exponential_bucket_histogram",
    )
    whole = url if url.endswith(_PATH) else url + _PATH
    interval_s = _interval_s(environment)
    pusher = Pusher(source, Collector(whole, form), interval_s=interval_s, url=whole, tell=tell)
    try:
        yield
    finally:
        pusher.close()


def _interval_s(environment: Mapping[str, str]) -> float:
    """Seconds between two pushes; the variable is in milliseconds."""
    text = environment.get(_INTERVAL, "").strip() or str(_INTERVAL_MS)
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ConfigError(f"{_INTERVAL}: expected milliseconds, a whole number from 1, got {text!r}")
    return int(text) / 1000
