"""What a metrics page exposes, for comparing two of them."""

from collections import defaultdict
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

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


def values(page: bytes) -> dict[str, float]:
    """Sums over labels by sample name; a bucket's name ends in its bound, that of a labelled counter in its label."""
    found: dict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            labels = [value for name, value in sample.labels.items() if name not in ("model_name", "engine")]
            found["/".join([sample.name.removeprefix("vllm:"), *labels])] += sample.value
    return dict(found)
