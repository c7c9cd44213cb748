"""Locust's page and ours in a real Chromium, against a simulated server: as a user goes through them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from loadgen.sim.child import child_server
from tests.locustio.swarms import Swarm, swarm
from tests.shots import shot

pytestmark = pytest.mark.slow

PATIENCE_MS = 60_000


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A simulated vLLM with EAGLE-3, which tells of its acceptance."""
    with child_server(sim_command()) as running:
        yield running.url


@pytest.fixture
def locust(tmp_path: Path) -> Iterator[Swarm]:
    """Locust's page, which knows no server yet."""
    with swarm("--quiet", folder=tmp_path) as running:
        yield running


@pytest.fixture
def complaints() -> list[str]:
    """What pages wrote to the console."""
    return []


def opened(chromium: Browser, url: str, complaints: list[str]) -> Page:
    page = chromium.new_page(viewport={"width": 1280, "height": 860})
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_default_timeout(PATIENCE_MS)
    page.goto(url)
    return page


def test_a_ladder_from_the_form_to_the_report(
    chromium: Browser, server: str, locust: Swarm, complaints: list[str], tmp_path: Path
) -> None:
    """A wrong field is said and nothing sent; a right form starts the ladder; charts and table fill level by level; the
    report is downloaded; nothing complains."""
    page = opened(chromium, locust.url, complaints)
    page.get_by_text("Custom parameters").click()
    page.fill("[name=host]", server)
    page.fill("[name=concurrency]", "1,two")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("--concurrency: input should be a valid integer")).to_be_visible(timeout=PATIENCE_MS)
    assert locust.state["phase"] == "idle"
    page.fill("[name=concurrency]", "1,2,4,8")
    for field, value in (("numRequests", "40"), ("outputTokens", "32"), ("slo", "ttft=200ms,tpot=20ms")):
        page.fill(f"[name={field}]", value)
    page.set_viewport_size({"width": 1280, "height": 1300})
    page.evaluate("scrollTo(0, 0)")
    shot(page, "locust-form")
    page.get_by_role("button", name="Start").click()

    live = opened(chromium, locust.url + "loadgen/", complaints)
    rows = live.locator("#levels tbody tr")
    expect(rows).to_have_count(1, timeout=PATIENCE_MS)
    expect(live.locator("#plot-live-tokens[data-drawn=yes] canvas")).to_be_visible(timeout=PATIENCE_MS)
    expect(rows).to_have_count(3, timeout=PATIENCE_MS)
    shot(live, "locust-live")
    page.get_by_role("tab", name="LLM").click()
    expect(page.get_by_role("cell", name="TTFT").first).to_be_visible(timeout=PATIENCE_MS)
    page.set_viewport_size({"width": 1280, "height": 640})
    shot(page, "locust-tab")

    expect(live.locator("#links")).to_be_visible(timeout=PATIENCE_MS)
    expect(rows).to_have_count(4, timeout=PATIENCE_MS)
    for chart in ("throughput", "ttft_s", "tpot_s", "e2el_s", "acceptance"):
        expect(live.locator(f"#plot-ladder-{chart}[data-drawn=yes] canvas")).to_be_visible()
    expect(live.locator("#phase")).to_have_text("ended")
    shot(live, "locust-page")
    with live.expect_download() as download:
        live.get_by_text("Download the report").click()
    saved = tmp_path / "report.html"
    download.value.save_as(saved)
    assert "loadgen sweep" in saved.read_text(encoding="utf-8")
    assert json.loads(locust.get("loadgen/result"))["asked"] == [1, 2, 4, 8]
    live.reload()
    expect(rows).to_have_count(4, timeout=PATIENCE_MS)
    assert complaints == []


def test_the_stop_button_ends_a_ladder_in_order(
    chromium: Browser, server: str, locust: Swarm, complaints: list[str]
) -> None:
    """What was measured until then is saved and has a report; another ladder can be started after it."""
    page = opened(chromium, locust.url, complaints)
    page.get_by_text("Custom parameters").click()
    page.fill("[name=host]", server)
    page.fill("[name=concurrency]", "2")
    page.fill("[name=duration]", "60s")
    page.get_by_role("button", name="Start").click()
    locust.until(lambda state: len(state["series"]) > 2)
    page.get_by_role("button", name="Stop").click()
    state = locust.until(lambda state: state["phase"] == "ended")
    assert (state["ended"]["code"], state["ended"]["interrupted"], state["has_report"]) == (130, True, True)
    assert state["rows"][0]["requests"]["completed"] > 0
    assert locust.post("swarm", host=server, concurrency="1", num_requests="5")["success"]
    state = locust.until(lambda state: state["phase"] == "ended")
    assert (state["ended"]["code"], state["rows"][0]["requests"]["completed"]) == (0, 5)
    assert complaints == []


def test_arms_are_compared_on_the_page(chromium: Browser, server: str, locust: Swarm, complaints: list[str]) -> None:
    """Speedup by arm while it runs, and the comparison's report at its end."""
    with child_server(sim_command(method=None)) as plain:
        form = {"host": "", "arm": f"plain={plain.url},eagle3={server}", "concurrency": "1,4", "num_requests": "20"}
        assert locust.post("swarm", **form, repeats="1", output_tokens="24")["success"]
        live = opened(chromium, locust.url + "loadgen/", complaints)
        expect(live.locator("#plot-arms-speedup[data-drawn=yes] canvas")).to_be_visible(timeout=PATIENCE_MS)
        expect(live.locator("#links")).to_be_visible(timeout=PATIENCE_MS)
        shot(live, "locust-arms")
    state = locust.state
    assert {row["arm"] for row in state["rows"]} >= {"plain", "eagle3"}
    assert "loadgen comparison" in locust.get("loadgen/report").decode()
    assert complaints == []


def sim_command(method: str | None = "eagle3") -> list[str]:
    """The simulator on a free port."""
    from sys import executable

    drafts = [] if method is None else ["--method", method, "--draft-tokens", "3", "--acceptance-length", "2.6"]
    return [executable, "-m", "loadgen", "sim", "--port", "0", "--json", "--until-stdin-closes", *drafts]
