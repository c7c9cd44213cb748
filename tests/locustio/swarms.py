"""`loadgen locust` as a user starts it: a process of its own, and its page."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

START_S, LADDER_S = 60.0, 120.0


def command(*arguments: object) -> list[str]:
    """The command line."""
    return [sys.executable, "-m", "loadgen", "locust", *map(str, arguments)]


class Swarm:
    """A running one with a page at `url`."""

    def __init__(self, process: "subprocess.Popen[str]", url: str) -> None:
        self.process, self.url = process, url

    def get(self, path: str) -> bytes:
        """What stands there."""
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read()  # type: ignore[no-any-return]

    def post(self, path: str, **form: str) -> dict[str, Any]:
        """Its answer, which is JSON."""
        with urllib.request.urlopen(self.url + path, data=urlencode(form).encode(), timeout=30) as answer:
            return json.loads(answer.read())  # type: ignore[no-any-return]

    @property
    def state(self) -> dict[str, Any]:
        """What the LLM page shows."""
        return json.loads(self.get("loadgen/state"))  # type: ignore[no-any-return]

    def until(self, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The state once it is so."""
        end_s = time.monotonic() + LADDER_S
        while time.monotonic() < end_s:
            state = self.state
            if reached(state):
                return state
            time.sleep(0.2)
        raise AssertionError(f"not reached: {state}")


@contextmanager
def swarm(*arguments: object, folder: Path | None = None) -> Iterator[Swarm]:
    """Starts one in that folder, on a free port, and interrupts it on the way out."""
    line = command("--port", 0, *arguments)
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stderr is not None
            said = []
            for text in process.stderr:
                said.append(text)
                if found := re.search(r"Locust's page: (http://\S+)", text):
                    yield Swarm(process, found[1])
                    break
            else:
                raise AssertionError("".join(said))
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=START_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def descendants_of(process: int, module: str) -> list[int]:
    """Its children that run that module."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and module in _read(entry / "cmdline"):
            parent = re.search(r"^PPid:\t(\d+)$", _read(entry / "status"), re.MULTILINE)
            if parent is not None and int(parent[1]) == process:
                found.append(int(entry.name))
    return sorted(found)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:  # it has ended meanwhile
        return ""
