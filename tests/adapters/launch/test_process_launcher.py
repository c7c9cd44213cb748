"""Servers as local processes: started, watched, and ended with all that they left behind."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from loadgen.adapters.launch.checks import free_port, port_is_free
from loadgen.core.errors import ConfigError, TargetError
from loadgen.engine.ports import StopKind
from tests.adapters.launch.launching import gone, launcher, launcher_of, log_of, members, runs, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tells what is left by /proc")


async def test_a_server_is_started_and_stopped(tmp_path: Path) -> None:
    """It is ready where it is said to be; asked to end it does, with its status, its port free, its output kept."""
    it = launcher(tmp_path)
    server = await it.start()
    assert server.pid is not None
    assert runs(server.pid)
    port = int(server.url.rpartition(":")[2])
    assert server.how.endswith(f"server.py {port}")
    assert not port_is_free(port)
    assert it.exited() is None
    stopped = await it.stop()
    assert (stopped.how, stopped.exit_status) == (StopKind.ASKED, 0)
    assert gone(server.pid)
    assert port_is_free(port)
    assert (server.log, log_of(tmp_path)) == (str(tmp_path / "log"), "manners:\n")
    assert not (tmp_path / "kept.json").exists()
    assert await it.stop() == stopped
    assert it.exited() is None


async def test_a_server_that_is_deaf_is_killed(tmp_path: Path) -> None:
    """After the grace, and that is told."""
    it = launcher(tmp_path, "deaf", grace_s=0.3)
    server = await it.start()
    stopped = await it.stop()
    assert (stopped.how, stopped.exit_status) == (StopKind.KILLED, -signal.SIGKILL)
    assert gone(server.pid or 0)


@pytest.mark.parametrize(
    ("manners", "how"),
    [(("family",), StopKind.ASKED), (("family", "abandons"), StopKind.ASKED), (("family", "deaf"), StopKind.KILLED)],
)
async def test_its_descendants_end_with_it(tmp_path: Path, manners: tuple[str, ...], how: StopKind) -> None:
    """Those that it forgot, and one that has left group and session, once it has ended or is killed."""
    it = launcher(tmp_path, *manners, grace_s=0.3 if how is StopKind.KILLED else 5.0)
    await it.start()
    family = members(tmp_path)
    assert all(map(runs, family))
    assert (await it.stop()).how == how
    assert not any(map(runs, family))


async def test_one_that_dies_at_the_start_is_quoted(tmp_path: Path) -> None:
    """Exit status and the end of its log to the last byte, of this start alone, and nothing is left."""
    (tmp_path / "log").write_text("of an earlier start\n")
    with pytest.raises(TargetError) as raised:
        await launcher(tmp_path, "dies").start()
    first, *rest = str(raised.value).splitlines()
    assert first.endswith("dies: before it was ready, it ended with exit status 3")
    assert rest == ["manners: dies", "no room for the weights", "NCCL err"]
    assert log_of(tmp_path).startswith("of an earlier start\n")
    assert not (tmp_path / "kept.json").exists()


async def test_one_that_never_becomes_ready_is_given_up(tmp_path: Path) -> None:
    """After the time allowed, saying what was missing; people are told of the wait and of the log's last line."""
    told: list[tuple[float, str | None]] = []
    it = launcher(tmp_path, "shut", timeout_s=0.6, progress=lambda *seen: told.append(seen))
    with pytest.raises(TargetError, match=r"not ready after .*: refuses connections\nmanners: shut"):
        await it.start()
    waited, lines = zip(*told, strict=True)
    assert list(waited) == sorted(waited)
    assert lines[-1] == "manners: shut"
    assert (await it.stop()).how == StopKind.ASKED


async def test_readiness_may_take_a_while(tmp_path: Path) -> None:
    """A page that says 503 at first is asked again."""
    it = launcher(tmp_path, "warms")
    assert (await it.start()).start_s > 0
    await it.stop()


