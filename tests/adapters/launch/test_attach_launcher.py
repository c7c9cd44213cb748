"""Servers that run already."""

import asyncio

import pytest

from loadgen.adapters.launch.attach import AttachLauncher
from loadgen.adapters.launch.waiting import Waiting
from loadgen.core.errors import TargetError
from loadgen.engine.ports import StopKind

URL, SHOWN = "http://me:secret@somewhere", "http://somewhere"


async def test_it_waits_and_leaves_the_server_alone() -> None:
    """Ready once it answers so, asked with its credentials and shown without; its end is nobody's business here."""
    asked: list[str] = []

    async def ask(url: str) -> str | None:
        asked.append(url)
        return None if len(asked) == 3 else "loads"

    launcher = AttachLauncher(URL, shown=SHOWN, waiting=Waiting(ask=ask, timeout_s=10))
    server = await launcher.start()
    assert asked == [URL] * 3
    assert (server.url, server.how, server.pid, server.log) == (SHOWN, "running at http://somewhere", None, None)
    assert launcher.exited() is None
    assert (await launcher.stop()).how == StopKind.LEFT_RUNNING


async def test_one_that_does_not_answer_is_named() -> None:
    """With what was missing when the time was over."""

    async def ask(url: str) -> str | None:
        return "/health answers 503"

    launcher = AttachLauncher(URL, shown=SHOWN, waiting=Waiting(ask=ask, timeout_s=0.1))
    with pytest.raises(TargetError, match=r"^http://somewhere: not ready after .*: /health answers 503$"):
        await launcher.start()


async def test_an_answer_from_somebody_else_does_not_count() -> None:
    """When the server has ended, whoever answers at its place is another one."""
    ended = asyncio.Event()

    async def ask(url: str) -> str | None:
        ended.set()
        return None

    assert not await Waiting(ask=ask, timeout_s=10).until_ready(URL, ended=ended)
