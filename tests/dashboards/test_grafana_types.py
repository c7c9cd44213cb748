"""Dashboards held against Grafana's own types, by the compiler that Grafana's own code goes through."""

import copy
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.needs import program

pytestmark = pytest.mark.slow

PACKAGES = ("@grafana/schema@13.2.3", "typescript@5.9.3")
DASHBOARDS = sorted((Path(__file__).parents[2] / "dashboards").glob("*.json"))
PANELS = {
    "barchart": "BarChart",
    "heatmap": "Heatmap",
    "stat": "Stat",
    "state-timeline": "StateTimeline",
    "table": "Table",
    "text": "Text",
    "timeseries": "TimeSeries",
}
OF_THE_DATA_SOURCE = {
    "annotations": ("expr", "titleFormat", "textFormat", "tagKeys", "useValueForTime", "step"),
    "templating": ("definition",),
}
"""What Grafana writes into annotations and variables for the data source to read; its schema has no words for it."""

PLAIN = """
type Plain<T> = T extends string ? `${T}`
  : T extends readonly (infer Each)[] ? Plain<Each>[]
  : T extends object ? { [Key in keyof T]: Plain<T[Key]> } : T;
"""
"""A type as JSON has it: the values of enumerations are plain strings there."""


@pytest.fixture(scope="module")
def compiler() -> Path:
    """A folder with the packages, out of the cache or from npm."""
    npm = program("npm")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "loadgen-tests" / "+".join(PACKAGES).replace("/", "-")
    if not (folder / "installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
        options = ("--silent", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund")
        subprocess.run([npm, "install", *options, *PACKAGES], cwd=folder, check=True, timeout=300)
        (folder / "installed").touch()
    return folder


def objections(compiler: Path, source: Path, dashboard: dict[str, Any]) -> list[str]:
    """What the compiler says against a dashboard and the options of its panels, written to `source` as TypeScript."""
    source.write_text(typed(dashboard), encoding="utf-8")
    (source.parent / "node_modules").symlink_to(compiler / "node_modules")
    options = ("--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022")
    line = [program("node"), str(compiler / "node_modules" / "typescript" / "bin" / "tsc"), *options, source.name]
    said = subprocess.run(line, cwd=source.parent, capture_output=True, text=True, timeout=120)
    assert not said.stderr
    return [found for found in said.stdout.splitlines() if "error TS" in found]


def typed(dashboard: dict[str, Any]) -> str:
    """A dashboard and its panels' options as values of Grafana's types."""
    whole = copy.deepcopy(dashboard)
    for part, keys in OF_THE_DATA_SOURCE.items():
        for each in whole[part]["list"]:
            for key in keys:
                each.pop(key, None)
    lines = ['import type { Dashboard } from "@grafana/schema";', PLAIN]
    for kind, name in PANELS.items():
        module = f"@grafana/schema/dist/esm/raw/composable/{kind.replace('-', '')}/panelcfg/x/{name}PanelCfg_types.gen"
        lines.append(f'import type * as {name} from "{module}";')
    lines.append(f"const dashboard: Plain<Dashboard> = {json.dumps(whole, indent=1)};")
    for panel in whole["panels"]:
        if panel["type"] == "row":
            continue
        name, number = PANELS[panel["type"]], panel["id"]
        lines.append(
            f"const options{number}: Plain<Partial<{name}.Options>> = {json.dumps(panel['options'], indent=1)};"
        )
        drawing = panel.get("fieldConfig", {}).get("defaults", {}).get("custom")
        if drawing:
            lines.append(f"const drawing{number}: Plain<{name}.FieldConfig> = {json.dumps(drawing, indent=1)};")
    return "\n".join(lines)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: str(path.stem))
def test_a_dashboard_is_one_of_grafana_s(path: Path, compiler: Path, tmp_path: Path) -> None:
    """Nothing in it is unknown to Grafana's schema or of another type, down to the options of each kind of panel."""
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    assert objections(compiler, tmp_path / "dashboard.ts", dashboard) == []


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("panels", 1, "gridPos", "w"), "12", "Type 'string' is not assignable to type 'number'"),
        (("panels", 1, "gridpos"), {}, "'\"gridpos\"' does not exist"),
        (("panels", 1, "options", "graphMode"), "areas", "Type '\"areas\"' is not assignable"),
        (("templating", "list", 0, "type"), "data source", "Type '\"data source\"' is not assignable"),
        (("refresh",), 5, "Type 'number' is not assignable to type 'string'"),
    ],
)
def test_what_is_none_is_found(
    keys: tuple[str | int, ...], value: object, said: str, compiler: Path, tmp_path: Path
) -> None:
    """A type, a name or a word that Grafana does not know, wherever it stands."""
    dashboard = json.loads((DASHBOARDS[0].parent / "live.json").read_text(encoding="utf-8"))
    place = dashboard
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    found = objections(compiler, tmp_path / "dashboard.ts", dashboard)
    assert found
    assert all(said in line for line in found)
