"""Panels over time: lines, single numbers with their course, states, and how values spread."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.generator.panels import BLUE, GREY, Json, Panel, Query, asking, defaults_of, ref


def timeseries(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 8,
    height: int = 8,
    maximum: float | None = None,
    minimum: float | None = 0,
    custom: Mapping[str, Any] | None = None,
    overrides: Sequence[Json] = (),
    interval: str | None = None,
) -> Panel:
    """Lines over time."""
    drawing = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": False}
    defaults = defaults_of(unit, {**drawing, **(custom or {})})
    defaults["color"] = {"mode": "palette-classic-by-name"}
    if minimum is not None:
        defaults["min"] = minimum
    if maximum is not None:
        defaults["max"] = maximum
    options = {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    body = asking(
        "timeseries", title, description, defaults, options, queries, overrides=[*_colors(queries), *overrides]
    )
    if interval is not None:
        body["interval"] = interval
    return Panel(width=width, height=height, body=body)


def stat(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    width: int = 4,
    steps: Sequence[tuple[float | None, str]] = ((None, BLUE),),
    mappings: Sequence[Json] = (),
    decimals: int | None = None,
    interval: str | None = None,
) -> Panel:
    """One number and its course. `steps` are the lowest values of colours, the first of them without one."""
    defaults = defaults_of(unit, {}, mappings)
    defaults["thresholds"] = {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in steps]}
    defaults["color"] = {"mode": "thresholds"}
    if decimals is not None:
        defaults["decimals"] = decimals
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none" if mappings else "area",
        "textMode": "auto",
        "justifyMode": "auto",
        "orientation": "auto",
        "wideLayout": True,
    }
    body = asking("stat", title, description, defaults, options, (query,))
    if interval is not None:
        body["interval"] = interval
    return Panel(width=width, height=4, body=body)


def states(
    title: str,
    description: str,
    query: Query,
    *,
    mappings: Sequence[Json],
    width: int = 12,
    height: int = 6,
    interval: str | None = None,
) -> Panel:
    """What was so when, a band for each series."""
    options = {
        "alignValue": "left",
        "mergeValues": True,
        "rowHeight": 0.8,
        "showValue": "auto",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    defaults = defaults_of("short", {"fillOpacity": 75, "lineWidth": 0}, mappings)
    defaults["color"] = {"mode": "thresholds"}
    defaults["thresholds"] = {"mode": "absolute", "steps": [{"value": None, "color": GREY}]}
    body = asking("state-timeline", title, description, defaults, options, (query,))
    if interval is not None:
        body["interval"] = interval
    return Panel(width=width, height=height, body=body)


def heatmap(title: str, description: str, expr: str, *, width: int = 6, height: int = 8) -> Panel:
    """How many observations fell into each bucket over time; the axis is in seconds."""
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "mode": "scheme",
            "scheme": "Oranges",
            "fill": "dark-orange",
            "scale": "exponential",
            "exponent": 0.5,
            "steps": 64,
            "reverse": False,
        },
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "showValue": "never",
        "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
        "yAxis": {"axisPlacement": "left", "unit": "s", "reverse": False},
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
    }
    defaults = defaults_of("short", {"hideFrom": {"legend": False, "tooltip": False, "viz": False}})
    body = asking(
        "heatmap", title, description, defaults, options, (Query(expr=expr, legend="{{le}}"),), form="heatmap"
    )
    return Panel(width=width, height=height, body=body)


def _colors(queries: Sequence[Query]) -> list[Json]:
    return [
        {
            "matcher": {"id": "byFrameRefID", "options": ref(place)},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": query.color}}],
        }
        for place, query in enumerate(queries)
        if query.color is not None
    ]
