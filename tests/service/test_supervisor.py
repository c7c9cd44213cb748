"""Runs from the queue to their end, with processes that do what the test says and time that moves when it says."""

import httpx2
import pytest

from loadgen.service.jobs.work import ABORT_S, STOP_S
from loadgen.service.services import Services
from tests.service.asking import ask, shown
from tests.service.conftest import Make, client_of
from tests.service.fakes.obedient_child import Nursery
from tests.service.fakes.still_clock import StillClock


async def test_a_run_goes_through_its_states(client: httpx2.AsyncClient, services: Services, nursery: Nursery) -> None:
    """Queued, starting, running, finishing, completed: each as its process says, with what it came to."""
    run_id = await ask(client)
    services.supervisor.turn()
    child = nursery.latest
    assert (await shown(client, run_id))["state"] == "starting"
    assert child.order is not None
    assert child.order.options["url"] == "http://127.0.0.1:8000"
    child.run()
    child.tell("progress", ended=3, planned=10)
    running = await shown(client, run_id)
    assert (running["state"], running["progress"]) == ("running", {"ended": 3, "planned": 10})
    child.tell("state", state="finishing")
    assert (await shown(client, run_id))["state"] == "finishing"
    child.tell("state", state="running")  # of a further level, told late
    assert (await shown(client, run_id))["state"] == "finishing"
    child.end(result={"requests_per_s": 4.5})
    services.supervisor.turn()
    done = await shown(client, run_id)
    assert (done["state"], done["exit_code"], done["valid"], done["result"]) == (
        "completed",
        0,
        True,
        {"requests_per_s": 4.5},
    )


@pytest.mark.parametrize(
    ("exit_code", "state", "reason"),
    [
        (0, "completed", None),
        (1, "completed", None),
        (3, "completed", None),
        (2, "failed", "configuration"),
        (4, "failed", "target"),
        (70, "failed", "internal"),
        (130, "interrupted", "service_lost"),
    ],
)
async def test_exit_codes_are_states(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, exit_code: int, state: str, reason: str | None
) -> None:
    """A failed gate and an invalid measurement are results; what could not be measured has failed, and says why."""
    run_id = await ask(client)
    services.supervisor.turn()
    nursery.latest.run()
    nursery.latest.end(exit_code, message="because")
    services.supervisor.turn()
    done = await shown(client, run_id)
    assert (done["state"], done["reason"], done["message"]) == (state, reason, "because")


async def test_one_server_has_one_run(client: httpx2.AsyncClient, make: Make, nursery: Nursery) -> None:
    """Two runs of one server, whatever it is called, are one behind the other; another server's goes beside them."""
    services = make(parallel_runs=4)
    async with client_of(services) as other:
        first = await ask(other, "http://127.0.0.1:8000")
        second = await ask(other, "http://localhost:8000/v1/")
        third = await ask(other, "http://127.0.0.1:8001")
        services.supervisor.turn()
        assert [child.order.run_id for child in nursery.children if child.order] == [first, third]
        nursery.children[0].run()
        nursery.children[0].end()
        services.supervisor.turn()
        assert nursery.latest.order is not None
        assert nursery.latest.order.run_id == second
        assert len(nursery.children) == 3


async def test_who_needs_several_servers_is_not_passed_by(make: Make, nursery: Nursery) -> None:
    """A run that waits for one of its servers keeps its place for the others, so that it begins some day."""
    services = make(parallel_runs=4)
    arms = {name: {"url": f"http://127.0.0.1:{port}"} for name, port in (("baseline", 8000), ("other", 8001))}
    options = {
        "name": "both",
        "workload": {"synthetic": {"input_tokens": 8, "output_tokens": 8}},
        "load": {"concurrency": [1]},
        "level": {"num_requests": 20},
        "arms": arms,
    }
    async with client_of(services) as client:
        first = await ask(client, "http://127.0.0.1:8000")
        both = (await client.post("/v1/experiments", json={"options": options})).json()["id"]
        behind = await ask(client, "http://127.0.0.1:8001")
        services.supervisor.turn()
        assert [child.order.run_id for child in nursery.children if child.order] == [first]
        nursery.latest.run()
        nursery.latest.end()
        services.supervisor.turn()
        assert nursery.latest.order is not None
        assert nursery.latest.order.run_id == both
        assert (await shown(client, behind))["waiting"] == {"position": 0, "runs": [both]}


async def test_one_at_a_time_by_default(client: httpx2.AsyncClient, services: Services, nursery: Nursery) -> None:
    """Runs of different servers do not disturb each other's client either, unless that is allowed."""
    await ask(client, "http://127.0.0.1:8000")
    await ask(client, "http://127.0.0.1:8001")
    for _ in range(3):
        services.supervisor.turn()
    assert len(nursery.children) == 1


