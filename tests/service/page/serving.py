"""`loadgen serve` and simulated servers as processes, with what a test needs to ask of them."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.sim.child import child_server

KEY = "lgk_" + "0123456789abcdef_" + "k" * 43
KEY_ENV = "LOADGEN_TEST_ADMIN_KEY"
_PATIENCE_S = 240.0
_START_S = 60.0
_END_S = 30.0
_WORKS = ("queued", "starting", "running", "finishing")
_SIM = ("loadgen", "sim", "--port", "0", "--json", "--until-stdin-closes", "--speed", "20")


@dataclass(slots=True, kw_only=True)
class Served:
    """A running service."""

    url: str
    process: "subprocess.Popen[str]"
    key: str | None = None
    servers: list[str] = field(default_factory=list)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """What the API answers; an error of it is one here."""
        headers = {"Content-Type": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from error
        return json.loads(text) if text else None

    def ask(self, kind: str, name: str, options: dict[str, Any], url: str | None = None) -> str:
        """Queues a run and returns its id."""
        body: dict[str, Any] = {"kind": kind, "name": name, "options": options}
        if kind != "experiment":
            body["target"] = {"url": url or self.servers[0]}
        run_id: str = self.api("POST", "/v1/runs", body)["id"]
        return run_id

    def wait(self, *run_ids: str) -> None:
        """Until all of them have ended."""
        deadline_s = time.monotonic() + _PATIENCE_S
        for run_id in run_ids:
            while (run := self.api("GET", f"/v1/runs/{run_id}"))["state"] in _WORKS:
                assert time.monotonic() < deadline_s, run
                time.sleep(0.2)

    def stop(self) -> None:
        """Ends it in order."""
        self.process.terminate()
        self.process.wait(_END_S)

    def kill(self) -> None:
        """As a kernel that ran out of memory does."""
        self.process.kill()
        self.process.wait(_END_S)


@contextmanager
def served(
    folder: Path, *flags: str, port: int = 0, key: str | None = None, variables: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """A service on that port of this machine, or a free one; with a key it is the one that it asks for."""
    environment = {**os.environ, "PYTHONWARNINGS": "default", **(variables or {})}
    keyed = () if key is None else ("--admin-key-env", KEY_ENV)
    if key is not None:
        environment[KEY_ENV] = key
    where = ("--port", str(port), "--data-dir", str(folder))
    command = (sys.executable, "-m", "loadgen", "serve", *where, *keyed, *flags)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment)
    with process:
        try:
            yield Served(url=_address(process), process=process, key=key)
        finally:
            process.terminate()
            try:
                process.wait(_END_S)
            finally:
                process.kill()


def _address(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "the service is at " in line:
            url = line.rpartition("the service is at ")[2].strip()
            _drain(process)
            _until_ready(url)
            return url
    raise AssertionError("".join(said))


def _drain(process: "subprocess.Popen[str]") -> None:
    """What it logs is read, so that it never waits for somebody to do so."""

    def read() -> None:
        assert process.stderr is not None
        for _ in process.stderr:
            pass

    threading.Thread(target=read, daemon=True).start()


def _until_ready(url: str) -> None:
    deadline_s = time.monotonic() + _START_S
    while True:
        try:
            urllib.request.urlopen(url + "/readyz", timeout=5).close()
        except OSError:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        else:
            return


@contextmanager
def two_servers() -> Iterator[list[str]]:
    """A simulated server without drafts and one with EAGLE-3."""
    drafts = ("--method", "eagle3", "--draft-tokens", "3", "--acceptance-length", "2.6")
    with ExitStack() as stack:
        commands = ((sys.executable, "-m", *_SIM), (sys.executable, "-m", *_SIM, *drafts))
        yield [stack.enter_context(child_server(command)).url for command in commands]
