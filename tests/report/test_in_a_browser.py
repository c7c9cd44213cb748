"""Pages in a real Chromium, opened from a file as a user would."""

import base64
import json
import math
import re
import struct
import zlib
from dataclasses import replace

import pytest

from loadgen.core.metrics.summary import Analysis, Sweep
from loadgen.core.run import RunManifest
from loadgen.core.simulation.prediction import Prediction
from loadgen.report.comparison import comparison_html
from loadgen.report.html import run_html, sweep_html
from loadgen.report.html.prediction import prediction_html
from tests.report.browser import Browser, without_policy
from tests.report.comparisons import explained_arms, three_arms

pytestmark = pytest.mark.slow


def script_in(page: str, name: str) -> str:
    """What a page holds as data of that name."""
    found = re.search(rf'id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return found[1]


def charts_in(page: str) -> set[str]:
    """Names of the charts that a page means to draw."""
    return {chart["id"] for chart in json.loads(script_in(page, "charts"))}


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
    page = run_html(analysis, manifest)
    dom, console = browser.dump(without_policy(page).replace("</body>", actions))
    assert console == []
    assert re.search(r'id="spoken"[^>]*>p0: TTFT 30\.\d ms, TTFT from due', dom)
    assert len(re.findall(r'<button[^>]*aria-pressed="false"', dom)) == 1
    assert ">logarithmic scale</button>" in dom
    assert '<th scope="row">59 s</th>' in dom
    assert '"schema": "loadgen.summary/1"' in dom.split('<script type="application/json"')[0]
    assert drawn_in(dom) == charts_in(page)


def test_a_band_that_is_cut_off_stays_beside_its_line(browser: Browser) -> None:
    """Its ends lie on the limit of the axis: a quarter of the way to an endless interval it is far from that limit."""
    comparison = explained_arms()
    eagle, *others = comparison.arms
    *levels, last = eagle.levels
    assert last.gain is not None
    verdict = replace(last.gain.verdict, speedup=replace(last.gain.verdict.speedup, high=90.0))
    levels.append(replace(last, gain=replace(last.gain, verdict=verdict)))
    page = comparison_html(replace(comparison, arms=(replace(eagle, levels=tuple(levels)), *others)))
    (chart,) = [each for each in json.loads(script_in(page, "charts")) if each["id"] == "arms-speedup"]
    low, high = 1 / 1.12, 16 * 1.12
    right = math.log(4 * 2**0.5 / low) / math.log(high / low)
    found = []
    for value in (2.2, 2.8):  # in the band, and above it; 2.01 at 4 and the limit of 3.33 at 16 bound it
        script = f"""<script>
          const plot = document.querySelector("#plot-arms-speedup");
          const [canvas, area] = [plot.querySelector("canvas"), plot.querySelector(".u-over")];
          const x = area.offsetLeft + area.offsetWidth * {right};
          const y = area.offsetTop + area.offsetHeight * {1 - value / chart["top"]};
          const at = [x, y].map((place) => Math.round(place * devicePixelRatio));
          document.title = "alpha " + canvas.getContext("2d").getImageData(...at, 1, 1).data[3];
        </script></body>"""
        dom, console = browser.dump(without_policy(page).replace("</body>", script))
        assert console == []
        found.append(re.findall(r"<title>alpha (\d+)</title>", dom))
    ((inside,), (outside,)) = found
    assert int(inside) > 0
    assert int(outside) == 0


def test_a_headline_has_the_colour_of_its_mark(browser: Browser) -> None:
    """What is missing is as red as what is invalid, and green is for what is valid alone."""
    told = """<script>
      document.title = getComputedStyle(document.querySelector(".verdict > .headline")).color;
    </script></body>"""
    valid = explained_arms()
    colours = {}
    for comparison in (valid, replace(valid, planned_runs=valid.finished_runs + 1), three_arms()):
        dom, _ = browser.dump(without_policy(comparison_html(comparison)).replace("</body>", told))
        ((mark, first),) = re.findall(r'class="headline">(.) (\w+)', dom)
        colours[first] = (mark, re.findall("<title>(.*?)</title>", dom))
    assert [colours[first][0] for first in ("Valid", "Unfinished", "Invalid")] == ["✓", "✗", "✗"]
    assert colours["Unfinished"] == colours["Invalid"] != colours["Valid"]


def test_a_chart_is_saved_as_a_picture(browser: Browser) -> None:
    """A PNG on light paper that is named after the chart, with room for its title and its legend over what is drawn."""
    script = """<script>
      let encoded = null;
      HTMLCanvasElement.prototype.toBlob = function (done) {
        encoded = this.toDataURL(); // at once: encoding in another thread would race the browser's end
        done(new Blob());
      };
      HTMLAnchorElement.prototype.click = function () {
        document.title = this.download + " " + encoded;
      };
      document.querySelector("#plot-arms-speedup").closest("figure").querySelector(".save").click();
    </script></body>"""
    page = without_policy(comparison_html(explained_arms())).replace("</body>", script)
    dom, console = browser.dump(page, "--blink-settings=preferredColorScheme=0")
    assert console == []
    ((name, encoded),) = re.findall(r"<title>(\S+) data:image/png;base64,(\S+)</title>", dom)
    assert name == "speedup.png"
    picture = base64.b64decode(encoded)
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 600
    assert height > 340 + 30
    data = b"".join(re.findall(rb"IDAT(.*?)(?=....IDAT|....IEND)", picture, re.DOTALL))
    paper = zlib.decompressobj().decompress(data, 4)[1:]
    assert paper == b"\xfc\xfc\xfb"


def test_folds_are_open_on_paper(browser: Browser, analysis: Analysis, manifest: RunManifest) -> None:
    """What is folded away on the screen is printed, but for the data, and is closed again afterwards."""
    seen = """<script>
      const open = () => [...document.querySelectorAll("details")].filter((each) => each.open).length;
      const found = [open()];
      for (const event of ["beforeprint", "afterprint"]) {
        dispatchEvent(new Event(event));
        found.push(open());
      }
      document.title = "open " + found.join(" ");
    </script></body>"""
    dom, console = browser.dump(without_policy(run_html(analysis, manifest)).replace("</body>", seen))
    assert console == []
    assert "<title>open 0 1 0</title>" in dom