async def test_cancelling_stops_in_order_and_keeps_what_there_is(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """The process is asked once; what it leaves is taken in, and the run is cancelled, not failed."""
    run_id = await ask(client)
    services.supervisor.turn()
    child = nursery.latest
    child.run()
    await client.post(f"/v1/runs/{run_id}/cancel")
    services.supervisor.turn()
    services.supervisor.turn()
    assert child.stops == 1
    child.end(130, result={"requests_per_s": 2.0})
    services.supervisor.turn()
    done = await shown(client, run_id)
    assert (done["state"], done["reason"], done["result"]) == ("cancelled", "asked", {"requests_per_s": 2.0})


async def test_a_run_that_completes_though_it_was_cancelled_is_complete(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """A result that is whole is one, whoever asked for its end a moment before."""
    run_id = await ask(client)
    services.supervisor.turn()
    nursery.latest.run()
    await client.post(f"/v1/runs/{run_id}/cancel")
    nursery.latest.end(0)
    services.supervisor.turn()
    assert (await shown(client, run_id))["state"] == "completed"


async def test_what_does_not_stop_is_ended(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, clock: StillClock
) -> None:
    """A process that stays is asked again, then ended by force; the run ends whatever it does."""
    run_id = await ask(client)
    services.supervisor.turn()
    child = nursery.latest
    child.run()
    await client.post(f"/v1/runs/{run_id}/cancel")
    services.supervisor.turn()
    clock.move(STOP_S + 1)
    services.supervisor.turn()
    assert (child.stops, child.killed) == (2, False)
    clock.move(ABORT_S + 1)
    services.supervisor.turn()
    assert child.killed
    services.supervisor.turn()
    assert (await shown(client, run_id))["state"] == "cancelled"


async def test_a_time_limit_ends_a_run(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, clock: StillClock
) -> None:
    """Past its time it is stopped in order, and says that this is why. A calendar that is set is no time that went."""
    run_id = await ask(client, time_limit_s=60)
    services.supervisor.turn()
    nursery.latest.run()
    clock.set("2027-01-01T00:00:00")
    services.supervisor.turn()
    assert nursery.latest.stops == 0
    clock.move(61)
    services.supervisor.turn()
    assert nursery.latest.stops == 1
    nursery.latest.end(130)
    services.supervisor.turn()
    done = await shown(client, run_id)
    assert (done["state"], done["reason"]) == ("interrupted", "time_limit")


async def test_a_process_that_dies_interrupts_its_run(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """What it had measured stays, the run is no longer at work, and the next one begins."""
    first, second = await ask(client), await ask(client)
    services.supervisor.turn()
    nursery.latest.run()
    nursery.latest.die()
    services.supervisor.turn()
    done = await shown(client, first)
    assert (done["state"], done["reason"]) == ("interrupted", "child_lost")
    assert "status -9" in str(done["message"])
    assert services.runs.row(first)["artefact"] == "measured"
    assert (await shown(client, second))["state"] == "starting"


async def test_what_was_allowed_may_not_be_any_more(client: httpx2.AsyncClient, make: Make, nursery: Nursery) -> None:
    """A run that waited while the settings changed is held against those of now."""
    services = make(allow_host=["10.0.0.0/8"])
    async with client_of(services) as before:
        run_id = await ask(before, "http://10.0.0.7:8000")
    later = make()
    later.supervisor.turn()
    async with client_of(later) as after:
        done = await shown(after, run_id)
    assert (done["state"], done["reason"]) == ("failed", "configuration")
    assert nursery.children == []


async def test_shutting_down_interrupts_and_keeps(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """Nothing begins any more; what is at work is stopped and taken in before the service ends."""
    run_id, waiting = await ask(client), await ask(client)
    services.supervisor.turn()
    child = nursery.latest
    child.run()
    services.supervisor.drain()
    assert child.stops == 1
    child.end(130)
    services.supervisor.turn()
    services.supervisor.leave()
    done = await shown(client, run_id)
    assert (done["state"], done["reason"]) == ("interrupted", "shutdown")
    assert (await shown(client, waiting))["state"] == "queued"
    assert len(nursery.children) == 1


async def test_a_run_ends_whatever_follows_from_it(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """A result that the history cannot take keeps no run at work, and what else follows is done."""
    run_id = await ask(client)
    services.supervisor.turn()
    nursery.latest.run()
    nursery.latest.end(0, capacity={"nonsense": 1})
    services.supervisor.turn()
    assert (await shown(client, run_id))["state"] == "completed"
    assert services.supervisor.working == []
