"""What a run shows while it is under way."""

import asyncio
import io
import re

import pytest
from rich.console import Console

from loadgen.cli.progress import RunProgress
from loadgen.engine.live import LiveCounts


def drawn(
    live: LiveCounts,
    *,
    after_s: float,
    duration_s: float | None = None,
    terminal: bool = True,
) -> str:
    """Everything that was written, for a run begun `after_s` ago."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=140, color_system=None)
    times = iter([0.0, *[after_s] * 1000])

    async def show() -> None:
        progress = RunProgress(live, "concurrency 4", duration_s, console=console, now_s=lambda: next(times))
        async with progress:
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    asyncio.run(show())
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())


def live_of(**counts: int | None) -> LiveCounts:
    live = LiveCounts()
    for name, value in counts.items():
        setattr(live, name, value)
    return live


def test_a_silent_server_is_said_however_busy_the_spinner_looks() -> None:
    """Requests in flight and nothing for 42 s: the age of the last sign of life is on the line."""
    assert "no answer for 42 s" in drawn(live_of(planned=100, in_flight=4), after_s=42.0)


def test_a_run_that_waits_for_its_next_arrival_is_not_called_silent() -> None:
    """Nothing is in flight: nobody owes an answer."""
    assert "no answer" not in drawn(live_of(planned=100, in_flight=0, completed=10), after_s=42.0)


def test_what_is_done_and_left_is_shown() -> None:
    """A quarter of the requests in 10 s: 30 s are left; failures are counted beside."""
    text = drawn(live_of(planned=40, in_flight=4, completed=8, failed=2), after_s=10.0)
    assert "10/40 requests, 4 in flight, 2 failed" in text
    assert "30 s left" in text


def test_warm_up_is_counted_apart() -> None:
    """While it lasts it is what is told; then only measured requests are, though the time left covers both."""
    warm = {"planned": 48, "warmup_planned": 8, "in_flight": 4}
    assert "warming up, 3/8 requests, 4 in flight" in drawn(live_of(**warm, completed=3, warmup_ended=3), after_s=1.0)
    begun = live_of(**warm, completed=12, warmup_ended=7, measuring_since_ns=1)
    text = drawn(begun, after_s=10.0)
    assert "concurrency 4" in text
    assert "5/40 requests, 4 in flight" in text
    assert "warming" not in text
    assert "30 s left" in text, "a quarter of all 48 is done"
    done = live_of(planned=48, warmup_planned=8, completed=48, warmup_ended=8, measuring_since_ns=1)
    assert "40/40 requests" in drawn(done, after_s=10.0, terminal=False)


def test_a_rising_load_leaves_fewer_requests_to_be_measured() -> None:
    """What is sent before full load is warm-up, whatever it was planned as."""
    rising = live_of(planned=40, completed=6, warmup_ended=6)
    assert "warming up, 6 requests" in drawn(rising, after_s=1.0)
    risen = live_of(planned=40, completed=10, warmup_ended=6, measuring_since_ns=1)
    assert "4/34 requests" in drawn(risen, after_s=1.0)


@pytest.mark.parametrize("terminal", [True, False])
def test_counts_that_nobody_can_know_are_left_out(terminal: bool) -> None:
    """By duration no total is known, and none is made up; without a terminal one line is left at the end."""
    text = drawn(live_of(planned=None, in_flight=1, completed=3), after_s=2.0, terminal=terminal)
    assert "3 requests, 1 in flight" in text
    assert "3/" not in text
    assert terminal or text == "concurrency 4: 3 requests, 1 in flight, 2 s\n"
