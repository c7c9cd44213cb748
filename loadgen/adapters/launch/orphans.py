"""Who keeps which server, in a file, so that the next start can finish off what an accident has left behind.

A process is known by its number together with the instant it began and the boot that this instant counts from, so that
a number given away again is not mistaken. Its command says less, since servers rename themselves. Where there is no
`/proc`, nothing is written and nothing ended.
"""

import asyncio
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from loadgen.core.errors import ConfigError, StoreError, TargetError

_TURN_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One process and no later one of that number. `started_ticks` are clock ticks since the boot of that name."""

    pid: int
    started_ticks: int
    boot: str

    @property
    def lives(self) -> bool:
        """Whether it still runs."""
        return identity_of(self.pid) == self


def identity_of(pid: int) -> Identity | None:
    """None for a process that is not there or has ended, and where the system does not tell."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return None if state in (b"Z", b"X") else Identity(pid=pid, started_ticks=int(rest[18]), boot=boot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A server, the keeper beside it, and the process that wants it.

    `grace_s` is what the server may take to end once it is asked, `ending_s` what the keeper may take with all.
    """

    owner: Identity
    keeper: Identity
    server: Identity
    grace_s: float
    ending_s: float


def save_kept(path: Path, *, keeper: int, server: int, grace_s: float, ending_s: float) -> None:
    """Notes who keeps what, unless one of them is gone already. Raises StoreError when that cannot be written."""
    owner, keeps, serves = identity_of(os.getpid()), identity_of(keeper), identity_of(server)
    if owner is None or keeps is None or serves is None:
        return
    kept = Kept(owner=owner, keeper=keeps, server=serves, grace_s=grace_s, ending_s=ending_s)
    draft = path.with_name(path.name + ".new")
    try:
        draft.write_bytes(msgspec.json.encode(kept))
        draft.replace(path)
    except OSError as fault:
        raise StoreError(f"{path}: cannot be written: {fault.strerror}") from fault


async def finish_off(path: Path) -> None:
    """Ends what an earlier start noted in this file and left running.

    Raises ConfigError when the process that started it is still at work, TargetError when it does not end.
    """
    kept = _load_kept(path)
    if kept is None:
        return
    if kept.owner.lives:
        raise ConfigError(f"{path}: process {kept.owner.pid} is using this server; wait for it, or stop it first")
    if kept.keeper.lives:
        _send(kept.keeper, signal.SIGTERM)
        await _gone(kept.keeper, kept.ending_s)
    await end_group(kept.server, kept.grace_s)
    if kept.keeper.lives or kept.server.lives:
        raise TargetError(f"process {kept.server.pid}, a server that an earlier start left behind, does not end")
    forget_kept(path)


def forget_kept(path: Path) -> None:
    """Removes the note once nothing is left."""
    path.unlink(missing_ok=True)


def _load_kept(path: Path) -> Kept | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except (OSError, msgspec.DecodeError):
        return None


async def end_group(leader: Identity, grace_s: float) -> None:
    """Asks a process to end, and kills its group when it has not after that time."""
    if leader.lives:
        _send(leader, signal.SIGTERM)
        if not await _gone(leader, grace_s):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader.pid, signal.SIGKILL)
            await _gone(leader, grace_s)


def _send(process: Identity, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, number)


async def _gone(process: Identity, timeout_s: float) -> bool:
    deadline_s = time.monotonic() + timeout_s
    while process.lives:
        if time.monotonic() >= deadline_s:
            return False
        await asyncio.sleep(_TURN_S)
    return True
