"""Panels of results: bars by level, and tables."""

from collections.abc import Mapping, Sequence

from dashboards.generator.panels import Json, Panel, Query, asking, defaults_of, ref

COLUMNS = {
    "server": "Server",
    "method": "Method",
    "model": "Model",
    "workload": "Workload",
    "variable": "Load",
    "level": "Level",
}
"""Labels that tell one level from another, and what they are called in a table."""


def by_level(
    title: str,
    description: str,
    unit: str,
    expr: str,
    *,
    column: str = "server",
    row: str = "level",
    width: int = 12,
    height: int = 8,
    minimum: float | None = 0,
) -> Panel:
    """Bars: a group for each value of the label `row`, a number, and in it a bar for each of the label `column`."""
    options = {
        "orientation": "vertical",
        "xField": f"{row}\\{column}",
        "xTickLabelSpacing": 0,
        "xTickLabelRotation": 0,
        "showValue": "auto",
        "stacking": "none",
        "groupWidth": 0.7,
        "barWidth": 0.9,
        "barRadius": 0,
        "fullHighlight": False,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "none"},
    }
    defaults = defaults_of(unit, {"fillOpacity": 80, "lineWidth": 1, "axisLabel": ""})
    defaults["color"] = {"mode": "palette-classic-by-name"}
    if minimum is not None:
        defaults["min"] = minimum
    body = asking("barchart", title, description, defaults, options, (Query(expr=expr),), form="table", instant=True)
    body["transformations"] = [
        *_by_number(row),
        _converted(row, "string"),  # bars stand on words
        {
            "id": "groupingToMatrix",
            "options": {"columnField": column, "rowField": row, "valueField": "Value", "emptyValue": "null"},
        },
    ]
    return Panel(width=width, height=height, body=body)


def table(
    title: str,
    description: str,
    columns: Sequence[tuple[str, str, str]],
    *,
    labels: Mapping[str, str],
    width: int = 24,
    height: int = 8,
) -> Panel:
    """A row for each set of labels, a column each for title, unit and expression in `columns`.

    `labels` are the names of labels and the headings that they get, in the order of the columns.
    """
    queries = [Query(expr=expr) for _, _, expr in columns]
    refs = [ref(place) for place in range(len(columns))]
    overrides = [
        {"matcher": {"id": "byName", "options": heading}, "properties": [{"id": "unit", "value": unit}]}
        for heading, unit, _ in columns
    ]
    options = {"showHeader": True, "cellHeight": "sm"}
    defaults = defaults_of("short", {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False})
    body = asking(
        "table", title, description, defaults, options, queries, form="table", instant=True, overrides=overrides
    )
    value = "Value" if len(columns) == 1 else "Value #{}"
    renamed = {value.format(ref): heading for ref, (heading, _, _) in zip(refs, columns, strict=True)}
    order = [*labels, *renamed]
    body["transformations"] = [
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {"Time": True},
                "indexByName": {name: place for place, name in enumerate(order)},
                "renameByName": {**labels, **renamed},
            },
        },
        *(_by_number(labels["level"]) if "level" in labels else []),
    ]
    return Panel(width=width, height=height, body=body)


def _by_number(column: str) -> list[Json]:
    """Rows in the order of a label that is a number."""
    return [
        _converted(column, "number"),
        {"id": "sortBy", "options": {"fields": {}, "sort": [{"field": column, "desc": False}]}},
    ]


def _converted(column: str, kind: str) -> Json:
    conversion = {"targetField": column, "destinationType": kind}
    return {"id": "convertFieldType", "options": {"conversions": [conversion], "fields": {}}}
