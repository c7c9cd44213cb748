"""Waiting between two runs, against pages that say how busy their server is."""

import time

from loadgen.adapters.servers.generic import TargetFacts
from loadgen.options.load import RunOptions
from loadgen.options.resolve import resolve
from loadgen.wiring.cooldown import cool_down
from loadgen.wiring.probe import pages_of
from loadgen.wiring.target import destination_of
from tests.fakes.scripted_server import Peer, ScriptedServer, plain

LONG_S = 30.0
FACTS = TargetFacts(model="m", engine="vllm", metrics_path="/metrics")


class Busy:
    """A vLLM metrics page on which so many requests run and wait, the last of them for good."""

    def __init__(self, *counts: tuple[int, int]) -> None:
        self._counts = list(counts)
        self.read = 0

    def __call__(self, peer: Peer) -> None:
        while peer.read_request() is not None:
            running, waiting = self._counts.pop(0) if len(self._counts) > 1 else self._counts[0]
            self.read += 1
            labels = '{engine="0",model_name="m"}'
            page = f"vllm:num_requests_running{labels} {running}\nvllm:num_requests_waiting{labels} {waiting}\n"
            peer.send(plain(page.encode()))


async def waited(server: Busy | None, *, pause_s: float, most_s: float = LONG_S) -> tuple[tuple[str, ...], float]:
    """The notes, and how long it took."""
    with ScriptedServer(server or Busy((0, 0))) as running:
        options = resolve(RunOptions, {"url": running.url}, environment={})
        pages = pages_of(options, FACTS, destination_of(options)) if server is not None else {}
        began = time.monotonic()
        notes = await cool_down(pages, FACTS, pause_s=pause_s, most_s=most_s)
        return notes, time.monotonic() - began


async def test_an_idle_server_is_not_waited_for() -> None:
    """One look at the page, and no pause."""
    server = Busy((0, 0))
    notes, took_s = await waited(server, pause_s=LONG_S)
    assert (notes, server.read) == ((), 1)
    assert took_s < LONG_S / 2


async def test_a_busy_server_is_waited_for_until_nothing_runs_or_waits() -> None:
    """Running first, then only waiting, then idle: three looks."""
    server = Busy((2, 1), (0, 1), (0, 0))
    notes, _ = await waited(server, pause_s=LONG_S)
    assert (notes, server.read) == ((), 3)


async def test_a_server_that_stays_busy_is_noted() -> None:
    """After the longest wait the next run starts all the same, and its manifest says so."""
    notes, _ = await waited(Busy((1, 0)), pause_s=LONG_S, most_s=0.3)
    assert notes == ("the server was still busy 300 ms after the run before",)


async def test_without_a_page_that_tells_there_is_the_pause() -> None:
    """No page at all."""
    notes, took_s = await waited(None, pause_s=0.1)
    assert notes == ()
    assert 0.1 <= took_s < LONG_S


async def test_a_page_that_cannot_be_read_is_as_none() -> None:
    """A server without such a page is waited for by the pause alone."""

    def refuse(peer: Peer) -> None:
        while peer.read_request() is not None:
            peer.send(plain(b"no", status="404 Not Found"))

    with ScriptedServer(refuse) as running:
        options = resolve(RunOptions, {"url": running.url}, environment={})
        pages = pages_of(options, FACTS, destination_of(options))
        began = time.monotonic()
        assert await cool_down(pages, FACTS, pause_s=0.1) == ()
        assert 0.1 <= time.monotonic() - began < LONG_S
