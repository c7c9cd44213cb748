"""Dashboards as Grafana needs them and as people read them."""

from typing import Any

import pytest

from dashboards.generate import main
from tests.dashboards.written import DASHBOARDS, panels

ALL = pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OWN = ["server", "method", "model", "workload"]


def test_files_are_as_the_code_writes_them() -> None:
    """`--check` finds nothing to say: nobody edits JSON."""
    assert main(["--check"]) is None


def test_there_are_three() -> None:
    """By these names, on which links of users rest."""
    told = {(each["uid"], each["title"]) for each in DASHBOARDS.values()}
    assert told == {
        ("loadgen-live", "Live load test"),
        ("loadgen-speculation", "Speculative decoding"),
        ("loadgen-capacity", "Capacity history"),
    }


@ALL
def test_every_panel_is_named_described_and_has_a_unit(dashboard: dict[str, Any]) -> None:
    """A description defines what is shown, so it is more than the title."""
    for panel in panels(dashboard):
        assert panel["title"]
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["noValue"] == "no traffic"


@ALL
def test_titles_and_ids_are_unique(dashboard: dict[str, Any]) -> None:
    """Of panels within a dashboard."""
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    titles = [panel["title"] for panel in panels(dashboard)]
    assert len(set(titles)) == len(titles)
    for panel in panels(dashboard):
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)


@ALL
def test_no_two_panels_lie_on_one_another(dashboard: dict[str, Any]) -> None:
    """All lie on a grid of 24 columns."""
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@ALL
def test_the_data_source_is_a_variable_everywhere(dashboard: dict[str, Any]) -> None:
    """So that a dashboard works with whatever Prometheus it is loaded beside."""
    variables = dashboard["templating"]["list"]
    assert (variables[0]["name"], variables[0]["type"]) == ("datasource", "datasource")
    asking = list(panels(dashboard))
    asking += [target for panel in panels(dashboard) for target in panel["targets"]]
    asking += [each for each in variables if each["type"] == "query"]
    asking += dashboard["annotations"]["list"]
    assert all(each["datasource"] == SOURCE for each in asking)


@ALL
def test_variables_choose_what_is_shown(dashboard: dict[str, Any]) -> None:
    """Server, method, model and workload, all values at first; no variable is there for nothing."""
    variables = dashboard["templating"]["list"]
    names = [each["name"] for each in variables]
    assert [name for name in names if name in OWN] == OWN
    assert all(each["allValue"] == ".*" and each["multi"] for each in variables if each["name"] in OWN)
    asked = " ".join(target["expr"] for panel in panels(dashboard) for target in panel["targets"])
    assert all(f"${name}" in asked for name in names[1:])


@ALL
def test_dashboards_lead_to_one_another(dashboard: dict[str, Any]) -> None:
    """By their tag, with what is chosen and the span of time."""
    (link,) = dashboard["links"]
    assert set(link["tags"]) <= set(dashboard["tags"])
    assert (link["type"], link["includeVars"], link["keepTime"]) == ("dashboards", True, True)
    assert dashboard["schemaVersion"] == 42


def test_quantiles_have_their_colours_wherever_they_stand() -> None:
    """p50, p95 and p99 are each one colour in all panels."""
    colors: dict[str, set[str]] = {}
    for dashboard in DASHBOARDS.values():
        for panel in panels(dashboard):
            fixed = {
                each["matcher"]["options"]: each["properties"][0]["value"]["fixedColor"]
                for each in panel["fieldConfig"]["overrides"]
                if each["matcher"]["id"] == "byFrameRefID"
            }
            for target in panel["targets"]:
                quantile = target["legendFormat"].split(" ")[0]
                if quantile in ("p50", "p95", "p99"):
                    colors.setdefault(quantile, set()).add(fixed[target["refId"]])
    assert colors == {"p50": {"green"}, "p95": {"orange"}, "p99": {"red"}}


def test_what_servers_say_of_percentiles_is_doubted_where_it_is_shown() -> None:
    """On the panel, and above the panels of servers."""
    live = DASHBOARDS["live"]
    (first_tokens,) = (panel for panel in panels(live) if panel["title"].startswith("Server: TTFT"))
    notes = [panel["options"]["content"] for panel in live["panels"] if panel["type"] == "text"]
    assert "Not fit to compare methods" in first_tokens["description"]
    assert any("Not fit to compare methods" in note for note in notes)
