"""The third-party files in the page."""

import hashlib
import json
from importlib import resources

from loadgen.core.metrics.summary import Analysis
from loadgen.core.run import RunManifest
from loadgen.report.html import run_html

FOLDER = resources.files("loadgen.report").joinpath("vendor/uplot")


def test_vendored_files_are_those_of_the_pinned_version() -> None:
    """Nobody edited them by hand: their digests are those noted when they were fetched."""
    about = json.loads(FOLDER.joinpath("VERSION.json").read_text(encoding="utf-8"))
    assert set(about["sha256"]) == {"uPlot.iife.min.js", "uPlot.min.css", "LICENSE"}
    for name, digest in about["sha256"].items():
        assert hashlib.sha256(FOLDER.joinpath(name).read_bytes()).hexdigest() == digest
    assert f"(v{about['version']})" in FOLDER.joinpath("uPlot.iife.min.js").read_text(encoding="utf-8")


def test_the_licence_travels_with_every_page(analysis: Analysis, manifest: RunManifest) -> None:
    """MIT asks for its notice in every copy, and a page holds one."""
    page = run_html(analysis, manifest)
    assert FOLDER.joinpath("LICENSE").read_text(encoding="utf-8").strip() in page


def test_no_script_can_end_its_element() -> None:
    """The inlined code has no closing tag in it."""
    pages = resources.files("loadgen.report").joinpath("page")
    page = "".join(pages.joinpath(name).read_text(encoding="utf-8") for name in ("chart.js", "page.js"))
    code = FOLDER.joinpath("uPlot.iife.min.js").read_text(encoding="utf-8")
    assert "</script" not in (code + page).lower()
    assert "<!--" not in code + page
