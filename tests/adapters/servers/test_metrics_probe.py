"""Metrics pages read around and during a run, in real time, from a server that does as it is told."""

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.servers.control import Control
from loadgen.adapters.servers.nvml import opened
from loadgen.adapters.servers.probe import EngineReader, LocalGpus, MetricsPage, MetricsProbe, Reader, gpu_reader
from loadgen.core.server.sample import GPU_SOURCE, Counters, Scrape
from loadgen.core.server.window import whole_run
from tests.fakes.scripted_nvml import ScriptedNvml

Answer = Callable[[int], httpx2.Response]
"""From the number of the reading, counted from 1, to what is answered."""

INTERVAL_S = 0.05

SERIES = 'an_exporter_of_many:things_total{a="0123456789",b="0123456789"} 1'


class Served:
    """A page, how often it was asked for, and for how many askers at once."""

    def __init__(self, answer: Answer, *, takes_s: float = 0.0) -> None:
        self._answer, self._takes_s = answer, takes_s
        self.asked = self.open = self.most_open = 0

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        number = self.asked
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        await asyncio.sleep(self._takes_s)
        self.open -= 1
        return self._answer(number)


class Wire(httpx2.AsyncByteStream):
    """A body as it comes over the wire, in pieces, at every reading again."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), 65536):
            yield self._body[start : start + 65536]


def coded(encoding: str, body: bytes) -> Callable[[], httpx2.Response]:
    """A page that is compressed although nobody asked for it."""
    return lambda: httpx2.Response(200, headers={"Content-Encoding": encoding}, stream=Wire(body))


class Kept:
    """What the probe read."""

    def __init__(self) -> None:
        self.scrapes: list[Scrape] = []

    def put(self, scrape: Scrape) -> None:
        self.scrapes.append(scrape)


def tokens(count: float) -> httpx2.Response:
    """A vLLM page that has generated so many."""
    return httpx2.Response(200, text=f'vllm:generation_tokens_total{{engine="0",model_name="m"}} {count}\n')


@asynccontextmanager
async def probing(
    *served: Served,
    kept: Kept,
    reader: Reader | None = None,
    source: str | None = None,
    missed: Callable[[], None] | None = None,
) -> AsyncIterator[MetricsProbe]:
    """A probe of these pages, named 0, 1, ... unless `source` names the only one."""
    clock = MonotonicClock()
    pages = []
    for number, page in enumerate(served):
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(page), base_url="http://server")
        pages.append(
            MetricsPage(
                name=source or str(number),
                control=Control(client),
                path="/metrics",
                reader=reader or EngineReader("vllm", "m"),
                missed=missed,
            )
        )
    try:
        yield MetricsProbe(pages, clock=clock, sink=kept, interval_s=INTERVAL_S)
    finally:
        clock.close()


async def read(*served: Served, run_s: float = 0.0, reader: Reader | None = None, source: str | None = None) -> Kept:
    """All that is read around and during a run of that length."""
    kept = Kept()
    async with probing(*served, kept=kept, reader=reader, source=source) as probe, asyncio.timeout(5):
        await probe.before()
        async with asyncio.TaskGroup() as group:
            group.create_task(probe.during())
            await asyncio.sleep(run_s)
            await probe.after()
    return kept


def generated(scrape: Scrape) -> float | None:
    return scrape.samples[0].counters.generation_tokens


async def test_a_page_is_read_before_and_after_until_it_stands_still() -> None:
    """Counts that come a moment late are waited for: the last two readings agree."""
    kept = await read(Served(lambda number: tokens({1: 10, 2: 90, 3: 95}.get(number, 100))))
    assert [generated(scrape) for scrape in kept.scrapes] == [10, 90, 95, 100, 100]
    assert whole_run(kept.scrapes).counters.generation_tokens == 90


async def test_counts_that_never_stand_still_are_not_waited_for_without_end() -> None:
    """A server that others use."""
    served = Served(tokens)
    await read(served)
    assert 4 <= served.asked <= 7


async def test_a_page_is_read_on_its_beats() -> None:
    """Every 50 ms for 0.4 s, with before and after; instants ascend."""
    kept = await read(Served(lambda number: tokens(7)), run_s=0.4)
    assert 6 <= len(kept.scrapes) <= 12
    instants = [scrape.taken_ns for scrape in kept.scrapes]
    assert instants == sorted(instants)
    assert {scrape.source for scrape in kept.scrapes} == {"0"}


async def test_a_slow_page_misses_beats_and_another_does_not() -> None:
    """A page of 0.15 s is never asked for twice at once; its neighbour keeps its beats meanwhile."""
    slow, quick = Served(lambda number: tokens(7), takes_s=0.15), Served(lambda number: tokens(8))
    kept = await read(slow, quick, run_s=0.4)
    assert (slow.most_open, quick.most_open) == (1, 1)
    assert slow.asked < quick.asked
    took_s = [scrape.took_ns / 1e9 for scrape in kept.scrapes if scrape.source == "0"]
    assert min(took_s) >= 0.15


async def test_all_pages_together_are_bounded() -> None:
    """Eight pages on beats of 50 ms would be 160 readings a second; 20 are what there are."""
    served = [Served(lambda number: tokens(7)) for _ in range(8)]
    kept = Kept()
    async with probing(*served, kept=kept) as probe:
        watching = asyncio.ensure_future(probe.during())
        await asyncio.sleep(0.5)
        watching.cancel()
        await asyncio.wait([watching])
    assert sum(page.asked for page in served) == 20


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (httpx2.Response(500, text="broken"), "HTTP 500"),
        (httpx2.Response(302, headers={"Location": "http://elsewhere/"}), "HTTP 302: redirects elsewhere"),
        (httpx2.Response(401, text="who are you"), "HTTP 401"),
        (httpx2.Response(200, text="<html>"), "not a metrics page"),
        (httpx2.Response(200, text="vllm:prompt_tokens_total 1"), "cut off"),
        (httpx2.Response(200, text="# nothing\n"), "nothing on the page"),
        (httpx2.Response(200, text="vllm:prompt_tokens_total 1\n" + "#\n" * 2**21), "has 4 MiB or more"),
        (httpx2.Response(200, text=f"{SERIES}\n" * 10**5), "has 4 MiB or more"),
        (coded("gzip", b"x\n"), "said to be gzip, and is not"),
        (coded("gzip", gzip.compress(b"vllm:prompt_tokens_total 1\n")[:-9]), "the gzip stream is cut off"),
        (coded("br", b"x\n"), "compressed as 'br'"),
    ],
)
async def test_what_cannot_be_read_is_kept_with_its_reason(
    answer: httpx2.Response | Callable[[], httpx2.Response], reason: str
) -> None:
    """The run goes on, and nothing is zero."""
    kept = await read(Served(lambda number: answer() if callable(answer) else answer))
    assert len(kept.scrapes) == 2, "a page without counts is not waited for"
    for scrape in kept.scrapes:
        assert scrape.samples == ()
        assert scrape.fault is not None
        assert reason in scrape.fault


async def test_a_page_that_is_packed_all_the_same_is_unpacked() -> None:
    """By a front end that compresses whatever it is asked; plain pages are what is asked for."""
    asked = []

    def answer(number: int) -> httpx2.Response:
        return coded("gzip", gzip.compress(tokens(5).content))()

    class Noting(Served):
        async def __call__(self, request: httpx2.Request) -> httpx2.Response:
            asked.append(request.headers["accept-encoding"])
            return await super().__call__(request)

    kept = await read(Noting(answer))
    assert generated(kept.scrapes[0]) == 5
    assert set(asked) == {"identity"}


async def test_a_small_page_that_unpacks_to_a_huge_one_is_given_up() -> None:
    """At its limit: 64 MiB of it would not be held, whatever they unpack to."""
    served = Served(lambda number: bomb())
    bomb = coded("gzip", gzip.compress(b"#" * (64 * 2**20), 1))
    tracemalloc.start()
    try:
        first, *_ = (await read(served)).scrapes
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert first.fault is not None
    assert "has 4 MiB or more" in first.fault
    assert most_bytes < 16 * 2**20


async def test_a_clock_of_the_server_that_is_set_is_no_restart() -> None:
    """Its start moves by a second up and down, as an exporter works it out anew; its counters go on."""

    def answer(number: int) -> httpx2.Response:
        counted = tokens(min(number, 8)).text
        return httpx2.Response(200, text=f"process_start_time_seconds {1_700_000_000 + number % 2}\n{counted}")

    found = whole_run((await read(Served(answer), run_s=0.3)).scrapes)
    assert (found.counters.generation_tokens, found.resets) == (7, ())


async def test_of_two_engines_one_dies() -> None:
    """Its series are gone from the page that both had, or its own page is: said, and no sum is made of the other's."""
    other = '{{engine="1",model_name="m"}} {}\n'.format

    def both(number: int) -> httpx2.Response:
        mine = tokens(min(number, 4)).text
        return httpx2.Response(200, text=mine + ("vllm:generation_tokens_total" + other(number) if number < 3 else ""))

    found = whole_run((await read(Served(both), run_s=0.2)).scrapes)
    assert found.counters == Counters()
    (said,) = found.resets
    assert said.startswith("page 0, engine 1 is gone from the page between")

    def dying(number: int) -> httpx2.Response:
        if number > 1:
            raise httpx2.ConnectError("connection refused")
        return tokens(5)

    found = whole_run((await read(Served(lambda number: tokens(5)), Served(dying), run_s=0.2)).scrapes)
    assert found.counters == Counters()
    assert "page 1 was read 1 times, and a difference needs two" in found.notes
    assert found.failed_example is not None
    assert found.failed_example.endswith("ConnectError: connection refused")


