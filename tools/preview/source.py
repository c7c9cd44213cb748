"""Where a dashboard's values come from: a Prometheus over a span of time, and what its variables stand for there."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

Json = dict[str, Any]
_LABEL_VALUES = re.compile(r"label_values\((?P<series>.+), *(?P<label>\w+)\)")
_STEPS_S = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
_PIXELS_A_COLUMN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From when to when, Unix time in seconds, and how often was scraped."""

    begin_s: float
    end_s: float
    scrape_interval_s: int

    @property
    def length_s(self) -> int:
        """How long it is."""
        return round(self.end_s - self.begin_s)

    def interval_s(self, columns: int, least_s: int) -> int:
        """Grafana's `$__interval` for a panel so many columns wide: a point a pixel, rounded to a round number."""
        exact_s = max(self.length_s / (columns * _PIXELS_A_COLUMN), least_s)
        return min(_STEPS_S, key=lambda step_s: (abs(step_s - exact_s), step_s)) if exact_s > least_s else least_s


class Source:
    """A Prometheus at `url`, asked about a span of time."""

    def __init__(self, url: str, span: Span) -> None:
        self.span = span
        self._url = url

    def at_the_end(self, expression: str) -> list[Json]:
        """The result of an instant query."""
        found: list[Json] = self._ask("query", query=expression, time=self.span.end_s)["result"]
        return found

    def over_time(self, expression: str, step_s: int) -> list[Json]:
        """The result of a range query; points lie on multiples of the step."""
        begin_s = self.span.begin_s // step_s * step_s
        found: list[Json] = self._ask("query_range", query=expression, start=begin_s, end=self.span.end_s, step=step_s)[
            "result"
        ]
        return found

    def label_values(self, series: str, label: str) -> list[str]:
        """The values of a label of the series that match."""
        query = {"match[]": series, "start": self.span.begin_s, "end": self.span.end_s}
        values: list[str] = self._ask(f"label/{label}/values", **query)
        return values

    def _ask(self, what: str, **parameters: Any) -> Any:
        with urlopen(f"{self._url}/api/v1/{what}?{urlencode(parameters)}", timeout=60) as answer:
            return json.load(answer)["data"]


def chosen(dashboard: Json, source: Source) -> dict[str, str]:
    """What a dashboard's variables stand for when nobody has touched them."""
    values: dict[str, str] = {}
    for variable in dashboard["templating"]["list"]:
        if variable.get("includeAll"):
            values[variable["name"]] = variable["allValue"]
        elif variable["type"] == "custom":
            values[variable["name"]] = variable["current"]["value"]
        elif variable["type"] == "query":
            asked = _LABEL_VALUES.fullmatch(filled(variable["query"]["query"], values))
            assert asked is not None, variable
            found = source.label_values(asked["series"], asked["label"])
            values[variable["name"]] = found[0] if found else ""
    return values


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with variables filled in; the longest name first, so that none is taken for another."""
    for name in sorted(values, key=len, reverse=True):
        text = text.replace("${" + name + "}", values[name]).replace("$" + name, values[name])
    return text


def of_time(span: Span, interval_s: int) -> dict[str, str]:
    """Grafana's own variables for a panel."""
    rate_s = max(interval_s + span.scrape_interval_s, 4 * span.scrape_interval_s)
    return {
        "__interval": f"{interval_s}s",
        "__rate_interval": f"{rate_s}s",
        "__range": f"{span.length_s}s",
        "__range_s": str(span.length_s),
    }
