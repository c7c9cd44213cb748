"""What the database looks like after an accident."""

from sqlalchemy import update

from loadgen.service.services import Services
from loadgen.service.store.tables import owners, runs
from tests.service.fakes.obedient_child import GONE, of_this_process


def lose(survivor: Services, lost: Services) -> None:
    """After a kill: the process of the lost service is gone."""
    here = of_this_process()
    with survivor.database.write() as connection:
        process = {**GONE, "boot": here["boot"]}
        connection.execute(update(owners).where(owners.c.id == lost.supervisor.owner).values(process=process))


def forget_process(services: Services, run_id: str) -> None:
    """The process of a run is gone."""
    with services.database.write() as connection:
        connection.execute(update(runs).where(runs.c.id == run_id).values(child=GONE))
