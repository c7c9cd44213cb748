"""Two services on one database come to the same thing at the same time: one of them has it, and the other one sees so.
`test_several_services.py` has several real ones."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from loadgen.service.jobs import queue
from loadgen.service.jobs.owners import GONE_AFTER_S
from loadgen.service.services import Services
from loadgen.service.webhooks import outbox
from tests.service.asking import ask, shown
from tests.service.conftest import Make, a_run, client_of, resolve
from tests.service.fakes.obedient_child import Nursery, of_this_process
from tests.service.fakes.receiver import Receiver
from tests.service.fakes.still_clock import StillClock
from tests.service.losing import lose
from tests.service.telling import courier_of, deliver, hook

FOUND = "a run without a service is taken over"


@contextmanager
def between(said: str, act: Callable[[], None]) -> Iterator[None]:
    """Does something at the moment at which a service says that: it has looked, and has done nothing yet."""

    class Moment(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            nonlocal waiting
            if waiting and record.msg == said:
                waiting = False
                act()

    waiting, moment = True, Moment()
    log = logging.getLogger("loadgen.service.jobs")
    log.addHandler(moment)
    try:
        yield
    finally:
        log.removeHandler(moment)
    assert not waiting, f"nobody said: {said}"


async def a_lost_run(make: Make, nursery: Nursery, *, begun: bool) -> tuple[Services, str]:
    """A service whose process is gone, and the run that it worked on."""
    lost = make()
    async with client_of(lost) as client:
        run_id = await ask(client)
    lost.supervisor.turn()
    if begun:
        nursery.latest.run()
    return lost, run_id


async def test_an_orphan_that_two_find_begins_once(make: Make, nursery: Nursery) -> None:
    """Both have seen the run of a lost service; the faster one begins it again, and the other one leaves it alone."""
    lost, run_id = await a_lost_run(make, nursery, begun=False)
    fast, slow = make(), make()
    lose(slow, lost)
    with between(FOUND, fast.supervisor.turn):
        slow.supervisor.turn()
    assert len(nursery.children) == 2
    row = fast.runs.row(run_id)
    assert (row["owner"], row["attempts"], row["state"]) == (fast.supervisor.owner, 2, "starting")


async def test_an_orphan_that_two_find_ends_once(make: Make, nursery: Nursery) -> None:
    """What was begun is interrupted by one of them, and is told of once."""
    lost, run_id = await a_lost_run(make, nursery, begun=True)
    fast, slow = make(), make()
    lose(slow, lost)
    with between(FOUND, fast.supervisor.turn):
        slow.supervisor.turn()
    async with client_of(slow) as client:
        assert (await shown(client, run_id))["state"] == "interrupted"
        events = (await client.get(f"/v1/runs/{run_id}/events")).text
    assert events.count('"state": "interrupted"') == 1
    assert len(nursery.children) == 1


async def test_a_process_that_is_noted_in_the_last_moment_is_seen(make: Make, nursery: Nursery) -> None:
    """A service that is gone by now noted its process after the other one had looked: that process may have its order,
    so nothing is begun beside it."""
    lost = make()
    async with client_of(lost) as client:
        run_id = await ask(client)
    with lost.database.write() as connection:
        assert queue.claim(connection, lost.supervisor.owner, 0, most=1)
    heir = make()
    lose(heir, lost)

    def noted() -> None:
        with lost.database.write() as connection:
            assert queue.note_child(connection, run_id, lost.supervisor.owner, of_this_process())

    with between(FOUND, noted):
        heir.supervisor.turn()
    heir.supervisor.turn()
    assert nursery.children == []
    assert heir.runs.row(run_id)["state"] == "starting"


async def test_a_service_that_only_was_slow_gives_no_order(make: Make, nursery: Nursery, clock: StillClock) -> None:
    """It was taken for gone while its process started: the run is another's by then, which has begun it."""
    slow, quick = make(), make()
    quick.supervisor.turn()  # has seen the other one's beat
    async with client_of(slow) as client:
        run_id = await ask(client)

    def meanwhile() -> None:
        clock.move(GONE_AFTER_S + 1)
        quick.supervisor.turn()

    nursery.meanwhile = meanwhile
    slow.supervisor.turn()
    late, first = nursery.children
    assert (late.order, late.let_gone, slow.supervisor.working) == (None, True, [])
    assert first.order is not None
    assert quick.supervisor.working == [run_id]
    slow.supervisor.turn()
    first.run()
    first.end()
    quick.supervisor.turn()
    assert quick.runs.row(run_id)["state"] == "completed"


async def a_message(make: Make, nursery: Nursery, receiver: Receiver) -> Services:
    """A service that has one to deliver."""
    services = make(webhook_host=["loopback"], allow_env=["HOOK_SECRET"])
    async with client_of(services) as client:
        assert (await client.post("/v1/webhooks", json=hook(receiver.url, "run.completed"))).status_code == 201
        await client.post("/v1/runs", json=a_run())
    services.supervisor.turn()
    nursery.latest.run()
    nursery.latest.end()
    services.supervisor.turn()
    return services


async def test_a_message_is_delivered_by_one(make: Make, nursery: Nursery, receiver: Receiver) -> None:
    """While one service is about to deliver it, another one that looks finds nothing to do."""
    services = await a_message(make, nursery, receiver)
    other = courier_of(services)

    def resolving(host: str, port: int) -> Any:
        other.turn()
        return resolve(host, port)

    one = courier_of(services, resolving)
    await deliver(one)
    await deliver(other)
    assert len(receiver.got) == 1


async def test_a_message_whose_service_is_lost_is_delivered_by_another(
    make: Make, nursery: Nursery, receiver: Receiver, clock: StillClock
) -> None:
    """What one took and never delivered is due again after a while; taken twice it cannot be."""
    services = await a_message(make, nursery, receiver)
    with services.database.write() as connection:
        (message,) = outbox.due(connection, clock.now_unix_ms(), 10)
        assert outbox.claim(connection, message, clock.now_unix_ms())
        assert not outbox.claim(connection, message, clock.now_unix_ms())
    courier = courier_of(services)
    await deliver(courier)
    assert receiver.got == []
    clock.move(outbox.CLAIM_S)
    await deliver(courier)
    assert len(receiver.got) == 1
