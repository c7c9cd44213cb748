"""Load tests for the dashboards to show: real ones, against the simulated server, in a real Prometheus."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.adapters.prometheus.scraped import Prometheus, prometheus, simulator, watched
from tools.preview.history import Test, blocks
from tools.preview.source import Source, Span

_RULES = sorted((Path(__file__).parents[2] / "deploy" / "prometheus" / "rules").glob("*.yml"))
_SERVER = ("--gpu", "h100", "--gpus", "4", "--target", "llama-3.1-70b", "--workload", "chat", "--seed", "7")
_FAST, _SLOW = ("60ms:2ms:0:0", "72ms:2ms:0:0")
"""Step times of servers whose capacity few requests find, on a busy machine too: fixed, a token, context, overhead."""
_ARMS: dict[str, tuple[str, ...]] = {
    "baseline": (),
    "eagle3": ("--method", "eagle3", "--draft-tokens", "3"),
    "ngram": ("--method", "ngram", "--draft-tokens", "10"),
}
_OBJECTIVES = "ttft=500ms,tpot=20ms"
_REQUESTS_BY_LEVEL = {1: 24, 4: 72, 16: 224}
_TESTS, _FIRST_SLOW, _AT_ONCE = 6, 5, 12
_SCRAPE_S = 2
_DAY_S = 86_400


@contextmanager
def live(folder: Path) -> Iterator[Source]:
    """A sweep over request rates, with a server of little memory that refuses or breaks off now and then."""
    with simulator(*_SERVER, *_ARMS["eagle3"], "--fault", "503@2%,reset=5@2%", "--kv-blocks", "300") as url:
        load = ("--request-rate", "1,3,6", "--duration", "45s", "--output-tokens", "60-180")
        arguments = ("sweep", "--url", url, *load, "--slo", _OBJECTIVES, "--allow-invalid")
        with _scraped(folder, arguments, {"eagle3": url}) as source:
            yield source


@contextmanager
def speculation(folder: Path) -> Iterator[Source]:
    """An experiment: a baseline and two ways of drafting at the same levels."""
    with ExitStack() as stack:
        urls = {name: stack.enter_context(simulator(*_SERVER, *options)) for name, options in _ARMS.items()}
        experiment = {
            "name": "speculation",
            "workload": {"synthetic": {"input_tokens": 200, "output_tokens": 120}, "ignore_eos": True},
            "load": {"concurrency": list(_REQUESTS_BY_LEVEL)},
            "level": {"num_requests_by_level": _REQUESTS_BY_LEVEL},
            "slo": _OBJECTIVES,
            "repeats": 1,
            "noise": "none",
            "cooldown": 0,
            "arms": {name: {"url": url, **_drafting(_ARMS[name])} for name, url in urls.items()},
        }
        file = folder / "experiment.yaml"
        file.write_text(json.dumps(experiment), encoding="utf-8")
        with _scraped(folder, ("experiment run", str(file)), urls) as source:
            yield source


@contextmanager
def capacity(folder: Path) -> Iterator[Source]:
    """Searches for a capacity, made now, whose times are then spread over four weeks.

    Each has a server of its own, whose steps are so slow that several searches leave a machine idle; the last ones met
    slower servers.
    """
    ends = [time.time() - 28 * _DAY_S * (_TESTS - place - 0.5) / _TESTS for place in range(_TESTS)]
    whole = [(place, arm) for place in range(_TESTS) for arm in ("baseline", "eagle3")]

    def test(place: int, arm: str) -> Test:
        out = folder / f"{arm}-{place}"
        _search(out, (*_ARMS[arm], "--step-time", _SLOW if place >= _FIRST_SLOW else _FAST, "--workload", "chat"))
        until_s = ends[place + 1] if place + 1 < _TESTS else time.time()
        return Test(folder=next(out.iterdir()), end_s=ends[place], until_s=until_s)

    with ThreadPoolExecutor(_AT_ONCE) as searches:
        tests = list(searches.map(test, *zip(*whole, strict=True)))
    store = folder / "store"
    blocks(tests, store / "data", folder)
    with prometheus(store, rules=_RULES) as running:
        now_s = time.time()
        span = Span(begin_s=now_s - 28 * _DAY_S, end_s=now_s, scrape_interval_s=_SCRAPE_S)
        yield Source(running.url, span)


def _search(out: Path, server: Sequence[str]) -> None:
    with simulator(*server) as url:
        load = ("--start", "4", "--max", "64", "--slo-attainment", "0.9", "--precision", "0.2", "--settle", "0s")
        line = [sys.executable, "-m", "loadgen", "capacity", "--url", url, *load, "--slo", "tpot=90ms"]
        tokens = ("--output-tokens", "12", "--input-tokens", "8", "--out", str(out), "--quiet")
        ended = subprocess.run([*line, *tokens], timeout=300)
    # A machine that is busy may spoil a search: that is a verdict like any other, and shown as one.
    assert ended.returncode in (0, 1, 3), ended


def _drafting(options: Sequence[str]) -> dict[str, str | int]:
    return {"method": options[1], "draft_tokens": int(options[3])} if options else {}


@contextmanager
def _scraped(folder: Path, command: Sequence[str], servers: Mapping[str, str]) -> Iterator[Source]:
    """Runs a command to its end while it and the servers are scraped."""
    name, *arguments = command
    stay = ("--out", str(folder / "runs"), "--prometheus-linger", "600s")
    with watched(name, *arguments, *stay) as (url, process):
        begin_s = time.time()
        others = folder / "servers.json"
        found = [
            {"targets": [urlsplit(server).netloc], "labels": {"job": "vllm", "instance": instance}}
            for instance, server in servers.items()
        ]
        others.write_text(json.dumps(found), encoding="utf-8")
        with prometheus(
            folder / "store",
            target=urlsplit(url).netloc,
            found_in=others,
            rules=_RULES,
            interval_s=_SCRAPE_S,
        ) as running:
            _until_over(process)
            _two_scrapes(running)
            yield Source(running.url, Span(begin_s=begin_s, end_s=time.time(), scrape_interval_s=_SCRAPE_S))


def _until_over(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("metrics stay"):
            return
    raise SystemExit(f"the load test failed:\n{''.join(said)}")


def _two_scrapes(running: Prometheus) -> None:
    """So that the last state, and what rules make of it, are there."""
    running.wait_for("loadgen_measurement_valid")
    time.sleep(3 * _SCRAPE_S)


SCENES = {"live": live, "speculation": speculation, "capacity": capacity}
"""By the name of the dashboard that shows it."""