async def test_a_server_that_went_away() -> None:
    """Readable, then refused: a fault in words."""

    def answer(number: int) -> httpx2.Response:
        if number > 1:
            raise httpx2.ConnectError("connection refused")
        return tokens(5)

    first, last = (await read(Served(answer))).scrapes
    assert (generated(first), first.fault) == (5, None)
    assert last.fault == "ConnectError: connection refused"


async def test_iterations_of_a_queue_are_read_once_and_none_is_lost() -> None:
    """TensorRT-LLM's list is emptied by reading, also by the one under way when the run ends: its sums go on."""
    waiting = iter([3, 4, 5])

    def answer(number: int) -> httpx2.Response:
        first = sum((3, 4, 5)[: number - 1])
        rows = [
            {"iter": first + row + 1, "inflightBatchingStats": {"numGenRequests": 2}} for row in range(next(waiting, 0))
        ]
        return httpx2.Response(200, content=json.dumps(rows).encode())

    served = Served(answer, takes_s=0.1)
    kept = await read(served, run_s=0.12, reader=EngineReader("tensorrt-llm", "m"))
    steps = [scrape.samples[0].counters.decode_steps for scrape in kept.scrapes]
    assert steps[:3] == [6, 14, 24]
    assert set(steps[3:]) <= {24}


