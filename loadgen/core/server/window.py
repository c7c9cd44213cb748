"""What a server's counters add up to over a span of time, by difference, over all its processes.

A counter that falls belongs to a process that was started anew: nothing is known then of what it counted in between,
so the window has no counters at all, and says why.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from math import inf
from typing import Any

from loadgen.core.server.sample import GPU_SOURCE, Counters, Gauges, Scrape, ServerSample
from loadgen.core.server.tracks import Reading, Track, by_source, same_process, server_tracks
from loadgen.core.units import seconds

_FIELDS = tuple(field.name for field in fields(Counters))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """Why two samples have no difference: the counters that fell or are gone, or `started` for a start that moved."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterWindow:
    """Differences of counters over a span that holds `first_ns` to `last_ns`, the part that every page covers.

    The pages lie around the span asked for, so the window is a little wider than it. A counter is None when one of the
    `processes` does not have it; all are None when there are `resets`, or a page was read fewer than two times.
    `failed_scrapes` could not be read, such as `failed_example`; a failure in the middle loses nothing.
    """

    counters: Counters
    processes: int
    first_ns: int | None
    last_ns: int | None
    resets: tuple[str, ...] = ()
    failed_scrapes: int = 0
    failed_example: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def acceptance_length(self) -> float | None:
        """Tokens of a step that drafted, its own included: 1 + accepted / drafts. None when nothing was drafted."""
        accepted = _over(self.counters.accepted_tokens, self.counters.drafts)
        return None if accepted is None else 1 + accepted

    @property
    def acceptance_ratio(self) -> float | None:
        """accepted / drafted tokens, 0..1."""
        return _over(self.counters.accepted_tokens, self.counters.drafted_tokens)

    @property
    def acceptance_by_position(self) -> tuple[float, ...] | None:
        """Share of the steps that drafted in which draft token i + 1 was accepted: survival, not conditional."""
        accepted, drafts = self.counters.accepted_by_position, self.counters.drafts
        return tuple(each / drafts for each in accepted) if accepted is not None and drafts else None

    @property
    def coverage_ratio(self) -> float | None:
        """Steps that drafted over all decode steps, 0..1."""
        return _over(self.counters.drafts, self.counters.decode_steps)

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens of a decode step, drafted or not: (generation tokens - first tokens) / decode steps."""
        return _over(self._decoded_tokens, self.counters.decode_steps)

    @property
    def prefix_hit_ratio(self) -> float | None:
        """Prompt tokens found in the prefix cache over those looked up, 0..1."""
        return _over(self.counters.prefix_hit_tokens, self.counters.prefix_query_tokens)

    @property
    def mean_queue_s(self) -> float | None:
        """Seconds that a request waited, over the requests timed."""
        return _over(self.counters.queue_s, self.counters.timed_requests)

    @property
    def mean_prefill_s(self) -> float | None:
        """Seconds from a request's first scheduling to its first token, over the requests timed."""
        return _over(self.counters.prefill_s, self.counters.timed_requests)

    @property
    def mean_decode_s(self) -> float | None:
        """Seconds from a request's first token to its last, over the requests timed."""
        return _over(self.counters.decode_s, self.counters.timed_requests)

    @property
    def queue_share_ratio(self) -> float | None:
        """Waiting as a share of waiting, prefill and decode together, 0..1."""
        return _over(self.counters.queue_s, self._timed_s)

    @property
    def prefill_share_ratio(self) -> float | None:
        """Prefill as a share of waiting, prefill and decode together, 0..1."""
        return _over(self.counters.prefill_s, self._timed_s)

    @property
    def decode_share_ratio(self) -> float | None:
        """Decode as a share of waiting, prefill and decode together, 0..1."""
        return _over(self.counters.decode_s, self._timed_s)

    @property
    def tokens_per_iteration(self) -> float | None:
        """Tokens, of prompts and of answers, that an engine step worked on, over all requests in it."""
        return _over(self.counters.iteration_tokens, self.counters.iterations)

    @property
    def _decoded_tokens(self) -> float | None:
        generated, first = self.counters.generation_tokens, self.counters.first_tokens
        return None if generated is None or first is None else generated - first

    @property
    def _timed_s(self) -> float | None:
        queue, prefill, decode = self.counters.queue_s, self.counters.prefill_s, self.counters.decode_s
        return None if queue is None or prefill is None or decode is None else queue + prefill + decode


