"""One page in the form that whoever asks likes best."""

from collections.abc import Callable, Sequence

from loadgen.adapters.prometheus.protobuf import PROTOBUF_TYPE, protobuf
from loadgen.adapters.prometheus.series import Family
from loadgen.adapters.prometheus.text import OPENMETRICS_TYPE, TEXT_TYPE, openmetrics, text

Renderer = Callable[[Sequence[Family]], bytes]
_MESSAGE = "io.prometheus.client.MetricFamily"


def chosen(accept: str) -> tuple[str, Renderer]:
    """Content type and renderer for a header `Accept`: by weight, then by order; text where nothing is known."""
    best: tuple[str, Renderer] = (TEXT_TYPE, text)
    best_weight = 0.0
    for clause in accept.split(","):
        kind, *pairs = (part.strip() for part in clause.split(";"))
        parameters = dict(pair.replace(" ", "").split("=", 1) for pair in pairs if "=" in pair)
        found = _form(kind.lower(), parameters)
        weight = _weight(parameters.get("q", "1"))
        if found is not None and weight > best_weight:
            best, best_weight = found, weight
    return best


def _form(kind: str, parameters: dict[str, str]) -> tuple[str, Renderer] | None:
    if kind == "application/vnd.google.protobuf":
        wanted = parameters.get("proto") == _MESSAGE and parameters.get("encoding") == "delimited"
        return (PROTOBUF_TYPE, protobuf) if wanted else None
    if kind == "application/openmetrics-text":
        return (OPENMETRICS_TYPE, openmetrics) if parameters.get("version", "1.0.0") == "1.0.0" else None
    return (TEXT_TYPE, text) if kind in ("text/plain", "text/*", "*/*") else None


def _weight(text_of_it: str) -> float:
    try:
        return float(text_of_it)
    except ValueError:
        return 0.0
