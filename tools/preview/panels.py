"""What each kind of panel is drawn from: its queries' results in the shape that the page draws."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tools.preview.source import Json, Source, filled, of_time

_HOLE = re.compile(r"{{\s*(\w+)\s*}}")
_LEAST = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def drawn(panel: Json, source: Source, values: Mapping[str, str]) -> Json:
    """A panel with its values. `data` is None for one that has none to show."""
    body = {key: panel.get(key) for key in ("type", "title", "gridPos")}
    if panel["type"] == "row":
        return body
    if panel["type"] == "text":
        return body | {"data": {"text": filled(panel["options"]["content"], values)}}
    defaults = panel["fieldConfig"]["defaults"]
    body["defaults"] = {key: defaults.get(key) for key in ("unit", "min", "max", "decimals", "mappings", "thresholds")}
    body["drawing"] = defaults.get("custom", {})
    return body | {"data": _SHAPES[panel["type"]](panel, source, values)}


def _step_s(panel: Json, source: Source) -> int:
    least = _LEAST.fullmatch(panel.get("interval") or "")
    least_s = int(least[1]) * _SECONDS[least[2]] if least is not None else source.span.scrape_interval_s
    return source.span.interval_s(panel["gridPos"]["w"], least_s)


def _answers(panel: Json, source: Source, values: Mapping[str, str]) -> Iterable[tuple[Json, list[Json]]]:
    step_s = _step_s(panel, source)
    own = {**values, **of_time(source.span, step_s)}
    for target in panel["targets"]:
        expression = filled(target["expr"], own)
        yield target, source.at_the_end(expression) if target["instant"] else source.over_time(expression, step_s)


def _number(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _name(target: Json, labels: Mapping[str, str]) -> str:
    legend = target["legendFormat"]
    if legend == "__auto":
        return ", ".join(value for key, value in labels.items() if key != "__name__") or target["expr"][:40]
    return _HOLE.sub(lambda hole: labels.get(hole[1], ""), legend)


def _times(answers: Iterable[tuple[Json, list[Json]]]) -> list[float]:
    return sorted({at for _, series in answers for each in series for at, _ in each["values"]})


def _lines(panel: Json, source: Source, values: Mapping[str, str]) -> Json | None:
    answers = list(_answers(panel, source, values))
    times = _times(answers)
    lines = []
    for target, found in answers:
        for each in found:
            by_time = {at: _number(value) for at, value in each["values"]}
            name = _name(target, each["metric"])
            line = {"label": name, "values": [by_time.get(at) for at in times]}
            lines.append(line | _style(panel, target["refId"], name))
    return {"x": times, "lines": lines} if lines else None


def _style(panel: Json, ref: str, name: str) -> Json:
    """What overrides say of a line: its colour, and how it is drawn."""
    style: Json = {}
    for override in panel["fieldConfig"]["overrides"]:
        matcher = override["matcher"]
        matches = {
            "byFrameRefID": lambda wanted: wanted == ref,
            "byName": lambda wanted: wanted == name,
            "byRegexp": lambda wanted: re.search(wanted.strip("/"), name) is not None,
        }[matcher["id"]]
        if not matches(matcher["options"]):
            continue
        for each in override["properties"]:
            if each["id"] == "color":
                style["color"] = each["value"]["fixedColor"]
            else:
                style[each["id"].removeprefix("custom.")] = each["value"]
    return style


def _number_now(panel: Json, source: Source, values: Mapping[str, str]) -> Json | None:
    found = _lines(panel, source, values)
    if found is None:
        return None
    latest = [next((value for value in reversed(line["values"]) if value is not None), None) for line in found["lines"]]
    return found | {"latest": latest, "course": panel["options"]["graphMode"] == "area"}


def _spread(panel: Json, source: Source, values: Mapping[str, str]) -> Json | None:
    """Counts by time and bucket, of classic buckets: cumulative ones less those below them."""
    ((_, found),) = _answers(panel, source, values)
    found = sorted(found, key=lambda each: float(each["metric"]["le"]))
    times = sorted({at for each in found for at, _ in each["values"]})
    below, rows = dict.fromkeys(times, 0.0), []
    for each in found:
        up_to = {at: float(value) for at, value in each["values"]}
        rows.append([max(up_to.get(at, below[at]) - below[at], 0.0) for at in times])
        below.update(up_to)
    if not any(map(any, rows)):
        return None
    return {"x": times, "bounds": [float(each["metric"]["le"]) for each in found][:-1], "rows": rows[:-1]}


def _states(panel: Json, source: Source, values: Mapping[str, str]) -> Json | None:
    found = _lines(panel, source, values)
    return found and found | {"step_s": _step_s(panel, source)}


def _bars(panel: Json, source: Source, values: Mapping[str, str]) -> Json | None:
    """A matrix of values: a group for each row, in it a bar for each column."""
    ((_, found),) = _answers(panel, source, values)
    matrix = next(each for each in panel["transformations"] if each["id"] == "groupingToMatrix")["options"]
    row, column = matrix["rowField"], matrix["columnField"]
    cells = {(each["metric"][row], each["metric"][column]): _number(each["value"][1]) for each in found}
    groups = sorted({group for group, _ in cells}, key=float)
    names = sorted({name for _, name in cells})
    if not cells:
        return None
    return {
        "groups": groups,
        "bars": [{"label": name, "values": [cells.get((g, name)) for g in groups]} for name in names],
    }


def _rows(panel: Json, source: Source, values: Mapping[str, str]) -> Json | None:
    """A table: results of all queries side by side where their labels are the same."""
    merged: dict[tuple[tuple[str, str], ...], Json] = {}
    answers = list(_answers(panel, source, values))
    value_name = "Value" if len(answers) == 1 else "Value #{}"
    for target, found in answers:
        for each in found:
            row = merged.setdefault(tuple(sorted(each["metric"].items())), dict(each["metric"]))
            row[value_name.format(target["refId"])] = _number(each["value"][1])
    organised = next(each for each in panel["transformations"] if each["id"] == "organize")["options"]
    names: dict[str, str] = organised["renameByName"]
    units = {
        override["matcher"]["options"]: override["properties"][0]["value"]
        for override in panel["fieldConfig"]["overrides"]
        if override["properties"][0]["id"] == "unit"
    }
    rows = sorted(merged.values(), key=lambda row: (float(row.get("level", 0)), row.get("server", "")))
    columns = sorted(names, key=organised["indexByName"].__getitem__)
    return (
        {
            "heads": [names[column] for column in columns],
            "units": [units.get(names[column]) for column in columns],
            "rows": [[row.get(column) for column in columns] for row in rows],
        }
        if rows
        else None
    )


_Shape = Callable[[Json, Source, Mapping[str, str]], Json | None]
_SHAPES: dict[str, _Shape] = {
    "barchart": _bars,
    "heatmap": _spread,
    "stat": _number_now,
    "state-timeline": _states,
    "table": _rows,
    "timeseries": _lines,
}


def marks(dashboard: Json, source: Source, values: Mapping[str, str]) -> list[Json]:
    """The dashboard's annotations that are switched on: from when to when, and what they say."""
    found = []
    step_s = source.span.interval_s(12, source.span.scrape_interval_s)
    for annotation in dashboard["annotations"]["list"]:
        if not annotation["enable"]:
            continue
        for each in source.over_time(filled(annotation["expr"], values), step_s):
            times = [at for at, value in each["values"] if float(value)]
            text = _HOLE.sub(lambda hole, labels=each["metric"]: labels.get(hole[1], ""), annotation["titleFormat"])
            for begin, end in _stretches(times, step_s):
                found.append({"from": begin, "to": end, "text": text, "color": annotation["iconColor"]})
    return found


def _stretches(times: list[float], step_s: int) -> Iterable[tuple[float, float]]:
    begin = None
    for at, after in zip(times, [*times[1:], math.inf], strict=True):
        begin = at if begin is None else begin
        if after - at > step_s * 1.5:
            yield begin, at
            begin = None


def read(dashboard: Json, source: Source, values: Mapping[str, str]) -> dict[str, Any]:
    """All that the page shows of a dashboard."""
    return {
        "title": dashboard["title"],
        "from": source.span.begin_s,
        "to": source.span.end_s,
        "variables": {
            variable.get("label") or name: "All" if values[name] == ".*" else values[name]
            for variable in dashboard["templating"]["list"]
            if (name := variable["name"]) in values
        },
        "marks": marks(dashboard, source, values),
        "panels": [drawn(panel, source, values) for panel in dashboard["panels"]],
    }
