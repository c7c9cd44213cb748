"""A real service and a real target, as processes on free ports."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.sim.child import ChildServer, child_server

WAIT_S = 120.0
ENDED = ("completed", "failed", "cancelled", "interrupted")
_AT = re.compile(rb"the service is at (http://\S+)")


class House:
    """One service process."""

    def __init__(self, process: "subprocess.Popen[bytes]", url: str) -> None:
        self.process, self.url = process, url
        self.client = httpx2.Client(base_url=url, timeout=30.0, trust_env=False)

    def ask(self, target: str, **options: Any) -> str:
        """A run; its id."""
        body = {"kind": "run", "target": {"url": target}, "options": options}
        answer = self.client.post("/v1/runs", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def run(self, run_id: str) -> dict[str, Any]:
        """As it is now."""
        found: dict[str, Any] = self.client.get(f"/v1/runs/{run_id}").json()
        return found

    def wait(self, run_id: str, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Until the run is so, or has ended."""
        deadline_s = time.monotonic() + WAIT_S
        while True:
            found = self.run(run_id)
            if until(found) or found["state"] in ENDED:
                return found
            assert time.monotonic() < deadline_s, found
            time.sleep(0.02)

    def ended(self, run_id: str) -> dict[str, Any]:
        """Once it has ended."""
        return self.wait(run_id, lambda _: False)

    def events(self, run_id: str) -> str:
        """All that happened to a run that has ended."""
        return self.client.get(f"/v1/runs/{run_id}/events").text

    def child(self) -> int | None:
        """The process that measures, as the system knows it."""
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and b"loadgen.service.child" in (entry / "cmdline").read_bytes():
                    parent = (entry / "stat").read_bytes().rpartition(b")")[2].split()[1]
                    if int(parent) == self.process.pid:
                        return int(entry.name)
        return None

    def kill(self) -> None:
        """As a kernel that ran out of memory does."""
        self.process.kill()
        self.process.wait()
        self.client.close()


@contextmanager
def service(
    data: Path, *arguments: str, environment: dict[str, str] | None = None, under: tuple[str, ...] = ()
) -> Iterator[House]:
    """Runs one on that data folder, by a command that executes another if need be; ends it in order, unless it has
    ended."""
    command = (*under, sys.executable, "-m", "loadgen", "serve", "--port", "0", "--data-dir", str(data), *arguments)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, **(environment or {})})
    assert process.stderr is not None
    seen = b""
    while (found := _AT.search(seen)) is None:
        line = process.stderr.readline()
        seen += line
        if not line:
            process.communicate()
            raise AssertionError(seen.decode())
    log = (data.parent / f"{data.name}-service.log").open("ab")
    copying = subprocess.Popen(("cat",), stdin=process.stderr, stdout=log)
    house = House(process, found[1].decode())
    try:
        yield house
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(WAIT_S)
            finally:
                process.kill()
        copying.wait()
        process.stderr.close()
        log.close()
        house.client.close()


@contextmanager
def simulator(*arguments: str) -> Iterator[ChildServer]:
    """A target."""
    command = (sys.executable, "-m", "loadgen", "sim", "--port", "0", "--json", "--until-stdin-closes", *arguments)
    with child_server(command) as found:
        yield found


def reached(stage: str, run: dict[str, Any]) -> bool:
    """Whether a run is in that state; in the midst of it where it measures."""
    if stage == "running":
        return bool(run["state"] == "running" and run["progress"] and run["progress"]["ended"] > 2)
    return bool(run["state"] == stage)


def check_kept(data: Path, house: House, run_id: str, before: dict[str, Any]) -> None:
    """One folder of results at most, whose records can be read and are at least those that were told of."""
    run = house.run(run_id)
    folders = list((data / "runs" / run_id / "out").glob("*"))
    assert len(folders) <= 1
    told = (before["progress"] or {}).get("ended", 0)
    if folders and (folders[0] / "records.jsonl.zst").exists():
        assert len(list(RunFolder.open(folders[0]).records())) >= told
    else:
        assert told == 0
    assert house.events(run_id).count('"state": "running"') <= 1
    assert run["ended_at"] is not None