def difference(earlier: ServerSample, later: ServerSample) -> Counters | Reset:
    """What one process counted between two samples.

    A counter that was not there before began at zero since, for series come with their first observation. One that is
    gone has no difference: like a fall and a start that moved, it makes the whole a Reset. One that was no number on
    either side is unknown.
    """
    if same_process(earlier, later) is False:
        return Reset(names=("started",))
    differences: dict[str, Any] = {}
    lost = []
    for name in _FIELDS:
        if name in earlier.gaps or name in later.gaps:
            continue
        before, after = getattr(earlier.counters, name), getattr(later.counters, name)
        delta = _places(before, after) if name == "accepted_by_position" else _number(before, after)
        if delta is _LOST:
            lost.append(name)
        else:
            differences[name] = delta
    return Reset(names=tuple(lost)) if lost else Counters(**differences)


def counter_window(scrapes: Iterable[Scrape], start_ns: int, end_ns: int) -> CounterWindow:
    """The window of a span: of each page from its last good reading at or before the start to the first past the end.

    Where there is none, the nearest good reading inside stands in, and a note says so.
    """
    return _window(list(scrapes), start_ns, end_ns)


def whole_run(scrapes: Iterable[Scrape]) -> CounterWindow:
    """The window from the first good page to the last."""
    return _window(list(scrapes), None, None)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The instants of a page's first and last good reading for a window, ns."""

    first_ns: int
    last_ns: int


def _window(scrapes: list[Scrape], start_ns: int | None, end_ns: int | None) -> CounterWindow:
    pages = {source: found for source, found in by_source(scrapes).items() if source != GPU_SOURCE}
    tracks, twins = server_tracks(scrapes)
    notes = list(twins)
    bounds: dict[str, _Bounds] = {}
    for source, found in pages.items():
        edges, said = _bounds(source, found, start_ns, end_ns)
        notes += said
        if edges is not None:
            bounds[source] = edges
    first_ns = max((each.first_ns for each in bounds.values()), default=None)
    last_ns = min((each.last_ns for each in bounds.values()), default=None)
    parts, resets = [], []
    for track in tracks:
        if (edges := bounds.get(track.source)) is not None:
            part, said, came = _walk(track.within(edges.first_ns, edges.last_ns))
            resets += said
            notes += came
            parts.append(part)
    begin_ns = -inf if start_ns is None else min([start_ns, *(each.first_ns for each in bounds.values())])
    until_ns = inf if end_ns is None else max([end_ns, *(each.last_ns for each in bounds.values())])
    failed = [
        f"page {source} at {seconds(page.taken_ns):.1f} s: {page.fault}"
        for source, found in pages.items()
        for page in found
        if page.fault is not None and begin_ns <= page.taken_ns <= until_ns
    ]
    complete = len(bounds) == len(pages)
    return CounterWindow(
        counters=_summed(parts) if complete else Counters(),
        processes=len(tracks),
        first_ns=first_ns,
        last_ns=last_ns,
        resets=tuple(resets),
        failed_scrapes=len(failed),
        failed_example=failed[0] if failed else None,
        notes=tuple(notes),
    )


def _bounds(
    source: str, pages: Sequence[Scrape], start_ns: int | None, end_ns: int | None
) -> tuple[_Bounds | None, list[str]]:
    """The good readings around a span, None when there are not two, and notes in words."""
    good = [page.taken_ns for page in pages if page.fault is None]
    if len(good) < 2:
        return None, [f"page {source} was read {len(good)} times, and a difference needs two"]
    notes = []
    first_ns, last_ns = good[0], good[-1]
    if start_ns is not None:
        first_ns = max((taken for taken in good if taken <= start_ns), default=good[0])
        if first_ns > start_ns:
            notes.append(f"page {source} was first read {seconds(first_ns - start_ns):.1f} s into the window")
    if end_ns is not None:
        last_ns = min((taken for taken in good if taken >= end_ns), default=good[-1])
        if last_ns < end_ns:
            notes.append(f"page {source} was last read {seconds(end_ns - last_ns):.1f} s before the window's end")
    if first_ns >= last_ns:
        return None, [f"page {source} was not read inside the window"]
    return _Bounds(first_ns, last_ns), notes


