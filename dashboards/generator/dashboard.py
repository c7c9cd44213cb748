"""A dashboard around its panels: places, variables, annotations and links."""

from collections.abc import Iterable, Iterator, Sequence

from dashboards.generator.panels import SOURCE, Json, Panel, Row

_SCHEMA_VERSION = 42
_TAG = "loadgen"
_COLUMNS = 24


def assembled(
    *,
    uid: str,
    title: str,
    description: str,
    rows: Sequence[Row],
    variables: Sequence[Json],
    annotations: Sequence[Json],
    since: str,
    refresh: str,
) -> Json:
    """A whole dashboard. The variable for the data source comes first."""
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": [_TAG],
        "schemaVersion": _SCHEMA_VERSION,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": refresh,
        "time": {"from": f"now-{since}", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "weekStart": "",
        "fiscalYearStartMonth": 0,
        "links": [_link()],
        "annotations": {"list": list(annotations)},
        "templating": {"list": [_source_variable(), *variables]},
        "panels": list(_placed(rows)),
    }


def own_variables(metric: str, *, several: bool = True) -> list[Json]:
    """Server, method, model and workload, each of those that the ones before it leave."""
    names = {"server": "Server", "method": "Method", "model": "Model", "workload": "Workload"}
    found, selector = [], ""
    for name, label in names.items():
        found.append(metric_variable(name, label, f"{metric}{{{selector}}}" if selector else metric, several=several))
        selector = f'{selector}, {name}=~"${name}"' if selector else f'{name}=~"${name}"'
    return found


def metric_variable(name: str, label: str, series: str, *, of: str | None = None, several: bool = True) -> Json:
    """The values of a label; of several, all are chosen at first."""
    query = f"label_values({series}, {of or name})"
    variable: Json = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name, "qryType": 1},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "regex": "",
        "hide": 0,
        "multi": several,
        "includeAll": several,
    }
    if several:
        variable |= {"allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]}}
    return variable


def annotation(name: str, expr: str, title: str, color: str, *, text: str = "", shown: bool = True) -> Json:
    """Marks for as long as an expression has a value other than 0."""
    return {
        "name": name,
        "datasource": SOURCE,
        "enable": shown,
        "hide": False,
        "iconColor": color,
        "expr": expr,
        "titleFormat": title,
        "textFormat": text,
        "tagKeys": "",
        "useValueForTime": False,
        "step": "",
    }


def _source_variable() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "regex": "",
        "refresh": 1,
        "hide": 0,
        "multi": False,
        "includeAll": False,
    }


def _link() -> Json:
    return {
        "title": "Loadgen",
        "type": "dashboards",
        "tags": [_TAG],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "The other dashboards of load tests",
        "url": "",
    }


def _placed(rows: Iterable[Row]) -> Iterator[Json]:
    """Panels from left to right and from top to bottom; a row ends where the next panel has no room."""
    number = y = 0
    for row in rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"h": 1, "w": _COLUMNS, "x": 0, "y": y},
            "panels": [],
        }
        y += 1
        for line in _lines(row.panels):
            x = 0
            for panel in line:
                number += 1
                place = {"h": panel.height, "w": panel.width, "x": x, "y": y}
                yield {"id": number, "gridPos": place, **panel.body}
                x += panel.width
            y += max(panel.height for panel in line)


def _lines(panels: Iterable[Panel]) -> Iterator[list[Panel]]:
    line: list[Panel] = []
    for panel in panels:
        if line and sum(each.width for each in line) + panel.width > _COLUMNS:
            yield line
            line = []
        line.append(panel)
    if line:
        yield line
