"""Everything that dashboards and rules are about, going on at once on this machine, seen by Debian's real Prometheus.

Loads run on simulated servers of three engines; a sweep, an experiment, a search and runs that went wrong are over,
their pages still there; two weeks of earlier searches are loaded from an export, copied to each day, which is the one
thing here that did not happen.
"""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from tests.adapters.prometheus.scraped import Prometheus, page, prometheus, simulator, watched
from tests.dashboards.written import RULE_FILES
from tests.needs import program

DRAFTS = ("--method", "eagle3", "--draft-tokens", "3", "--seed", "1")
SMALL = ("--input-tokens", "16", "--output-tokens", "16", "--ignore-eos", "--seed", "1")
FOR_EVER = ("--duration", "1h", *SMALL)
STAY = ("--prometheus-linger", "1h")
SEARCH = (
    *("--slo", "ttft=200ms", "--slo-attainment", "0.5", "--start", "2", "--max", "16", "--precision", "0.5"),
    *("--num-requests", "20", "--settle", "0", "--warmup-requests", "8", "--allow-invalid", *SMALL),
)
SEARCH_IN_VAIN = ("--slo", "e2el=1ms", *SEARCH[2:])
DAYS = 14
DAY_S = 86_400
OVER_S = 240.0
EXPERIMENT = """
name: two arms
workload: {synthetic: {input_tokens: 16, output_tokens: 16}, ignore_eos: true}
load: {concurrency: [2, 4]}
level: {num_requests: 30}
repeats: 1
noise: none
cooldown: 0s
slo: {ttft: 2s, tpot: 1s}
arms:
  baseline: {sim: {speed: 10}}
  eagle3: {sim: {speed: 10, method: eagle3, draft-tokens: 3, acceptance-length: 2.5}, method: eagle3, draft_tokens: 3}
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """What was stored, by kind of histogram, and an instant at which all of it was going on."""

    stores: Mapping[str, Prometheus]
    at_s: float


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """Sets everything up, which takes about a minute, and keeps it until the block is left."""
    with ExitStack() as running:
        targets = Targets(folder / "targets.json")
        history = backfilled(running, folder)
        rules = often(folder)
        stores = {
            kind: running.enter_context(
                prometheus(
                    made(folder / kind, history), histograms=kind, found_in=targets.path, rules=rules, interval_s=2
                )
            )
            for kind in ("native", "classic")
        }
        stage = Stage(running, folder, targets)
        fast, faulty = stage.loads()
        stage.finished(fast, faulty)
        stage.ends_badly(fast, faulty, seen_by=stores["classic"])
        for store in stores.values():
            for expression in UNTIL:
                until(lambda store=store, expression=expression: store.query(expression))
        yield Scene(stores, time.time())


UNTIL = (
    'ALERTS{alertname="LoadgenCapacityRegression", alertstate="firing"}',
    'rate(loadgen_request_failures_total{kind="connect"}[1m]) > 0',
    "last_over_time(loadgen_requests_in_flight[5m]) > 0 unless on (job, instance) up == 1",
    'up{job="vllm"} == 0',
    *(f'loadgen_server:acceptance_length{{engine="{engine}"}}' for engine in ("vllm", "sglang", "llamacpp")),
    *(f'loadgen_level_under_way{{server="{engine}"}}' for engine in ("vllm", "sglang", "llamacpp")),
)
"""What comes about last."""


class Targets:
    """The file that tells Prometheus what to scrape."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._jobs: dict[str, list[str]] = {}
        self._write()

    def add(self, job: str, url: str) -> None:
        """One more."""
        self._jobs.setdefault(job, []).append(urlsplit(url).netloc)
        self._write()

    def _write(self) -> None:
        groups = [{"targets": found, "labels": {"job": job}} for job, found in self._jobs.items()]
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(groups), encoding="utf-8")
        new.rename(self.path)


