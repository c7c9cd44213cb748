"""The main path of each page in a real Chromium, against `loadgen serve` and simulated servers."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.service.page.conftest import HOSTILE
from tests.service.page.seeing import Visitor
from tests.service.page.serving import KEY, Served

pytestmark = pytest.mark.slow


def test_a_run_from_the_form_is_followed_to_its_verdict(visitor: Visitor, service: Served) -> None:
    """A field that the API finds wrong is told at the field; the run is live with charts, then has its verdict."""
    page = visitor.goto("/runs/new", "New run")
    page.get_by_label("URL").fill(service.servers[0])
    page.get_by_label("How many").fill("none")
    page.get_by_label("Duration").fill("5s")
    page.get_by_label("Name").fill("from the page")
    visitor.expected = {"422"}
    page.get_by_role("button", name="Start").click()
    level = page.get_by_label("How many")
    expect(level).to_have_attribute("aria-invalid", "true")
    expect(level).to_be_focused()
    level.fill("2")
    page.get_by_role("button", name="Start").click()
    visitor.sees("from the page")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.locator(".plot canvas").first).to_be_visible()
    expect(page.get_by_text(re.compile(r"^Measuring, \d+ requests?, 2 in flight$"))).to_be_visible()
    expect(page.get_by_role("region", name="Verdict")).to_be_visible()
    expect(page.locator("h1 .tag").first).to_have_text("completed")
    expect(page.get_by_role("heading", name="Latency by percentile")).to_be_visible()


def test_a_run_is_cancelled_after_a_question(visitor: Visitor, service: Served) -> None:
    """Going back leaves it alone; the answer yes ends it, and the page says what that means."""
    run = service.ask("run", "too long", {"duration": "300s", "concurrency": 1}, service.servers[1])
    page = visitor.goto(f"/runs/{run}", "too long")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Go back").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_text("It was cancelled")).to_be_visible()
    expect(page.locator("h1 .tag").first).to_have_text("cancelled")


def test_runs_are_filtered_and_the_filter_is_an_address(visitor: Visitor, seeded: dict[str, str]) -> None:
    """A filter stands in the address, so that a reload has it; nothing found says so."""
    page = visitor.goto("/runs", "Runs")
    rows = page.locator("tbody tr")
    expect(page.get_by_role("link", name="ladder")).to_be_visible()
    page.get_by_label("Kind").select_option("sweep")
    expect(rows).to_have_count(1)
    assert page.url.endswith("/runs?kind=sweep")
    page.reload()
    expect(rows).to_have_count(1)
    page.get_by_label("Name").fill("no such run")
    expect(page.get_by_text("No run is like that.")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    expect(page.get_by_role("link", name="before", exact=True)).to_be_visible()


def test_reload_and_back_lead_to_the_same_page(visitor: Visitor, seeded: dict[str, str]) -> None:
    """Each step within the page has an address of its own; the heading gets the focus, the title tells the page."""
    page = visitor.goto("/runs", "Runs")
    page.get_by_role("link", name="ladder").click()
    visitor.sees("ladder")
    expect(page).to_have_title("ladder · Loadgen")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.reload()
    visitor.sees("ladder")
    page.go_back()
    visitor.sees("Runs")
    page.go_forward()
    visitor.sees("ladder")
    expect(page.get_by_role("region", name="Levels", exact=True).locator("tbody tr")).to_have_count(2)


def test_a_name_of_code_stays_a_name(visitor: Visitor, seeded: dict[str, str]) -> None:
    """In the list, on its page and in the form; the failure is told with its reason."""
    page = visitor.goto("/runs?state=failed", "Runs")
    page.get_by_role("link", name="<img").click()
    visitor.sees("<img src=x")
    expect(page.get_by_text("The server could not be reached, or nothing completed.")).to_be_visible()
    page.get_by_role("link", name="Run again").click()
    visitor.sees("New run")
    expect(page.get_by_label("Name")).to_have_value(HOSTILE)
    assert page.locator("img").count() == 0
    assert page.title() == "New run · Loadgen"


def test_what_a_run_left_can_be_taken(visitor: Visitor, seeded: dict[str, str]) -> None:
    """The report is a page of its own that draws, apart from this one; records and summary are downloads."""
    page = visitor.goto(f"/runs/{seeded['before']}", "before")
    with page.expect_download() as records:
        page.get_by_role("link", name="Records").click()
    assert records.value.suggested_filename.endswith("-records.jsonl.zst")
    with page.expect_download() as summary:
        page.get_by_role("link", name="Summary as JSON").click()
    assert '"loadgen.summary/1"' in Path(summary.value.path()).read_text()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="The whole report").click()
    report = opened.value
    expect(report.locator(".plot canvas").first).to_be_visible()
    assert report.evaluate("window.origin") == "null"
    assert report.evaluate("window.opener") is None


def test_runs_are_compared_with_ratios_and_gates(visitor: Visitor, seeded: dict[str, str]) -> None:
    """Chosen in the list; laid over one another; a gate that nobody can keep fails, and one that is none is told."""
    page = visitor.goto("/runs", "Runs")
    for name in ("before", "after"):
        page.get_by_label(f"Choose {name}", exact=True).check()
    page.get_by_role("button", name="Compare 2").click()
    visitor.sees("Compare")
    table = page.get_by_role("region", name=re.compile("^after at"))
    tokens = table.locator("tr", has_text="output tokens/s")
    expect(tokens.locator("td").nth(2)).to_have_text(re.compile(r"^\d+\.\d\d×$"))
    expect(page.locator(".plot canvas").first).to_be_visible()
    page.get_by_label("What fails a run").fill("output_tokens_per_s > 0")
    page.get_by_role("button", name="Judge").click()
    expect(page.get_by_text("1 of 1 gates failed")).to_be_visible()
    page.get_by_label("What fails a run").fill("slower")
    visitor.expected = {"422"}
    page.get_by_role("button", name="Judge").click()
    expect(page.get_by_text("These two are not compared")).to_be_visible()


def test_an_experiment_says_whether_it_pays(visitor: Visitor, seeded: dict[str, str]) -> None:
    """The verdict in words, speed against the load with bands, acceptance by draft token, and what to run."""
    page = visitor.goto(f"/runs/{seeded['does it pay']}", "does it pay")
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("So run")
    for title in ("In words", "Charts", "What to run"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    expect(page.locator("figure", has_text="Speedup").locator("canvas").first).to_be_visible()
    expect(page.locator("figure", has_text="Acceptance by draft token").locator("canvas").first).to_be_visible()


def test_a_schedule_is_made_changed_paused_and_run(visitor: Visitor, service: Served) -> None:
    """What the timetable says is told while it is written; a wrong one at its field. Help says more than its label."""
    page = visitor.goto("/schedules", "Schedules")
    expect(page.get_by_role("link", name="nightly")).to_be_visible()
    page.get_by_role("link", name="New schedule").click()
    visitor.sees("New schedule")
    expect(page.get_by_label("Highest level")).to_be_visible()
    expect(page.get_by_text("Highest level.", exact=True)).to_have_count(0)
    page.get_by_role("radio", name=re.compile("^run")).check()
    page.get_by_label("Name").fill("every morning")
    page.get_by_label("When, as cron").fill("15 6 * * *")
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    expect(page.get_by_text("At 06:15 every day")).to_be_visible()
    expect(page.get_by_role("columnheader", name="In Asia/Tokyo")).to_be_visible()
    page.get_by_label("URL").fill(service.servers[0])
    page.get_by_label("Requests", exact=False).first.fill("4")
    page.get_by_role("button", name="Make the schedule").click()
    visitor.sees("every morning")
    expect(page.get_by_role("region", name="Next times").locator("tbody tr")).to_have_count(5)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("h1 .tag")).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("h1 .tag")).to_have_count(0)
    page.get_by_role("link", name="Change").click()
    visitor.sees("Change every morning")
    visitor.expected = {"422"}
    page.get_by_label("When, as cron").fill("61 * * * *")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("When, as cron")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("When, as cron").fill("0 7 * * *")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("At 07:00 every day").first).to_be_visible()
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_text("by its schedule")).to_be_visible()
    expect(page.get_by_role("region", name="Verdict")).to_be_visible()


def test_capacities_are_shown_over_time(visitor: Visitor, seeded: dict[str, str]) -> None:
    """A row for each server with the same options, and behind it every test with a chart."""
    page = visitor.goto("/capacity", "Capacity")
    page.get_by_role("link", name="capacity", exact=True).click()
    expect(page.locator(".plot canvas").first).to_be_visible()
    expect(page.get_by_text("4 are needed")).to_be_visible()
    page.get_by_role("region", name="Tests, the latest first").get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Probes")).to_be_visible()


def test_a_baseline_is_a_line_beside_the_capacities(visitor: Visitor, service: Served, seeded: dict[str, str]) -> None:
    """Of tests that are held against one: its name and capacity at the line, and in words with the way to its run."""
    first = service.api("GET", f"/v1/runs/{seeded['capacity']}")
    made = service.api("POST", "/v1/baselines", {"name": "release 1", "run_id": first["id"]})
    again = {name: first[name] for name in ("kind", "name", "target", "options")} | {"baseline_id": made["id"]}
    service.wait(service.api("POST", "/v1/runs", again)["id"])
    page = visitor.goto("/capacity", "Capacity")
    page.get_by_role("link", name="capacity", exact=True).click()
    expect(page.get_by_role("button", name=re.compile(r"^baseline release 1: 1"))).to_be_visible()
    expect(page.get_by_text("which tests are held against")).to_contain_text("concurrency 1")
    page.get_by_role("link", name="release 1").click()
    visitor.sees("capacity")
    assert page.url.endswith(f"/runs/{first['id']}")
    service.api("DELETE", f"/v1/baselines/{made['id']}")


def test_a_run_becomes_a_baseline_and_stops_being_one(visitor: Visitor, seeded: dict[str, str]) -> None:
    """From the page of the run; a gate that is none is told at the field."""
    page = visitor.goto(f"/runs/{seeded['before']}", "before")
    page.get_by_role("link", name="Make a baseline").click()
    visitor.sees("Baselines")
    expect(page.get_by_label("Run", exact=True)).to_have_value(seeded["before"])
    page.get_by_label("Name").fill("release 1")
    page.get_by_label("Gates").fill("tpot_s.p99 is bad")
    visitor.expected = {"422"}
    page.get_by_role("button", name="Make the baseline").click()
    expect(page.get_by_label("Gates")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Gates").fill("tpot_s.p99 > 1.05x")
    page.get_by_role("button", name="Make the baseline").click()
    expect(page.get_by_role("cell", name="tpot_s.p99 > 1.05x")).to_be_visible()
    page.get_by_role("button", name="Remove the baseline release 1").click()
    page.get_by_role("button", name="Remove the baseline", exact=True).click()
    expect(page.get_by_text("There is no baseline yet.")).to_be_visible()


def test_keys_let_in_and_keep_out(chromium: Browser, keyed: Served) -> None:
    """A wrong key, a right one, a new one that is shown once; less scope shows less; what is revoked or over is out."""
    with Visitor.of(chromium, keyed.url) as visitor:
        page = visitor.goto("/schedules", "Sign in")
        visitor.expected = {"401"}
        page.get_by_label("Key").fill("lgk_0000000000000000_" + "x" * 40)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("this key is not known, or not good any more")).to_be_visible()
        page.get_by_label("Key").fill(KEY)
        page.get_by_role("button", name="Sign in").click()
        visitor.sees("Schedules")
        page.get_by_role("link", name="Keys").click()
        page.get_by_label("Name").fill("a reader")
        page.get_by_role("button", name="Make the key").click()
        reader = page.locator("code.secret").inner_text()
        expect(page.get_by_role("rowheader", name="a reader")).to_be_visible()
        page.reload()
        expect(page.get_by_role("rowheader", name="a reader")).to_be_visible()
        assert reader not in page.content()
        with Visitor.of(chromium, keyed.url) as other:
            other.expected = {"401", "403"}
            other.goto("/sign-in?next=%2Fkeys", "Sign in")
            other.page.get_by_label("Key").fill(reader)
            other.page.get_by_role("button", name="Sign in").click()
            expect(other.page.get_by_text("This key may not do that")).to_be_visible()
            expect(other.page.get_by_role("link", name="Keys")).to_have_count(0)
            other.page.get_by_role("link", name="Runs").click()
            expect(other.page.get_by_text("There is no run yet.")).to_be_visible()
            expect(other.page.get_by_role("link", name="New run")).to_have_count(0)
            page.get_by_role("button", name="Revoke the key a reader").click()
            page.get_by_role("button", name="Revoke the key", exact=True).click()
            expect(page.get_by_text("revoked", exact=True)).to_be_visible()
            other.page.get_by_role("link", name="Baselines").click()
            other.sees("Sign in")
        page.get_by_role("button", name="Sign out").click()
        visitor.sees("Sign in")
        page.go_back()
        visitor.sees("Sign in")


def test_who_made_something_is_told_by_the_name_of_the_key(chromium: Browser, keyed: Served) -> None:
    """In the bar, too. Clocks that are the reader's stand once; limits are as they were set; what is empty says so."""
    request = {"kind": "run", "target": {"url": "http://127.0.0.1:9"}, "options": {"num_requests": 1}}
    made = {"name": "nightly", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "request": request}
    keyed.api("POST", "/v1/schedules", made)
    keyed.api("POST", "/v1/keys", {"name": "nights", "scope": "run", "limits": {"concurrency": 64, "rate_rps": 50}})
    with Visitor.of(chromium, keyed.url) as visitor:
        page = visitor.goto("/schedules", "Sign in")
        page.get_by_label("Key").fill(KEY)
        page.get_by_role("button", name="Sign in").click()
        visitor.sees("Schedules")
        expect(page.get_by_text("Key of the settings")).to_be_visible()
        expect(page.get_by_role("columnheader", name="Next", exact=True)).to_be_visible()
        expect(page.get_by_role("columnheader", name="Next, its time")).to_have_count(0)
        page.get_by_role("link", name="nightly").click()
        expect(page.get_by_text("by key of the settings")).to_be_visible()
        page.get_by_role("link", name="Keys").click()
        expect(page.get_by_role("cell", name="64 in flight, 50 requests/s")).to_be_visible()
        page.get_by_role("link", name="Compare").click()
        expect(page.get_by_text("No run is completed yet that could be compared.")).to_be_visible()


def test_a_sign_in_never_leads_to_another_host(chromium: Browser, keyed: Served) -> None:
    """Whatever a link says that one should come back to."""
    with Visitor.of(chromium, keyed.url) as visitor:
        visitor.goto("/sign-in?next=%2F%2Fexample.org%2Fruns", "Sign in")
        visitor.page.get_by_label("Key").fill(KEY)
        visitor.page.get_by_role("button", name="Sign in").click()
        visitor.sees("Runs")
        assert visitor.page.url == f"{keyed.url}/runs"


def test_a_service_that_is_gone_is_told(chromium: Browser, keyed: Served) -> None:
    """With a way to try again; nothing of the page is lost."""
    with Visitor.of(chromium, keyed.url) as visitor:
        visitor.goto("/sign-in", "Sign in")
        visitor.page.get_by_label("Key").fill(KEY)
        visitor.page.get_by_role("button", name="Sign in").click()
        visitor.sees("Runs")
        keyed.stop()
        visitor.expected = {"ERR_CONNECTION_REFUSED"}
        visitor.page.get_by_role("link", name="Schedules").click()
        expect(visitor.page.get_by_role("alert")).to_contain_text("The service does not answer")
        expect(visitor.page.get_by_role("button", name="Try again")).to_be_visible()
