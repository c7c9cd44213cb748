"""What Grafana is given: data source, provider and dashboards fit one another and the places they are mounted at."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.compose import ROOT, all_services

FOLDER = ROOT / "deploy" / "grafana"


def provisioned(kind: str, name: str) -> dict[str, Any]:
    """The only entry of a provisioning file."""
    text = (FOLDER / "provisioning" / kind / f"{name}.yml").read_text(encoding="utf-8")
    (entry,) = next(value for key, value in yaml.safe_load(text).items() if key != "apiVersion")
    return entry  # type: ignore[no-any-return]


def mounted() -> dict[Path, Path]:
    """Folders of this repository by their place in the container."""
    volumes = all_services()["grafana"]["volumes"]
    return {Path(each["target"]): Path(each["source"]) for each in volumes if each["type"] == "bind"}


def dashboards() -> dict[Path, dict[str, Any]]:
    """Dashboards by their place in the container."""
    place = Path(provisioned("dashboards", "loadgen")["options"]["path"])
    return {place / file.name: json.loads(file.read_text("utf-8")) for file in mounted()[place].glob("*.json")}


def test_the_data_source_is_the_prometheus_of_compose() -> None:
    """By service name and port, and nobody changes it in the page."""
    source = provisioned("datasources", "prometheus")
    (port,) = all_services()["prometheus"]["ports"]
    assert source["url"] == f"http://prometheus:{port['target']}"
    assert source["editable"] is False


def test_dashboards_find_the_provisioned_source() -> None:
    """It is the default one, which their variable for the data source chooses at first."""
    assert dashboards()
    assert provisioned("datasources", "prometheus")["isDefault"] is True


def test_the_first_page_is_a_dashboard_that_is_there() -> None:
    """At the path that Grafana is told."""
    home = all_services()["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert Path(home) in dashboards()


def test_what_is_provisioned_is_where_grafana_looks() -> None:
    """Its own folder for it."""
    assert mounted()[Path("/etc/grafana/provisioning")] == FOLDER / "provisioning"
