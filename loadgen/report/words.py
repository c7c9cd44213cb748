"""How values read in a report: short labels, and numbers as text.

Milliseconds appear here and nowhere below. Absent is a dash, never 0. Numbers keep three significant digits or more
and carry no thousands separators, so that nobody reads 15,559 ms as 15.559.
"""

import unicodedata
from collections.abc import Mapping

from loadgen.core.metrics.catalogue import CATALOGUE
from loadgen.core.metrics.summary import Distribution, Summary, Sweep
from loadgen.core.run import LoadMode, RunManifest
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.core.units import duration_text

DASH = "—"

LATENCY_LABELS: Mapping[str, str] = {
    "ttft_s": "TTFT",
    "ttft_from_due_s": "TTFT from due",
    "ttfo_s": "TTFO",
    "tpot_s": "TPOT",
    "icl_s": "ICL",
    "itl_s": "ITL",
    "e2el_s": "E2EL",
    "e2el_from_due_s": "E2EL from due",
    "schedule_lag_s": "Schedule lag",
    "cap_wait_s": "Wait for a slot",
}

_DERIVED: Mapping[str, str] = {
    "failed_ratio": "(failed + dropped) / planned; dropped requests were due and never sent",
    "knee": "the level beyond which more load buys little throughput, or misses the objectives where there are any",
    "error_adjusted": "the same percentiles with every failed or dropped request counted as infinity",
}

_FROM_PLAN = frozenset({"ttft_from_due_s", "e2el_from_due_s", "schedule_lag_s"})

_CONTROL = frozenset({"Cc", "Cs", "Cf", "Zl", "Zp"})
_KEPT_FORMAT = frozenset("\u200c\u200d\u00ad")  # joiners that scripts and emoji need, soft hyphen


def definition(key: str) -> str:
    """What a number means and when it has no value; the catalogue's words where it is a metric of the catalogue."""
    if key in _DERIVED:
        return f"{_DERIVED[key]}."
    spec = CATALOGUE[key]
    return f"{spec.definition}. No value: {spec.no_value}."


def printable(text: str) -> str:
    """Text from outside, safe for a terminal line: control characters, direction overrides and lone surrogates are
    shown as escapes (`\\x1b`), so that they cannot move the cursor, colour or reorder what stands around them."""
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _CONTROL and character not in _KEPT_FORMAT
        else character
        for character in text
    )


def number(value: float | None) -> str:
    """A plain number with three significant digits or more: `0.0123`, `4.56`, `78.9`, `1234`."""
    if value is None:
        return DASH
    if isinstance(value, int):
        return str(value)
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 99.95:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995:
        return f"{value:.2f}"
    return f"{value:#.3g}" if size >= 1e-4 else f"{value:.1e}"


def milliseconds(value_s: float | None) -> str:
    """Seconds as a number of milliseconds, without the unit."""
    return number(None if value_s is None else value_s * 1e3)


def percent(ratio: float | None) -> str:
    """A share 0..1 as a percentage; a share that is not whole never rounds to 0% or 100%."""
    if ratio is None:
        return DASH
    value = ratio * 100
    if value in (0, 100):
        return f"{value:.0f}%"
    if value < 0.1:
        return "< 0.1%"
    if 99.9 < value < 100:
        return "> 99.9%"
    return f"{value:.1f}%"


def span(value_s: float | None) -> str:
    """A duration with its unit."""
    if value_s is None:
        return DASH
    return duration_text(value_s) if value_s else "0 s"


def with_unit(text: str, unit: str) -> str:
    """`12.3` and `ms` as `12.3 ms`; a dash stays alone."""
    return text if text == DASH else f"{text} {unit}"


def asked(value: float) -> str:
    """A level or rate as somebody typed it: `8`, `2.5`."""
    return f"{value:.10g}"


def first_upper(text: str) -> str:
    """The text as a sentence begins."""
    return text[0].upper() + text[1:]


def variable_text(variable: str) -> str:
    """The variable of a ladder in words."""
    return {"concurrency": "concurrency", "request_rate_rps": "request rate, requests/s"}.get(
        variable, printable(variable)
    )


def levels_text(sweep: Sweep) -> str:
    """How many levels there are, of how many that were asked for, and of what."""
    done, planned = len(sweep.levels), len(sweep.asked)
    count = f"{done} of {planned}" if done < planned else str(done)
    text = f"{count} level{'s' if max(done, planned) != 1 else ''} of {variable_text(sweep.variable)}"
    if any(level.summary.interrupted for level in sweep.levels):
        return f"{text}; interrupted"
    return f"{text}; the others did not run" if done < planned else text


def knee_text(sweep: Sweep) -> str:
    """Where the knee is, or why there is none."""
    if sweep.knee is None:
        return printable(sweep.no_knee or "none found")
    return f"{asked(sweep.knee.level)}: {printable(sweep.knee.reason)}"


