"""What is told of a run while it goes on."""

import asyncio
from pathlib import Path

from loadgen.adapters.prometheus.series import Labels
from loadgen.core.metrics.summary import Summary
from loadgen.core.metrics.totals import Totals
from loadgen.core.record import Outcome
from loadgen.core.run import Load, LoadMode
from loadgen.engine.live import LiveCounts
from loadgen.locustio.conductor.following import Follower
from loadgen.wiring.watch import Watch
from tests.locustio.told import Told
from tests.report.made.ladders import level_summary

LABELS = Labels(server="vllm", method="none", model="m", workload="synthetic")
LOAD = Load(mode=LoadMode.CONCURRENCY, concurrency=4, num_requests=10, seed=1)


def completed(requests: int) -> Totals:
    totals = Totals()
    totals.outcomes[Outcome.COMPLETED] = requests
    return totals


async def test_counts_are_those_since_the_last_time() -> None:
    """Of this run alone, also when one of the same server went before; the last is told when the run is over."""
    told = Told()
    follower = Follower(told, lambda _: None, out=Path("runs"))
    follower.begin(LABELS, LOAD, origin_unix_ns=0).count(completed(7))
    run = follower.begin(LABELS, LOAD, origin_unix_ns=0)
    run.count(completed(2))
    async with follower.display(LiveCounts(planned=10, warmup_planned=4), "concurrency 4", None):
        await asyncio.sleep(0)
        run.count(completed(3))
    first, last = told.named("progress")
    assert (first["counts"], last["counts"]) == ({"outcomes": {"completed": 2}}, {"outcomes": {"completed": 3}})
    assert (first["warming_up"], first["planned"]) == (True, 6)
    assert told.named("level") == [{"title": "concurrency 4", "duration_s": None, "users": 4}]


def test_the_folder_is_told_at_its_beginning(tmp_path: Path) -> None:
    """Beside what the page of metrics says of it."""
    told = Told()
    follower = Follower(told, lambda _: None, out=tmp_path)
    Watch(monitor=follower).tell("sweep", tmp_path / "sweep-1")
    assert told.named("saving") == [{"path": str(tmp_path / "sweep-1")}]
    assert [family.name for family in follower.families()] == ["loadgen_run_info"]


def test_a_summary_is_told_once_and_before_the_next_run() -> None:
    """As soon as somebody looks."""
    summaries: list[Summary] = []
    follower = Follower(Told(), summaries.append, out=Path("runs"))
    run = follower.begin(LABELS, LOAD, origin_unix_ns=0)
    follower.catch_up()
    assert summaries == []
    run.finished(level_summary(4))
    follower.begin(LABELS, LOAD, origin_unix_ns=0)
    follower.catch_up()
    assert summaries == [level_summary(4)]
