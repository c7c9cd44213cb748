"""Webhooks and the audit log, which are for whoever rules the service; and an address that is none."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.service.fakes.receiver import Receiver
from tests.service.page.rules import broken_rules
from tests.service.page.seeing import Visitor
from tests.service.page.serving import KEY, Served, served
from tests.service.telling import SECRET

pytestmark = pytest.mark.slow


@pytest.fixture
def telling(tmp_path: Path) -> Iterator[Served]:
    """A service that may tell this machine what happens."""
    flags = ("--webhook-host", "loopback", "--allow-env", "HOOK_SECRET")
    with served(tmp_path / "telling", *flags, variables={"HOOK_SECRET": SECRET}) as found:
        yield found


def test_a_webhook_is_made_told_and_removed(chromium: Browser, telling: Served, receiver: Receiver, axe: str) -> None:
    """A secret is made and shown once; what is wrong is told at its field; messages are seen as they are delivered."""
    with Visitor.of(chromium, telling.url) as visitor:
        page = visitor.goto("/runs", "Runs")
        page.get_by_role("link", name="Webhooks").click()
        visitor.sees("Webhooks")
        expect(page.get_by_text("There is no webhook yet.")).to_be_visible()
        page.get_by_role("button", name="Make a secret").click()
        expect(page.get_by_role("region", name="The new secret")).to_be_focused()
        secret = page.locator("code.secret").inner_text()
        assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
        page.get_by_role("button", name="Make the webhook").click()
        expect(page.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
        assert broken_rules(page, axe) == []
        page.reload()
        visitor.sees("Webhooks")
        assert secret not in page.content()
        page.get_by_label("Name").fill("the team's chat")
        page.get_by_label("Variable of its secret").fill("OTHER_SECRET")
        page.get_by_label("URL").fill(receiver.url)
        page.get_by_role("button", name="Make the webhook").click()
        expect(page.get_by_label("a run completed")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        visitor.expected = {"403"}
        page.get_by_role("button", name="Make the webhook").click()
        expect(page.get_by_label("Variable of its secret")).to_have_attribute("aria-invalid", "true")
        page.get_by_label("Variable of its secret").fill("HOOK_SECRET")
        page.get_by_role("button", name="Make the webhook").click()
        visitor.sees("the team's chat")
        expect(page.get_by_text("Nothing was to be told yet.")).to_be_visible()
        run = telling.ask("run", "nobody there", {"num_requests": 1}, "http://127.0.0.1:9")
        telling.wait(run)
        messages = page.get_by_role("region", name="Latest messages")
        expect(messages.get_by_role("cell", name="run.failed")).to_be_visible()
        expect(messages.get_by_text("delivered")).to_be_visible()
        expect(messages.get_by_role("link", name=run)).to_be_visible()
        assert len(receiver.got) == 1
        assert broken_rules(page, axe) == []
        page.get_by_role("link", name="Change").click()
        visitor.sees("Change the team's chat")
        expect(page.get_by_label("URL")).to_have_value(receiver.url)
        expect(page.get_by_label("a run failed")).to_be_checked()
        assert broken_rules(page, axe) == []
        page.get_by_label("URL").fill("http://10.0.0.7/x")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_label("URL")).to_have_attribute("aria-invalid", "true")
        page.get_by_label("URL").fill(receiver.url + "/new")
        page.get_by_label("a run was cancelled").check()
        page.get_by_role("button", name="Save").click()
        visitor.sees("the team's chat")
        expect(page.get_by_text("run.failed, run.cancelled")).to_be_visible()
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_text("paused", exact=True)).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        page.get_by_role("link", name="Webhooks").click()
        visitor.sees("Webhooks")
        expect(page.get_by_role("rowheader", name="the team's chat")).to_be_visible()
        page.get_by_role("link", name="the team's chat").click()
        page.get_by_role("button", name="Remove").click()
        page.get_by_role("button", name="Remove the webhook").click()
        visitor.sees("Webhooks")
        expect(page.get_by_text("There is no webhook yet.")).to_be_visible()


def test_the_audit_log_is_filtered_and_paged(chromium: Browser, telling: Served) -> None:
    """The newest first, by kind in the address, page by page with the focus on the step."""
    request = {"kind": "run", "target": {"url": "http://127.0.0.1:9"}, "options": {"num_requests": 1}}
    made = telling.api("POST", "/v1/schedules", {"name": "nightly", "cron": "30 2 * * *", "request": request})
    for _ in range(30):
        for what in ("pause", "resume"):
            telling.api("POST", f"/v1/schedules/{made['id']}/{what}")
    with Visitor.of(chromium, telling.url) as visitor:
        page = visitor.goto("/audit", "Audit")
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(50)
        expect(rows.first).to_contain_text("schedule resumed")
        expect(rows.first).to_contain_text("this machine")
        page.get_by_role("button", name="Older").press("Enter")
        expect(rows).to_have_count(11)
        expect(rows.last).to_contain_text("nightly")
        expect(page.get_by_role("button", name="Newer")).to_be_focused()
        page.keyboard.press("Enter")
        expect(rows).to_have_count(50)
        page.get_by_role("combobox", name="What").select_option("schedule paused")
        expect(rows).to_have_count(30)
        expect(rows.first).to_contain_text("nightly")
        assert page.url.endswith("/audit?action=schedule.pause")
        page.reload()
        expect(rows).to_have_count(30)
        page.get_by_role("combobox", name="What").select_option("key made")
        expect(page.get_by_text("Nothing of this kind was changed.")).to_be_visible()
        page.get_by_role("link", name="Show all").click()
        expect(rows).to_have_count(50)


def test_the_audit_log_names_keys(chromium: Browser, keyed: Served, axe: str) -> None:
    """Who did it is told by the name of the key; a reader of another key has no such page."""
    reader = keyed.api("POST", "/v1/keys", {"name": "a reader", "scope": "read"})["key"]
    keyed.api("POST", "/v1/keys", {"name": "nights", "scope": "run"})
    with Visitor.of(chromium, keyed.url) as visitor:
        page = visitor.goto("/audit", "Sign in")
        page.get_by_label("Key").fill(KEY)
        page.get_by_role("button", name="Sign in").click()
        visitor.sees("Audit")
        rows = page.locator("tbody tr")
        expect(rows).to_have_count(3)
        expect(rows.first).to_contain_text("session opened")
        expect(rows.nth(1)).to_contain_text("of the settings")
        expect(rows.nth(1)).to_contain_text("nights")
        expect(rows.nth(1)).to_contain_text("scope: run")
        assert broken_rules(page, axe) == []
        page.get_by_role("button", name="Sign out").click()
        visitor.sees("Sign in")
        page.get_by_label("Key").fill(reader)
        page.get_by_role("button", name="Sign in").click()
        visitor.sees("Runs")
        expect(page.get_by_role("link", name="Audit")).to_have_count(0)
        expect(page.get_by_role("link", name="Webhooks")).to_have_count(0)
        visitor.expected = {"403"}
        visitor.goto("/webhooks")
        expect(page.get_by_text("This key may not do that")).to_be_visible()


def test_a_refusal_of_a_button_is_said_on_the_page(chromium: Browser, keyed: Served, axe: str) -> None:
    """Whoever may not resume a schedule reads why, and sees it paused as before."""
    limited = {"name": "small", "scope": "run", "limits": {"concurrency": 4}}
    key = keyed.api("POST", "/v1/keys", limited)["key"]
    options = {"num_requests": 10, "concurrency": 8}
    request = {"kind": "run", "target": {"url": "http://127.0.0.1:9"}, "options": options}
    wanted = {"name": "nightly", "cron": "30 2 * * *", "request": request, "paused": True}
    made = keyed.api("POST", "/v1/schedules", wanted)
    with Visitor.of(chromium, keyed.url) as visitor:
        page = visitor.goto(f"/schedules/{made['id']}", "Sign in")
        page.get_by_label("Key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        visitor.sees("nightly")
        visitor.expected = {"403"}
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("alert")).to_contain_text("at most 4 requests in flight are allowed")
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        assert broken_rules(page, axe) == []


def test_an_address_that_is_none_leads_home(visitor: Visitor, axe: str) -> None:
    """In the style of the page, with its bar, its heading in focus, and a way to the runs."""
    visitor.expected = {"404"}
    page = visitor.goto("/runs/of/nobody", "Not found")
    expect(page).to_have_title("Not found · Loadgen")
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Schedules")).to_be_visible()
    assert broken_rules(page, axe) == []
    page.get_by_role("link", name="All runs").click()
    visitor.sees("Runs")
