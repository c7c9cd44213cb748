"""A collector of OpenTelemetry: one HTTP request a push. What OpenTelemetry's own variables set, its exporter reads:
headers (and with them keys), certificates, compression, time limit, resource attributes."""

import logging
import os
import socket
import time
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from loadgen import __version__
from loadgen.adapters.otlp.families import Family
from loadgen.adapters.otlp.points import Form, metrics

# The exporter's log would go to the terminal, secrets of a header that is not well-formed included.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
_LONGEST_REASON, _LONGEST_ANSWER = 120, 2**16


class Collector:
    """Where metrics are pushed to. What OpenTelemetry's exporter cannot read of a variable, it does without."""

    def __init__(self, url: str, form: Form) -> None:
        self._form = form
        self._outcome = _Outcome()
        session = requests.Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, self._outcome)
        self._exporter = OTLPMetricExporter(endpoint=url, session=session)
        self._resource = _resource()
        self._scope = InstrumentationScope("loadgen", __version__)

    def send(self, families: Sequence[Family]) -> str | None:
        """Pushes everything as it is now; returns why that failed, None when it did not."""
        told = metrics(families, self._form, time.time_ns())
        scopes = [ScopeMetrics(scope=self._scope, metrics=told, schema_url="")]
        data = MetricsData([ResourceMetrics(resource=self._resource, scope_metrics=scopes, schema_url="")])
        self._outcome.fault = None
        sent = self._exporter.export(data) is MetricExportResult.SUCCESS
        return self._outcome.fault or (None if sent else "not sent")

    def close(self) -> None:
        """Gives connections back; a push under way is not tried again."""
        self._exporter.shutdown()


def _resource() -> Resource:
    """Who pushes; OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME say better."""
    ours = {
        "service.name": "loadgen",
        "service.version": __version__,
        "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
    }
    return Resource(ours).merge(OTELResourceDetector().detect())


class _Outcome(HTTPAdapter):
    """Sends, and keeps what became of the latest request; the exporter itself says no more than whether it failed.

    To the exporter a redirection, which it does not follow, is a success, and so is any page.
    """

    fault: str | None = None

    def send(self, request: requests.PreparedRequest, *arguments: Any, **more: Any) -> requests.Response:
        """Sends a request. Of the answer, which may be endless, no more is read than a collector would say."""
        try:
            response = super().send(request, *arguments, **more)
            said = response.raw.read(_LONGEST_ANSWER)
        except (requests.RequestException, HTTPError) as fault:
            self.fault = _reason(fault)
            raise
        response.raw.close()
        response.raw = BytesIO(said)
        self.fault = _fault_of(response)
        return response


def _fault_of(response: requests.Response) -> str | None:
    """Why an answer is no collector's that took the metrics."""
    kind = response.headers.get("Content-Type", "")
    if not 200 <= response.status_code < 300:
        return _printable(f"HTTP {response.status_code} {response.reason}")
    return "the answer is a page of HTML, not a collector's" if kind.lower().startswith("text/html") else None


def _reason(fault: BaseException) -> str:
    """What is at the bottom of a fault: `Connection refused` rather than what four layers said of it."""
    while (beneath := fault.__cause__ or fault.__context__) is not None:
        fault = beneath
    return _printable(getattr(fault, "strerror", None) or str(fault) or type(fault).__name__)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text.strip())[:_LONGEST_REASON]