async def test_iterations_that_a_broken_reading_took_away_are_not_passed_over() -> None:
    """The queue was emptied for an answer that never came: the sums are not known any more, and none is too small."""

    def answer(number: int) -> httpx2.Response:
        if number == 2:
            raise httpx2.RemoteProtocolError("the server closed the connection")
        rows = [{"iter": number, "inflightBatchingStats": {"numGenRequests": 2}}] if number < 5 else []
        return httpx2.Response(200, content=json.dumps(rows).encode())

    kept, reader = Kept(), EngineReader("tensorrt-llm", "m")
    async with probing(Served(answer), kept=kept, reader=reader, missed=reader.missed) as probe:
        for _ in range(4):
            await probe.before()
    found = whole_run(kept.scrapes)
    assert (found.counters, found.resets) == (Counters(), ())
    assert found.notes == ("page 0, engine 0: no number in 2 of 3 readings: iterations, decode_steps",)
    assert found.failed_example is not None


async def test_gpus_have_a_page_of_their_own() -> None:
    """Power that never stands still does not keep the run waiting."""
    page = 'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="h"}} {}\n'
    served = Served(lambda number: httpx2.Response(200, text=page.format(100 + number)))
    kept = await read(served, reader=gpu_reader, source=GPU_SOURCE)
    assert [scrape.gpus[0].power_w for scrape in kept.scrapes] == [101, 102]


async def test_gpus_of_this_machine_are_read_beside_the_page() -> None:
    """On beats of their own; one that is lost in the middle is a fault with its reason, and the run goes on."""
    kept, clock, nvml = Kept(), MonotonicClock(), ScriptedNvml()
    with opened(nvml) as reader:
        probe = MetricsProbe([LocalGpus(reader=reader)], clock=clock, sink=kept, interval_s=INTERVAL_S)
        await probe.before()
        nvml.lost = 1
        await probe.after()
    clock.close()
    first, last = kept.scrapes
    assert (first.source, first.fault, [gpu.power_w for gpu in first.gpus]) == (GPU_SOURCE, None, [412.5, 90.0])
    assert (last.fault, last.gpus) == ("GPU 1: GPU is lost", ())


@pytest.mark.parametrize(
    ("engine", "page", "known"),
    [
        (None, 'vllm:generation_tokens_total{model_name="m"} 5\n', True),
        ("a-gateway", "llamacpp:tokens_predicted_total 5\n", True),
        ("a-gateway", "gateway_requests_total 5\n", False),
    ],
)
async def test_a_page_of_an_unknown_engine_is_known_by_its_metrics(engine: str | None, page: str, known: bool) -> None:
    """A gateway in front of replicas whose pages were named."""
    served = Served(lambda number: httpx2.Response(200, text=page))
    first, *_ = (await read(served, reader=EngineReader(engine, "m"))).scrapes
    assert (generated(first) if known else first.fault) == (
        5 if known else "no metric of a known engine is on the page"
    )


@pytest.mark.slow
async def test_a_page_that_hangs_is_given_up() -> None:
    """Before the run by that reading alone; at its end the other page settles meanwhile, and few seconds are lost."""
    kept = Kept()
    counting = Served(lambda number: tokens({1: 10, 2: 90, 3: 95}.get(number, 100)))
    async with probing(Served(tokens, takes_s=60), counting, kept=kept) as probe, asyncio.timeout(7):
        await probe.before()
        assert {scrape.source: scrape.fault for scrape in kept.scrapes} == {"0": "no answer within 3 s", "1": None}
        await probe.after()
    assert [generated(scrape) for scrape in kept.scrapes if scrape.source == "1"] == [10, 90, 95, 100, 100]
    assert [scrape.fault for scrape in kept.scrapes if scrape.source == "0"] == ["no answer within 3 s"] * 2
