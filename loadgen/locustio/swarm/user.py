"""What stands for load in Locust's eyes: users, one for each request kept in flight, and the shape of the ladder."""

from collections.abc import Callable

import gevent
from locust import LoadTestShape, User, task

from loadgen.locustio.swarm.state import LadderState

SPAWN_RATE = 100
_LONG_S = 3600.0


class LLM(User):
    """A request kept in flight. The process that measures sends it; here it only counts."""

    @task
    def hold(self) -> None:
        """Stays until the level is over."""
        gevent.sleep(_LONG_S)


class Ladder(LoadTestShape):
    """Shows the level under way as users, and ends the test when the ladder has ended."""

    abstract = False

    def __init__(self, state: LadderState, workers: Callable[[], int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._state, self._workers = state, workers

    def tick(self) -> tuple[int, float] | None:
        """The users of this moment; None once the ladder is over."""
        if not self._state.busy:
            return None
        return self._state.users or self._workers(), SPAWN_RATE
