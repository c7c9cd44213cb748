"""Pushes by the clock and at the end, whatever a collector does."""

import threading
from collections.abc import Sequence

from loadgen.adapters.otlp.families import Family
from loadgen.adapters.otlp.pusher import Pusher
from tests.adapters.prometheus.pages import monitor_of
from tests.core.analysis.factory import answered

URL = "http://collector:4318/v1/metrics"


class Scripted:
    """A collector that answers as it is told to, the last answer for good; `hangs` keeps it from answering."""

    def __init__(self, *answers: str | None, hangs: bool = False) -> None:
        self._answers = list(answers)
        self.pushes: list[Sequence[Family]] = []
        self.arrived = threading.Semaphore(0)
        self._free = threading.Event()
        if not hangs:
            self._free.set()

    def send(self, families: Sequence[Family]) -> str | None:
        """Takes a push."""
        self.pushes.append(families)
        self.arrived.release()
        self._free.wait(20)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def close(self) -> None:
        """Ends what hangs."""
        self._free.set()


def pushed(to: Scripted, *, pushes: int = 1, interval_s: float = 3600.0, flush_s: float = 5.0) -> list[str]:
    """What was said about so many pushes and the last one."""
    said: list[str] = []
    monitor = monitor_of([answered(0)])
    pusher = Pusher(monitor, to, interval_s=interval_s, url=URL, tell=said.append, flush_s=flush_s)
    for _ in range(pushes):
        assert to.arrived.acquire(timeout=20)
    pusher.close()
    return said


def test_there_is_a_push_at_once_and_one_at_the_end() -> None:
    """However long the interval is, and nobody is told of what went well."""
    collector = Scripted(None)
    assert pushed(collector) == []
    assert len(collector.pushes) == 2


def test_pushes_go_on() -> None:
    """At every interval."""
    collector = Scripted(None)
    assert pushed(collector, pushes=5, interval_s=0.001) == []


def test_a_fault_is_told_of_once_and_counted() -> None:
    """The first is said when it happens, all of them at the end; later pushes are tried all the same."""
    collector = Scripted("Connection refused")
    first, last = pushed(collector, pushes=3, interval_s=0.001)
    assert first == f"metrics do not reach {URL}: Connection refused; the measurement goes on without"
    tried = len(collector.pushes)
    assert tried >= 4
    assert last == f"metrics: {tried} of {tried} pushes to {URL} failed"


def test_a_collector_that_comes_back() -> None:
    """Has all that it missed: totals only grow."""
    first, last = pushed(Scripted("HTTP 503 Service Unavailable", None))
    assert "503" in first
    assert last == f"metrics: 1 of 2 pushes to {URL} failed"


def test_a_collector_that_does_not_answer_holds_nothing_up() -> None:
    """The end waits for it so long and no longer, counts what is under way as lost, and says that the last state is."""
    before = threading.active_count()
    (said,) = pushed(Scripted(None, hangs=True), flush_s=0.05)
    assert said == f"metrics: 1 of 1 pushes to {URL} failed; the last state did not get there"
    for thread in threading.enumerate():
        if thread.name == "metrics push":
            thread.join(20)
    assert threading.active_count() == before
