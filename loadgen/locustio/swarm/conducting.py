"""The process that measures, as a child of this one."""

import json
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

import gevent
from gevent import subprocess
from gevent.event import Event

from loadgen.core.errors import ExitCode, InternalError

COMMAND = (sys.executable, "-m", "loadgen.locustio.conductor")
_READY_S = 30.0
_ENDING_S = 10.0
_HEARD_STOPS = 2


class Conductor:
    """Takes ladders and tells `heard` how they go. One that dies is replaced before the next ladder."""

    def __init__(self, heard: Callable[[Mapping[str, Any]], None], *, metrics: tuple[str, int]) -> None:
        self._heard, self._metrics = heard, metrics
        self._process: subprocess.Popen | None = None
        self._ready = Event()
        self._under_way, self._stops = False, 0
        self.metrics_url: str | None = None

    def start(self) -> None:
        """Starts the process, out of reach of the terminal's signals, unless it runs; returns when it listens.

        Raises InternalError when it does not come up; why stands on standard error.
        """
        if self._process is not None and self._process.poll() is None:
            return
        host, port = self._metrics
        self._ready.clear()
        self._process = subprocess.Popen(
            [*COMMAND, host, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        gevent.spawn(self._listen, self._process)
        if not self._ready.wait(_READY_S) or self.metrics_url is None:
            raise InternalError("the process that measures did not start")

    def ladder(self, options: Mapping[str, Any], workers: list[str] | None = None) -> None:
        """Begins a ladder: here, or with these workers."""
        self.start()
        self._under_way, self._stops = True, 0
        self.say({"do": "ladder", "options": options, "workers": workers})

    def say(self, wanted: Mapping[str, Any]) -> None:
        """One line to it; nothing when it is gone, which is heard."""
        if self._process is not None and self._process.stdin is not None:
            try:
                self._process.stdin.write(json.dumps(wanted).encode() + b"\n")
                self._process.stdin.flush()
            except OSError:
                return

    def stop(self) -> None:
        """Ends the ladder in order; a second time at once; a third time with its process, which may not hear."""
        if self._under_way and self._process is not None:
            self._stops += 1
            self._process.send_signal(signal.SIGINT if self._stops <= _HEARD_STOPS else signal.SIGKILL)

    def close(self) -> None:
        """Ends the process, in order where it lets itself be ended."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            process.wait(timeout=_ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _listen(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "ready":
                self.metrics_url = event["metrics"]
                self._ready.set()
                continue
            if event["event"] == "ended":
                self._under_way = False
            self._heard(event)
        self._ready.set()
        if self._under_way:
            self._under_way = False
            status = process.wait()
            error = f"the process that measures ended with status {status}; what was measured until then is stored"
            self._heard(
                {"event": "ended", "code": int(ExitCode.INVALID_MEASUREMENT), "interrupted": False, "error": error}
            )
