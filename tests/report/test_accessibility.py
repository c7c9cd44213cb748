"""What rules of accessibility say of the pages, opened in a real Chromium."""

import base64
import json
import re
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

DARK = "--blink-settings=preferredColorScheme=0"


@pytest.fixture
def pages(analysis: Analysis, sweep: Sweep, manifest: RunManifest, prediction: Prediction) -> dict[str, str]:
    """One of every sort, with all that it can hold."""
    by_rate = replace(explained_arms(), variable="request_rate_rps")
    return {
        "run": run_html(analysis, manifest),
        "sweep": sweep_html(sweep),
        "prediction": prediction_html(prediction),
        "comparison": comparison_html(three_arms(), by_rate),
    }


def violations(browser: Browser, axe: str, page: str, *flags: str, width: int) -> list[tuple[str, str]]:
    """Rules that the page breaks, each with the first element that does."""
    script = f"""<script>{axe}</script><script>
      for (const details of document.querySelectorAll("details:not(.raw-json)")) details.open = true;
      axe.run(document, {{ resultTypes: ["violations"] }}).then((found) => {{
        const told = found.violations.map((rule) => [rule.id, rule.nodes[0].html]);
        document.title = "axe " + btoa(unescape(encodeURIComponent(JSON.stringify([found.passes.length, told]))));
      }});
    </script></body>"""
    dom, _ = browser.dump(without_policy(page).replace("</body>", script), *flags, width=width)
    told = re.search(r"<title>axe (\S+)</title>", dom)
    assert told is not None, "axe-core has not finished"
    passed, broken = json.loads(base64.b64decode(told[1]))
    assert passed > 20
    return [(rule, element) for rule, element in broken]


@pytest.mark.parametrize(("width", "flags"), [(1200, ()), (400, (DARK,))], ids=["light and wide", "dark and narrow"])
@pytest.mark.parametrize("name", ["run", "sweep", "prediction", "comparison"])
def test_no_rule_of_accessibility_is_broken(
    browser: Browser, axe: str, pages: dict[str, str], name: str, flags: tuple[str, ...], width: int
) -> None:
    """Contrast, headings, names of landmarks, header cells, regions that scroll: in either scheme, on a telephone."""
    assert violations(browser, axe, pages[name], *flags, width=width) == []


def test_a_broken_rule_would_be_seen(browser: Browser, axe: str, pages: dict[str, str]) -> None:
    """A picture without a text alternative is."""
    page = pages["sweep"].replace("</main>", '<img src="data:,"></main>')
    assert [rule for rule, _ in violations(browser, axe, page, width=1200)] == ["image-alt"]
