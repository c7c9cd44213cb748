"""Debian's real Prometheus over one target, a simulated server, and a command that is watched."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.needs import program

PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
_START_S = 30.0


def page(url: str, accept: str = "") -> tuple[str, bytes]:
    """Content type and body."""
    with urlopen(Request(url, headers={"Accept": accept}), timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read()


def lint(text: bytes) -> str:
    """What `promtool check metrics` objects to in a page."""
    checked = subprocess.run([program("promtool"), "check", "metrics"], input=text, capture_output=True, timeout=60)
    return (checked.stdout + checked.stderr).decode()


class Prometheus:
    """A running one."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str, **more: str) -> list[dict[str, Any]]:
        """The result of an instant query."""
        return self._ask("query", query=expression, **more)["data"]["result"]  # type: ignore[no-any-return]

    def value(self, expression: str, **more: str) -> float:
        """The only value of an instant query."""
        (result,) = self.query(expression, **more)
        return float(result["value"][1])

    def exemplars(self, name: str) -> list[dict[str, Any]]:
        """What is kept of the last hour."""
        now = time.time()
        found = self._ask("query_exemplars", query=name, start=str(now - 3600), end=str(now + 60))["data"]
        return [exemplar for series in found for exemplar in series["exemplars"]]

    def labels(self, series: str, label: str, **more: str) -> list[str]:
        """The values of a label, as Grafana asks for them."""
        return self._ask(f"label/{label}/values", **{"match[]": series}, **more)["data"]  # type: ignore[no-any-return]

    def wait_for(self, expression: str) -> None:
        """Returns once the expression has a result."""
        end_s = time.monotonic() + _START_S
        while not self.query(expression):
            assert time.monotonic() < end_s, f"nothing for {expression}"
            time.sleep(0.2)

    def _ask(self, what: str, **parameters: str) -> dict[str, Any]:
        with urlopen(f"{self.url}/api/v1/{what}?{urlencode(parameters)}", timeout=10) as answer:
            return json.load(answer)  # type: ignore[no-any-return]


@contextmanager
def prometheus(
    folder: Path,
    *,
    target: str | None = None,
    histograms: Literal["native", "classic"] = "classic",
    found_in: Path | None = None,
    rules: Sequence[Path] = (),
    interval_s: int = 1,
) -> Iterator[Prometheus]:
    """One that scrapes the target, and stores histograms of that kind.

    `found_in` is a file that names further targets as they come. Rules are evaluated as often as is scraped.
    """
    folder.mkdir(exist_ok=True)
    every = f"{interval_s}s"
    scraped: list[dict[str, Any]] = []
    if target is not None:
        scraped.append({"job_name": "loadgen", "static_configs": [{"targets": [target]}]})
    if found_in is not None:
        scraped.append({"job_name": "found", "file_sd_configs": [{"files": [str(found_in)]}]})
    config = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [str(path.resolve()) for path in rules],
        "scrape_configs": scraped,
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    features = ["exemplar-storage", *(["native-histograms"] if histograms == "native" else [])]
    line = [
        program("prometheus"),
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        "--storage.tsdb.retention.time=100y",
        "--web.listen-address=127.0.0.1:0",
        f"--enable-feature={','.join(features)}",
    ]
    log = folder / "log"
    with log.open("w") as written, subprocess.Popen(line, stdout=written, stderr=written) as process:
        try:
            yield Prometheus(f"http://127.0.0.1:{_port_of(process, log)}")
        finally:
            process.terminate()


def _port_of(process: "subprocess.Popen[bytes]", log: Path) -> str:
    end_s = time.monotonic() + _START_S
    while True:
        said = log.read_text(encoding="utf-8")
        ready = "ready to receive web requests" in said
        listening = re.search(r'msg="Listening on" address=127\.0\.0\.1:(\d+)', said)
        if ready and listening is not None:
            return listening[1]
        assert process.poll() is None, said
        assert time.monotonic() < end_s, said
        time.sleep(0.05)


@contextmanager
def simulator(*arguments: str) -> Iterator[str]:
    """The address of a simulated server."""
    line = [sys.executable, "-m", "loadgen", "sim", "--port", "0", "--json", "--until-stdin-closes", *arguments]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.stdin.close()
            process.wait(timeout=20)


@contextmanager
def watched(command: str, *arguments: str) -> "Iterator[tuple[str, subprocess.Popen[str]]]":
    """A command under way that serves metrics on a free port, and where they are."""
    line = [sys.executable, "-m", "loadgen", *command.split(), *arguments, "--prometheus-port", "0", "--no-progress"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = process.stderr.readline()
            found = re.search(r"metrics for Prometheus: (\S+)", said)
            assert found is not None, said + process.stderr.read()
            yield found[1], process
        finally:
            process.terminate()
            process.communicate(timeout=20)
