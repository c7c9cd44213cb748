"""What of the service's page is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, expect

from tests.service.page.seeing import Visitor
from tests.service.page.serving import KEY, Served
from tools.pictures.filling import live
from tools.preview.page import small

_LEAST_PX = 300
_LIVE_MS, _INTO_MS = 120_000, 12_000
"""Until two levels have ended, at most; how far into the third one is looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A page at an address, and how it is looked at. `ready` waits, and does, until it is as it is to be seen; no more
    than `most_px` of its height are shown.
    """

    address: Callable[[Served], str]
    heading: str
    ready: Callable[[Page], None] = lambda page: None
    width: int = 1280
    most_px: int = 1700
    scheme: Literal["light", "dark"] = "light"


def taken(browser: Browser, service: Served, view: View) -> bytes:
    """The picture as PNG."""
    with Visitor.of(browser, service.url, scheme=view.scheme, width=view.width) as visitor:
        page = visitor.goto("/sign-in", "Sign in")
        page.get_by_label("Key").fill(KEY)
        page.get_by_role("button", name="Sign in").click()
        visitor.sees("Runs")
        visitor.goto(view.address(service), view.heading)
        expect(page.locator(".loading")).to_have_count(0)
        view.ready(page)
        page.evaluate("document.activeElement.blur()")
        page.set_viewport_size({"width": view.width, "height": _LEAST_PX})
        height = min(page.evaluate("document.documentElement.scrollHeight"), view.most_px)
        page.set_viewport_size({"width": view.width, "height": height})
        return small(page.screenshot())


def _at(address: str) -> Callable[[Served], str]:
    return lambda service: address


def _first(service: Served, path: str, **wanted: str) -> Any:
    items = service.api("GET", f"{path}?limit=100")["items"]
    return next(each for each in items if all(each[name] == value for name, value in wanted.items()))


def _run(name: str) -> Callable[[Served], str]:
    return lambda service: f"/runs/{_first(service, '/v1/runs', name=name)['id']}"


def _ladders(service: Served) -> str:
    ids = [_first(service, "/v1/runs", name=name)["id"] for name in ("ladder, plain", "ladder, EAGLE-3")]
    return "/compare?" + urlencode([*(("run", each) for each in ids), ("gate", "tpot_s.mean > 1.05x")])


def _drawn(page: Page) -> None:
    expect(page.locator(".plot canvas").first).to_be_visible()


def _at_work(page: Page) -> None:
    _drawn(page)
    expect(page.get_by_role("region", name="Levels").locator("tbody tr")).to_have_count(2, timeout=_LIVE_MS)
    page.wait_for_timeout(_INTO_MS)


def _written(page: Page) -> None:
    page.get_by_label("Name").fill("nightly capacity, long prompts")
    page.get_by_label("When, as cron").fill("30 3 * * 1-5")
    page.get_by_label("Time zone").fill("Europe/London")
    page.get_by_label("Server", exact=True).select_option("llama-8b")
    page.get_by_label("Objectives (SLO)").fill("ttft=800ms,tpot=50ms")
    expect(page.get_by_text("At 03:30")).to_be_visible()


def _series(service: Served) -> str:
    return f"/capacity/{service.api('GET', '/v1/history/capacity')['items'][0]['series']}"


VIEWS = {
    # First, as every visit adds to it.
    "audit": View(address=_at("/audit"), heading="Audit"),
    "runs": View(address=_at("/runs"), heading="Runs", most_px=860),
    "live": View(address=lambda service: f"/runs/{live(service)}", heading="longer ladder, EAGLE-3", ready=_at_work),
    "compare": View(address=_ladders, heading="Compare", ready=_drawn),
    "experiment": View(address=_run("does speculation pay"), heading="does speculation pay", ready=_drawn),
    "schedules": View(address=_at("/schedules"), heading="Schedules"),
    "schedule-form": View(address=_at("/schedules/new"), heading="New schedule", ready=_written),
    "capacity": View(address=_series, heading="nightly capacity", ready=_drawn),
    "baselines": View(address=_at("/baselines"), heading="Baselines"),
    "webhooks": View(address=_at("/webhooks"), heading="Webhooks"),
    "webhook": View(
        address=lambda service: f"/webhooks/{_first(service, '/v1/webhooks', name='chat')['id']}", heading="chat"
    ),
    "keys": View(address=_at("/keys"), heading="Keys"),
    "dark": View(address=_run("ladder, EAGLE-3"), heading="ladder, EAGLE-3", ready=_drawn, scheme="dark", most_px=1300),
    "narrow": View(address=_series, heading="nightly capacity", ready=_drawn, width=390, most_px=1300),
}
"""By the name of the picture."""