async def test_secrets_are_kept_out(tmp_path: Path) -> None:
    """Of the log, of the way it was started, and of what is said when it fails."""
    secret = "sk-0123456789"
    it = launcher(tmp_path, f"says=key {secret} given", secrets=(secret,))
    server = await it.start()
    await it.stop()
    assert "key [secret] given\n" in log_of(tmp_path)
    assert secret not in log_of(tmp_path) + server.how
    with pytest.raises(TargetError) as raised:
        await launcher(tmp_path, f"says={secret}", "dies", secrets=(secret,)).start()
    assert secret not in str(raised.value)


async def test_its_death_under_load_is_told(tmp_path: Path) -> None:
    """By what it ended, with the end of its log; stopping it then only clears away what it left."""
    it = launcher(tmp_path, "family", "says=out of memory")
    server = await it.start()
    family = members(tmp_path)
    os.kill(server.pid or 0, signal.SIGKILL)
    await until(lambda: it.exited() is not None)
    exited = it.exited()
    assert exited is not None
    assert exited.exit_status == -signal.SIGKILL
    assert exited.words.startswith("was ended by SIGKILL\nmanners: family says=out of memory\nout of memory")
    stopped = await it.stop()
    assert (stopped.how, stopped.exit_status) == (StopKind.HAD_ENDED, -signal.SIGKILL)
    assert not any(map(runs, family))
    assert it.exited() == exited


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    """Before anything is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TargetError, match=f"port {port} is taken"):
            await launcher(tmp_path, port=port).start()
    assert not (tmp_path / "log").exists()


async def test_what_cannot_be_run_is_said(tmp_path: Path) -> None:
    """A program or a folder that is not there, and a port that the command does not take."""
    it = launcher(tmp_path, folder=tmp_path / "absent")
    with pytest.raises(ConfigError, match="absent: expected a folder"):
        await it.start()
    assert (await it.stop()).how == StopKind.HAD_ENDED
    for arguments, message in (
        (("vllm-of-nowhere", "serve", "{port}"), "vllm-of-nowhere: expected a program that can be run"),
        (("./serve", "{port}"), "./serve: expected a program"),
        (("sleep", "1"), r"sleep 1: expected \{port\} where its port belongs"),
    ):
        with pytest.raises(ConfigError, match=message):
            await launcher_of(tmp_path, arguments, folder=tmp_path).start()
    (tmp_path / "garbage").write_bytes(b"\x7fELF of a kind")
    (tmp_path / "garbage").chmod(0o755)
    with pytest.raises(TargetError, match=r"cannot be started: .*Exec format error"):
        await launcher_of(tmp_path, ("./garbage", "{port}"), folder=tmp_path).start()


async def test_port_and_variables_reach_it(tmp_path: Path) -> None:
    """The port that is given, in its arguments and in a variable."""
    port = free_port()
    script = 'echo "$MARK"; exec "$0" "$@"'
    arguments = ("sh", "-c", script, sys.executable, "-S", str(Path(__file__).with_name("server.py")), "{port}")
    environment = {**os.environ, "MARK": "on {port}"}
    it = launcher_of(tmp_path, arguments, port=port, environment=environment)
    assert (await it.start()).url == f"http://127.0.0.1:{port}"
    await it.stop()
    assert log_of(tmp_path).startswith(f"on {port}\n")


async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    """As when somebody interrupts while a server loads."""
    starting = asyncio.create_task(launcher(tmp_path, "shut", "says=loading").start())
    await until((tmp_path / "kept.json").exists)
    pid = int((tmp_path / "kept.json").read_text().partition('"server":{"pid":')[2].partition(",")[0])
    assert runs(pid)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not runs(pid)


async def test_commands_before_and_behind(tmp_path: Path) -> None:
    """The one prepares, and prevents the start when it fails; the other clears away, and its failure is loud."""
    done = tmp_path / "done"
    it = launcher(tmp_path, before=("mkdir", str(done)), behind=("rmdir", str(done)))
    await it.start()
    assert done.is_dir()
    await it.stop()
    assert not done.exists()
    with pytest.raises(TargetError, match=r"rmdir .*done: exit status 1: rmdir: failed to remove"):
        await launcher(tmp_path, before=("rmdir", str(done))).start()
    it = launcher(tmp_path, behind=("rmdir", str(done)))
    await it.start()
    with pytest.raises(TargetError, match=r"rmdir .*done: failed\n(.*\n)*rmdir: failed to remove"):
        await it.stop()
