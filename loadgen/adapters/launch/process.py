"""A server as a local process, kept by a keeper of its own (see `keeper`)."""

import asyncio
import json
import os
import shlex
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loadgen.adapters.launch import keeper
from loadgen.adapters.launch.checks import check_gpus, check_port, check_program, free_port, port_is_free
from loadgen.adapters.launch.log import tail
from loadgen.adapters.launch.orphans import Identity, end_group, finish_off, forget_kept, identity_of, save_kept
from loadgen.adapters.launch.waiting import NotReadyError, Waiting
from loadgen.core.errors import ConfigError, StoreError, TargetError
from loadgen.core.redaction import REDACTED
from loadgen.engine.ports import Exited, Launched, StopKind, Stopped

PORT = "{port}"
"""What stands for the port in a command."""

GRACE_S = 30.0
"""What the processes of a server may take to end once they are asked."""

_COMMAND_S = 120.0  # for what runs before and behind the server
_KEEPER_S = 10.0  # for a keeper, beyond what its server and the command behind it take
_PORT_S = 10.0
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """What is to be run, and where it will be reached.

    `{port}` in an argument, a variable's value or the URL stands for the port: the one given, or else a free one.
    `environment` is the whole of it. `secrets` are texts that people and the log must not see. `gpu`: it cannot run
    without one. `before` runs first, and nothing starts when it fails; `behind` runs when the server has ended, however
    that came.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    folder: Path = Path()
    url: str = f"http://127.0.0.1:{PORT}"
    port: int | None = None
    gpu: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)
    before: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The command line without secrets."""
        return self.without_secrets(shlex.join(self.arguments))

    def without_secrets(self, text: str) -> str:
        """The text with every secret blotted out."""
        for secret in self.secrets:
            text = text.replace(secret, REDACTED)
        return text

    def placed(self) -> "ServerCommand":
        """With the port filled in.

        Raises ConfigError when the command is to take a free port but has no place for it.
        """
        port = self.port
        if port is None:
            if PORT not in self.url:
                return self
            if not any(PORT in text for text in (*self.arguments, *self.environment.values())):
                raise ConfigError(
                    f"{self.words}: expected {PORT} where its port belongs, or the port that it listens on"
                )
            port = free_port()

        return replace(
            self,
            arguments=tuple(text.replace(PORT, str(port)) for text in self.arguments),
            environment={name: value.replace(PORT, str(port)) for name, value in self.environment.items()},
            url=self.url.replace(PORT, str(port)),
            port=port,
        )


