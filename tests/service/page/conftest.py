"""A service with something in it, and somebody who visits its page."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.service.page.seeing import Visitor
from tests.service.page.serving import KEY, Served, served, two_servers
from tests.service.telling import hook

TINY = {"input_tokens": 16, "output_tokens": 12, "seed": 1}
HOSTILE = '<img src=x onerror="document.title=1"><b>"\u202e'


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that needs no key, with two servers to measure, and with results of every kind."""
    with ExitStack() as stack:
        servers = stack.enter_context(two_servers())
        flags = ("--parallel-runs", "4", "--webhook-host", "loopback", "--allow-env", "HOOK_SECRET")
        found = stack.enter_context(served(tmp_path_factory.mktemp("data"), *flags))
        found.servers = servers
        found.wait(*_seeded(found).values())
        yield found


@pytest.fixture(scope="session")
def seeded(service: Served) -> dict[str, str]:
    """The runs that are there, by name."""
    return {run["name"]: run["id"] for run in service.api("GET", "/v1/runs?limit=200")["items"]}


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[Served]:
    """One that asks for a key."""
    with served(tmp_path / "keyed", key=KEY) as found:
        yield found


@pytest.fixture
def visitor(chromium: Browser, service: Served) -> Iterator[Visitor]:
    """Somebody who opens the page, and in the end has met no error and no other host."""
    with Visitor.of(chromium, service.url) as found:
        yield found


def _seeded(service: Served) -> dict[str, str]:
    plain, eagle = service.servers
    experiment: dict[str, Any] = {
        "name": "does it pay",
        "workload": {"synthetic": {"input_tokens": 16, "output_tokens": 12}, "ignore_eos": True},
        "load": {"concurrency": [2]},
        "level": {"num_requests": 24, "warmup_requests": 2},
        "baseline": "plain",
        "arms": {"plain": {"url": plain}, "eagle3": {"url": eagle, "method": "eagle3", "draft_tokens": 3}},
        "repeats": 1,
        "cooldown": 0,
    }
    service.api("POST", "/v1/webhooks", hook("http://127.0.0.1:9/hook", "run.failed"))
    found = {
        "before": service.ask("run", "before", {**TINY, "concurrency": 2, "num_requests": 30}, plain),
        "after": service.ask("run", "after", {**TINY, "concurrency": 2, "num_requests": 30}, eagle),
        "capacity": service.ask(
            "capacity",
            "capacity",
            {**TINY, "slo": "e2el=20s", "slo_attainment": 0.5, "most": 1, "num_requests": 10, "warmup_requests": 1},
            plain,
        ),
        "ladder": service.ask("sweep", "ladder", {**TINY, "concurrency": [1, 2], "num_requests": 10}, eagle),
        "does it pay": service.ask("experiment", "does it pay", experiment),
        HOSTILE: service.ask("run", HOSTILE, {"num_requests": 1}, "http://127.0.0.1:9"),
    }
    service.api(
        "POST",
        "/v1/schedules",
        {
            "name": "nightly",
            "cron": "30 2 * * 1-5",
            "time_zone": "America/New_York",
            "request": {"kind": "run", "target": {"url": plain}, "options": {**TINY, "num_requests": 5}},
        },
    )
    return found
