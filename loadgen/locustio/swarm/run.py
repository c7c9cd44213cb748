"""Locust from our options: the page and the ladders that it starts, or one ladder without a page."""

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gevent
import locust
from gevent import subprocess
from gevent.event import Event
from locust.env import Environment
from locust.log import setup_logging
from locust.runners import LocalRunner, MasterRunner
from locust.stats import stats_history

from loadgen.core.errors import ConfigError, ExitCode, LoadgenError
from loadgen.locustio.form import fields_of, options_from, shown_url
from loadgen.locustio.swarm.conducting import Conductor
from loadgen.locustio.swarm.master import Workers
from loadgen.locustio.swarm.parser import parsed_options
from loadgen.locustio.swarm.serving import check_port, served, web_address
from loadgen.locustio.swarm.state import LadderState
from loadgen.locustio.swarm.tables import add_counts
from loadgen.locustio.swarm.user import LLM, Ladder
from loadgen.locustio.swarm.working import end_workers, start_workers, work
from loadgen.options.fields import parse_listen
from loadgen.options.locust import LocustOptions

_LOOK_S = 0.1
_NO_ADDRESS = ("127.0.0.1", 0)
_WORKERS_S = 60.0


def run(options: LocustOptions) -> int:
    """Runs until the ladder is over, or the page is closed by a signal; the exit code is that of `loadgen sweep`.

    Raises LoadgenError for what cannot be started.
    """
    setup_logging("WARNING" if options.quiet else "INFO")
    return work(options) if options.worker else _Session(options).run()


class _Session:
    """One master, or one process by itself, with what it conducts."""

    def __init__(self, options: LocustOptions) -> None:
        self._options = options
        self._state = LadderState()
        self._children: list[subprocess.Popen] = []
        self._scratch = TemporaryDirectory(prefix="loadgen-locust-")
        self._conductor = Conductor(self._heard, metrics=_metrics_address(options.prometheus_port))
        self._asked_to_end, self._over = Event(), Event()
        self._environment = Environment(
            user_classes=[LLM],
            shape_class=Ladder(self._state, lambda: len(self._engaged) or 1),
            locustfile="loadgen",
            host=shown_url(options),
            parsed_options=parsed_options(fields_of(options)),
            events=locust.events,
        )
        self._engaged: list[str] = []
        self._workers: Workers | None = None
        self._runner: LocalRunner | MasterRunner = self._runner_of()
        locust.events.test_stopping.add_listener(self._stop_ladder)

    def run(self) -> int:
        """See `run`."""
        for number in (signal.SIGINT, signal.SIGTERM):
            gevent.signal_handler(number, self._interrupt)
        try:
            self._conductor.start()
            gevent.spawn(stats_history, self._runner)
            return self._headless() if self._options.headless else self._with_page()
        finally:
            self._runner.quit()
            self._conductor.close()
            end_workers(self._children)
            self._scratch.cleanup()

    def _runner_of(self) -> LocalRunner | MasterRunner:
        options = self._options
        if not options.distributed:
            return self._environment.create_local_runner()
        check_port(options.master_bind_host, options.master_port, flag="--master-port")
        master = self._environment.create_master_runner(options.master_bind_host, options.master_port)
        records = Path(self._scratch.name)
        self._workers = Workers(master, self._conductor, records=records)
        self._children = self._workers.children = start_workers(options, port=master.server.port, records=records)
        return master

    def _headless(self) -> int:
        self._await_workers()
        if self._asked_to_end.is_set():
            return int(ExitCode.INTERRUPTED)
        wrong = self._start({})
        if wrong is not None:
            raise ConfigError(wrong)
        self._runner.start_shape()
        self._over.wait()
        ended = self._state.ended or {}
        if not self._options.quiet:
            print(ended.get("document" if self._options.json_output else "text") or "", end="")  # noqa: T201
        for line in (ended.get("error"), *(f"gate failed: {gate}" for gate in ended.get("failed_gates", ()))):
            if line:
                _say(line)
        if not self._options.quiet and ended.get("path"):
            _say(f"saved in {ended['path']}")
        return int(ended.get("code", ExitCode.INVALID_MEASUREMENT))

    def _await_workers(self) -> None:
        """Returns when they are there, or somebody asks to end. Raises ConfigError when they do not come."""
        with gevent.Timeout(_WORKERS_S, False):
            while self._missing_workers() is not None and not self._asked_to_end.is_set():
                gevent.sleep(_LOOK_S)
        missing = self._missing_workers()
        if missing is not None and not self._asked_to_end.is_set():
            raise ConfigError(missing)

    def _missing_workers(self) -> str | None:
        """What is missing until a ladder can begin, None for nothing."""
        if self._workers is None:
            return None
        there, expected = len(self._workers.usable()), self._options.workers_expected
        return (
            None if there >= expected else f"workers of this version that are ready: expected {expected}, got {there}"
        )

    def _with_page(self) -> int:
        web = served(
            self._environment,
            self._options,
            self._state,
            workers=lambda: [] if self._workers is None else self._workers.facts(),
            metrics_url=lambda: self._conductor.metrics_url,
            start=self._start,
            insist=self._conductor.stop,
        )
        _say(f"Locust's page: {web_address(web)}")
        self._asked_to_end.wait()
        interrupted = self._state.busy
        if interrupted:
            self._over.wait()
        web.stop()
        return int(ExitCode.INTERRUPTED if interrupted else ExitCode.DONE)

    def _start(self, form: Mapping[str, str]) -> str | None:
        """Begins a ladder; what is wrong with the form, where something is."""
        if self._state.busy:
            return "a ladder is under way; stop it first, and wait until it has ended"
        if (missing := self._missing_workers()) is not None:
            return missing
        try:
            options = options_from(form, self._options)
        except LoadgenError as fault:
            return str(fault)
        self._over.clear()
        self._state.start()  # before anything is waited for, so that nobody else begins meanwhile
        self._engage()
        try:
            self._conductor.ladder(options.given(), None if self._workers is None else self._engaged)
        except LoadgenError as fault:
            self._heard({"event": "ended", "code": int(fault.exit_code), "interrupted": False, "error": str(fault)})
            return str(fault)
        return None

    def _engage(self) -> None:
        if self._workers is not None:
            self._engaged = self._workers.usable()
            self._workers.engage(self._engaged)

    def _heard(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "to_worker":
            assert self._workers is not None
            self._workers.pass_on(event)
            return
        if event["event"] == "progress" and self._state.level is not None:
            add_counts(self._runner.stats, self._state.level["title"], event["counts"])
        self._state.take(event)
        if event["event"] == "ended":
            if self._workers is not None:
                self._workers.disband()
            self._environment.host = shown_url(self._options)
            self._over.set()

    def _stop_ladder(self, **_: object) -> None:
        if self._state.busy and self._state.phase != "stopping":
            self._state.stopping()
            self._conductor.stop()

    def _interrupt(self) -> None:
        if self._state.phase == "stopping":
            self._conductor.stop()
        self._stop_ladder()
        self._asked_to_end.set()


def _metrics_address(given: str | None) -> tuple[str, int]:
    """Where the conductor serves metrics: as asked, else where Locust's page can get them."""
    if given is None:
        return _NO_ADDRESS
    host, port = parse_listen(given)
    check_port(host, port, flag="--prometheus-port")
    return host, port


def _say(line: str) -> None:
    print(f"loadgen: {line}", file=sys.stderr, flush=True)  # noqa: T201
