"""A Locust worker of ours: it has a process of its own drive its share of each level, and carries its records over."""

import json
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gevent
from gevent import subprocess
from gevent.event import Event
from gevent.queue import Empty, Queue
from locust.env import Environment
from locust.rpc import Message
from locust.runners import WorkerRunner

from loadgen.locustio.swarm.messages import (
    ASK_TIME,
    DO,
    GOT,
    PIECE,
    RECORDS_VARIABLE,
    SAY,
    TELL_TIME,
    WHOLE,
    about,
    folder_name,
)
from loadgen.locustio.transfer import Growing

COMMAND = (sys.executable, "-m", "loadgen.wiring.workers")
_LAST_WORDS = frozenset({"ended", "failed"})
_CARRY_S = 0.5
_GOT_S = 60.0
_ENDING_S = 10.0
_LOOK_S, _MASTER_SILENT_S = 1.0, 15.0

_log = logging.getLogger(__name__)


class Share:
    """One level: the process that drives this worker's share, and the records that it writes."""

    def __init__(self, runner: WorkerRunner, level: int, job: dict[str, Any]) -> None:
        self._runner, self._level = runner, level
        self._folder = _folder(runner, level)
        self._records = Growing(self._folder / Path(job["records"]).name)
        self._got: Queue = Queue()
        self._through = Event()
        self._process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.do(json.dumps({**job, "records": str(self._records.path)}))
        self._carrying = gevent.spawn(self._carry)
        gevent.spawn(self._listen)

    def do(self, line: str) -> None:
        """Passes a line on to the process; nothing when it is gone, which is heard."""
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return

    def got(self, wrong: str | None) -> None:
        """The master has a piece, or says what is wrong with it."""
        self._got.put(wrong)

    def end(self) -> None:
        """Ends the process, in order where it lets itself be ended."""
        self._process.stdin.close()
        try:
            self._process.wait(timeout=_ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _listen(self) -> None:
        carried = False
        for line in self._process.stdout:
            if json.loads(line)["type"] in _LAST_WORDS:
                self._through.set()
                carried = bool(self._carrying.get())
                if not carried:
                    break
            self._say(line.decode())
        self._process.wait()
        self._say(None)
        if carried:
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            _log.error("records of this worker stay in %s", self._folder)

    def _carry(self) -> bool:
        """Sends the records while they grow; whether the master has all of them in the end."""
        last = False
        while not last:
            last = self._through.wait(_CARRY_S)
            for piece in self._records.pieces():
                content = {"offset": piece.offset, "content": piece.content, "crc": piece.crc}
                if not self._sent(PIECE, content):
                    return False
        return self._sent(WHOLE, {"size_bytes": self._records.size_bytes, "sha256": self._records.sha256})

    def _sent(self, kind: str, content: dict[str, Any]) -> bool:
        self._runner.send_message(kind, {"level": self._level, **content})
        try:
            wrong = self._got.get(timeout=_GOT_S)
        except Empty:
            wrong = "the master did not answer"
        if wrong is not None:
            _log.error("records could not be carried to the master: %s", wrong)
        return wrong is None

    def _say(self, line: str | None) -> None:
        self._runner.send_message(SAY, {"level": self._level, "line": line})


def _folder(runner: WorkerRunner, level: int) -> Path:
    """For the records of a level: where a master of this machine looks for them when this worker dies."""
    given = os.environ.get(RECORDS_VARIABLE)
    if given is None:
        return Path(tempfile.mkdtemp(prefix="loadgen-records-"))
    folder = Path(given) / folder_name(runner.client_id, level)
    folder.mkdir()
    return folder


class Worker:
    """Does what the master says, a level at a time."""

    def __init__(self, runner: WorkerRunner) -> None:
        self._runner = runner
        self._shares: dict[int, Share] = {}
        runner.register_message(ASK_TIME, self._tell_time)
        runner.register_message(DO, self._do)
        runner.register_message(GOT, self._got)
        runner.greenlet.spawn(self._watch_master)

    def end(self) -> None:
        """Ends what is under way; what it has recorded stays."""
        for share in self._shares.values():
            share.end()

    def _watch_master(self) -> None:
        """Ends what is under way when the master is not heard any more: nobody else would end its load."""
        while True:
            gevent.sleep(_LOOK_S)
            heard_s = self._runner.last_heartbeat_timestamp
            if self._shares and heard_s is not None and time.time() - heard_s > _MASTER_SILENT_S:
                _log.error("the master is not heard any more: its load ends here")
                shares, self._shares = self._shares, {}
                for share in shares.values():
                    share.end()

    def _tell_time(self, environment: Environment, msg: Message) -> None:
        self._runner.send_message(TELL_TIME, {**msg.data, "told_ns": time.time_ns(), **about()})

    def _do(self, environment: Environment, msg: Message) -> None:
        level, line = msg.data["level"], msg.data["line"]
        share = self._shares.get(level)
        if line is None:
            if (over := self._shares.pop(level, None)) is not None:
                gevent.spawn(over.end)
        elif share is not None:
            share.do(line)
        elif (job := _job(line)) is not None:
            self._begin(level, job)

    def _begin(self, level: int, job: dict[str, Any]) -> None:
        try:
            self._shares[level] = Share(self._runner, level, job)
        except OSError as fault:  # no room for records, or no process: the level would wait for this worker for ever
            failed = {"type": "failed", "kind": "StoreError", "message": str(fault)}
            for line in (json.dumps(failed), None):
                self._runner.send_message(SAY, {"level": level, "line": line})

    def _got(self, environment: Environment, msg: Message) -> None:
        share = self._shares.get(msg.data["level"])
        if share is not None:
            share.got(msg.data["wrong"])


def _job(line: str) -> dict[str, Any] | None:
    """The job of a line, None for one that is something else, as for a share that has ended already."""
    message: Mapping[str, Any] = json.loads(line)
    return dict(message) if message["type"] == "job" else None
