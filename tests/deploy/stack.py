"""The `sim` profile as processes of this machine, wired as docker-compose.yml wires its containers.

There is no container here: addresses and paths of containers become those of this machine, and everything else is as it
is shipped. Names that Docker would resolve become targets in Prometheus' configuration. Grafana is missing, which is in
no package registry.
"""

import json
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import yaml

from tests.deploy.compose import ROOT, all_services, image_of, services, words_of
from tests.deploy.processes import answers, free_ports, placed, process, until
from tests.needs import program

LOADGEN = str(Path(sys.executable).with_name("loadgen"))
SEEN_UP = "max_over_time(up[5m])"  # a busy machine may miss one scrape
SAME_ON_A_GPU = "gpu5-eagle3"
"""A server that is to be known by what it is, not by its GPU; the simulated one of that method stands in."""
OURS = ("service", "locust-master", "locust-worker")
_PAGES = (*OURS[:2], "locust-metrics", "locust-port", "prometheus")
_CONTAINER_ONLY = re.compile(r"0\.0\.0\.0|:80[08]0\b|(^|=)/(keys|compose|data)\b")
"""What no line may have that is to run here."""


def simulated() -> list[str]:
    """The simulated servers."""
    return [name for name in services("sim") if name.startswith("sim-")]


@dataclass(frozen=True)
class Stack:
    """The running services: ports by name, processes by name; `folder` has their volumes."""

    folder: Path
    ports: dict[str, int]
    processes: "dict[str, subprocess.Popen[bytes]]"

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What Prometheus answers."""
        return self.asked("prometheus", f"/api/v1/query?{urlencode({'query': expression})}")["data"]["result"]  # type: ignore[no-any-return]

    def asked(self, name: str, path: str, form: dict[str, str] | None = None) -> Any:
        """The JSON of a page: of the service with its first key, of Locust with its login."""
        data = None if form is None else urlencode(form).encode()
        request = Request(f"http://127.0.0.1:{self.ports[name]}{path}", data=data, headers=self._authority(name))
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def once(self, name: str) -> None:
        """Runs a container that does its work and ends."""
        done = subprocess.run(self.line(name), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    def line(self, name: str) -> list[str]:
        """The command of a container for this machine."""
        service, target = all_services()[name], all_services()[name]["build"]["target"]
        entrypoint = service.get("entrypoint") or words_of(image_of(target)["ENTRYPOINT"])
        words = [placed(word, self._places()) for word in [*entrypoint, *service["command"]]]
        programs = {"loadgen": LOADGEN, "python": sys.executable}
        line = [programs.get(word, word) for word in words] + self._listening().get(name, [])
        left = [word for word in line if _CONTAINER_ONLY.search(word) and not word.startswith("--allow-host=")]
        assert not left, left
        return line

    def _authority(self, name: str) -> dict[str, str]:
        if name == "service":
            key = (self.folder / "keys/service/admin_key").read_text(encoding="utf-8").strip()
            return {"Authorization": f"Bearer {key}"}
        if name == "locust-master":
            login = (self.folder / "keys/locust/login").read_bytes().strip()
            return {"Authorization": f"Basic {b64encode(login).decode()}"}
        return {}

    def _places(self) -> dict[str, str]:
        """What stands in containers for what stands here; the folder with schedules is that of the test."""
        servers = {f"http://{name}:8000": f"http://127.0.0.1:{self.ports[name]}" for name in simulated()}
        return {
            "/compose/schedules": str(self.folder / "schedules"),
            "/compose/": f"{ROOT}/deploy/compose/",
            "/keys/": f"{self.folder}/keys/",
            "--data-dir=/data": f"--data-dir={self.folder}/service",
            "0.0.0.0:9464": f"127.0.0.1:{self.ports['locust-metrics']}",
            "0.0.0.0": "127.0.0.1",
            "http://service:8080": f"http://127.0.0.1:{self.ports['service']}",
            "--master-host=locust-master": "--master-host=127.0.0.1",
            **servers,
        }

    def _listening(self) -> dict[str, list[str]]:
        """Ports that a container has to itself."""
        ports = self.ports
        worker = [f"--master-port={ports['locust-port']}"]
        found = {name: ["--port", str(ports[name])] for name in simulated()}
        found |= {"service": [f"--port={ports['service']}"], "locust-worker": worker}
        return found | {"locust-master": [f"--port={ports['locust-master']}", *worker]}


@contextmanager
def running(folder: Path) -> Iterator[Stack]:
    """All of it, each as soon as those that it waits for are there."""
    names = [*simulated(), *_PAGES]
    it = Stack(folder, dict(zip(names, free_ports(len(names)), strict=True)), {})
    for place in ("keys/service", "keys/metrics", "keys/locust", "service", "locust-master", "locust-worker"):
        (folder / place).mkdir(parents=True)
    with ExitStack() as running:

        def start(name: str, line: list[str]) -> None:
            inside = folder / name if name in OURS else folder
            it.processes[name] = running.enter_context(process(line, inside))

        for name in simulated():
            start(name, it.line(name))
        it.once("keys")
        for name in OURS[:2]:
            start(name, it.line(name))
        (folder / "prometheus.yml").write_text(yaml.safe_dump(_resolved(it)), encoding="utf-8")
        start("prometheus", _prometheus(it))
        until(lambda: answers(it.ports["service"], "/readyz"))
        it.once("metrics-key")
        until(lambda: healthy(it, "locust-master"))
        start("locust-worker", it.line("locust-worker"))
        until(lambda: answers(it.ports["prometheus"], "/-/ready"))
        until(lambda: len(it.query(f"{SEEN_UP} == 1")) == len(simulated()) + 4)
        yield it


def healthy(stack: Stack, name: str, port: int | None = None) -> bool:
    """What the health check of a container's image says, of that port instead of the container's own."""
    target = all_services()[name]["build"]["target"]
    check = words_of(image_of(target)["HEALTHCHECK"].partition("CMD ")[2])
    own = {"simulator": "8000", "service": "8080", "locust": "8089"}[target]
    line = [placed(word, {own: str(port or stack.ports[name])}) for word in check]
    assert line != check
    line = [sys.executable if word == "python" else word for word in line]
    return subprocess.run(line, capture_output=True, timeout=60).returncode == 0


def _prometheus(stack: Stack) -> list[str]:
    places = {"/etc/prometheus": str(stack.folder), "path=/prometheus": f"path={stack.folder}/data"}
    line = [program("prometheus"), *(placed(word, places) for word in all_services()["prometheus"]["command"])]
    return [*line, f"--web.listen-address=127.0.0.1:{stack.ports['prometheus']}"]


def _resolved(stack: Stack) -> dict[str, Any]:
    """The shipped configuration, names resolved as Docker does for services that run, scraped more often."""
    text = (ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8")
    config: dict[str, Any] = yaml.safe_load(placed(text, {"/keys/": f"{stack.folder}/keys/"}))
    config["global"] = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}
    config["rule_files"] = [str(ROOT / "deploy/prometheus" / pattern) for pattern in config["rule_files"]]
    ports = stack.ports
    known = {**ports, SAME_ON_A_GPU: ports["sim-eagle3"], "locust-master": ports["locust-metrics"]}
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
