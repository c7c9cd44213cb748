"""What a data file or its chosen part holds: the value behind `trace inspect`, and what a run's manifest keeps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loadgen.core.traces.detect import RESOLUTION_NS
from loadgen.core.traces.part import resolution_ns
from loadgen.core.traces.table import UNKNOWN, Ints, Table
from loadgen.core.traces.texts import TextKind
from loadgen.core.units import NS_PER_S

FACTS_SCHEMA = "loadgen.trace/1"
PROFILE_BINS = 60

_BIN_STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Sizes of all rows that tell one: the whole data set, not a sample. Percentiles are linear (type 7)."""

    n: int
    total: int
    mean: float
    min: int
    max: int
    p50: float
    p75: float
    p90: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Ints) -> "Lengths | None":
        """None when there is no value."""
        if not len(values):
            return None
        p50, p75, p90, p95, p99 = (float(value) for value in np.percentile(values, (50, 75, 90, 95, 99)))
        total = int(values.sum(dtype=np.int64))
        return cls(
            n=len(values),
            total=total,
            mean=total / len(values),
            min=int(values.min()),
            max=int(values.max()),
            p50=p50,
            p75=p75,
            p90=p90,
            p95=p95,
            p99=p99,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RateProfile:
    """Rows by arrival: `requests[i]` arrived in [i, i + 1) times `bin_s` after the first."""

    bin_s: float
    requests: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """Facts of a data file, or of the part of it that is used.

    rows = used + the sum of `dropped`, in rows of the file; `first_dropped` has the first message for each reason that
    is a fault. `requests` counts turns, `sessions` named or several-turn conversations. Token totals are None unless
    every used row tells its length. `span_s` is from the first arrival to the last, None without times;
    `duplicate_timestamps` are rows that share the time of one before, `largest_burst` the most rows at one time;
    `resolution_s` is the step of the clock that stamped them. `part` holds what was asked for if only a part is used.
    """

    schema: str = FACTS_SCHEMA
    name: str
    format: str
    rows: int
    used: int
    dropped: dict[str, int]
    first_dropped: dict[str, str] = field(default_factory=dict)
    requests: int
    conversations: int
    sessions: int
    longest_session: int | None
    span_s: float | None
    mean_rate_rps: float | None
    input_tokens: int | None
    output_tokens: int | None
    input_lengths: Lengths | None
    output_lengths: Lengths | None
    prompt_characters: Lengths | None
    duplicate_timestamps: int | None
    largest_burst: int | None
    resolution_s: float | None
    rate_profile: RateProfile | None
    text: TextKind
    sha256: str | None = None
    size_bytes: int | None = None
    part: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()


def facts_of(
    table: Table,
    *,
    name: str,
    format: str,  # noqa: A002  the field's name
    rows: int,
    dropped: Mapping[str, int],
    first_dropped: Mapping[str, str] | None = None,
    borrows: bool = False,
    sha256: str | None = None,
    size_bytes: int | None = None,
    part: dict[str, Any] | None = None,
    notes: tuple[str, ...] = (),
) -> TraceFacts:
    """Facts of the rows in `table.order`. `borrows`: rows without text take it from a prompts file."""
    order = table.order
    used = len(order)
    inputs, outputs = table.input_tokens[order], table.output_tokens[order]
    known_in, known_out = inputs[inputs != UNKNOWN], outputs[outputs != UNKNOWN]
    characters = table.characters[order]
    requests = table.requests[order]
    per_conversation = (
        np.add.reduceat(requests.astype(np.int64), table.starts[:-1]) if used else np.empty(0, dtype=np.int64)
    )
    sessions = table.is_session[order[table.starts[:-1]]] if used else np.empty(0, dtype=np.bool_)
    times = _times(table, RESOLUTION_NS.get(format, 1))
    has_text = bool(table.has_text[order].all())
    return TraceFacts(
        name=name,
        format=format,
        rows=rows,
        used=used,
        dropped=dict(dropped),
        first_dropped=dict(first_dropped or {}),
        requests=int(requests.sum()),
        conversations=table.conversations,
        sessions=int(np.count_nonzero(sessions)),
        longest_session=int(per_conversation[sessions].max()) if sessions.any() else None,
        input_tokens=int(known_in.sum(dtype=np.int64)) if used and len(known_in) == used else None,
        output_tokens=int(known_out.sum(dtype=np.int64)) if used and len(known_out) == used else None,
        input_lengths=Lengths.of(known_in),
        output_lengths=Lengths.of(known_out),
        prompt_characters=Lengths.of(characters[characters != UNKNOWN]),
        text="real" if has_text else "borrowed" if borrows else "invented",
        sha256=sha256,
        size_bytes=size_bytes,
        part=part,
        notes=(*notes, *table.notes, *times.pop("notes")),
        **times,
    )


def _times(table: Table, unit_ns: int) -> dict[str, Any]:
    """The facts that concern times."""
    if table.time_ns is None or not len(table.order):
        names = ("span_s", "mean_rate_rps", "duplicate_timestamps", "largest_burst", "resolution_s", "rate_profile")
        return {**dict.fromkeys(names), "notes": ()}
    time = np.sort(table.time_ns[table.order])
    span_s = float(time[-1] - time[0]) / NS_PER_S
    counts = np.diff(np.flatnonzero(np.diff(time, prepend=-1, append=-1)))
    rate = (len(time) - 1) / span_s if span_s else None
    resolution_s = resolution_ns(time, unit_ns) / NS_PER_S
    duplicates = len(time) - len(counts)
    notes = []
    if duplicates * 10 > len(time):
        notes.append(
            f"{duplicates} of {len(time)} rows share the time of another (up to {counts.max()} at once, clock step "
            f"{resolution_s:g} s): they are sent together unless they are spread"
        )
    if rate is not None and len(time) >= 10 and not 1 / 3_600 <= rate <= 100_000:
        notes.append(f"the mean rate is {rate:.3g} requests/s: are the time stamps in the unit that the format says?")
    return {
        "span_s": span_s,
        "mean_rate_rps": rate,
        "duplicate_timestamps": duplicates,
        "largest_burst": int(counts.max()),
        "resolution_s": resolution_s,
        "rate_profile": _profile(time, span_s),
        "notes": tuple(notes),
    }


def _profile(time: Ints, span_s: float) -> RateProfile:
    least = span_s / PROFILE_BINS
    bin_s = next((float(step) for step in _BIN_STEPS_S if step >= least), float(np.ceil(least / 86_400) * 86_400))
    if span_s < 1:
        bin_s = max(span_s / PROFILE_BINS, 1 / NS_PER_S)
    bins = (time - time[0]) // int(bin_s * NS_PER_S)
    return RateProfile(bin_s=bin_s, requests=tuple(np.bincount(bins).tolist()))
