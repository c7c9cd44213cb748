"""A server of ours as a child process."""

import json
import os
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from loadgen.core.errors import InternalError

_START_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildServer:
    """A running server: its root URL without `/v1`, the name of its model, its process."""

    url: str
    port: int
    model: str
    pid: int


@contextmanager
def child_server(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, cpus: set[int] | None = None
) -> Iterator[ChildServer]:
    """Runs a server, on the given cores where the system can pin, and ends it on the way out.

    Its first line of output is to be JSON with `url`, `port` and `model`, and it is to end when its standard input
    does, as it will when this process dies. Raises InternalError when it does not come up; what it says on standard
    error is seen as it is.
    """
    process = subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=None if environment is None else dict(environment)
    )
    with process:
        try:
            if cpus and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, cpus)
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], _START_TIMEOUT_S)
            line = process.stdout.readline() if ready else b""
            if not line:
                raise InternalError(f"the server did not start (exit code {process.poll()}): {' '.join(command)}")
            said = json.loads(line)
            yield ChildServer(url=said["url"], port=said["port"], model=said["model"], pid=process.pid)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_TIMEOUT_S)
            process.kill()
