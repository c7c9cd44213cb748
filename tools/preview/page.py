"""A page that draws a dashboard, and its picture, taken by a real Chromium."""

import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from PIL import Image
from playwright.sync_api import sync_playwright

from tools.preview.source import Json

CAPTION = (
    "A preview, not Grafana: the dashboard's own queries, answered by a real Prometheus over load tests against"
    " Loadgen's simulated server, drawn by tools/preview."
)
_FOLDER = Path(__file__).parent
_UPLOT = resources.files("loadgen.report").joinpath("vendor/uplot")
_CUT = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(each => each.dataset.title)"
_SIZE = {"width": 1400, "height": 900}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A page as it was drawn: the PNG, the titles of panels without values and of those that are cut off at their right
    edge, what the page's console says."""

    png: bytes
    empty: Sequence[str]
    cut: Sequence[str]
    console: Sequence[str]


def page(board: Json, caption: str = CAPTION) -> str:
    """The whole page as HTML."""
    data = json.dumps(board, allow_nan=False).replace("<", "\\u003c")
    return Template((_FOLDER / "preview.html").read_text(encoding="utf-8")).substitute(
        title=escape(board["title"]),
        style=_UPLOT.joinpath("uPlot.min.css").read_text() + (_FOLDER / "preview.css").read_text(encoding="utf-8"),
        caption=escape(caption),
        board=data,
        script=_UPLOT.joinpath("uPlot.iife.min.js").read_text() + (_FOLDER / "preview.js").read_text(encoding="utf-8"),
    )


def picture(html: str) -> Picture:
    """The page in a browser."""
    said: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shown = browser.new_page(viewport=_SIZE, timezone_id="UTC")
        shown.on("console", lambda message: said.append(message.text))
        shown.on("pageerror", lambda error: said.append(str(error)))
        shown.set_content(html)
        shown.wait_for_selector("html[data-drawn=yes]", state="attached")
        empty = shown.eval_on_selector_all("figure:has(.nothing)", "all => all.map(each => each.dataset.title)")
        cut = shown.eval_on_selector_all("figure", _CUT)
        png = shown.screenshot(full_page=True)
        browser.close()
    return Picture(png=small(png), empty=empty, cut=cut, console=said)


def small(png: bytes) -> bytes:
    """The same picture with 256 colours, which are more than it has but for the edges of letters."""
    small = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256).save(small, "PNG", optimize=True)
    return small.getvalue()
