"""What the containers run, as processes of this machine, wired as docker-compose.yml wires them.

Most tests share one stack, in their order; the last of them ends it. Where a test is in no network of its own, names
that Docker would resolve become addresses of this machine.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from loadgen.adapters.store.series_folder import SweepFolder
from loadgen.service.jobs.states import ENDED
from tests.deploy.compose import ROOT, all_services, image_of
from tests.deploy.processes import answers, free_ports, in_place_of, placed, process, until
from tests.deploy.stack import LOADGEN, OURS, SAME_ON_A_GPU, SEEN_UP, Stack, healthy, running, simulated
from tests.needs import namespaces, program

pytestmark = pytest.mark.slow

END_S = 60.0
STOP = signal.Signals[image_of("simulator")["STOPSIGNAL"]]
SCHEDULES = ROOT / "deploy" / "compose" / "schedules"
FEW = {
    "experiment": {
        "workload": {"synthetic": {"input_tokens": 16, "output_tokens": 16}, "ignore_eos": True},
        "load": {"concurrency": [1, 4]},
        "level": {"num_requests": 8},
        "cooldown": 0,
    },
    "capacity": {"start": 1, "most": 2, "num_requests": 20, "output_tokens": "8", "further_repeats": 0, "settle": 0},
    "run": {"duration": "3s"},
}
"""Options that make a schedule's run a short one."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The `sim` profile but for Grafana."""
    with running(tmp_path_factory.mktemp("stack")) as it:
        yield it


def test_every_server_is_a_target_by_its_name(stack: Stack) -> None:
    """Up, and labelled by the service; on one of several GPUs by what it serves there."""
    found = [each["metric"] for each in stack.query(f"{SEEN_UP} == 1")]
    up = {each["instance"]: each["server"] for each in found if each["job"] == "vllm"}
    assert up == {name: name for name in simulated()} | {SAME_ON_A_GPU: "vllm-eagle3"}


def test_who_measures_is_a_target(stack: Stack) -> None:
    """The service, which wants the key that was made for it, and Locust's master."""
    found = [each["metric"]["job"] for each in stack.query(f"{SEEN_UP} == 1")]
    assert found.count("loadgen-service") == found.count("loadgen") == 1
    assert stack.query("loadgen_service_build_info")
    assert not answers(stack.ports["service"], "/metrics")


@pytest.mark.parametrize("name", ["sim-ngram", "service", "locust-master"])
def test_the_health_check_of_an_image(stack: Stack, name: str) -> None:
    """It passes while the server serves, and not when there is none."""
    assert healthy(stack, name)
    assert not healthy(stack, name, free_ports(1)[0])


def test_a_key_is_made_once(stack: Stack) -> None:
    """Containers that do their work and end find it done when they are started again."""
    before = {file: file.read_bytes() for file in (stack.folder / "keys").rglob("*") if file.is_file()}
    assert {file.name for file in before} == {"admin_key", "key", "login"}
    stack.once("keys")
    stack.once("metrics-key")
    assert {file: file.read_bytes() for file in before} == before
    assert [key["scope"] for key in stack.asked("service", "/v1/keys")["items"]] == ["read", "admin"]


def test_the_first_load_is_seen(stack: Stack) -> None:
    """Each schedule runs at once, against the servers of Compose, and Prometheus sees it; started again it asks for
    nothing more."""
    (stack.folder / "schedules").mkdir()
    for file in SCHEDULES.glob("*.json"):
        servers = {f"http://{name}:8000": f"http://127.0.0.1:{stack.ports[name]}" for name in simulated()}
        body = json.loads(placed(file.read_text(encoding="utf-8"), servers))
        body["request"]["options"] |= FEW[body["request"]["kind"]]
        (stack.folder / "schedules" / file.name).write_text(json.dumps(body), encoding="utf-8")
    stack.once("first-load")
    until(lambda: stack.query("loadgen_requests_total{job='loadgen-service'} > 0"))
    stack.once("first-load")
    until(lambda: {run["state"] for run in runs(stack)} <= set(ENDED))
    assert {run["kind"]: run["state"] for run in runs(stack)} == dict.fromkeys(FEW, "completed")
    until(lambda: stack.query("loadgen_capacity_verdict{job='loadgen-service'}"))


def runs(stack: Stack) -> list[dict[str, Any]]:
    """What the service was asked for."""
    found: list[dict[str, Any]] = stack.asked("service", "/v1/runs")["items"]
    return found


def test_a_ladder_from_the_page_of_locust(stack: Stack) -> None:
    """Its worker sends it to the server that the form proposes; the result is in the volume, and in Prometheus."""
    form = {"concurrency": "1,2", "num_requests": "8", "output_tokens": "16"}
    until(lambda: stack.asked("locust-master", "/loadgen/state")["workers"])
    assert stack.asked("locust-master", "/swarm", form)["success"] is True
    until(lambda: stack.asked("locust-master", "/loadgen/state")["ended"])
    ended = stack.asked("locust-master", "/loadgen/state")["ended"]
    assert ended["error"] is None
    sweep = stack.folder / "locust-master" / ended["path"]
    summaries = [json.loads((level.path / "summary.json").read_text("utf-8")) for level in SweepFolder(sweep).runs()]
    assert [summary["requests"]["completed"] for summary in summaries] == [8, 8]
    until(lambda: stack.query("loadgen_requests_total{job='loadgen'} > 0"))
    assert not answers(stack.ports["locust-master"], "/")  # without the login


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
    for name in ("locust-worker", *(name for name in stack.processes if name not in OURS), *OURS[:2]):
        stack.processes[name].send_signal(stop_signal(name))
    assert {name: child.wait(END_S) for name, child in stack.processes.items()} == dict.fromkeys(stack.processes, 0)


def stop_signal(name: str) -> signal.Signals:
    """Of a container: what its image says, for Prometheus' Docker's own."""
    build = all_services()[name].get("build")
    return signal.SIGTERM if build is None else signal.Signals[image_of(build["target"])["STOPSIGNAL"]]


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
    commands.append(
        [program("prometheus"), *(placed(word, places) for word in all_services()["prometheus"]["command"])]
    )
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
