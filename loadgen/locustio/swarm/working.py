"""A worker's process from its beginning to its end, and those that a master starts on its own machine."""

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import gevent
import locust
from gevent import subprocess
from locust.env import Environment

from loadgen.core.errors import ExitCode, TargetError
from loadgen.locustio.swarm.messages import RECORDS_VARIABLE
from loadgen.locustio.swarm.parser import parsed_options
from loadgen.locustio.swarm.user import LLM
from loadgen.locustio.swarm.worker import Worker
from loadgen.options.locust import LocustOptions

_MODULE = "loadgen.locustio.swarm"
_ENDING_S = 15.0
_LOOPBACK, _ANY_ADDRESS = "127.0.0.1", ("*", "0.0.0.0", "::")  # noqa: S104 (this is where it is recognised)


def work(options: LocustOptions) -> int:
    """Is a worker until its master is through, or gone, or a signal comes.

    Raises TargetError for a master that cannot be reached.
    """
    environment = Environment(user_classes=[LLM], parsed_options=parsed_options(()), events=locust.events)
    try:
        runner = environment.create_worker_runner(options.master_host, options.master_port)
    except OSError:
        raise TargetError(f"no master answers at {options.master_host}:{options.master_port}") from None
    worker = Worker(runner)
    for number in (signal.SIGINT, signal.SIGTERM):
        gevent.signal_handler(number, runner.quit)
    runner.greenlet.join()
    worker.end()
    return int(ExitCode.DONE)


def start_workers(options: LocustOptions, *, port: int, records: Path) -> list[subprocess.Popen]:
    """As many on this machine as `processes` says, for the master of that port; `records` is a folder for theirs."""
    return [_start_worker(options, port, records) for _ in range(options.processes or 0)]


def end_workers(workers: list[subprocess.Popen]) -> None:
    """Returns when they have ended; one that does not within some seconds is killed."""
    for worker in workers:
        worker.terminate()
    for worker in workers:
        try:
            worker.wait(timeout=_ENDING_S)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()


def _start_worker(options: LocustOptions, port: int, records: Path) -> subprocess.Popen:
    host = _LOOPBACK if options.master_bind_host in _ANY_ADDRESS else options.master_bind_host
    given = {"worker": True, "master_host": host, "master_port": port, "quiet": True}
    with tempfile.TemporaryFile("w", encoding="utf-8") as file:
        json.dump(given, file)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        descriptor = file.fileno()
        command = [sys.executable, "-m", _MODULE, str(descriptor)]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            start_new_session=True,
            env={**os.environ, RECORDS_VARIABLE: str(records)},
        )
