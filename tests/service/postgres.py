"""A real PostgreSQL on a free port, as an unprivileged user, without anything left behind."""

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

from tests.needs import program


class PostgreSQL:
    """Makes empty databases."""

    def __init__(self, port: int, run: Callable[..., None]) -> None:
        self._port, self._run = port, run

    def fresh(self) -> str:
        """The URL of a new one."""
        name = f"loadgen_{uuid4().hex[:8]}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self._port), "-U", "tester", name)
        return f"postgresql://tester@127.0.0.1:{self._port}/{name}"


@contextmanager
def running() -> Iterator[PostgreSQL]:
    """Starts one in a folder of its own, which its user can reach; both are gone afterwards."""
    folder = Path(mkdtemp(prefix="loadgen-postgresql-"))
    user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None

    def run(name: str, *arguments: str) -> None:
        subprocess.run(
            (program(name), *arguments),
            check=True,
            capture_output=True,
            timeout=60,
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
            cwd="/",
        )

    data = folder / "data"
    data.mkdir()
    if user is not None:
        os.chown(data, user.pw_uid, user.pw_gid)
        folder.chmod(0o711)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run("initdb", "-D", str(data), "-U", "tester", "-A", "trust", "--no-sync")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    run("pg_ctl", "-D", str(data), "-o", options, "-l", str(data / "log"), "-w", "start")
    try:
        yield PostgreSQL(port, run)
    finally:
        run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)
