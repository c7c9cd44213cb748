"""A service with weeks of results: measured now, against simulated servers, and then dated back."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, create_engine, insert, select, update

from loadgen.service.store.tables import baselines, deliveries, firings, history, runs, schedules
from loadgen.sim.child import child_server
from tests.service.fakes.receiver import Receiver
from tests.service.page.serving import KEY, Served, served
from tests.service.telling import SECRET

ZONE = "Europe/Berlin"
_STEPS = "45ms:0.6ms:0:2ms"
_70B = ("--gpus", "4", "--target", "llama-3.1-70b", "--step-time", _STEPS, "--workload", "chat", "--seed", "7")
_ARMS: dict[str, tuple[str, ...]] = {
    "llama-70b": (),
    "llama-70b-eagle3": ("--method", "eagle3", "--draft-tokens", "3"),
    "llama-70b-ngram": ("--method", "ngram", "--draft-tokens", "10"),
}
_8B, _8B_PORT = "llama-8b", 18404
_NOBODY = {"staging": 9}
_PORTS = dict(zip(_ARMS, range(18401, 18404), strict=True))
_FAST, _SLOW = "60ms:2ms:0:0", "72ms:2.8ms:0:0"
"""Of the server whose capacity is searched for. Steps of all servers are slow, so that a busy machine keeps up: fixed,
a token, context, overhead."""
_BEFORE_RELEASE, _UNCHANGED, _SLOWER = 2, 5, 1
_SECRET_ENV = "LOADGEN_WEBHOOK_SECRET"
_FLAGS = ("--parallel-runs", "2", "--allow-env", _SECRET_ENV, "--webhook-host", "loopback")
_WORK = {"input_tokens": 200, "output_tokens": 40, "ignore_eos": True, "seed": 1}
_OBJECTIVES = "ttft=500ms,tpot=60ms"
_NIGHTLY: dict[str, Any] = {
    "kind": "capacity",
    "name": "nightly capacity",
    "target": {"profile": _8B},
    "options": {
        "slo": "tpot=100ms",
        "slo_attainment": 0.9,
        "start": 4,
        "most": 64,
        "further_repeats": 0,
        "num_requests": 30,
        "warmup_requests": 4,
        "settle": "0s",
        "input_tokens": 8,
        "output_tokens": 12,
    },
}


@contextmanager
def filled(folder: Path) -> Iterator[Served]:
    """A service that has run for a while, and asks for a key."""
    with ExitStack() as stack:
        for name, options in _ARMS.items():
            stack.enter_context(_simulator(_PORTS[name], *_70B, *options))
        receiver = Receiver()
        stack.callback(receiver.close)
        ports = {**_PORTS, _8B: _8B_PORT, **_NOBODY}
        targets = [f"--target={name}=http://127.0.0.1:{port}" for name, port in ports.items()]
        variables = {_SECRET_ENV: SECRET}

        def service() -> AbstractContextManager[Served]:
            return served(folder, *_FLAGS, *targets, key=KEY, variables=variables)

        with service() as first:
            _administer(first, receiver.url)
            others = _measured(first)
            schedule = _nights(first)
            _wait(first, *others)
            first.stop()
        _dated_back(folder, schedule)
        yield stack.enter_context(service())


def live(service: Served) -> str:
    """Starts a sweep whose levels take a quarter of a minute; its id."""
    options = {**_WORK, "concurrency": [4, 8, 16], "duration": "15s", "slo": _OBJECTIVES}
    return _ask(service, "sweep", "longer ladder, EAGLE-3", "llama-70b-eagle3", options)


@contextmanager
def _simulator(port: int, *options: str) -> Iterator[None]:
    line = (sys.executable, "-m", "loadgen", "sim", "--port", str(port), "--json", "--until-stdin-closes", *options)
    with child_server(line):
        yield


def _ask(service: Served, kind: str, name: str, target: str, options: dict[str, Any]) -> str:
    body = {"kind": kind, "name": name, "target": {"profile": target}, "options": options}
    run_id: str = service.api("POST", "/v1/runs", body)["id"]
    return run_id


def _wait(service: Served, *run_ids: str) -> None:
    for run_id in run_ids:
        while service.api("GET", f"/v1/runs/{run_id}")["ended_at"] is None:
            time.sleep(1)


def _administer(service: Served, receiver: str) -> None:
    for name, scope, more in (
        ("dashboards", "read", {}),
        ("continuous integration", "run", {"limits": {"concurrency": 64, "rate_rps": 50, "run_time_s": 3600}}),
        ("load test week", "run", {"expires_in_s": 7 * 86_400}),
    ):
        made = service.api("POST", "/v1/keys", {"name": name, "scope": scope, **more})
    service.api("DELETE", f"/v1/keys/{made['id']}")
    for name, path, kinds in (
        ("chat", "", ["run.failed", "run.interrupted", "capacity.regression"]),
        ("release board", "/releases", ["run.completed", "run.failed", "capacity.regression", "capacity.improvement"]),
    ):
        hook = {"name": name, "url": receiver + path, "secret_env": _SECRET_ENV, "kinds": kinds}
        service.api("POST", "/v1/webhooks", hook)
    weekly = {
        "name": "weekly ladder",
        "cron": "0 6 * * 1",
        "time_zone": ZONE,
        "request": {
            "kind": "sweep",
            "target": {"profile": "llama-70b"},
            "options": {**_WORK, "concurrency": [1, 4, 16]},
        },
    }
    paused = service.api("POST", "/v1/schedules", weekly)
    service.api("POST", f"/v1/schedules/{paused['id']}/pause")


def _measured(service: Served) -> list[str]:
    """Asks for an experiment and what else is compared; their ids."""
    levels = {1: 12, 4: 24, 16: 64}
    arms = {name.removeprefix("llama-70b-"): (name, options) for name, options in _ARMS.items()}
    experiment = {
        "name": "does speculation pay",
        "workload": {"synthetic": {"input_tokens": 200, "output_tokens": 40}, "ignore_eos": True},
        "load": {"concurrency": list(levels)},
        "level": {"num_requests_by_level": levels},
        "slo": _OBJECTIVES,
        "repeats": 1,
        "noise": "none",
        "cooldown": 0,
        "baseline": "llama-70b",
        "arms": {
            arm: {"url": f"http://127.0.0.1:{_PORTS[name]}", **_drafting(options)}
            for arm, (name, options) in arms.items()
        },
    }
    ladder = {**_WORK, "concurrency": [4, 8, 16], "num_requests": 40, "slo": _OBJECTIVES}
    body = {"kind": "experiment", "name": experiment["name"], "options": experiment}
    return [
        _ask(service, "sweep", "ladder, plain", "llama-70b", ladder),
        _ask(service, "sweep", "ladder, EAGLE-3", "llama-70b-eagle3", ladder),
        _ask(service, "run", "smoke test", "staging", {"num_requests": 4}),
        service.api("POST", "/v1/runs", body)["id"],
    ]


def _drafting(options: Sequence[str]) -> dict[str, Any]:
    return {"method": options[1], "draft_tokens": int(options[3])} if options else {}


def _nights(service: Served) -> str:
    """Searches of a schedule, which get a baseline, and later a slower server; the schedule's id."""
    body = {"name": "nightly capacity", "cron": "30 2 * * *", "time_zone": ZONE, "request": _NIGHTLY}
    made: str = service.api("POST", "/v1/schedules", body)["id"]

    def search(times: int) -> str:
        for _ in range(times):
            run_id: str = service.api("POST", f"/v1/schedules/{made}/run")["id"]
            _wait(service, run_id)
        return run_id

    with _simulator(_8B_PORT, "--target", "llama-3.1-8b", "--step-time", _FAST):
        held = search(_BEFORE_RELEASE)
        baseline = service.api("POST", "/v1/baselines", {"name": "release 0.33", "run_id": held})["id"]
        service.api("PUT", f"/v1/schedules/{made}", {**body, "request": {**_NIGHTLY, "baseline_id": baseline}})
        search(_UNCHANGED)
    with _simulator(_8B_PORT, "--target", "llama-3.1-8b", "--step-time", _SLOW):
        search(_SLOWER)
    return made


