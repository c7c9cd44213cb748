"""Processes that stand in for containers."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

START_S = 120.0


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
