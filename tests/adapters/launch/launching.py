"""Launchers of a scripted server, and what is left of it."""

import asyncio
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadgen.adapters.launch.process import ProcessLauncher, ServerCommand
from loadgen.adapters.launch.waiting import Progress, Waiting

SERVER = Path(__file__).with_name("server.py")
_GONE_S = 10.0


async def ask(url: str) -> str | None:
    """Ready when it answers with 200."""
    host, port = url.removeprefix("http://").split(":")
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
    except OSError:
        return "refuses connections"
    writer.write(b"GET /health HTTP/1.1\r\n\r\n")
    status = (await reader.readline()).split()[1].decode()
    writer.close()
    return None if status == "200" else f"answers {status}"


def launcher(place: Path, *manners: str, **how: Any) -> ProcessLauncher:
    """A launcher of the scripted server with these manners; see `launcher_of`."""
    return launcher_of(place, (sys.executable, "-S", str(SERVER), "{port}", *manners), **how)


def launcher_of(
    place: Path,
    arguments: tuple[str, ...],
    *,
    timeout_s: float = 20.0,
    grace_s: float = 5.0,
    progress: Progress = lambda _waited_s, _last_line: None,
    **command: Any,
) -> ProcessLauncher:
    """A launcher of any command, which logs and notes in this place."""
    return ProcessLauncher(
        ServerCommand(arguments=arguments, **command),
        log=place / "log",
        kept=place / "kept.json",
        waiting=Waiting(ask=ask, timeout_s=timeout_s, progress=progress),
        grace_s=grace_s,
    )


def log_of(folder: Path) -> str:
    """All that the server wrote."""
    return (folder / "log").read_text()


def members(folder: Path) -> list[int]:
    """The processes that a server with a family told of; waits until it has."""
    deadline_s = time.monotonic() + _GONE_S
    while len(found := re.findall(r"member (\d+)", log_of(folder))) < 2:
        assert time.monotonic() < deadline_s, log_of(folder)
        time.sleep(0.01)
    return [int(pid) for pid in found]


async def until(happened: Callable[[], bool]) -> None:
    """Waits for something that the event loop brings about."""
    async with asyncio.timeout(_GONE_S):
        while not happened():  # noqa: ASYNC110 - seen from outside, there is no event
            await asyncio.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def gone(*pids: int) -> bool:
    """Whether all of them end soon."""
    deadline_s = time.monotonic() + _GONE_S
    while any(map(runs, pids)) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return not any(map(runs, pids))