class Stage:
    """Puts loads and servers on, each a target of its own."""

    def __init__(self, running: ExitStack, folder: Path, targets: Targets) -> None:
        self._running, self._folder, self._targets = running, folder, targets

    def loads(self) -> tuple[str, "Server"]:
        """Loads that go on, one for each engine and one on a server with faults; the first server and the last."""
        fast = self._server("vllm", *DRAFTS, "--acceptance-length", "2.5").url
        self._watch("run", "--url", fast, "--request-rate", "20", *FOR_EVER)
        for engine in ("sglang", "llamacpp"):
            url = self._server(engine, "--dialect", engine, *DRAFTS, "--acceptance-length", "2.5").url
            self._watch("run", "--url", url, "--concurrency", "2", *FOR_EVER)
        faulty = self._server("vllm", "--fault", "503@20%", "--step-time", "2ms")
        self._watch("run", "--url", faulty.url, "--request-rate", "10", *FOR_EVER)
        return fast, faulty

    def finished(self, fast: str, faulty: "Server") -> None:
        """What is over and still told of: a sweep, an experiment, a search, runs that missed or never got anything."""
        file = self._folder / "experiment.yaml"
        file.write_text(EXPERIMENT, encoding="utf-8")
        objectives = ("--slo", "ttft=2s,tpot=1s")
        ladder = ("--concurrency", "2,8", "--num-requests", "30", "--warmup-requests", "2")
        slow = self._server(
            "vllm", *DRAFTS, "--acceptance-length", "2", "--step-time", "20ms", "--max-num-seqs", "2"
        ).url
        refusing = self._server("vllm", "--fault", "503").url
        few = ("--num-requests", "20", "--request-rate", "20", *SMALL)
        urls = [
            self._watch("sweep", "--url", fast, *ladder, *objectives, *SMALL, *STAY),
            self._watch("run", "--url", faulty.url, *few, *objectives, *STAY),
            self._watch("run", "--url", refusing, *few, "--allow-invalid", *STAY),
            self._watch("experiment run", str(file), *STAY),
            self._watch("capacity", "--url", slow, *SEARCH, *STAY),
            self._watch("capacity", "--url", fast, *SEARCH_IN_VAIN, *STAY),
        ]
        for url, last in zip(urls, (2, 1, 1, 4, None, None), strict=True):
            wanted = "loadgen_capacity_verdict{" if last is None else "loadgen_level_measurement_valid{"
            until(lambda url=url, wanted=wanted, last=last: page(url)[1].decode().count(wanted) >= (last or 1))

    def ends_badly(self, fast: str, faulty: "Server", *, seen_by: Prometheus) -> None:
        """A load test is killed, and a server is gone."""
        url, process = self._started("run", "--url", fast, "--concurrency", "2", *FOR_EVER)
        until(lambda: seen_by.query(f'loadgen_requests_in_flight{{instance="{urlsplit(url).netloc}"}} > 0'))
        process.send_signal(signal.SIGKILL)
        faulty.end()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._targets.add("vllm", f"http://127.0.0.1:{free.getsockname()[1]}")

    def _server(self, job: str, *arguments: str) -> "Server":
        stack = self._running.enter_context(ExitStack())
        url = stack.enter_context(simulator(*arguments))
        self._targets.add(job, url)
        return Server(url, stack)

    def _watch(self, command: str, *arguments: str) -> str:
        return self._started(command, *arguments)[0]

    def _started(self, command: str, *arguments: str) -> "tuple[str, subprocess.Popen[str]]":
        out = ("--out", str(self._folder / "runs"))
        url, process = self._running.enter_context(watched(command, *arguments, *out))
        self._running.callback(process.kill)  # nobody waits for what it would still write
        self._targets.add("loadgen", url)
        return url, process


@dataclass(frozen=True, slots=True)
class Server:
    """A simulated one."""

    url: str
    _stack: ExitStack

    def end(self) -> None:
        """It is gone."""
        self._stack.close()


def often(folder: Path) -> list[Path]:
    """Rules as they are shipped, but all of them evaluated as often as is scraped."""
    copies = []
    for path in RULE_FILES:
        written = yaml.safe_load(path.read_text(encoding="utf-8"))
        for group in written["groups"]:
            group.pop("interval", None)
        copies.append(folder / path.name)
        copies[-1].write_text(yaml.safe_dump(written), encoding="utf-8")
    return copies


def made(folder: Path, history: Path) -> Path:
    """A folder for a Prometheus with the history in its store."""
    folder.mkdir()
    backfill = ["tsdb", "create-blocks-from", "openmetrics", "--quiet", str(history), str(folder / "data")]
    subprocess.run([program("promtool"), *backfill], check=True, capture_output=True, timeout=120)
    return folder


def backfilled(running: ExitStack, folder: Path) -> Path:
    """A search of a larger capacity than the live one's, exported, its results copied to each of the days before."""
    url = running.enter_context(
        simulator(*DRAFTS, "--acceptance-length", "3", "--step-time", "20ms", "--max-num-seqs", "16")
    )
    out = folder / "searches"
    line = [sys.executable, "-m", "loadgen"]
    search = [*line, "capacity", "--url", url, *SEARCH, "--out", str(out), "--no-progress"]
    done = subprocess.run(search, capture_output=True, text=True, timeout=OVER_S)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = out.iterdir()
    exported = subprocess.run(
        [*line, "export", str(found), "--format", "openmetrics"], capture_output=True, text=True, check=True, timeout=60
    )
    history = folder / "history.om"
    history.write_text("\n".join(spread(exported.stdout.splitlines())) + "\n", encoding="utf-8")
    return history


def spread(lines: list[str]) -> Iterator[str]:
    """The results of levels and of the search at the same time of each day before."""
    for line in lines:
        if line.startswith("# EOF"):
            yield line
        elif re.match(r"(# \w+ )?loadgen_(level|capacity|measurement)_", line):
            if line.startswith("#"):
                yield line
                continue
            series, value, stamp = line.rsplit(" ", 2)
            is_time = series.startswith("loadgen_capacity_ended_timestamp_seconds")
            for earlier_s in range(DAYS * DAY_S, 0, -DAY_S):
                yield f"{series} {float(value) - earlier_s * is_time} {float(stamp) - earlier_s:.3f}"


def until(holds: Callable[[], object]) -> None:
    """Waits until something holds, but not for ever."""
    end_s = time.monotonic() + OVER_S
    while not holds():
        assert time.monotonic() < end_s, "it does not come about"
        time.sleep(0.2)