def token_source_text(summary: Summary) -> str:
    """Who counted the output tokens; reads on from "Output tokens: "."""
    tokens = summary.tokens
    if tokens.output is None:
        return "not counted"
    if tokens.output_from_server:
        text = "counted by the server for every completed request"
    else:
        uncounted, completed = tokens.requests_without_server_count, summary.requests.completed
        text = f"without a server count for {uncounted} of {completed} completed"
    partial = tokens.partial_output
    return text + (f"; {partial} more in answers that did not complete" if partial else "")


def timing_text(source: str) -> str:
    """Who stamped the arrivals, in words."""
    return {
        "kernel": "arrivals stamped by the kernel",
        "user": "arrivals stamped by this client at each read",
        "coroutine": "arrivals stamped in a coroutine after each read",
        "unknown": "it is not known who stamped the arrivals",
    }.get(source, printable(source))


def load_text(summary: Summary) -> str:
    """The load that was asked for, in words."""
    load = summary.load
    match load.mode:
        case LoadMode.CONCURRENCY:
            text = f"{load.concurrency} concurrent"
        case LoadMode.RATE:
            rate = DASH if load.request_rate_rps is None else asked(load.request_rate_rps)
            text = f"{rate} requests/s, {arrivals_text(load.burstiness)}"
        case LoadMode.REPLAY:
            speed = load.speed
            faster = "" if speed is None or speed == 1 else f" at {asked(speed)} × speed"
            text = f"replay of recorded arrivals{faster}"
    if load.max_concurrency is not None:
        text += f", at most {load.max_concurrency} in flight"
    return text


def arrivals_text(burstiness: float | None) -> str:
    """The arrival process of a rate: None is constant spacing, 1 Poisson, other shapes gamma."""
    if burstiness is None:
        return "constant spacing"
    if burstiness == 1:
        return "Poisson arrivals"
    return f"gamma arrivals (burstiness {asked(burstiness)})"


def failed_share(summary: Summary) -> float | None:
    """(failed + dropped) / planned: what stands beside percentiles, which know only requests that completed."""
    counts = summary.requests
    return (counts.failed + counts.dropped) / counts.planned if counts.planned else None


def population_text(summary: Summary) -> str:
    """Which requests the percentiles speak of, and which are missing from them."""
    counts = summary.requests
    text = f"{counts.completed} completed of {counts.planned} planned"
    missing = [
        f"{count} {word}"
        for count, word in (
            (counts.failed, "failed"),
            (counts.dropped, "dropped"),
            (counts.cancelled, "cancelled"),
        )
        if count
    ]
    if missing:
        text += f"; not in the percentiles: {', '.join(missing)}"
    if counts.failed or counts.dropped:
        text += f"; {percent(failed_share(summary))} failed or dropped"
    return text


def shown_latencies(summary: Summary) -> list[tuple[str, Distribution]]:
    """The latency rows that apply to this load.

    A closed loop has no planned instants, hence no lag and no latency from due; the wait for a slot is shown when
    something waited.
    """
    rows: list[tuple[str, Distribution]] = []
    for key in LATENCY_LABELS:
        found: Distribution = getattr(summary.latency, key)
        if key == "cap_wait_s":
            applies = bool(found.max)
        elif key in _FROM_PLAN:
            applies = summary.load.mode is not LoadMode.CONCURRENCY or found.n > 0
        else:
            applies = True
        if applies:
            rows.append((key, found))
    return rows


def adjusted_latencies(summary: Summary) -> list[tuple[str, Distribution]]:
    """The percentiles with failures as infinity, where there were failures and the metric has a value at all."""
    if not (summary.requests.failed or summary.requests.dropped):
        return []
    return [(key, found) for key, found in summary.latency_error_adjusted.items() if found.n]


def adjusted_text(distribution: Distribution, name: str) -> str:
    """One number of an error-adjusted distribution, ms: infinity where enough values are there and it falls on a
    failure, a dash where they are too few."""
    value = getattr(distribution, name)
    least = PERCENTILES[name][1] if name in PERCENTILES else 1
    return "∞" if value is None and distribution.n >= least else milliseconds(value)


def data_facts(manifest: RunManifest) -> list[tuple[str, str]]:
    """What was sent, as labelled lines: rows used and left out, and every note on the data and on the run."""
    data, rows = manifest.data, []
    if data.get("format") != "synthetic" and data.get("rows") is not None:
        text = f"{data.get('name', DASH)}: {data.get('used', DASH)} of {data['rows']} rows taken"
        dropped = data.get("dropped")
        if isinstance(dropped, Mapping) and dropped:
            text += "; left out: " + ", ".join(
                f"{count} {str(why).replace('_', ' ')}" for why, count in dropped.items()
            )
        if data.get("repeats"):
            text += "; used more than once, since more requests were asked for than it holds"
        rows.append(("Rows", printable(text)))
    noted = data.get("notes")
    notes = (*(noted if isinstance(noted, list | tuple) else ()), *manifest.notes)
    return rows + [("Note", printable(str(note))) for note in notes]