def _dated_back(folder: Path, schedule: str) -> None:
    """Gives the searches of a schedule the nights at which they would have been due, in a database that nobody uses.

    What they found is theirs; when is not.
    """
    with create_engine(f"sqlite:///{folder / 'loadgen.db'}").begin() as connection:
        nights = connection.execute(
            select(runs.c.id, runs.c.created_unix_ms).where(runs.c.schedule_id == schedule).order_by(runs.c.number)
        ).all()
        today = datetime.now(ZoneInfo(ZONE)).replace(hour=2, minute=30, second=0, microsecond=0)
        for ago, (run_id, asked_ms) in enumerate(reversed(nights)):
            due_ms = int((today - timedelta(days=ago)).timestamp() * 1000)
            _move(connection, run_id, due_ms - asked_ms)
            connection.execute(
                insert(firings).values(
                    schedule_id=schedule, fire_at_unix_ms=due_ms, outcome="run", run_id=run_id, decided_unix_ms=due_ms
                )
            )
        last_ms = int(today.timestamp() * 1000)
        connection.execute(update(schedules).where(schedules.c.id == schedule).values(last_unix_ms=last_ms))
        in_order = connection.execute(select(runs.c.id).order_by(runs.c.created_unix_ms)).scalars().all()
        for sign in (-1, 1):
            for number, run_id in enumerate(in_order, 1):
                connection.execute(update(runs).where(runs.c.id == run_id).values(number=sign * number))


def _move(connection: Connection, run_id: str, by_ms: int) -> None:
    for table in (runs, history, deliveries, baselines):
        instants = {each.name: each + by_ms for each in table.c if each.name.endswith("_unix_ms")}
        whose = table.c.id if table is runs else table.c.run_id
        connection.execute(update(table).where(whose == run_id).values(instants))
