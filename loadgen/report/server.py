"""What the server told of itself in words, alike on a terminal and on a page."""

from collections.abc import Callable, Iterator

from loadgen.core.metrics.summary import Gauge, Gpus, RequestTimes, Server
from loadgen.core.server.energy import EnergyOrigin
from loadgen.core.server.sample import GPU_SOURCE
from loadgen.report.words import number, percent, printable, span


def server_facts(server: Server) -> list[tuple[str, str]]:
    """The server's own figures over the window, and what it does not tell; one line where no page was read."""
    if not server.scrapes:
        return [("Not read", "; ".join(map(printable, server.notes)) or "no metrics page of the server was read")]
    rows = [("Read", _reading_text(server))]
    if server.start_s is not None and server.end_s is not None:
        rows.append(("Counters", f"over {span(server.end_s - server.start_s)}, from {span(server.start_s)}"))
    figures = list(_figures(server))
    rows.extend((label, text) for label, text in figures if text is not None)
    if missing := [label if label.startswith("KV") else label.lower() for label, text in figures if text is None]:
        rows.append(("Not told", ", ".join(missing)))
    if server.gpus is None and GPU_SOURCE in server.pages:
        rows.append(("GPUs", "not read"))
    if server.gpus is not None:
        rows.append(("GPUs", _gpus_text(server.gpus)))
        used = {
            "GPU use": _gauge_text(server.gpus.utilisation_ratio, percent, percent),
            "GPU memory": _gauge_text(server.gpus.memory_used_bytes, _gib, _gib),
        }
        rows.extend((label, text) for label, text in used.items() if text is not None)
    rows.extend(("Restarted", printable(reset)) for reset in server.resets)
    rows.extend(("Note", printable(note)) for note in server.notes)
    return rows


def _reading_text(server: Server) -> str:
    text = f"{server.scrapes} readings, {_counted(server.processes, 'engine process', 'engine processes')}"
    if server.failed_scrapes:
        text += f"; {server.failed_scrapes} failed: {printable(server.failed_example or '')}"
    return text


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _figures(server: Server) -> Iterator[tuple[str, str | None]]:
    """The figures that an engine may tell; None for one that it does not."""
    yield "Running", _gauge_text(server.running_requests, number, most_text)
    yield "Waiting", _gauge_text(server.waiting_requests, number, most_text)
    yield "KV cache", _gauge_text(server.kv_used_ratio, percent, percent)
    yield "Preemptions", None if server.preemptions is None else number(round(server.preemptions))
    hits = server.prefix_hit_ratio
    yield "Prefix cache", None if hits is None else f"{percent(hits)} of the prompt tokens looked up were found"
    yield "A request's time", _times_text(server.request_times)
    per_step = server.tokens_per_iteration
    yield "Engine step", None if per_step is None else f"{number(per_step)} tokens of all requests in it"


def _gauge_text(gauge: Gauge, mean: Callable[[float | None], str], peak: Callable[[float], str]) -> str | None:
    if gauge.peak is None:
        return None
    return f"{mean(gauge.mean)} on average, {peak(gauge.peak)} at most"


def most_text(peak: float) -> str:
    """The largest count of a gauge: whole where it was read, broken at an end of the window, between two readings."""
    return number(int(peak) if peak.is_integer() else peak)


def _times_text(times: RequestTimes) -> str | None:
    """The parts that are timed: mean, and share of the three."""
    parts = [
        span(value) + f" {word}" + ("" if share is None else f" ({percent(share)})")
        for value, share, word in (
            (times.queue_s, times.queue_ratio, "waiting"),
            (times.prefill_s, times.prefill_ratio, "in prefill"),
            (times.decode_s, times.decode_ratio, "in decode"),
        )
        if value is not None
    ]
    return ", ".join(parts) or None


def _gpus_text(gpus: Gpus) -> str:
    parts = [_counted(gpus.count, "GPU", "GPUs")]
    if gpus.power_w is not None:
        parts.append(f"{number(gpus.power_w)} W on average")
    if gpus.energy_j is not None:
        origin = "their counters" if gpus.energy_origin == EnergyOrigin.COUNTER else "power readings"
        parts.append(f"{number(gpus.energy_j)} J by {origin}")
    if gpus.energy_per_output_token_j is not None:
        parts.append(f"{number(gpus.energy_per_output_token_j)} J an output token")
    return ", ".join(parts)


def _gib(size_bytes: float | None) -> str:
    return number(None if size_bytes is None else size_bytes / 2**30) + " GiB"
