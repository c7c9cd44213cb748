"""Workers on other machines, as the process that conducts sees them."""

import asyncio

import pytest

from loadgen.core.errors import InternalError, TargetError
from loadgen.locustio.conductor.crew import RemoteCrew
from loadgen.wiring.workers.messages import Began, Failed, Start, encode
from tests.locustio.told import Told


async def test_lines_go_to_the_worker_and_come_from_it() -> None:
    """Each with the number of its level; what comes for another level is not heard."""
    told = Told()
    crew = RemoteCrew(("a", "b"), told)
    assert crew.size == 2
    worker, other = await crew.start(0), await crew.start(1)
    worker.tell(Start(at_ns=5))
    (line,) = told.named("to_worker")
    assert (line["worker"], line["line"]) == ("a", '{"type":"start","at_ns":5}')
    crew.deliver("a", line["level"] - 1, encode(Began(at_ns=1)).decode())
    crew.deliver("b", line["level"], encode(Began(at_ns=2)).decode())
    crew.deliver("a", line["level"], encode(Began(at_ns=3)).decode())
    assert await worker.hear() == Began(at_ns=3)
    assert await other.hear() == Began(at_ns=2)


async def test_a_fault_names_its_worker() -> None:
    """What it says of a file is of that machine."""
    told = Told()
    crew = RemoteCrew(("a",), told)
    worker = await crew.start(0)
    crew.deliver("a", worker.level, encode(Failed(kind="StoreError", message="disk full")).decode())
    assert await worker.hear() == Failed(kind="StoreError", message="worker a: disk full")


async def test_a_lost_worker_says_nothing_more_and_has_no_part_in_later_levels() -> None:
    """Its level hears of the loss at once, and so do people; without any worker there is nothing to run."""
    told = Told()
    crew = RemoteCrew(("a", "b"), told)
    worker = await crew.start(0)
    crew.lose("a")
    assert await worker.hear() is None
    crew.deliver("a", worker.level, encode(Began(at_ns=3)).decode())
    async with asyncio.timeout(1):
        await worker.end()
    assert "worker a is lost" in told.named("note")[0]["text"]
    assert crew.size == 1
    assert (await crew.start(0)).name == "b"
    with pytest.raises(InternalError, match="before it had its share"):
        await crew.start(1)
    crew.lose("b")
    with pytest.raises(TargetError, match="every worker was lost"):
        assert crew.size


async def test_a_worker_that_is_given_up_ends_its_level() -> None:
    """Whatever it says later."""
    crew = RemoteCrew(("a",), Told())
    worker = await crew.start(0)
    worker.kill()
    assert await worker.hear() is None
