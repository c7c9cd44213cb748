"""Services at work on one database, and how one finds out that another is gone.

A service lets its beat grow. Another one counts it as gone when its process has ended on the same machine, or when its
beat has stood still for a while by the watcher's own monotonic clock. So neither a clock that is set nor clocks that
differ make anybody seem dead.
"""

import os
import socket
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, insert, select, update

from loadgen.adapters.launch.orphans import identity_of
from loadgen.service.clock import Clock
from loadgen.service.jobs.process import as_stored, still_lives
from loadgen.service.store.tables import owners

GONE_AFTER_S = 30.0


def enter(connection: Connection, owner: str, clock: Clock) -> None:
    """A service begins."""
    identity = identity_of(os.getpid())
    connection.execute(
        insert(owners).values(
            id=owner,
            host=socket.gethostname(),
            process=None if identity is None else as_stored(identity),
            beat=1,
            beat_unix_ms=clock.now_unix_ms(),
        )
    )


def beat(connection: Connection, owner: str, clock: Clock) -> bool:
    """It is alive; False when another one has taken it for gone."""
    done = connection.execute(
        update(owners).where(owners.c.id == owner).values(beat=owners.c.beat + 1, beat_unix_ms=clock.now_unix_ms())
    )
    return done.rowcount == 1


def leave(connection: Connection, owner: str) -> None:
    """A service ends, or is gone."""
    connection.execute(delete(owners).where(owners.c.id == owner))


def known(connection: Connection) -> set[str]:
    """Services that are at work, or were lost without anybody noticing yet."""
    return set(connection.execute(select(owners.c.id)).scalars())


@dataclass(slots=True)
class Watcher:
    """Remembers when each beat was last seen to grow."""

    clock: Clock
    own: str
    gone_after_s: float = GONE_AFTER_S
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)

    def gone(self, connection: Connection) -> set[str]:
        """The others that are gone by now."""
        now_s = self.clock.monotonic_s()
        rows = connection.execute(select(owners)).mappings().all()
        found = set()
        for row in rows:
            owner, number, process = row["id"], row["beat"], row["process"]
            if owner == self.own:
                continue
            before, since_s = self._seen.get(owner, (None, now_s))
            if number != before:
                since_s = now_s
            self._seen[owner] = (number, since_s)
            here = identity_of(os.getpid())
            same_boot = here is not None and process is not None and process["boot"] == here.boot
            if (same_boot and not still_lives(process)) or now_s - since_s > self.gone_after_s:
                found.add(owner)
        return found
