"""A comparison from the options of a form to its report, in this process."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from loadgen.locustio.conductor.comparison import run_comparison
from loadgen.locustio.conductor.following import Follower
from loadgen.options.locust import LocustOptions
from loadgen.options.resolve import resolve
from tests.cli.commands import ChatServer
from tests.fakes.scripted_server import plain


@pytest.fixture
def silent() -> Iterator[list[ChatServer]]:
    """Two servers that refuse every request."""
    refused = (plain(b"no", status="500 Internal Server Error"),)
    with ExitStack() as servers:
        yield [servers.enter_context(ChatServer(answer=refused)) for _ in range(2)]


@pytest.mark.slow
def test_a_comparison_in_which_nothing_completes_is_reported(silent: list[ChatServer], tmp_path: Path) -> None:
    """Its runs are there, the baseline's included, and the report says what became of them."""
    given: dict[str, Any] = {
        "arm": [f"{name}={server.url}" for name, server in zip(("plain", "eagle3"), silent, strict=True)],
        "concurrency": "1",
        "num_requests": "3",
        "warmup_requests": "0",
        "repeats": "1",
        "out": str(tmp_path),
    }

    def nobody(_event: str, **_values: Any) -> None:
        """Listens."""

    options = resolve(LocustOptions, given, environment={})
    follower = Follower(nobody, lambda _: None, out=options.out)
    ended = asyncio.run(run_comparison(options, nobody, follower))
    assert (ended["code"], ended["interrupted"], ended["failed_gates"]) == (4, False, [])
    assert "ran, and nothing completed (http_5xx 3)" in ended["text"]
    assert Path(ended["report"]).is_file()
