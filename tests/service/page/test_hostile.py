"""Names without a space and without end, directions that do not end, addresses that are none: the page stays whole."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.service.page.seeing import Visitor
from tests.service.page.serving import KEY, served

pytestmark = pytest.mark.slow

NOBODY = "http://127.0.0.1:9"
LONG = "W" * 100


def test_long_words_push_nothing_away(chromium: Browser, tmp_path: Path) -> None:
    """Labels stay within the page, the state of a run is seen beside its name, the bar has room for its pages."""
    with served(tmp_path / "data", key=KEY) as service:
        name = {"name": LONG, "labels": {"a" * 63: "W" * 200}}
        asked = {"kind": "run", "target": {"url": NOBODY}, "options": {"num_requests": 1}, **name}
        run = service.api("POST", "/v1/runs", asked)["id"]
        service.wait(run)
        key = service.api("POST", "/v1/keys", {"name": LONG, "scope": "admin"})["key"]
        with Visitor.of(chromium, service.url) as visitor:
            visitor.expected = {"401"}
            page = visitor.goto("/sign-in", "Sign in")
            page.get_by_label("Key").fill(key)
            page.keyboard.press("Enter")
            visitor.sees("Runs")
            state = page.get_by_role("region", name="Runs").locator("tbody tr").first.get_by_text("failed")
            expect(state).to_be_visible()
            box = state.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= 1280
            assert page.evaluate("(nav => nav.scrollWidth <= nav.clientWidth)(document.getElementById('pages'))")
            visitor.goto(f"/runs/{run}", LONG)
            for width in (1280, 360):
                page.set_viewport_size({"width": width, "height": 900})
                page.wait_for_function(f"() => document.documentElement.scrollWidth <= {width}", timeout=5000)


def test_a_direction_ends_with_its_name(chromium: Browser, tmp_path: Path) -> None:
    """What stands behind the name of a run stays behind it, whatever marks the name begins and does not end."""
    with served(tmp_path / "data") as service:
        run = service.ask("run", "a\u202e\u2066b", {"num_requests": 1}, NOBODY)
        service.wait(run)
        with Visitor.of(chromium, service.url) as visitor:
            page = visitor.goto(f"/runs/{run}", "b")
            name, state = page.locator("h1 bdi").bounding_box(), page.locator("h1 .tag").first.bounding_box()
            assert name is not None
            assert state is not None
            assert state["x"] >= name["x"] + name["width"]


@pytest.mark.parametrize("address", ["/runs/%zz", "/schedules/%E0%A4%A", "/capacity/%"])
def test_an_address_that_stands_for_no_text(visitor: Visitor, address: str) -> None:
    """It is told to be none, as any other without a page."""
    visitor.expected = {"404"}
    visitor.goto(address, "Not found")
