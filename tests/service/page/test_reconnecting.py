"""The page of a run at work outlives the service: one that is killed and comes back, one that a proxy answers for."""

import re
import socket
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.service.page.seeing import Visitor
from tests.service.page.serving import Served, served

pytestmark = pytest.mark.slow

LONG = {"duration": "300s", "concurrency": 1, "output_tokens": 12}
SHORT = {"num_requests": 4, "concurrency": 1, "output_tokens": 12}
NOTING = """
const Native = EventSource;
window.heard = [];
window.EventSource = class extends Native {
  addEventListener(kind, listener) {
    super.addEventListener(kind, (event) => {
      if (event instanceof MessageEvent && kind !== "end") window.heard.push(Number(event.lastEventId));
      listener(event);
    });
  }
};
"""
"""Notes the number of every event that the page hears."""
LOST = "The connection to the service is lost. Trying again…"
MEASURING = re.compile(r"^Measuring, ")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def told(service: Served, run_id: str) -> list[int]:
    """The numbers of all events of a run that has ended."""
    with urllib.request.urlopen(f"{service.url}/v1/runs/{run_id}/events", timeout=30) as answer:
        return [int(number) for number in re.findall(rb"^id: (\d+)$", answer.read(), re.MULTILINE)]


def check_heard(page: Page, numbers: list[int]) -> None:
    """The page has heard each of them, once, in order."""
    page.wait_for_function("(count) => heard.length >= count", arg=len(numbers))
    assert page.evaluate("heard") == numbers == list(range(1, len(numbers) + 1))


def test_a_live_page_outlives_its_service(chromium: Browser, service: Served, tmp_path: Path) -> None:
    """It says that it tries again, then goes on behind the last event that it had: none is lost, none comes twice. The
    page of a run that waited shows that it begins and what it comes to."""
    port, target = free_port(), service.servers[0]
    address = f"http://127.0.0.1:{port}"
    with Visitor.of(chromium, address) as visitor, Visitor.of(chromium, address) as other:
        visitor.page.add_init_script(NOTING)
        with served(tmp_path / "data", port=port) as first:
            run, behind = first.ask("run", "cut off", LONG, target), first.ask("run", "behind", SHORT, target)
            page = visitor.goto(f"/runs/{run}", "cut off")
            other.goto(f"/runs/{behind}", "behind")
            expect(other.page.get_by_text("Waiting for its turn")).to_be_visible()
            expect(page.get_by_text(MEASURING)).to_be_visible()
            expect(page.locator(".plot canvas").first).to_be_visible()
            for each in (visitor, other):
                each.expected = {"ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_INCOMPLETE_CHUNKED_ENCODING"}
            first.kill()
            for each in (visitor, other):
                expect(each.page.get_by_role("status").filter(has_text=LOST)).to_be_visible()
        before = page.evaluate("heard.length")
        assert before > 3
        with served(tmp_path / "data", port=port) as second:
            second.wait(run, behind)
            expect(page.get_by_text("It was interrupted")).to_be_visible()
            expect(page.locator("#connection")).to_be_hidden()
            expect(page.locator("h1 .tag").first).to_have_text("interrupted")
            expect(other.page.get_by_role("region", name="Verdict")).to_be_visible()
            expect(other.page.locator("#connection")).to_be_hidden()
            numbers = told(second, run)
            check_heard(page, numbers)
            assert len(numbers) > before


def test_a_proxy_that_answers_for_a_service_that_is_gone(visitor: Visitor, service: Served) -> None:
    """A browser gives up on what is no stream of events; the page does not, and goes on where it was."""
    visitor.page.add_init_script(NOTING)
    visitor.expected = {"502"}
    run = service.ask("run", "behind a proxy", LONG, service.servers[1])
    asked: list[str] = []

    def gone(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=502, body="Bad Gateway")

    page = visitor.page
    page.route("**/events*", gone)
    visitor.goto(f"/runs/{run}", "behind a proxy")
    expect(page.get_by_role("status").filter(has_text=LOST)).to_be_visible()
    page.unroute("**/events*", gone)
    expect(page.get_by_text(MEASURING)).to_be_visible()
    expect(page.locator("#connection")).to_be_hidden()
    service.api("POST", f"/v1/runs/{run}/cancel")
    expect(page.get_by_text("It was cancelled")).to_be_visible()
    assert asked
    check_heard(page, told(service, run))
