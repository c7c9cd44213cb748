"""Expressions by a parser of Prometheus 3: they are well-formed, and ask for nothing that nobody exports."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.adapters.prometheus.families import SPECS
from tests.dashboards.written import ROOT, Asked, asked_by_dashboards, asked_by_rules, filled, rules

DASHBOARDS, RULES = list(asked_by_dashboards()), list(asked_by_rules())
OF_PROMETHEUS = {"up", "ALERTS"}
VARIABLES = {
    **dict.fromkeys(("server", "method", "model", "workload", "job", "instance", "baseline"), ".*"),
    "__rate_interval": "1m",
    "__interval": "1m",
    "__range": "1h",
}


def names(expr: str) -> set[str]:
    """The metrics of an expression."""

    def of(node: Any) -> Iterator[str]:
        if isinstance(node, promql_parser.VectorSelector):
            yield node.name
        for part in ("lhs", "rhs", "expr", "vector_selector", "args"):
            inside = getattr(node, part, None)
            for each in inside if isinstance(inside, list) else [inside]:
                if each is not None:
                    yield from of(each)

    return set(of(promql_parser.parse(filled(expr, VARIABLES))))


def of_ours() -> set[str]:
    """Names of series on our page, and those that Prometheus makes of histograms."""
    ends = {"histogram": ("", "_bucket", "_count", "_sum")}
    return {spec.name + end for spec in SPECS for end in ends.get(spec.kind, ("",))}


@cache
def of_servers() -> set[str]:
    """Names of series on recorded pages of servers; of some histograms these leave the buckets out."""
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "tests" / "golden" / "metrics").glob("*.txt")]
    families = [family for page in pages for family in text_string_to_metric_families(page)]
    buckets = {f"{family.name}_bucket" for family in families if family.type == "histogram"}
    return buckets | {sample.name for family in families for sample in family.samples}


def recorded() -> set[str]:
    """What the rules record."""
    return {rule["record"] for rule in rules() if "record" in rule}


@pytest.mark.parametrize("asked", DASHBOARDS, ids=str)
def test_dashboards_ask_for_what_there_is(asked: Asked) -> None:
    """Ours and what the rules record: dashboards know no engine's names."""
    assert names(asked.expr)
    assert names(asked.expr) <= of_ours() | recorded() | OF_PROMETHEUS


@pytest.mark.parametrize("asked", RULES, ids=str)
def test_rules_ask_for_what_there_is(asked: Asked) -> None:
    """Ours, recorded before, or on a page that a server of that engine gave."""
    assert names(asked.expr)
    assert names(asked.expr) <= of_ours() | recorded() | of_servers() | OF_PROMETHEUS


def test_what_is_recorded_is_shown_or_used() -> None:
    """No rule works for nobody."""
    used = set().union(*(names(asked.expr) for asked in (*DASHBOARDS, *RULES)))
    assert recorded() <= used


def test_every_metric_of_a_finished_level_is_shown() -> None:
    """And so is all of a search for a capacity: what is exported for dashboards is on one."""
    shown = set().union(*(names(asked.expr) for asked in DASHBOARDS))
    exported = {spec.name for spec in SPECS if spec.name.startswith(("loadgen_level_", "loadgen_capacity_"))}
    assert exported <= shown
