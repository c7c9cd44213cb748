"""Keeps one server: starts it, copies what it writes without secrets, and ends it with all its descendants.

A program of its own, run by file name on the standard library alone, so that the server's end depends on nothing that
happens to the process that wanted it, and so that no byte of its log passes through a process that measures.

Standard input is one line of JSON, an `Order`; its end is the order to stop, which comes by itself when the other
process dies. Standard error takes what the server writes. Standard output tells in lines of JSON what happened:
`{"refused": reason}`, or `{"pid": n}`, then `{"exit_status": n}` when the server has ended, and when nothing of it is
left `{"killed": whether something had to be, "cleaned": whether the command behind it succeeded}`.
"""

import ctypes
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_HAS_PRCTL = sys.platform == "linux"
_REDACTED = b"[secret]"
_UNBROKEN_BYTES = 65_536
_READ_BYTES, _READS_A_TURN = 65_536, 16  # together the most that a pipe holds
_ENDING_TURN_S = 0.1


class Order(TypedDict):
    """What to run, and how long its processes and the command that runs behind it may take to end."""

    arguments: list[str]
    grace_s: float
    secrets: list[str]
    behind: list[str]
    behind_s: float


class Copier:
    """Copies bytes to a descriptor, whole lines at a time, with secrets blotted out."""

    def __init__(self, descriptor: int, secrets: list[str]) -> None:
        longest_first = sorted((secret.encode() for secret in secrets), key=len, reverse=True)
        self._descriptor = descriptor
        self._secret = re.compile(b"|".join(map(re.escape, longest_first)) or b"(?!)")
        self._longest = len(longest_first[0]) if longest_first else 0
        self._kept = b""

    def feed(self, data: bytes) -> None:
        """Takes some bytes; what might be the beginning of a secret waits for the next ones."""
        self._kept += data
        end = max(self._kept.rfind(b"\n"), self._kept.rfind(b"\r")) + 1
        if end == 0 and len(self._kept) > _UNBROKEN_BYTES:
            end = self._end_of_whole_secrets()
        ready, self._kept = self._kept[:end], self._kept[end:]
        self._write(ready)

    def flush(self) -> None:
        """Copies the rest."""
        self._write(self._kept)
        self._kept = b""

    def _end_of_whole_secrets(self) -> int:
        """Up to where every secret that begins is there to its end."""
        sure = end = len(self._kept) - self._longest
        for found in self._secret.finditer(self._kept):
            if found.start() < sure:
                end = max(end, found.end())
        return end

    def _write(self, data: bytes) -> None:
        data = self._secret.sub(_REDACTED, data)
        with suppress(OSError):  # a full disk ends the log, not the server
            while data:
                data = data[os.write(self._descriptor, data) :]


class Keeper:
    """One server, from its start to the end of its last descendant."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._stopping = False
        self._exit_status: int | None = None
        self._left = True
        self._copier = Copier(2, order["secrets"])
        self._selector = selectors.DefaultSelector()
        self._wake, wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._stop())
        self._selector.register(self._wake, selectors.EVENT_READ, self._on_wake)
        self._selector.register(0, selectors.EVENT_READ, self._on_input)

    def keep(self) -> None:
        """From start to end."""
        output, theirs = os.pipe()
        os.set_blocking(output, False)
        try:
            leader = subprocess.Popen(  # noqa: S603
                self._order["arguments"],
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                preexec_fn=_end_with_parent if _HAS_PRCTL else None,
            )
        except OSError as fault:
            _tell(refused=f"{fault.filename or self._order['arguments'][0]}: {fault.strerror}")
            return
        os.close(theirs)
        self._leader, self._output = leader.pid, output
        self._selector.register(output, selectors.EVENT_READ, self._on_output)
        _tell(pid=leader.pid)
        while not self._stopping and self._exit_status is None:
            self._turn(None)
        killed = self._end_all()
        leader.returncode = self._exit_status
        self._copy_all()
        _tell(killed=killed, cleaned=self._run_behind())

    def _turn(self, timeout_s: float | None) -> None:
        for key, _ in self._selector.select(timeout_s):
            key.data()
        self._reap()

    def _stop(self) -> None:
        self._stopping = True

    def _on_wake(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake, 4096)

    def _on_input(self) -> None:
        if not os.read(0, 4096):
            self._selector.unregister(0)
            self._stop()

    def _on_output(self) -> None:
        """Copies what there is, or a part of very much; at the end of it the pipe is not watched any more."""
        with suppress(BlockingIOError):
            for _ in range(_READS_A_TURN):
                data = os.read(self._output, _READ_BYTES)
                if not data:
                    with suppress(KeyError):
                        self._selector.unregister(self._output)
                    return
                self._copier.feed(data)

    def _copy_all(self) -> None:
        """Copies what there is, the beginning of a line too."""
        self._on_output()
        self._copier.flush()

    def _reap(self) -> None:
        """Takes note of all children that have ended. As subreaper this process becomes the parent of orphans."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._leader:
                    self._exit_status = os.waitstatus_to_exitcode(ended[1])
                    self._copy_all()
                    _tell(exit_status=self._exit_status)
            self._left = True
        except ChildProcessError:
            self._left = not _HAS_PRCTL and _group_lives(self._leader)

    def _end_all(self) -> bool:
        """Asks, waits, kills, until no descendant is left. Returns whether something had to be killed."""
        deadline = time.monotonic() + self._order["grace_s"]
        asked: set[int] = set()
        killed = False
        while True:
            self._reap()
            if not self._left:
                return killed
            if time.monotonic() >= deadline:
                killed = True
                self._kill()
            else:
                self._ask(asked)
            self._turn(_ENDING_TURN_S)

    def _ask(self, asked: set[int]) -> None:
        """Each child once: the server, which has to tell its own children, and whom it leaves behind."""
        for child in _children() if _HAS_PRCTL else [self._leader]:
            if child not in asked:
                asked.add(child)
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGTERM)

    def _kill(self) -> None:
        """The server's group, as long as its number cannot be anybody else's, and all children."""
        with suppress(ProcessLookupError):
            if self._exit_status is None or not _HAS_PRCTL:
                os.killpg(self._leader, signal.SIGKILL)
        for child in _children() if _HAS_PRCTL else []:
            os.kill(child, signal.SIGKILL)

    def _run_behind(self) -> bool:
        if not self._order["behind"]:
            return True
        try:
            done = subprocess.run(  # noqa: S603
                self._order["behind"],
                stdin=subprocess.DEVNULL,
                stdout=2,
                stderr=2,
                timeout=self._order["behind_s"],
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0


def _prctl(what: int, value: int) -> None:
    ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def _end_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _children() -> list[int]:
    """The children of this process, zombies among them."""
    own, found = str(os.getpid()).encode(), []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                state_and_parent = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
                if state_and_parent[1] == own:
                    found.append(int(entry.name))
    return found


def _group_lives(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except OSError:
        return False
    return True


def _tell(**event: object) -> None:
    with suppress(OSError):  # nobody listens any more
        os.write(1, json.dumps(event).encode() + b"\n")


def main() -> None:
    """Keeps the server of the order."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if _HAS_PRCTL:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        _end_with_parent()
    order = sys.stdin.buffer.readline()
    if order.endswith(b"\n"):
        Keeper(json.loads(order)).keep()


if __name__ == "__main__":
    main()