class ProcessLauncher:
    """Runs a command as a server, its output appended to `log`.

    `kept` is a file that tells the next start of the same server what this one left behind, should anything. `warn`
    gets what people should know before the start. On Linux the server also ends with the thread that started it.
    """

    def __init__(
        self,
        command: ServerCommand,
        *,
        log: Path,
        waiting: Waiting,
        kept: Path | None = None,
        grace_s: float = GRACE_S,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._command, self._log, self._waiting, self._kept = command, log, waiting, kept
        self._grace_s, self._warn = grace_s, warn
        self._ending_s = grace_s + (_COMMAND_S if command.behind else 0.0) + _KEEPER_S
        self._log_from = 0
        self._keeper: Process | None = None
        self._following: asyncio.Task[None] | None = None
        self._server: Identity | None = None
        self._events: dict[str, Any] = {}
        self._told, self._ended = asyncio.Event(), asyncio.Event()
        self._asked = False
        self._unasked: Exited | None = None
        self._stopped: Stopped | None = None

    async def start(self) -> Launched:
        """Returns when it is ready; see `Launcher.start`."""
        began_s = time.monotonic()
        if self._kept is not None:
            await finish_off(self._kept)
        command = self._command = self._command.placed()
        check_program(command.arguments, environment=command.environment, folder=command.folder)
        if command.gpu:
            await check_gpus(environment=command.environment, warn=self._warn)
        await self._run_before(command)
        if command.port is not None:
            check_port(command.port)
        try:
            pid = await self._begin(command)
            ready = await self._waiting.until_ready(command.url, ended=self._ended, last_line=self._last_line)
            missing = None
        except NotReadyError as fault:
            ready, missing = False, str(fault)
        except BaseException:
            await self.stop()
            raise
        if ready:
            took_s = time.monotonic() - began_s
            return Launched(url=command.url, how=command.words, start_s=took_s, pid=pid, log=str(self._log))
        await self.stop()
        if missing is None and self._unasked is not None:
            raise TargetError(f"{command.words}: before it was ready, it {self._unasked.words}")
        raise TargetError("\n".join((f"{command.words}: {missing}", *self._tail())))

    def exited(self) -> Exited | None:
        """What is known of the server when it has ended without being stopped."""
        return self._unasked

    async def stop(self) -> Stopped:
        """Returns when none of its processes is left and its port is free; see `Launcher.stop`."""
        if self._stopped is None:
            self._stopped = await self._stop()
        return self._stopped

    async def _begin(self, command: ServerCommand) -> int:
        """Starts keeper and server; the server's process id."""
        try:
            log = self._log.open("ab")
        except OSError as fault:
            raise StoreError(f"{self._log}: cannot be written: {fault.strerror}") from fault
        with log:
            self._log_from = log.tell()
            process = self._keeper = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", keeper.__file__),
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                cwd=command.folder,
                env=dict(command.environment),
                start_new_session=True,
            )
        self._following = asyncio.create_task(self._follow(process))
        order = keeper.Order(
            arguments=list(command.arguments),
            grace_s=self._grace_s,
            secrets=list(command.secrets),
            behind=list(command.behind),
            behind_s=_COMMAND_S,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._told.wait()
        if "pid" not in self._events:
            raise TargetError(f"{command.words}: cannot be started: {self._events.get('refused', 'nobody knows why')}")
        pid: int = self._events["pid"]
        self._server = identity_of(pid)
        if self._kept is not None:
            save_kept(self._kept, keeper=process.pid, server=pid, grace_s=self._grace_s, ending_s=self._ending_s)
        return pid

    async def _follow(self, process: Process) -> None:
        """Takes note of what the keeper tells, until it has ended."""
        assert process.stdout is not None
        async for line in process.stdout:
            self._events |= json.loads(line)
            self._told.set()
            if "exit_status" in self._events:
                self._end()
        await process.wait()
        self._told.set()
        self._end()

    def _end(self) -> None:
        if not self._asked and self._unasked is None:
            self._unasked = Exited(exit_status=self._events.get("exit_status"), log_tail=self._tail())
        self._ended.set()

    async def _stop(self) -> Stopped:
        process, following = self._keeper, self._following
        self._asked = True
        if process is None or following is None:
            return Stopped(how=StopKind.HAD_ENDED)
        assert process.stdin is not None
        process.stdin.close()
        _, late = await asyncio.wait({following}, timeout=self._ending_s)
        if late:
            process.kill()
        await following
        if "killed" not in self._events and self._server is not None:  # the keeper is no more
            await end_group(self._server, self._grace_s)
        await self._check_gone()
        if self._kept is not None:
            forget_kept(self._kept)
        asked = StopKind.ASKED if self._events.get("killed") is False else StopKind.KILLED
        return Stopped(
            how=asked if self._unasked is None else StopKind.HAD_ENDED, exit_status=self._events.get("exit_status")
        )

    async def _check_gone(self) -> None:
        """Raises TargetError when something of the server is still there."""
        command = self._command
        if self._events.get("cleaned") is False:
            raise TargetError("\n".join((f"{shlex.join(command.behind)}: failed", *self._tail())))
        deadline_s = time.monotonic() + _PORT_S
        while command.port is not None and not port_is_free(command.port):
            if time.monotonic() >= deadline_s:
                raise TargetError(f"{command.words}: port {command.port} is still taken after the server was stopped")
            await asyncio.sleep(_PAUSE_S)

    async def _run_before(self, command: ServerCommand) -> None:
        if not command.before:
            return
        words = shlex.join(command.before)
        process = await asyncio.create_subprocess_exec(
            *command.before,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            cwd=command.folder,
            env=dict(command.environment),
        )
        try:
            async with asyncio.timeout(_COMMAND_S):
                said, _ = await process.communicate()
        except TimeoutError:
            raise TargetError(f"{words}: did not end within {_COMMAND_S:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            text = command.without_secrets(said.decode("utf-8", "replace").strip())
            raise TargetError(f"{words}: exit status {process.returncode}: {text}")

    def _tail(self) -> tuple[str, ...]:
        return tail(self._log, since=self._log_from)

    def _last_line(self) -> str | None:
        return next(iter(tail(self._log, since=self._log_from, lines=1)), None)
