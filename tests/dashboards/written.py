"""Dashboards and rules as they are shipped, and the expressions in them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DASHBOARDS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "dashboards").glob("*.json")}
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULE_FILES = sorted((PROMETHEUS / "rules").glob("*.yml"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One expression, where it stands, and how it is asked."""

    place: str
    expr: str
    kind: str

    def __str__(self) -> str:
        """As the name of a test."""
        return self.place


def panels(dashboard: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those that ask something."""
    return [panel for panel in dashboard["panels"] if "targets" in panel]


def asked_by_dashboards() -> Iterator[Asked]:
    """Of panels, variables and annotations."""
    for name, dashboard in DASHBOARDS.items():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                kind = "instant" if target["instant"] else target["format"]
                yield Asked(place=f"{name}: {panel['title']} {target['refId']}", expr=target["expr"], kind=kind)
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
                assert found is not None
                yield Asked(place=f"{name}: ${variable['name']}", expr=found[1], kind=f"label {found[2]}")
        for annotation in dashboard["annotations"]["list"]:
            yield Asked(place=f"{name}: {annotation['name']}", expr=annotation["expr"], kind="annotation")


def rules() -> Iterator[dict[str, Any]]:
    """Recording and alerting ones."""
    for path in RULE_FILES:
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            yield from group["rules"]


def asked_by_rules() -> Iterator[Asked]:
    """Of recording and alerting rules."""
    for rule in rules():
        name = rule.get("record") or rule["alert"]
        engine = rule.get("labels", {}).get("engine", "")
        yield Asked(place=f"{name} {engine}".strip(), expr=rule["expr"], kind="rule")


def filled(expr: str, values: Mapping[str, str]) -> str:
    """With values in place of variables. Raises AssertionError for a variable without one."""
    filled_in = re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: values[found[1] or found[2]], expr)
    assert "$" not in filled_in, expr
    return filled_in
