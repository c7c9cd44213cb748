"""What the containers run, as processes of this machine, wired as docker-compose.yml wires them.

There is no container here: addresses and paths of containers become those of this machine, and everything else is as it
is shipped. Where a test is in no network of its own, names that Docker would resolve become targets in the
configuration.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from tests.deploy.compose import ROOT, all_services, image_of, services, words_of

pytestmark = pytest.mark.slow

START_S, END_S = 60.0, 20.0
STOP = signal.Signals[image_of("simulator")["STOPSIGNAL"]]
LOADGEN = str(Path(sys.executable).with_name("loadgen"))
NO_NAMESPACES = ("Operation not permitted", "Function not implemented", "Invalid argument", "No space left on device")
"""Forbidden, unknown to the kernel, or none allowed."""
SEEN_UP = "max_over_time(up[5m])"  # a busy machine may miss one scrape
SAME_ON_A_GPU = "gpu5-eagle3"
"""A server that is to be known by what it is, not by its GPU; the simulated one of that method stands in."""


def simulated() -> list[str]:
    """The simulated servers."""
    return [name for name in services("sim") if name.startswith("sim-")]


@dataclass(frozen=True)
class Stack:
    """The running services: ports by name, processes by name."""

    ports: dict[str, int]
    processes: "dict[str, subprocess.Popen[bytes]]"

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What Prometheus answers."""
        parameters = urlencode({"query": expression})
        with urlopen(f"http://127.0.0.1:{self.ports['prometheus']}/api/v1/query?{parameters}", timeout=10) as answer:
            return json.load(answer)["data"]["result"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The `sim` profile but for Grafana, which is in no package registry, after some load."""
    folder = tmp_path_factory.mktemp("stack")
    ports = dict(zip([*simulated(), "prometheus"], free_ports(len(simulated()) + 1), strict=True))
    with ExitStack() as running:
        processes = {}
        for name in simulated():
            line = [*words_of(image_of("simulator")["ENTRYPOINT"]), *all_services()[name]["command"]]
            line = [LOADGEN if word == "loadgen" else word for word in line]
            line = in_place_of(line, {"0.0.0.0": "127.0.0.1", "8000": str(ports[name])})
            processes[name] = running.enter_context(process(line))
        places = {"/etc/prometheus": str(folder), "path=/prometheus": f"path={folder}/data"}
        line = [prometheus(), *(placed(word, places) for word in all_services()["prometheus"]["command"])]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(resolved(ports)), encoding="utf-8")
        line.append(f"--web.listen-address=127.0.0.1:{ports['prometheus']}")
        processes["prometheus"] = running.enter_context(process(line))
        it = Stack(ports, processes)
        until(lambda: answers(ports["prometheus"], "/-/ready"))
        until(lambda: len(it.query(f"{SEEN_UP} == 1")) == len(simulated()) + 2)
        yield it


def resolved(ports: dict[str, int]) -> dict[str, Any]:
    """The shipped configuration, names resolved as Docker does for services that run, scraped more often."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}
    config["rule_files"] = [str(ROOT / "deploy/prometheus" / pattern) for pattern in config["rule_files"]]
    known = {**ports, SAME_ON_A_GPU: ports["sim-eagle3"]}
    for job in config["scrape_configs"]:
        for static in job.get("static_configs", ()):
            static["targets"] = [target.replace("9090", str(ports["prometheus"])) for target in static["targets"]]
        for discovery in job.pop("dns_sd_configs", ()):
            job["static_configs"] = [
                {"targets": [f"127.0.0.1:{known[name]}"], "labels": {"__meta_dns_name": name}}
                for name in discovery["names"]
                if name in known
            ]
    return config


def test_every_server_is_a_target_by_its_name(stack: Stack) -> None:
    """Up, and labelled by the service; on one of several GPUs by what it serves there."""
    found = [each["metric"] for each in stack.query(f"{SEEN_UP} == 1")]
    up = {each["instance"]: each["server"] for each in found if each["job"] == "vllm"}
    assert up == {name: name for name in simulated()} | {SAME_ON_A_GPU: "vllm-eagle3"}


def test_the_health_check_of_the_image(stack: Stack) -> None:
    """It passes while the server serves, and not when there is none."""
    check = words_of(image_of("simulator")["HEALTHCHECK"].partition("CMD ")[2])
    line = [sys.executable if word == "python" else word for word in check]
    for port, passes in ((stack.ports["sim-ngram"], True), (free_ports(1)[0], False)):
        asked = [word.replace(":8000/", f":{port}/") for word in line]
        done = subprocess.run(asked, capture_output=True, timeout=30)
        assert (done.returncode == 0) is passes, done.stderr


def test_a_run_from_the_container_of_the_command_line(stack: Stack, tmp_path: Path) -> None:
    """It loads servers and leaves its files in the volume; the shipped rules make of it what the dashboards ask for."""
    loaded = {"sim-baseline", "sim-eagle3"}
    (volume,) = all_services()["loadgen"]["volumes"]
    assert volume["target"] == image_of("loadgen")["WORKDIR"]  # here tmp_path
    for name in loaded:
        url = f"http://127.0.0.1:{stack.ports[name]}"
        load = ("--concurrency", "4", "--num-requests", "24", "--output-tokens", "64", "--ignore-eos", "--no-progress")
        line = [LOADGEN, "run", "--url", url, *load, "--json", "--allow-invalid"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=240, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["requests"]["completed"] == 24
    assert len(list((tmp_path / "runs").iterdir())) == len(loaded)
    for name, wanted in {"requests_running": loaded, "acceptance_length": loaded - {"sim-baseline"}}.items():
        expression = f"max_over_time(loadgen_server:{name}[5m]) >= 1"
        until(lambda e=expression, w=wanted: {each["metric"]["server"] for each in stack.query(e)} >= w)


def test_everything_ends_when_it_is_asked_to(stack: Stack) -> None:
    """By the signal that `docker compose stop` sends, in order. The last test on the stack: nothing runs afterwards."""
    for name, child in stack.processes.items():
        child.send_signal(signal.SIGTERM if name == "prometheus" else STOP)
    assert {name: child.wait(END_S) for name, child in stack.processes.items()} == dict.fromkeys(stack.processes, 0)


def test_servers_are_found_by_name(tmp_path: Path) -> None:
    """With configuration and command as they are shipped, in a network of its own where names are answered as Docker
    does: who runs is a target, and who does not is none, not a broken one."""
    alone = namespaces("--mount", "--net", "--pid", "--fork", "--kill-child")
    names = {"sim-baseline": "127.0.1.1", "sim-eagle3": "127.0.1.2"}
    commands = [
        in_place_of([LOADGEN, *all_services()[name]["command"]], {"0.0.0.0": address})
        for name, address in names.items()
    ]
    places = {"/etc/prometheus": str(ROOT / "deploy" / "prometheus"), "path=/prometheus": f"path={tmp_path}"}
    commands.append([prometheus(), *(placed(word, places) for word in all_services()["prometheus"]["command"])])
    given = json.dumps({"names": names, "commands": commands})
    line = [*alone, sys.executable, Path(__file__).with_name("machine_of_its_own.py"), tmp_path, given]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(done.stdout), key=lambda each: str(each["instance"])) == [
        {"health": "up", "instance": "127.0.0.1:9090", "job": "prometheus"},
        *({"health": "up", "instance": name, "job": "vllm", "server": name} for name in names),
    ]


@pytest.mark.parametrize("serves", [False, True], ids=["at its start", "while it serves"])
def test_as_process_1_it_ends_when_it_is_asked_to(serves: bool) -> None:
    """In a namespace of its own, where a signal that nobody listens for does nothing: with no `init` before it."""
    alone = namespaces("--pid", "--fork")
    port = free_ports(1)[0]
    with process([*alone, LOADGEN, "sim", "--port", str(port)]) as outside:
        tasks = Path(f"/proc/{outside.pid}/task/{outside.pid}/children")
        until(tasks.read_text)
        inside = int(tasks.read_text())
        libraries = Path(f"/proc/{inside}/maps")  # the interpreter is there, the command is not yet
        until(lambda: answers(port, "/health") if serves else "pydantic_core" in libraries.read_text())
        os.kill(inside, STOP)
        try:
            assert outside.wait(END_S) in (0, *([] if serves else [128 + STOP]))
        finally:
            with suppress(ProcessLookupError):
                os.kill(inside, signal.SIGKILL)


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
def process(line: Sequence[str]) -> "Iterator[subprocess.Popen[bytes]]":
    """A service, ended by force should it still run on the way out."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(line, stdin=quiet, stdout=quiet, stderr=quiet) as child:
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
