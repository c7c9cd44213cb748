"""What answers requests steps back behind what measures, as the scheduler of Linux sees the processes."""

import os
from pathlib import Path

import pytest

from tests.service.house import reached, service, simulator

pytestmark = pytest.mark.slow

LONG = {"concurrency": 2, "num_requests": 30, "output_tokens": "16"}


@pytest.mark.parametrize(
    ("under", "lower"), [((), 0), (("nice", "-n", "12"), 12)], ids=["as it comes", "by an operator who lowers it"]
)
def test_requests_have_a_lower_priority_than_what_measures(under: tuple[str, ...], lower: int, tmp_path: Path) -> None:
    """Within one session, since sched_autogroup lets priorities mean nothing between two."""
    with simulator() as target, service(tmp_path / "data", under=under) as house:
        run_id = house.ask(target.url, **LONG)
        house.wait(run_id, lambda run: reached("running", run))
        child = house.child()
        assert child is not None
        answering = house.process.pid  # the main thread, in which the event loop runs
        normal = min(os.getpriority(os.PRIO_PROCESS, 0) + lower, 19)
        assert os.getpriority(os.PRIO_PROCESS, child) == normal
        lower_still = min(normal + 10, 19)
        assert os.getpriority(os.PRIO_PROCESS, answering) == lower_still
        threads = [int(entry.name) for entry in Path(f"/proc/{answering}/task").iterdir()]
        priorities = [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads if thread != answering]
        assert lower_still in priorities  # threads that have answered
        assert set(priorities) <= {normal, lower_still}
        assert os.getsid(child) == os.getsid(answering)
        assert os.getpgid(child) == child  # so that it is killed with all that it started, and alone
        house.client.post(f"/v1/runs/{run_id}/cancel").raise_for_status()
        house.ended(run_id)
