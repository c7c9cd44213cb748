"""Panels without their places, in the words of Grafana's schema."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Json = dict[str, Any]
SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
NOTHING = "no traffic"

GREEN, ORANGE, RED, BLUE, GREY = "green", "orange", "red", "blue", "#8e8e8e"
QUANTILE_COLORS = {0.5: GREEN, 0.95: ORANGE, 0.99: RED}
"""The same in every panel, whatever the order of its queries."""

Format = Literal["time_series", "heatmap", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One expression of a panel; `color` is fixed where the query is what tells lines apart."""

    expr: str
    legend: str = ""
    color: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel and how wide and high it is, on a grid of 24."""

    width: int
    height: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: Sequence[Panel]


def note(text: str, *, width: int = 24, height: int = 2) -> Panel:
    """Words for whoever looks."""
    body = {"type": "text", "title": "", "transparent": True, "options": {"mode": "markdown", "content": text}}
    return Panel(width=width, height=height, body=body)


def words(values: Mapping[int, tuple[str, str]]) -> Json:
    """Text and colour in place of numbers."""
    return {
        "type": "value",
        "options": {
            str(value): {"text": text, "color": color, "index": place}
            for place, (value, (text, color)) in enumerate(values.items())
        },
    }


def fixed_color(pattern: str, color: str, **custom: Any) -> Json:
    """A colour, and how it is drawn, for the series whose names match a regular expression."""
    properties = [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}]
    properties += [{"id": f"custom.{name}", "value": value} for name, value in custom.items()]
    return {"matcher": {"id": "byRegexp", "options": pattern}, "properties": properties}


def defaults_of(unit: str, custom: Json, mappings: Sequence[Json] = ()) -> Json:
    """How values are written; what is absent is said in words."""
    nothing = {"type": "special", "options": {"match": "nan", "result": {"text": NOTHING, "index": 99}}}
    return {"unit": unit, "noValue": NOTHING, "custom": custom, "mappings": [*mappings, nothing]}


def asking(
    kind: str,
    title: str,
    description: str,
    defaults: Json,
    options: Json,
    queries: Sequence[Query],
    *,
    form: Format = "time_series",
    instant: bool = False,
    overrides: Sequence[Json] = (),
) -> Json:
    """A panel that asks, without its place."""
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": list(overrides)},
        "options": options,
        "targets": [_target(place, query, form, instant) for place, query in enumerate(queries)],
    }


def _target(place: int, query: Query, form: Format, instant: bool) -> Json:
    return {
        "refId": ref(place),
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "format": form,
        "instant": instant,
        "range": not instant,
        "exemplar": form == "heatmap",
    }


def ref(place: int) -> str:
    """The name of a panel's query by its place: A, B, …"""
    return chr(ord("A") + place)
