"""The database by its URL: transactions that read, transactions that write, and its schema brought up to date."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError

from loadgen.core.errors import ConfigError, StoreError

_MIGRATIONS = Path(__file__).parent / "migrations"
_BUSY_MS = 10_000
_PAUSE_S = 0.05
_CONNECTIONS = 45
"""Beyond the five that are kept: one for each thread that answers a request, and for those beside them."""
_MIGRATION_LOCK = 7_046_029_254
"""Any number, as long as it is the same for every service on one PostgreSQL."""


class Database:
    """One database. Raises ConfigError for a URL that will not do."""

    def __init__(self, url: str) -> None:
        self._engine = _engine(url)
        self.is_sqlite = self._engine.dialect.name == "sqlite"

    @property
    def engine(self) -> Engine:
        """For tests of the schema."""
        return self._engine

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view; nothing that is written in it is kept."""
        with self._engine.connect().execution_options(reading=True) as connection, connection.begin() as transaction:
            yield connection
            transaction.rollback()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """All that is written in it, or nothing. On SQLite one writer at a time, which waits for the one before it."""
        with self._engine.begin() as connection:
            yield connection

    def upgrade(self) -> None:
        """Brings the schema to what this version expects. Raises StoreError when that fails."""
        try:
            with self._engine.begin() as connection:
                if not self.is_sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
                command.upgrade(migrations(connection), "head")
        except CommandError:
            raise StoreError("database: its schema is of another version of Loadgen, a newer one most likely") from None
        except SQLAlchemyError as fault:
            raise StoreError(f"database: the schema cannot be brought up to date: {_reason(fault)}") from None

    def check(self) -> None:
        """Raises StoreError unless the database answers."""
        try:
            with self.read() as connection:
                connection.execute(text("SELECT 1"))
        except SQLAlchemyError as fault:
            raise StoreError(f"database: does not answer: {_reason(fault)}") from None

    def wait_until_there(self, limit_s: float) -> None:
        """Waits for a database that is still starting. Raises StoreError when it does not answer in time."""
        deadline_s = time.monotonic() + limit_s
        while True:
            try:
                self.check()
            except StoreError:
                if time.monotonic() >= deadline_s:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return

    def close(self) -> None:
        """Gives its connections back."""
        self._engine.dispose()


def migrations(connection: Connection | None = None) -> Config:
    """Alembic's settings for the migrations that are shipped."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:  # its text would show the URL, password and all
        raise ConfigError("--database: expected a URL such as sqlite:///file.db or postgresql://host/name") from None
    name = parsed.get_backend_name()
    if name == "sqlite":
        return _sqlite(parsed)
    if name == "postgresql":
        return _postgresql(parsed)
    raise ConfigError(f"--database: expected sqlite or postgresql, got {name}")


def _sqlite(url: URL) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise ConfigError("--database: expected sqlite:///FILE; what is in memory would not survive a restart")
    engine = create_engine(
        url, connect_args={"timeout": _BUSY_MS / 1000, "check_same_thread": False}, max_overflow=_CONNECTIONS
    )

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver when it sees fit
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={_BUSY_MS}"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reading = connection.get_execution_options().get("reading")
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _postgresql(url: URL) -> Engine:
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    try:
        return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10}, max_overflow=_CONNECTIONS)
    except ImportError:
        raise ConfigError(
            "--database: PostgreSQL needs psycopg: pip install '.[postgres]' in a clone of Loadgen adds it"
        ) from None


def _reason(fault: SQLAlchemyError) -> str:
    """The first line of what the driver said; it names no password."""
    if isinstance(fault, DBAPIError | OperationalError) and fault.orig is not None:
        return str(fault.orig).strip().partition("\n")[0]
    return type(fault).__name__
