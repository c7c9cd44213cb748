"""The options of every command that sends load and can be watched meanwhile."""

from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from loadgen.options.fields import CollectorUrl, DurationSeconds, ListenAddress, option


class MetricsOptions(BaseModel):
    """Where metrics for Prometheus are served, and how long they stay; where they are pushed to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prometheus_port: ListenAddress | None = option(
        None,
        "Serve metrics for Prometheus on this port while the command runs; for this machine alone unless an address"
        " stands before it, and 0 takes a free one.",
        panel="Run",
        metavar="[ADDRESS:]PORT",
    )
    prometheus_linger: DurationSeconds = option(
        0.0, "Time for which metrics stay after the end, for a last scrape.", panel="Run", metavar="TIME", ge=0
    )
    otlp_endpoint: CollectorUrl | None = option(
        None,
        "Push metrics to a collector of OpenTelemetry by OTLP over HTTP; /v1/metrics is appended. Headers and other"
        " settings are taken from OpenTelemetry's own variables, such as OTEL_EXPORTER_OTLP_HEADERS.",
        panel="Run",
        metavar="URL",
    )

    @model_validator(mode="after")
    def _lingers_somewhere(self) -> Self:
        if self.prometheus_linger and self.prometheus_port is None:
            raise ValueError("--prometheus-linger needs --prometheus-port")
        return self
