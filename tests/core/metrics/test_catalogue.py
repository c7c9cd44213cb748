"""The catalogue, the summary and the reference follow each other."""

import dataclasses
import re
from pathlib import Path

import pytest

from loadgen.core.analysis import ladder, sections, series, window
from loadgen.core.analysis.findings import answers, client, outcomes, server, speculation, steadiness
from loadgen.core.analysis.findings.kinds import FindingKind
from loadgen.core.metrics import distribution, per_request
from loadgen.core.metrics.catalogue import CATALOGUE, Scope
from loadgen.core.metrics.per_request import REQUEST_METRICS
from loadgen.core.metrics.summary import Client, Concurrency, Latency, Rates, Slo, Speculation, Summary, Throughput
from loadgen.core.speculation import by_output_position, by_request, evidence, tally
from loadgen.core.stats import drift, knee, robust, steady
from loadgen.core.stats.quantiles import PERCENTILES

REFERENCE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
MODULES = (
    *(
        answers,
        client,
        outcomes,
        server,
        speculation,
        steadiness,
        sections,
        series,
        window,
        ladder,
        per_request,
        distribution,
        drift,
        knee,
        robust,
        steady,
    ),
    *(tally, evidence, by_output_position, by_request),
)
THRESHOLDS = {
    name: value
    for module in MODULES
    for name, value in vars(module).items()
    if name.isupper() and not name.startswith(("_", "NS_PER")) and isinstance(value, int | float)
}


def field_names(of: type) -> set[str]:
    return {field.name for field in dataclasses.fields(of)}


def test_every_latency_of_the_summary_is_in_the_catalogue() -> None:
    """One list: what the summary gives is defined, and what is defined is given."""
    defined = {name for name, spec in CATALOGUE.items() if spec.path.startswith("latency.")}
    assert defined == field_names(Latency)


def test_every_metric_of_a_request_has_its_function() -> None:
    """Request-scope latencies are exactly the functions."""
    assert {name for name, spec in CATALOGUE.items() if spec.scope is Scope.REQUEST} == set(REQUEST_METRICS)


@pytest.mark.parametrize(
    ("section", "of"),
    [
        ("throughput", Throughput),
        ("rate", Rates),
        ("concurrency", Concurrency),
        ("slo", Slo),
        ("speculation", Speculation),
        ("client", Client),
    ],
)
def test_paths_lead_into_the_summary(section: str, of: type) -> None:
    """Each path names a field that exists, and every rate of throughput and load is defined."""
    assert section in field_names(Summary)
    defined = {spec.path.rpartition(".")[2] for spec in CATALOGUE.values() if spec.path.startswith(f"{section}.")}
    assert defined
    assert defined <= field_names(of)
    if section in ("throughput", "rate", "concurrency"):
        assert defined == field_names(of)


def test_units_are_in_the_names() -> None:
    """A field that ends in _s is in seconds, one that ends in _ratio a share."""
    for name, spec in CATALOGUE.items():
        if name.endswith("_ratio"):
            assert spec.unit == "ratio"
        elif name.endswith(("_per_s", "_rps")):
            assert spec.unit.endswith("/s")
        elif name.endswith("_s"):
            assert spec.unit == "s"


@pytest.mark.parametrize("spec", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_reference_holds_every_metric(spec) -> None:
    """docs/metrics.md has a row with its name, unit and the definition's own words."""
    assert f"`{spec.name}`" in REFERENCE
    assert spec.definition in REFERENCE


@pytest.mark.parametrize("kind", list(FindingKind))
def test_reference_holds_every_finding(kind: FindingKind) -> None:
    """docs/metrics.md says what each finding means."""
    assert f"`{kind.value}`" in REFERENCE


@pytest.mark.parametrize("name", sorted(THRESHOLDS))
def test_reference_holds_every_threshold_with_its_value(name: str) -> None:
    """A threshold that changes changes in docs/metrics.md too."""
    assert re.search(rf"`{name}`[^|\n]*\| *{re.escape(f'{THRESHOLDS[name]:g}')} *\|", REFERENCE)


@pytest.mark.parametrize("name", PERCENTILES)
def test_reference_holds_every_percentiles_sample_size(name: str) -> None:
    """From how many values on each percentile is given."""
    assert re.search(rf"\| *`{name}` *\| *{PERCENTILES[name][1]} *\|", REFERENCE)
