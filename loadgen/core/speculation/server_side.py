"""What the server's own pages tell of acceptance, over the window and over the whole run."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from loadgen.core.metrics.summary import AcceptanceView
from loadgen.core.run import Window
from loadgen.core.server.sample import Counters, Scrape
from loadgen.core.server.window import CounterWindow, counter_window, whole_run
from loadgen.core.speculation.views import gauge_view
from loadgen.core.units import seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSide:
    """`window` are differences of counters over the measured window, None without any.

    `run` are those over a span that holds every request, in words why there are none, or None when no page was read.
    """

    window: Counters | None = None
    run: Counters | str | None = None
    gauge: AcceptanceView | None = None


def server_side(
    scrapes: Callable[[], Iterable[Scrape]],
    window: Window | None,
    in_flight_ns: tuple[float, float] | None,
    *,
    all_recorded: bool,
) -> ServerSide:
    """From all scrapes of a run. `in_flight_ns` is when the first request of any phase was sent and the last one ended.

    `all_recorded` is False for a run that was killed: the server counted requests of which there is no record. Without
    a window, or without a request that was sent, there is nothing to tell.
    """
    if window is None or in_flight_ns is None:
        return ServerSide()
    return ServerSide(
        window=counter_window(scrapes(), window.start_ns, window.end_ns).counters,
        run=_around(whole_run(scrapes()), *in_flight_ns, all_recorded=all_recorded),
        gauge=gauge_view(scrapes(), window.start_ns, window.end_ns),
    )


def _around(
    found: CounterWindow, first_sent_ns: float, last_closed_ns: float, *, all_recorded: bool
) -> Counters | str | None:
    """The differences, if they hold every request; else in words why not."""
    if not found.processes:
        return None
    if found.resets:
        return f"The server was started anew during the run: {found.resets[0]}."
    if found.first_ns is None or found.last_ns is None:
        return f"The server's counters have no difference: {'; '.join(found.notes)}."
    if found.first_ns > first_sent_ns or found.last_ns < last_closed_ns:
        return (
            f"The server's page was read from {seconds(found.first_ns):.1f} s to {seconds(found.last_ns):.1f} s, which"
            " does not hold every request."
        )
    if not all_recorded:
        return "The run was killed, and the server's counters hold requests of which there is no record."
    return found.counters
