"""The service is lost at every stage of a run, and comes back: nothing recorded is lost, nothing runs twice, no run
stays at work for ever. `test_kill_nine.py` does the same with real processes."""

import pytest

from loadgen.service.jobs.owners import GONE_AFTER_S
from loadgen.service.jobs.supervisor import BEAT_S
from tests.service.asking import ask, shown
from tests.service.conftest import Make, client_of
from tests.service.fakes.obedient_child import Nursery, of_this_process
from tests.service.fakes.still_clock import StillClock
from tests.service.losing import forget_process, lose


async def test_what_was_queued_runs_after_a_restart(make: Make, nursery: Nursery) -> None:
    """A run that waited when the service was lost begins when it is back, once."""
    first = make()
    async with client_of(first) as client:
        run_id = await ask(client)
    second = make()
    lose(second, first)
    second.supervisor.turn()
    second.supervisor.turn()
    assert [child.order.run_id for child in nursery.children if child.order] == [run_id]


async def test_lost_before_the_order_it_begins_again(make: Make, nursery: Nursery, clock: StillClock) -> None:
    """A process that never got its order has sent nothing: the run goes back to its place and is begun anew."""
    first = make()
    async with client_of(first) as client:
        run_id = await ask(client)
    first.supervisor.turn()  # claimed, and the process noted; it never marked that it begins
    second = make()
    lose(second, first)
    second.supervisor.turn()
    second.supervisor.turn()
    assert len(nursery.children) == 2
    nursery.latest.run()
    nursery.latest.end()
    second.supervisor.turn()
    async with client_of(second) as client:
        assert (await shown(client, run_id))["state"] == "completed"
    assert second.runs.row(run_id)["attempts"] == 2


async def test_lost_while_it_measures_it_is_interrupted_and_kept(make: Make, nursery: Nursery) -> None:
    """Something was sent, and nobody knows how much: the run is not begun again, its folder is named."""
    first = make()
    async with client_of(first) as client:
        run_id = await ask(client)
    first.supervisor.turn()
    nursery.latest.run()
    second = make()
    lose(second, first)
    second.supervisor.turn()
    second.supervisor.turn()
    async with client_of(second) as client:
        done = await shown(client, run_id)
    assert (done["state"], done["reason"]) == ("interrupted", "service_lost")
    assert second.runs.row(run_id)["artefact"] == "measured"
    assert len(nursery.children) == 1


@pytest.mark.parametrize(("exit_code", "state"), [(0, "completed"), (130, "interrupted"), (4, "failed")])
async def test_an_outcome_that_nobody_took_in_is_taken_in(
    make: Make, nursery: Nursery, exit_code: int, state: str
) -> None:
    """The process outlived the service and left what it came to: that is the run's end."""
    first = make()
    async with client_of(first) as client:
        run_id = await ask(client)
    first.supervisor.turn()
    nursery.latest.run()
    nursery.latest.end(exit_code, result={"requests_per_s": 7.0})
    second = make()
    lose(second, first)
    second.supervisor.turn()
    async with client_of(second) as client:
        done = await shown(client, run_id)
    assert (done["state"], done["result"]) == (state, {"requests_per_s": 7.0})


async def test_a_process_that_still_works_keeps_its_server(make: Make, nursery: Nursery, clock: StillClock) -> None:
    """Until the process of a lost service is gone, nothing else is sent to its server."""
    first = make()
    async with client_of(first) as client:
        run_id, behind = await ask(client), await ask(client)
    nursery.identity = of_this_process()
    first.supervisor.turn()
    nursery.latest.run()
    second = make()
    lose(second, first)
    second.supervisor.turn()
    async with client_of(second) as client:
        assert (await shown(client, run_id))["state"] == "running"
        assert (await shown(client, behind))["state"] == "queued"
        forget_process(second, run_id)
        clock.move(BEAT_S)
        second.supervisor.turn()
        assert (await shown(client, run_id))["state"] == "interrupted"
        second.supervisor.turn()
        assert (await shown(client, behind))["state"] == "starting"


async def test_a_service_that_lives_is_left_alone(make: Make, nursery: Nursery, clock: StillClock) -> None:
    """A second service on the database takes nothing from one whose beat goes on, however the calendar is set."""
    first, second = make(), make()
    async with client_of(first) as client:
        run_id = await ask(client)
        first.supervisor.turn()
        nursery.latest.run()
        for _ in range(3):
            clock.move(GONE_AFTER_S / 2)
            clock.set("2030-01-01T00:00:00")
            first.supervisor.turn()
            second.supervisor.turn()
        assert (await shown(client, run_id))["state"] == "running"


async def test_a_service_whose_beat_stands_still_is_gone(make: Make, nursery: Nursery, clock: StillClock) -> None:
    """Where its process cannot be looked at, a beat that stood still for long enough says so."""
    first, second = make(), make()
    async with client_of(first) as client:
        run_id = await ask(client)
        first.supervisor.turn()
        nursery.latest.run()
        second.supervisor.turn()
        clock.move(GONE_AFTER_S - 1)
        second.supervisor.turn()
        assert (await shown(client, run_id))["state"] == "running"
        clock.move(BEAT_S)
        second.supervisor.turn()
        assert (await shown(client, run_id))["state"] == "interrupted"


async def test_nothing_begins_for_ever(make: Make, nursery: Nursery) -> None:
    """A service that is lost whenever it begins a run does not begin it without end."""
    services = make()
    async with client_of(services) as client:
        run_id = await ask(client)
    for _ in range(8):
        services.supervisor.turn()
        before, services = services, make()
        lose(services, before)
        services.supervisor.turn()
    async with client_of(services) as client:
        done = await shown(client, run_id)
    assert done["state"] == "failed"
    assert len(nursery.children) <= 6


async def test_cancelled_while_the_service_was_lost(make: Make, nursery: Nursery) -> None:
    """A run that was cancelled and not begun is not begun again."""
    first = make()
    async with client_of(first) as client:
        run_id = await ask(client)
        first.supervisor.turn()
        await client.post(f"/v1/runs/{run_id}/cancel")
    second = make()
    lose(second, first)
    second.supervisor.turn()
    second.supervisor.turn()
    async with client_of(second) as client:
        assert (await shown(client, run_id))["state"] == "cancelled"
    assert len(nursery.children) == 1


async def test_another_machines_run_is_not_begun_again(make: Make, nursery: Nursery) -> None:
    """Without the folder nobody can tell whether something was sent, so nothing is sent again."""
    first = make()
    async with client_of(first) as client:
        run_id = await ask(client)
    first.supervisor.turn()
    (first.runs.folder / run_id).rename(first.runs.folder / "elsewhere")
    second = make()
    lose(second, first)
    second.supervisor.turn()
    async with client_of(second) as client:
        assert (await shown(client, run_id))["state"] == "interrupted"