def _walk(track: Track[ServerSample]) -> tuple[Counters, list[str], list[str]]:
    """One process's differences, from first to last; its resets, and what came up on the way, in words.

    All readings are compared with the last known values before them, since a counter may overtake its old value after a
    fall.
    """
    good = [reading for reading in track.readings if not reading.failed]
    where = f"page {track.source}, engine {track.name}"
    resets = []
    came: dict[str, None] = {}
    held = good[0].sample
    for before, after in pairwise(good):
        if after.sample is None:
            if before.sample is not None:
                resets.append(f"{where} is gone from the page {_between(before, after)}")
                held = None
            continue
        found = difference(_or_nothing(held, after.sample), after.sample)
        if isinstance(found, Reset):
            resets.append(f"{where}: {_reset_words(found)} {_between(before, after)}")
            held = None
        elif held is None:
            came["all its counters"] = None
        else:
            came |= dict.fromkeys(_appeared(held, after.sample))
        held = _filled(after.sample, held)
    notes = [f"{where}: came up in the window and counts from zero: {', '.join(came)}"] if came else []
    notes += _gap_notes(where, [reading.sample for reading in good if reading.sample is not None])
    first, last = good[0], good[-1]
    total = difference(_or_nothing(first.sample, last.sample), last.sample) if last.sample and not resets else None
    if isinstance(total, Reset):
        resets.append(f"{where}: {_reset_words(total)} {_between(first, last)}")
    return total if isinstance(total, Counters) else Counters(), resets, notes


def _between(before: Reading[ServerSample], after: Reading[ServerSample]) -> str:
    return f"between {seconds(before.taken_ns):.1f} s and {seconds(after.taken_ns):.1f} s"


def _filled(sample: ServerSample, held: ServerSample | None) -> ServerSample:
    """The sample with its gaps filled by what was known before; what was not known stays a gap."""
    if held is None or not sample.gaps:
        return sample
    known = {name: getattr(held.counters, name) for name in sample.gaps if name in _FIELDS}
    return replace(
        sample,
        counters=replace(sample.counters, **known),
        gaps=tuple(name for name in sample.gaps if name in held.gaps),
    )


def _gap_notes(where: str, samples: Sequence[ServerSample]) -> list[str]:
    names = dict.fromkeys(name for sample in samples for name in sample.gaps)
    count = sum(1 for sample in samples if sample.gaps)
    return [f"{where}: no number in {count} of {len(samples)} readings: {', '.join(names)}"] if names else []


def _or_nothing(earlier: ServerSample | None, later: ServerSample) -> ServerSample:
    """A process that was not on the page before had counted nothing."""
    return earlier if earlier is not None else ServerSample(engine=later.engine, counters=Counters(), gauges=Gauges())


def _appeared(before: ServerSample, after: ServerSample) -> list[str]:
    return [
        name
        for name in _FIELDS
        if getattr(before.counters, name) is None and getattr(after.counters, name) is not None
        if name not in before.gaps
    ]


def _reset_words(reset: Reset) -> str:
    if reset.names == ("started",):
        return "the process was started anew"
    return f"{', '.join(reset.names)} fell or went, as when a process is started anew,"


_LOST: Any = object()
"""Stands for a difference that a reset took."""


def _number(before: float | None, after: float | None) -> Any:
    if after is None:
        return None if before is None else _LOST
    delta = after - (before or 0.0)
    return delta if delta >= 0 else _LOST


def _places(before: tuple[float, ...] | None, after: tuple[float, ...] | None) -> Any:
    """Differences place by place; a place that was not there before began at zero."""
    if after is None:
        return None if before is None else _LOST
    known = before or ()
    deltas = tuple(each - (known[place] if place < len(known) else 0.0) for place, each in enumerate(after))
    return _LOST if len(known) > len(after) or any(delta < 0 for delta in deltas) else deltas


def _summed(parts: Sequence[Counters]) -> Counters:
    """Counters added up; None where a part has none. Arrays of different length are added place by place."""
    sums: dict[str, Any] = {}
    for name in _FIELDS:
        values = [getattr(part, name) for part in parts]
        if not values or None in values:
            continue
        if name == "accepted_by_position":
            longest = max(map(len, values))
            sums[name] = tuple(sum(each[place] for each in values if place < len(each)) for place in range(longest))
        else:
            sums[name] = sum(values)
    return Counters(**sums)


def _over(part: float | None, whole: float | None) -> float | None:
    """A ratio of sums; None when either is unknown, or the whole is zero."""
    return part / whole if part is not None and whole else None
