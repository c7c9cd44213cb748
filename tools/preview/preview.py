"""A dashboard's file and a Prometheus, to a page."""

import json
from pathlib import Path

from tools.preview.page import CAPTION, page
from tools.preview.panels import read
from tools.preview.source import Source, chosen

_DASHBOARDS = Path(__file__).parents[2] / "dashboards"
_SPREAD = " The searches were made within minutes; only their times were spread over four weeks."


def preview(name: str, source: Source) -> str:
    """The page of a dashboard, by the name of its file, over what a source has."""
    dashboard = json.loads((_DASHBOARDS / f"{name}.json").read_text(encoding="utf-8"))
    caption = CAPTION + (_SPREAD if name == "capacity" else "")
    return page(read(dashboard, source, chosen(dashboard, source)), caption)
