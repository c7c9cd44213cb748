"""The database: its migrations lead to the tables that the code expects, on SQLite and on PostgreSQL."""

import shutil
from pathlib import Path
from threading import Thread

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, select, text

from loadgen.core.errors import ConfigError, StoreError
from loadgen.service.store.database import Database
from loadgen.service.store.tables import METADATA, audit
from tests.service.postgres import PostgreSQL


def differences(database: Database) -> list[object]:
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, METADATA))


def test_migrations_lead_to_the_tables(upgraded: Path) -> None:
    """What the migrations make is what the code expects, and a second upgrade changes nothing."""
    database = Database(f"sqlite:///{upgraded}")
    database.upgrade()
    assert differences(database) == []
    database.close()


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://host/db", "sqlite://", "sqlite:///:memory:"])
def test_urls_that_will_not_do(url: str) -> None:
    """Are refused with what was expected, and without what they hold."""
    with pytest.raises(ConfigError, match="--database: expected"):
        Database(url)


def test_a_database_of_a_newer_version_is_left_alone(upgraded: Path, tmp_path: Path) -> None:
    """Whoever goes back without a backup is told so, in a line."""
    path = Path(shutil.copy(upgraded, tmp_path / "newer.db"))
    database = Database(f"sqlite:///{path}")
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="of another version of Loadgen"):
        database.upgrade()
    database.close()


def test_a_password_is_not_told() -> None:
    """Of a database that does not answer, the message names no secret."""
    database = Database("postgresql://loadgen:hunter2secret@127.0.0.1:1/loadgen")
    with pytest.raises(StoreError) as told:
        database.upgrade()
    assert "hunter2secret" not in str(told.value)
    database.close()


def test_writers_wait_for_one_another(upgraded: Path, tmp_path: Path) -> None:
    """Many threads write at once, and none is turned away."""
    path = tmp_path / "copy.db"
    path.write_bytes(upgraded.read_bytes())
    check_writers(Database(f"sqlite:///{path}"))


def check_writers(database: Database) -> None:
    def write(number: int) -> None:
        for place in range(10):
            with database.write() as connection:
                before = connection.execute(select(audit.c.id)).all()
                connection.execute(
                    insert(audit).values(at_unix_ms=len(before), actor=f"{number}", action=f"{place}", detail={})
                )

    threads = [Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as connection:
        assert len(connection.execute(select(audit.c.id)).all()) == 80
    database.close()


@pytest.mark.slow
def test_postgresql_has_the_same_tables(postgresql: PostgreSQL) -> None:
    """Two services upgrade at once, and the tables are as expected."""
    url = postgresql.fresh()
    databases = [Database(url) for _ in range(2)]
    threads = [Thread(target=database.upgrade) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert differences(databases[0]) == []
    check_writers(databases[1])
    databases[0].close()
