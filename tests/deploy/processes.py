"""Processes that stand in for containers, and what they need of this machine."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NoReturn
from urllib.request import urlopen

import pytest

START_S = 120.0
NO_NAMESPACES = ("Operation not permitted", "Function not implemented", "Invalid argument", "No space left on device")
"""Forbidden, unknown to the kernel, or none allowed."""


def prometheus() -> str:
    """The real one."""
    found = shutil.which("prometheus")
    if found is None:
        absent("there is no prometheus: install Debian's package")
    return found


def namespaces(*flags: str) -> list[str]:
    """What runs a command in namespaces of its own, for whoever is not root in one in which he is.

    Where the system has none to give, that is certain by what it says; whatever else goes wrong is a failure.
    """
    if shutil.which("unshare") is None:
        absent("there is no unshare, as on anything but Linux")
    line = ["unshare", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), *flags]
    tried = subprocess.run(
        [*line, "true"], capture_output=True, text=True, timeout=30, env={**os.environ, "LC_ALL": "C"}
    )
    if tried.returncode:
        assert any(said in tried.stderr for said in NO_NAMESPACES), tried.stderr
        absent(f"no namespaces here: {tried.stderr.strip()}")
    return line


def absent(what: str) -> NoReturn:
    """This machine cannot show it. CI has to be able to."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def placed(word: str, places: dict[str, str]) -> str:
    """An option with paths of the container replaced by paths of this machine."""
    for there, here in places.items():
        word = word.replace(there, here)
    return word


def in_place_of(line: Sequence[str], words: dict[str, str]) -> list[str]:
    """The line with some of its words replaced, each of which has to be there."""
    assert words.keys() <= set(line)
    return [words.get(word, word) for word in line]


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody has."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def process(line: Sequence[str], folder: Path | None = None) -> "Iterator[subprocess.Popen[bytes]]":
    """A service that works in that folder, ended by force should it still run on the way out."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(line, stdin=quiet, stdout=quiet, stderr=quiet, cwd=folder) as child:
        try:
            yield child
        finally:
            child.kill()


def answers(port: int, path: str) -> bool:
    """Whether it answers with 200."""
    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
        return bool(answer.status == 200)
    return False


def until(holds: Callable[[], object]) -> None:
    """Waits until something holds, but not for ever."""
    end = time.monotonic() + START_S
    while not holds():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.2)
