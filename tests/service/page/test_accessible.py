"""What rules of accessibility say of every page, and that it is usable in the dark, on a telephone, by the keyboard."""

import pytest
from playwright.sync_api import Browser, expect

from tests.service.page.rules import broken_rules
from tests.service.page.seeing import Visitor
from tests.service.page.serving import Served

pytestmark = pytest.mark.slow


def addresses(seeded: dict[str, str], service: Served) -> dict[str, str]:
    """Every page by its address, with its heading."""
    schedule = service.api("GET", "/v1/schedules")["items"][0]
    webhook = service.api("GET", "/v1/webhooks")["items"][0]
    series = service.api("GET", "/v1/history/capacity")["items"][0]
    runs = {f"/runs/{seeded[name]}": name for name in ("before", "capacity", "ladder", "does it pay")}
    failed = next(run_id for name, run_id in seeded.items() if name.startswith("<img"))
    return {
        "/runs": "Runs",
        "/runs/new": "New run",
        "/runs/new?kind=experiment": "New run",
        **runs,
        f"/runs/{failed}": "<img",
        "/compare": "Compare",
        f"/compare?run={seeded['before']}&run={seeded['after']}": "Compare",
        "/schedules": "Schedules",
        "/schedules/new": "New schedule",
        f"/schedules/{schedule['id']}": schedule["name"],
        "/capacity": "Capacity",
        f"/capacity/{series['series']}": "capacity",
        "/baselines": "Baselines",
        "/webhooks": "Webhooks",
        f"/webhooks/{webhook['id']}": webhook["name"],
        "/keys": "Keys",
        "/audit": "Audit",
    }


def test_every_page_is_for_everybody(chromium: Browser, service: Served, seeded: dict[str, str], axe: str) -> None:
    """No rule is broken with all of it unfolded, the dark has contrast, and on a telephone no page moves sideways."""
    with Visitor.of(chromium, service.url) as visitor:
        for address, heading in addresses(seeded, service).items():
            page = visitor.goto(address, heading)
            assert broken_rules(page, axe) == [], address
            page.emulate_media(color_scheme="dark")
            assert broken_rules(page, axe, only="color-contrast") == [], f"{address} in the dark"
            page.emulate_media(color_scheme="light")
            page.set_viewport_size({"width": 360, "height": 800})
            # Charts follow a frame later. Where something stays wider, this names its address by the page's.
            page.wait_for_function("() => document.documentElement.scrollWidth <= 360")
            page.set_viewport_size({"width": 1280, "height": 900})


def test_a_telephone_has_the_page_in_the_bar_and_whole_dates(
    chromium: Browser, service: Served, seeded: dict[str, str]
) -> None:
    """The bar is moved to where one is, and tables scroll rather than breaking what they hold into many lines."""
    with Visitor.of(chromium, service.url, width=360) as visitor:
        for address, heading in (("/audit", "Audit"), ("/schedules", "Schedules")):
            page = visitor.goto(address, heading)
            expect(page.locator("#pages [aria-current]")).to_be_in_viewport(ratio=1)
        row = page.locator("tbody tr").first.bounding_box()
        assert row is not None
        assert row["height"] < 80


def test_signing_in_is_no_harder(chromium: Browser, keyed: Served, axe: str) -> None:
    """The page that asks for a key keeps the same rules."""
    with Visitor.of(chromium, keyed.url) as visitor:
        assert broken_rules(visitor.goto("/runs", "Sign in"), axe) == []


def test_a_broken_rule_would_be_seen(visitor: Visitor, axe: str) -> None:
    """A picture without a text alternative is."""
    page = visitor.goto("/baselines", "Baselines")
    page.evaluate("document.querySelector('main').append(new Image())")
    assert [rule for rule, _ in broken_rules(page, axe)] == ["image-alt"]


def test_everything_is_reached_by_the_keyboard(visitor: Visitor, seeded: dict[str, str]) -> None:
    """The first stop skips the bar; a chart is read point by point and says so; a question holds the focus."""
    page = visitor.goto(f"/runs/{seeded['ladder']}", "ladder")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    chart = page.locator(".plot").first
    chart.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#spoken")).to_contain_text("1: output tokens")


def test_motion_is_left_out_where_it_is_not_wanted(chromium: Browser, service: Served) -> None:
    """Nothing scrolls by itself then."""
    with Visitor.of(chromium, service.url) as visitor:
        visitor.page.emulate_media(reduced_motion="reduce")
        page = visitor.goto("/runs", "Runs")
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
