"""Pages in a real Chromium, opened from a file as a user would."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from loadgen.core.metrics.summary import Analysis, Sweep
from loadgen.core.run import RunManifest
from loadgen.core.simulation.prediction import Prediction
from loadgen.report.comparison import comparison_html
from loadgen.report.html import run_html, sweep_html
from loadgen.report.prediction import prediction_html
from tests.report.comparisons import explained_arms, three_arms

pytestmark = pytest.mark.slow

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=3000",
)


class Browser:
    """One Chromium binary with a profile of its own a call."""

    def __init__(self, binary: str, scratch: Path) -> None:
        self._binary, self._scratch = binary, scratch

    def dump(self, page: str, *, width: int = 1280) -> tuple[str, list[str]]:
        """The page's DOM once its scripts have run, and what it wrote to the console."""
        file = self._scratch / "page.html"
        file.write_text(page, encoding="utf-8")
        done = self._run(f"--window-size={width},1600", "--dump-dom", file.as_uri())
        return done.stdout, re.findall(r"CONSOLE.*", done.stderr)

    def screenshot(self, page: str, *flags: str) -> bytes:
        """A PNG of the top of the page."""
        file, shot = self._scratch / "page.html", self._scratch / "shot.png"
        file.write_text(page, encoding="utf-8")
        self._run("--window-size=1280,1600", f"--screenshot={shot}", *flags, file.as_uri())
        return shot.read_bytes()

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        profile = self._scratch / "profile"
        done = subprocess.run(
            [self._binary, *FLAGS, f"--user-data-dir={profile}", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    """Chromium, if there is one; its absence is a failure where CI=true."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if binary is None:
        message = "no Chromium on this machine: pages were not opened"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return Browser(binary, tmp_path)


def charts_in(page: str) -> set[str]:
    """Names of the charts that a page means to draw."""
    found = re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return {chart["id"] for chart in json.loads(found[1])}


def drawn_in(dom: str) -> set[str]:
    """Names of the charts that were drawn: uPlot made a canvas in their place."""
    places = re.findall(r'<div class="plot" id="plot-([\w-]+)"[^>]*data-drawn="yes"[^>]*><div[^>]*class="uplot', dom)
    assert dom.count("<canvas") == len(places)
    return set(places)


@pytest.mark.parametrize("width", [1280, 400])
def test_every_chart_is_drawn_without_a_complaint(
    browser: Browser, analysis: Analysis, sweep: Sweep, manifest: RunManifest, prediction: Prediction, width: int
) -> None:
    """The policy lets the page's own code run, and it draws all charts with nothing on the console."""
    pages = (
        run_html(analysis, manifest),
        sweep_html(sweep),
        prediction_html(prediction),
        comparison_html(three_arms(), explained_arms()),
    )
    for page in pages:
        dom, console = browser.dump(page, width=width)
        assert console == []
        assert drawn_in(dom) == charts_in(page)
        assert len(re.findall(r'<button[^>]*aria-pressed="true"', dom)) >= len(charts_in(page))


def test_hostile_text_stays_text(
    browser: Browser, hostile: Analysis, hostile_sweep: Sweep, manifest: RunManifest
) -> None:
    """Nothing of it becomes an element, runs, or makes the policy complain; equal and empty levels are drawn."""
    for page in (run_html(hostile, manifest), sweep_html(hostile_sweep)):
        dom, console = browser.dump(page)
        assert console == []
        assert "onload=" not in re.sub(r">[^<]*<", "><", dom)
        assert dom.count("<script") == 3
        assert drawn_in(dom) == charts_in(page)


def test_injected_code_would_not_run(browser: Browser, analysis: Analysis, manifest: RunManifest) -> None:
    """Should escaping ever fail, the policy still stops a script, a handler, a style and an image from elsewhere."""
    page = run_html(analysis, manifest).replace(
        "<footer>",
        "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
        '<img src="http://127.0.0.1:9/x.png"><footer>',
    )
    dom, console = browser.dump(page)
    assert "<title>owned" not in dom
    assert len(console) >= 3
    assert all("Content Security Policy" in line for line in console)


def test_dark_and_light_differ(browser: Browser, analysis: Analysis, manifest: RunManifest) -> None:
    """The page follows the reader's colour scheme."""
    page = run_html(analysis, manifest)
    light = browser.screenshot(page)
    dark = browser.screenshot(page, "--blink-settings=preferredColorScheme=0")
    assert light[:8] == dark[:8] == b"\x89PNG\r\n\x1a\n"
    assert light != dark


def test_an_empty_sweep_opens(browser: Browser, empty_sweep: Sweep) -> None:
    """No level, no chart, no error."""
    dom, console = browser.dump(sweep_html(empty_sweep))
    assert console == []
    assert "no level has finished" in dom


def test_the_page_answers_to_keys_and_buttons(browser: Browser, analysis: Analysis, manifest: RunManifest) -> None:
    """Arrow keys read a chart aloud, a legend button hides its line, the scale changes, tables and JSON open."""
    actions = """<script>
      const figure = document.getElementById("plot-quantiles").closest("figure");
      for (const key of ["End", "ArrowLeft", "Home"])
        document.getElementById("plot-quantiles").dispatchEvent(new KeyboardEvent("keydown", { key }));
      figure.querySelector(".legend button").click();
      figure.querySelector(".scale").click();
      for (const details of document.querySelectorAll("details")) details.open = true;
      dispatchEvent(new Event("beforeprint"));
      dispatchEvent(new Event("afterprint"));
    </script></body>"""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", run_html(analysis, manifest))
    dom, console = browser.dump(page.replace("</body>", actions))
    assert console == []
    assert re.search(r'id="spoken"[^>]*>p0: TTFT 30\.\d ms, TTFT from due', dom)
    assert len(re.findall(r'<button[^>]*aria-pressed="false"', dom)) == 1
    assert ">logarithmic scale</button>" in dom
    assert '<th scope="row">59 s</th>' in dom
    assert '"schema": "loadgen.summary/1"' in dom.split('<script type="application/json"')[0]
    assert drawn_in(dom) == charts_in(page)
