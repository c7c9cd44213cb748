"""What a metrics page exposes, for comparing two of them."""

from collections import defaultdict
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

UNTOLD = {
    "vllm:estimated_flops_per_gpu": "an estimate of the GPU's work, zero unless asked for",
    "vllm:estimated_read_bytes_per_gpu": "the same",
    "vllm:estimated_write_bytes_per_gpu": "the same",
    "http_requests": "of the web framework, about handlers and not about generation",
    "http_request_size_bytes": "the same",
    "http_response_size_bytes": "the same",
    "http_request_duration_seconds": "the same",
    "http_request_duration_highr_seconds": "the same",
}
"""Metrics of a real vLLM that the simulated one does not have, and why."""

# Their values name a model, a host or a bound, or are values in disguise.
_FREE = {"model_name", "version", "patchlevel", "minor", "major", "implementation"}


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its type, its samples' names each with its sets of labels, and the bounds of its buckets."""

    type: str
    samples: frozenset[tuple[str, frozenset[tuple[str, str | None]]]]
    bounds: tuple[str, ...]


def families(page: bytes) -> dict[str, Family]:
    """By name. Label values that differ from server to server are None."""
    found = {}
    for family in text_string_to_metric_families(page.decode()):
        samples, bounds = set(), dict[str, None]()
        for sample in family.samples:
            labels = dict[str, str | None](sample.labels)
            if (bound := labels.pop("le", None)) is not None:
                bounds[bound] = None
            told_by_labels = family.name.endswith("_info")
            free = labels if told_by_labels else _FREE
            samples.add((sample.name, frozenset((name, None if name in free else labels[name]) for name in labels)))
        found[family.name] = Family(family.type, frozenset(samples), tuple(bounds))
    return found


def unlike(*, real: dict[str, Family], given: dict[str, Family]) -> dict[str, tuple[Family | None, Family | None]]:
    """What differs between a real vLLM's page and the simulator's, by name, but for UNTOLD."""
    names = {name for name in real if name.removesuffix("_created") not in UNTOLD} | given.keys()
    pairs = {name: (real.get(name), given.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def values(page: bytes) -> dict[str, float]:
    """Sums over labels by sample name; a bucket's name ends in its bound, that of a labelled counter in its label."""
    found: dict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            labels = [value for name, value in sample.labels.items() if name not in ("model_name", "engine")]
            found["/".join([sample.name.removeprefix("vllm:"), *labels])] += sample.value
    return dict(found)
