"""Everything that a running service is made of, built from its options."""

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol

from loadgen.adapters.store.files import reason
from loadgen.core.errors import ConfigError, StoreError
from loadgen.options.serve import ServeOptions
from loadgen.service.admission.addresses import AllowList
from loadgen.service.admission.policy import Policy
from loadgen.service.admission.targets import Resolver, resolve_name
from loadgen.service.auth import keys
from loadgen.service.auth.door import Door
from loadgen.service.clock import Clock, SystemClock
from loadgen.service.files import RunFiles
from loadgen.service.history.history import History
from loadgen.service.jobs.hub import Hub
from loadgen.service.jobs.process import ChildProcess, Spawn, child_environment
from loadgen.service.jobs.supervisor import Supervisor
from loadgen.service.metrics import Metrics
from loadgen.service.retention import Retention
from loadgen.service.runs import Runs
from loadgen.service.schedules.scheduler import Scheduler
from loadgen.service.store.database import Database
from loadgen.service.webhooks.courier import Courier
from loadgen.service.webhooks.outbox import Outbox

LOG = logging.getLogger("loadgen.service")

_TURN_S = 1.0
_DRAIN_S = 25.0
_DRAIN_TURN_S = 0.1
_DATABASE_WAIT_S = 60.0


class Turning(Protocol):
    """What is done again and again beside requests."""

    def turn(self) -> None:
        """Whatever is to be done now."""
        ...


@dataclass(slots=True, kw_only=True)
class Services:
    """The parts. `turning` are those that have something to do by themselves, in their order."""

    options: ServeOptions
    database: Database
    clock: Clock
    policy: Policy
    hub: Hub
    runs: Runs
    supervisor: Supervisor
    door: Door
    files: RunFiles
    scheduler: Scheduler
    courier: Courier
    receivers: AllowList
    metrics: Metrics
    turning: Sequence[Turning]
    closing: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begins to work on what is queued."""
        self.supervisor.enter()
        for name, turning in (("supervisor", self.turning), ("courier", (self.courier,))):
            thread = threading.Thread(target=self._work, args=(turning,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Stops in order: runs are interrupted and what they measured is kept, within half a minute."""
        self.closing.set()
        self.courier.stop()
        self.hub.tell()
        supervising, *others = self._threads
        supervising.join()
        self.supervisor.drain()
        deadline_s = self.clock.monotonic_s() + _DRAIN_S
        while self.supervisor.working and self.clock.monotonic_s() < deadline_s:
            self.supervisor.turn()
            threading.Event().wait(_DRAIN_TURN_S)
        for thread in others:  # one that a receiver holds up ends with the process, and its message is delivered later
            thread.join(max(0.0, deadline_s - self.clock.monotonic_s()))
        self.supervisor.leave()
        self.database.close()

    @property
    def works(self) -> bool:
        """Whether its thread is there."""
        return all(thread.is_alive() for thread in self._threads)

    def _work(self, turning: Sequence[Turning]) -> None:
        while not self.closing.is_set():
            seen = self.hub.count
            for each in turning:
                try:
                    each.turn()
                except Exception:  # nothing that goes wrong once may end all further runs
                    LOG.exception("a turn failed")
            self.hub.wait(seen, _TURN_S)


def build(
    options: ServeOptions,
    *,
    clock: Clock | None = None,
    spawn: Spawn | None = None,
    resolve: Resolver = resolve_name,
) -> Services:
    """The parts, with the database brought up to date and the first key in it. Raises ConfigError and StoreError."""
    clock = clock or SystemClock()
    folder = _made(options.data_dir.resolve())
    options = options.model_copy(update={"data_dir": folder})
    policy, hub = Policy.of(options, resolve=resolve), Hub()
    database = Database(_database_url(options))
    database.wait_until_there(0.0 if database.is_sqlite else _DATABASE_WAIT_S)
    database.upgrade()
    _plant_key(database, options, clock)
    with database.read() as connection:
        if options.listens_beyond and not keys.any_there(connection):
            raise ConfigError(
                f"--host: {options.host} can be reached by other machines, and there is no key yet; give one by"
                " --admin-key-file, or make one while the service listens on 127.0.0.1 alone"
            )
    outbox = Outbox(clock)
    follow = (History(outbox.announce).follow, outbox.follow)
    runs = Runs(database, clock, policy, hub, folder / "runs", most_queued=options.max_queued, follow=follow)
    supervisor = Supervisor(
        database,
        clock,
        folder=runs.folder,
        spawn=spawn or _spawn(policy),
        order_for=runs.order_for,
        parallel_runs=options.parallel_runs,
        follow=follow,
        hub=hub,
    )
    scheduler = Scheduler(database, clock, runs, hub, outbox.announce)
    receivers = AllowList.parse(options.webhook_host)
    door = Door(database, clock, beyond=options.listens_beyond, public_hosts=frozenset(options.public_host))
    return Services(
        options=options,
        database=database,
        clock=clock,
        policy=policy,
        hub=hub,
        runs=runs,
        supervisor=supervisor,
        door=door,
        files=RunFiles(runs.folder),
        scheduler=scheduler,
        courier=Courier(database, clock, receivers, resolve=resolve),
        receivers=receivers,
        metrics=Metrics(database, supervisor.hearing),
        turning=(scheduler, supervisor, Retention(database, clock, runs.folder, options.retention)),
    )


def _spawn(policy: Policy) -> Spawn:
    environment = child_environment(os.environ, sorted(policy.environment))
    return lambda folder, on_line: ChildProcess(folder, on_line, environment)


def _made(folder: Path) -> Path:
    try:
        for each in (folder, folder / "runs", folder / "files"):
            each.mkdir(parents=True, exist_ok=True, mode=0o700)
        with TemporaryFile(dir=folder):
            pass
    except OSError as fault:
        raise StoreError(f"--data-dir: {folder} cannot be written: {reason(fault)}") from fault
    return folder


def _database_url(options: ServeOptions) -> str:
    if options.database_file is not None:
        return _read(options.database_file, "--database-file")
    return options.database or f"sqlite:///{options.data_dir / 'loadgen.db'}"


def _plant_key(database: Database, options: ServeOptions, clock: Clock) -> None:
    text: str | None = None
    if options.admin_key_env is not None:
        text = os.environ.get(options.admin_key_env, "")
    elif options.admin_key_file is not None:
        text = _read(options.admin_key_file, "--admin-key-file")
    if text is None:
        return
    with database.write() as connection:
        if not keys.plant(connection, "of the settings", text, clock.now_unix_ms()):
            raise ConfigError(
                "--admin-key-env, --admin-key-file: expected a key of the form lgk_<16 hex digits>_<at least 16 letters"
                " and digits>; `loadgen serve --make-key` prints one"
            )


def _read(path: Path, flag: str) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as fault:
        said = reason(fault) if isinstance(fault, OSError) else "no text"
        raise ConfigError(f"{flag}: {path} cannot be read: {said}") from None
