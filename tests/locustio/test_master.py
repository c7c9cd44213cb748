"""The master's side of its workers, without any: what comes in by Locust's messages, and what goes out."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import gevent
import pytest

from loadgen import __version__
from loadgen.locustio.swarm import messages
from loadgen.locustio.swarm.master import Workers

SECOND_NS = 1_000_000_000


class Master:
    """Stands for Locust's runner: keeps what is sent, and hands over what a worker says."""

    def __init__(self, records: Path) -> None:
        self.now_ns = 0
        self.sent: list[tuple[str, dict[str, Any], str]] = []
        self.said: list[Mapping[str, Any]] = []
        self.listeners: dict[str, Callable[..., None]] = {}
        self.clients = SimpleNamespace(all=[])
        self.loops: list[Callable[[], None]] = []
        self.greenlet = SimpleNamespace(spawn=self.loops.append)
        self.workers = Workers(self, self, records=records, now_ns=lambda: self.now_ns)  # type: ignore[arg-type]

    def register_message(self, name: str, listener: Callable[..., None]) -> None:
        self.listeners[name] = listener

    def send_message(self, name: str, data: dict[str, Any], client_id: str) -> None:
        self.sent.append((name, data, client_id))

    def say(self, wanted: Mapping[str, Any]) -> None:
        self.said.append(wanted)

    def connect(
        self,
        name: str,
        *,
        machine: str | None,
        version: str = __version__,
        ahead_ns: int = 0,
        pid: int = 1,
        records: Path | None = None,
    ) -> None:
        """A worker that has told its time often enough."""
        self.clients.all.append(SimpleNamespace(id=name, state="ready"))
        for asked_ns in range(8):
            self.now_ns = asked_ns
            about = {"version": version, "machine": machine, "pid": pid, "records": str(records)}
            self.hear(messages.TELL_TIME, name, asked_ns=asked_ns, told_ns=asked_ns + ahead_ns, **about)

    def hear(self, message: str, name: str, **data: Any) -> None:
        self.listeners[message](environment=None, msg=SimpleNamespace(node_id=name, data=data))

    def job(self, name: str, records: Path, *, level: int = 1) -> dict[str, Any]:
        """What becomes of a job on its way to the worker."""
        job = {"type": "job", "axis": {"origin_unix_ns": 5, "origin_monotonic_ns": 7}, "records": str(records)}
        line = json.dumps(job, separators=(",", ":"))
        self.workers.pass_on({"event": "to_worker", "worker": name, "level": level, "line": line})
        message, data, to = self.sent[-1]
        assert (message, data["level"], to) == (messages.DO, level, name)
        return json.loads(data["line"])  # type: ignore[no-any-return]

    def piece(
        self, name: str, content: bytes, *, offset: int = 0, level: int = 1, crc: int | None = None
    ) -> str | None:
        """What is said of a piece."""
        checked = crc32(content) if crc is None else crc
        self.hear(messages.PIECE, name, level=level, offset=offset, content=content, crc=checked)
        assert self.sent[-1][0] == messages.GOT
        return self.sent[-1][1]["wrong"]  # type: ignore[no-any-return]


@pytest.fixture
def master(tmp_path: Path) -> Master:
    """One that has started no worker itself."""
    return Master(tmp_path)


def test_a_job_has_the_axis_of_its_workers_clocks(master: Master, tmp_path: Path) -> None:
    """On this machine monotonic time is common; elsewhere wall time is, with what that clock is ahead."""
    master.connect("here", machine=messages.machine())
    master.connect("there", machine="another", ahead_ns=-3 * SECOND_NS)
    assert master.job("here", tmp_path / "a")["axis"] == {"origin_unix_ns": 5, "origin_monotonic_ns": 7}
    expected = {"origin_unix_ns": 5, "origin_monotonic_ns": None, "clock_ahead_ns": -3 * SECOND_NS}
    assert master.job("there", tmp_path / "b")["axis"] == expected


