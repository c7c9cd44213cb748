"""A service whose clock and whose measuring processes do what a test says; nothing listens anywhere."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loadgen.options.serve import ServeOptions
from loadgen.service.admission.addresses import Address
from loadgen.service.app import application
from loadgen.service.services import Services, build
from loadgen.service.store.database import Database
from tests.service.fakes.obedient_child import Nursery
from tests.service.fakes.receiver import Receiver
from tests.service.fakes.still_clock import StillClock
from tests.service.postgres import PostgreSQL, running

Make = Callable[..., Services]

NAMES = {
    "localhost": "127.0.0.1",
    "gpu1.example": "10.0.0.7",
    "hooks.example.org": "10.0.0.8",
    "bent.example": "127.0.0.1",
    "sly.example": "169.254.169.254",
}


def resolve(host: str, _port: int) -> list[Address]:
    """Names as the tests have them; an address is itself."""
    return [ip_address(NAMES.get(host, host).partition("%")[0])]


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def nursery() -> Nursery:
    return Nursery()


@pytest.fixture(scope="session")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables and nothing in them, to be copied: making one takes a good part of a second."""
    path = tmp_path_factory.mktemp("database") / "loadgen.db"
    database = Database(f"sqlite:///{path}")
    database.upgrade()
    database.close()
    return path


@pytest.fixture
def make(tmp_path: Path, clock: StillClock, nursery: Nursery, upgraded: Path) -> Iterator[Make]:
    """Builds a service on the test's folder; another one on the same folder is what a restart is."""
    made: list[Services] = []
    (tmp_path / "data").mkdir()
    shutil.copy(upgraded, tmp_path / "data" / "loadgen.db")

    def built(**options: Any) -> Services:
        given = {"data_dir": tmp_path / "data", **options}
        services = build(ServeOptions(**given), clock=clock, spawn=nursery, resolve=resolve)
        services.supervisor.enter()
        made.append(services)
        return services

    yield built
    for services in made:
        services.database.close()


@pytest.fixture
def services(make: Make) -> Services:
    return make()


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(services) as found:
        yield found


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """For slow tests."""
    with running() as found:
        yield found


def client_of(services: Services, **headers: str) -> httpx2.AsyncClient:
    """Speaks to the application without a socket."""
    transport = httpx2.ASGITransport(app=application(services), raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080", headers=headers)


def a_run(url: str = "http://127.0.0.1:8000", **options: Any) -> dict[str, Any]:
    """A request that is right."""
    return {"kind": "run", "target": {"url": url}, "options": {"concurrency": 2, "num_requests": 10, **options}}
