"""A collector that takes what OTLP over HTTP brings, decodes it with OpenTelemetry's own messages, and keeps it."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric


class Receiver:
    """What arrived so far: a message and the headers of each push. It answers with `status`."""

    def __init__(self) -> None:
        self.status = 200
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.pushes: list[ExportMetricsServiceRequest] = []
        self.url = ""
        self._changed = Condition()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """Keeps a push; the status of the answer."""
        body = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        with self._changed:
            self.paths.append(path)
            self.headers.append(headers)
            self.pushes.append(ExportMetricsServiceRequest.FromString(body))
            self._changed.notify_all()
            return self.status

    def wait_for(self, pushes: int) -> None:
        """Returns once so many have arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.pushes) >= pushes, timeout=20)

    def metrics(self, push: int = -1) -> dict[str, Metric]:
        """The metrics of a push by name; no name comes twice."""
        (resource,) = self.pushes[push].resource_metrics
        (scope,) = resource.scope_metrics
        found = {metric.name: metric for metric in scope.metrics}
        assert len(found) == len(scope.metrics)
        return found

    def resource(self) -> dict[str, Any]:
        """Attributes of who pushed."""
        return attributes(self.pushes[-1].resource_metrics[0].resource)


def attributes(of: Any) -> dict[str, Any]:
    """Attributes of a point, a resource or an example's as a mapping."""
    pairs = of.filtered_attributes if hasattr(of, "filtered_attributes") else of.attributes
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextmanager
def receiver() -> Iterator[Receiver]:
    """One on a free port."""
    keeps = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(keeps.take(self.path, headers, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        keeps.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield keeps
        finally:
            server.shutdown()
            thread.join()
