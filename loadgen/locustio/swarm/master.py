"""The master's side of its workers: which there are, how their clocks go, and all that is said between them and the
process that conducts."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import gevent
from gevent import subprocess
from locust import runners
from locust.env import Environment
from locust.rpc import Message
from locust.runners import STATE_MISSING, MasterRunner

from loadgen import __version__
from loadgen.locustio.clocks import ClockEstimate
from loadgen.locustio.swarm.messages import ASK_TIME, DO, GOT, PIECE, SAY, TELL_TIME, WHOLE, folder_name, machine
from loadgen.locustio.transfer import Carried, Piece

_ASK_S, _FIRST_ASK_S = 1.0, 0.05
_FIRST_ANSWERS = 8
_LOOK_S, _ENDING_S = 0.25, 1.0
_SILENT_BEATS = 10
"""Seconds of silence until Locust counts a worker as missing. Its own 3 pass unheard on a machine that is busy."""

_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Who conducts."""

    def say(self, wanted: Mapping[str, Any]) -> None:
        """Takes a line."""
        ...


@dataclass(slots=True)
class _Known:
    """What a worker has told of itself."""

    clock: ClockEstimate = field(default_factory=ClockEstimate)
    version: str | None = None
    machine: str | None = None
    child: int | None = None
    """The process, where the master has started it."""
    warned: bool = False


class Workers:
    """All workers of a master. `conductor` hears what they say, and which of them is lost.

    `children` are those that the master itself has started, `records` is the folder in which these write theirs.
    """

    def __init__(
        self,
        runner: MasterRunner,
        conductor: Listener,
        *,
        records: Path,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        runners.HEARTBEAT_LIVENESS = _SILENT_BEATS
        self._runner, self._conductor, self._own = runner, conductor, records
        self._now_ns = now_ns
        self.children: list[subprocess.Popen] = []
        self._known: dict[str, _Known] = {}
        self._engaged: set[str] = set()
        self._records: dict[tuple[str, int], Carried] = {}
        runner.register_message(TELL_TIME, self._told_time)
        runner.register_message(SAY, self._said)
        runner.register_message(PIECE, self._piece)
        runner.register_message(WHOLE, self._whole)
        runner.greenlet.spawn(self._ask)
        runner.greenlet.spawn(self._look)

    def usable(self) -> list[str]:
        """Those that are there, are of this version, and whose clock is known."""
        return sorted(
            name
            for name in self._present()
            if (known := self._known.get(name)) is not None
            and known.version == __version__
            and known.clock.answers >= _FIRST_ANSWERS
        )

    def engage(self, names: list[str]) -> None:
        """A ladder begins with these."""
        self._engaged = set(names)
        self._records.clear()

    def disband(self) -> None:
        """The ladder is over. A share that goes on, since who conducted it has died, ends."""
        present = self._present()
        for name, level in self._records:
            if name in present:
                self._runner.send_message(DO, {"level": level, "line": None}, client_id=name)

    def facts(self) -> list[dict[str, Any]]:
        """For the page: each worker, whether it is of this machine, how its clock goes (s), whether it is there."""
        return [
            {
                "worker": name,
                "here": known.machine == machine(),
                "clock_ahead_s": _seconds(known.clock.ahead_ns),
                "clock_within_s": _seconds(known.clock.within_ns),
                "present": name in self._present(),
            }
            for name, known in sorted(self._known.items())
        ]

    def pass_on(self, event: Mapping[str, Any]) -> None:
        """A line of the conductor for one worker."""
        name, level, line = event["worker"], event["level"], event["line"]
        if line is not None and line.startswith('{"type":"job"'):
            line = self._placed(name, level, json.loads(line))
        self._runner.send_message(DO, {"level": level, "line": line}, client_id=name)

    def _placed(self, name: str, level: int, job: dict[str, Any]) -> str:
        """The job with the axis as that worker's clocks see it."""
        known = self._known[name]
        self._records[name, level] = Carried(Path(job["records"]))
        if known.machine is None or known.machine != machine():
            job["axis"] |= {"origin_monotonic_ns": None, "clock_ahead_ns": known.clock.ahead_ns}
        return json.dumps(job)

    def _present(self) -> set[str]:
        there = {client.id for client in self._runner.clients.all if client.state != STATE_MISSING}
        ended = {child.pid for child in self.children if child.poll() is not None}
        return {name for name in there if name not in self._known or self._known[name].child not in ended}

    def _ask(self) -> None:
        while True:
            present = self._present()
            for name in present:
                self._runner.send_message(ASK_TIME, {"asked_ns": self._now_ns()}, client_id=name)
            known = [self._known[name].clock.answers if name in self._known else 0 for name in present]
            gevent.sleep(_FIRST_ASK_S if min(known, default=_FIRST_ANSWERS) < _FIRST_ANSWERS else _ASK_S)

    def _look(self) -> None:
        """Notices workers that are gone; one that comes back later finds its share ended."""
        while True:
            gevent.sleep(_LOOK_S)
            for name in self._engaged - self._present():
                self._engaged.discard(name)
                self._rescue(name)
                self._conductor.say({"do": "lost", "worker": name})

    def _rescue(self, name: str) -> None:
        """Takes what a lost worker of this machine recorded and did not send any more; nothing that it sends later."""
        for level in [level for worker, level in self._records if worker == name]:
            carried, folder = self._records.pop((name, level)), self._own / folder_name(name, level)
            if folder in self._own.iterdir():
                gevent.sleep(_ENDING_S)  # the process that drove its share ends by itself, and writes what it has
                try:
                    carried.complete(folder / carried.path.name)
                except (OSError, ValueError) as fault:
                    _log.error("records of %s stay in %s: %s", name, folder, fault)

    def _told_time(self, environment: Environment, msg: Message) -> None:
        known = self._known.setdefault(msg.node_id, _Known())
        known.clock.add(asked_ns=msg.data["asked_ns"], told_ns=msg.data["told_ns"], heard_ns=self._now_ns())
        known.version, known.machine = msg.data["version"], msg.data["machine"]
        known.child = msg.data["pid"] if msg.data["records"] == str(self._own) else None
        if known.version != __version__ and not known.warned:
            known.warned = True
            _log.error(
                "worker %s is loadgen %s, and this is %s: it gets no load", msg.node_id, known.version, __version__
            )

    def _said(self, environment: Environment, msg: Message) -> None:
        if msg.node_id in self._engaged:
            self._conductor.say({"do": "from_worker", "worker": msg.node_id, **msg.data})

    def _piece(self, environment: Environment, msg: Message) -> None:
        data = msg.data
        self._answer(msg, lambda file: file.add(Piece(offset=data["offset"], content=data["content"], crc=data["crc"])))

    def _whole(self, environment: Environment, msg: Message) -> None:
        self._answer(msg, lambda file: file.check(size_bytes=msg.data["size_bytes"], sha256=msg.data["sha256"]))

    def _answer(self, msg: Message, take: Callable[[Carried], None]) -> None:
        level, wrong = msg.data["level"], None
        try:
            take(self._records[msg.node_id, level])
        except KeyError:
            wrong = "this level is over, or its worker was given up"
        except (ValueError, OSError) as fault:
            wrong = str(fault)
        self._runner.send_message(GOT, {"level": level, "wrong": wrong}, client_id=msg.node_id)


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9