def test_only_a_worker_of_this_version_whose_clock_is_known_gets_load(master: Master) -> None:
    """Others are connected and nothing more."""
    master.connect("ours", machine=None)
    master.connect("older", machine=None, version="0.0.1")
    master.clients.all.append(SimpleNamespace(id="new", state="ready"))
    assert master.workers.usable() == ["ours"]
    master.clients.all[0].state = "missing"
    assert master.workers.usable() == []


def test_a_process_of_its_own_that_has_ended_is_missed_at_once(master: Master, tmp_path: Path) -> None:
    """Before its heartbeat is; one of another machine that has the same number is not taken for it."""
    master.connect("own", machine=None, pid=7, records=tmp_path)
    master.connect("other", machine=None, pid=7)
    master.workers.children = [SimpleNamespace(pid=7, poll=lambda: None)]
    assert master.workers.usable() == ["other", "own"]
    master.workers.children = [SimpleNamespace(pid=7, poll=lambda: -9)]
    assert master.workers.usable() == ["other"]


def test_shares_end_with_their_ladder(master: Master, tmp_path: Path) -> None:
    """Who conducted it may have died without a word to them."""
    for name in ("there", "gone"):
        master.connect(name, machine=None)
    master.workers.engage(["there", "gone"])
    for level in (1, 2):
        master.job("there", tmp_path / f"records.{level}", level=level)
    master.job("gone", tmp_path / "records")
    master.clients.all[1].state = "missing"
    master.sent.clear()
    master.workers.disband()
    assert master.sent == [(messages.DO, {"level": level, "line": None}, "there") for level in (1, 2)]


def test_records_are_written_where_the_job_said_and_nowhere_else(master: Master, tmp_path: Path) -> None:
    """Piece by piece, each answered; one that is damaged, out of order or of nobody's level is refused."""
    master.connect("w", machine=None)
    master.workers.engage(["w"])
    master.job("w", tmp_path / "records.0")
    assert master.piece("w", b"abc") is None
    assert "expected the bytes from 3 on" in str(master.piece("w", b"abc"))
    assert "damaged" in str(master.piece("w", b"def", offset=3, crc=1))
    assert master.piece("w", b"def", offset=3) is None
    assert "this level is over" in str(master.piece("w", b"x", level=2))
    assert "this level is over" in str(master.piece("stranger", b"x"))
    master.hear(messages.WHOLE, "w", level=1, size_bytes=6, sha256="")
    assert "not the one that was sent" in master.sent[-1][1]["wrong"]
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("records.0", b"abcdef")]


def test_a_lost_worker_that_comes_back_adds_nothing(master: Master, tmp_path: Path) -> None:
    """Its records are joined with the others' by then, and its level is over."""
    master.connect("w", machine=None)
    master.workers.engage(["w"])
    master.job("w", tmp_path / "records.0")
    assert master.piece("w", b"abc") is None
    master.clients.all[0].state = "missing"
    looking = gevent.spawn(master.loops[-1])
    with gevent.Timeout(10):
        while not master.said:
            gevent.sleep(0.01)
    looking.kill()
    assert master.said == [{"do": "lost", "worker": "w"}]
    assert "its worker was given up" in str(master.piece("w", b"def", offset=3))
    assert (tmp_path / "records.0").read_bytes() == b"abc"


def test_what_a_worker_says_is_heard_while_it_has_a_part(master: Master) -> None:
    """Not what one says that has none in this ladder."""
    master.connect("w", machine=None)
    master.workers.engage(["w"])
    master.hear(messages.SAY, "w", level=1, line="{}")
    master.hear(messages.SAY, "stranger", level=1, line="{}")
    assert master.said == [{"do": "from_worker", "worker": "w", "level": 1, "line": "{}"}]


def test_the_page_is_told_how_each_clock_goes(master: Master) -> None:
    """In seconds, and within what; a worker that is gone stays in the list."""
    master.connect("w", machine="another", ahead_ns=2 * SECOND_NS)
    (known,) = master.workers.facts()
    assert known == {"worker": "w", "here": False, "clock_ahead_s": 2.0, "clock_within_s": 0.0, "present": True}
    master.clients.all.clear()
    assert not master.workers.facts()[0]["present"]
