"""Which span of a run is measured, when the run does not say so itself."""

import numpy as np

from loadgen.core.analysis.columns import Mask, Table
from loadgen.core.record import Outcome
from loadgen.core.run import Window

MIN_WINDOW_COMPLETIONS = 10
"""With fewer completions before the last start the whole run is the window."""


def window_of(table: Table, *, exhausted_ns: int | None = None) -> Window | None:
    """The measured window by the rule for a run that ends by a number of requests; None when nothing fell due.

    It begins when the first measured request was due (sent, in a closed loop) and ends when the last one was, so that
    the drain, in which the load falls, is outside: `until_last_send`. When fewer than `MIN_WINDOW_COMPLETIONS` requests
    completed in that span, it reaches to the last close instead: `whole`. With `exhausted_ns` it ends there at the
    latest: one of several processes had no request left to start then.
    """
    starts = table.started_ns[table.measured]
    starts = starts[~np.isnan(starts)]
    if not len(starts):
        return None
    first, last = float(starts.min()), float(starts.max())
    sent = last if exhausted_ns is None else max(first, min(last, float(exhausted_ns)))
    closed = table["closed_ns"]
    inside = table.has(Outcome.COMPLETED) & (closed >= first) & (closed < sent)
    if np.count_nonzero(inside) >= MIN_WINDOW_COMPLETIONS:
        return Window(start_ns=int(first), end_ns=int(sent), kind="until_last_send")
    ends = closed[table.measured & ~np.isnan(closed)]
    end = max(last, float(ends.max(initial=first)))
    return Window(start_ns=int(first), end_ns=int(end) + 1, kind="whole")


def sending_end_ns(table: Table, window: Window) -> int:
    """Where the part of the window ends in which requests were started: a `whole` window also holds the drain."""
    if window.kind != "whole":
        return window.end_ns
    starts = table.started_ns[table.measured]
    return int(np.nanmax(starts))


def due_of(table: Table, window: Window | None) -> Mask:
    """The measured requests that objectives are judged by: those due in the window, its last instant included, and
    those dropped without ever having been due."""
    started = table.started_ns
    due: Mask = table.measured & np.isnan(started) & table.has(Outcome.DROPPED)
    if window is not None:
        due |= table.measured & (started >= window.start_ns) & (started <= window.end_ns)
    return due
