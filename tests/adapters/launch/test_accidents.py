"""What becomes of a server when those who look after it are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from loadgen.adapters.launch.orphans import Kept, finish_off, identity_of, save_kept
from loadgen.core.errors import ConfigError
from loadgen.engine.ports import StopKind
from tests.adapters.launch.launching import gone, launcher, members, runs, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a signal at a parent's death")

REPOSITORY = Path(__file__).parents[3]


@contextmanager
def started_elsewhere(folder: Path, *manners: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A process that has started a server and is to be killed, and the server's number."""
    line = [sys.executable, "-m", "tests.adapters.launch.starting", str(folder), *manners]
    with subprocess.Popen(line, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def kept_in(folder: Path) -> Kept:
    """Who keeps the server of this folder."""
    return msgspec.json.decode((folder / "kept.json").read_bytes(), type=Kept)


def test_no_process_outlives_one_that_is_killed(tmp_path: Path) -> None:
    """SIGKILL for whoever started it ends the server, a deaf one too, its family, and the keeper."""
    with started_elsewhere(tmp_path, "family", "deaf") as (process, server):
        family, keeper = members(tmp_path), kept_in(tmp_path).keeper.pid
        process.kill()
        assert gone(server, *family, keeper)


async def test_without_its_keeper_a_server_is_asked_to_end(tmp_path: Path) -> None:
    """The system tells it; with what status it ended, nobody knows."""
    it = launcher(tmp_path)
    server = await it.start()
    os.kill(kept_in(tmp_path).keeper.pid, signal.SIGKILL)
    await until(lambda: it.exited() is not None)
    assert gone(server.pid or 0)
    stopped = await it.stop()
    assert (stopped.how, stopped.exit_status) == (StopKind.HAD_ENDED, None)


async def test_a_deaf_one_without_its_keeper_is_ended_all_the_same(tmp_path: Path) -> None:
    """By stopping it."""
    it = launcher(tmp_path, "deaf", grace_s=0.2)
    server = await it.start()
    os.kill(kept_in(tmp_path).keeper.pid, signal.SIGKILL)
    await it.stop()
    assert gone(server.pid or 0)


async def test_the_next_start_finishes_off_an_orphan(tmp_path: Path) -> None:
    """One that outlived both who wanted it and its keeper."""
    with started_elsewhere(tmp_path, "deaf") as (process, orphan):
        kept = kept_in(tmp_path)
        process.kill()
        os.kill(kept.keeper.pid, signal.SIGKILL)
        assert gone(process.pid, kept.keeper.pid)
    assert runs(orphan)
    it = launcher(tmp_path)
    await it.start()
    assert not runs(orphan)
    await it.stop()


async def test_only_the_very_process_is_ended(tmp_path: Path) -> None:
    """A number that was given away again, a note that is broken, and no note at all: nothing is touched."""
    note = tmp_path / "kept.json"
    with subprocess.Popen(["sleep", "600"]) as stranger:  # noqa: ASYNC220 - nothing waits for it
        try:
            now = identity_of(stranger.pid)
            assert now is not None
            earlier = replace(now, started_ticks=now.started_ticks - 1)
            other_boot = replace(now, boot="another")
            for known in (earlier, other_boot):
                note.write_bytes(
                    msgspec.json.encode(Kept(owner=known, keeper=known, server=known, grace_s=0.1, ending_s=0.1))
                )
                await finish_off(note)
            note.write_bytes(b'{"owner":')
            await finish_off(note)
            note.unlink()
            await finish_off(note)
            assert runs(stranger.pid)
        finally:
            stranger.kill()


async def test_a_server_in_use_is_left_alone(tmp_path: Path) -> None:
    """A second start of the same arm, while the first one is at work, is refused."""
    with started_elsewhere(tmp_path) as (process, server):
        with pytest.raises(ConfigError, match=f"kept.json: process {process.pid} is using this server"):
            await launcher(tmp_path).start()
        assert runs(server)
        process.kill()
        assert gone(server)


def test_who_is_gone_already_is_not_noted(tmp_path: Path) -> None:
    """Nothing could be told from such a note."""
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    save_kept(tmp_path / "kept.json", keeper=os.getpid(), server=ended.pid, grace_s=1.0, ending_s=1.0)
    assert not (tmp_path / "kept.json").exists()
