"""The server section of a summary: its configuration as told before the run, and its own figures over the run."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from loadgen.core.metrics.summary import Gauge, Gpus, RequestTimes, Server
from loadgen.core.run import RunManifest, Window
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration
from loadgen.core.server.energy import energy
from loadgen.core.server.peaks import gpu_peak, peak
from loadgen.core.server.sample import GPU_SOURCE, Scrape
from loadgen.core.server.series import ServerSeries, server_series
from loadgen.core.server.tracks import by_source, gpu_tracks
from loadgen.core.server.window import counter_window, whole_run
from loadgen.core.units import seconds


def server_of(
    manifest: RunManifest,
    scrapes: Sequence[Scrape],
    *,
    window: Window | None,
    in_flight_ns: tuple[float, float] | None,
    output_tokens: float | None,
) -> Server:
    """The section.

    `in_flight_ns` is when the first request was sent and the last one ended, None when none was sent. `output_tokens`
    arrived in the window, None where they are not known.
    """
    told, run, failed = manifest.server, whole_run(scrapes), [each for each in scrapes if each.fault is not None]
    missed = tuple(_missed(scrapes, in_flight_ns))
    if scrapes and manifest.ended_unix_ns is None:
        missed = ("the run was killed before the last reading", *missed)
    return Server(
        scraped=run.processes > 0 and not missed,
        pages=msgspec.convert(told.get("pages", {}), dict[str, str]),
        scrapes=len(scrapes),
        failed_scrapes=len(failed),
        failed_example=_failure(failed[0]) if failed else None,
        processes=run.processes,
        resets=run.resets,
        prompt_tokens_delta=run.counters.prompt_tokens,
        generation_tokens_delta=run.counters.generation_tokens,
        configuration=msgspec.convert(told.get("configuration"), ServerConfiguration | None),
        speculation=msgspec.convert(told.get("speculation"), SpeculationConfiguration | None),
        **_over_window(scrapes, window, missed, output_tokens),
    )


def _over_window(
    scrapes: Sequence[Scrape], window: Window | None, missed: tuple[str, ...], output_tokens: float | None
) -> dict[str, Any]:
    """The fields that are of the window."""
    if window is None or window.end_ns <= window.start_ns:
        return {"notes": missed}
    span = (window.start_ns, window.end_ns)
    counted = counter_window(scrapes, *span)
    mean = server_series(scrapes, span)
    return {
        "notes": tuple(dict.fromkeys((*missed, *counted.notes))),
        "start_s": None if counted.first_ns is None else seconds(counted.first_ns),
        "end_s": None if counted.last_ns is None else seconds(counted.last_ns),
        "running_requests": _gauge(mean.running_requests[0], peak(scrapes, "running_requests", *span)),
        "waiting_requests": _gauge(mean.waiting_requests[0], peak(scrapes, "waiting_requests", *span)),
        "kv_used_ratio": _gauge(mean.kv_used_mean_ratio[0], peak(scrapes, "kv_used_ratio", *span, join=max)),
        "preemptions": counted.counters.preemptions,
        "prefix_hit_ratio": counted.prefix_hit_ratio,
        "request_times": RequestTimes(
            queue_s=counted.mean_queue_s,
            prefill_s=counted.mean_prefill_s,
            decode_s=counted.mean_decode_s,
            queue_ratio=counted.queue_share_ratio,
            prefill_ratio=counted.prefill_share_ratio,
            decode_ratio=counted.decode_share_ratio,
        ),
        "tokens_per_iteration": counted.tokens_per_iteration,
        "gpus": _gpus(scrapes, span, mean, output_tokens),
    }


def _gauge(mean: float | None, largest: float | None) -> Gauge:
    """No mean without a reading in the window: what lies around it says nothing of it."""
    return Gauge(mean=None if largest is None else mean, peak=largest)


def _gpus(
    scrapes: Sequence[Scrape], span: tuple[int, int], mean: ServerSeries, output_tokens: float | None
) -> Gpus | None:
    gpus, used = gpu_tracks(scrapes), energy(scrapes, *span)
    if not gpus:
        return None
    busiest = gpu_peak(scrapes, "utilisation_ratio", *span, join=max)
    return Gpus(
        count=len(gpus),
        utilisation_ratio=_gauge(mean.gpu_utilisation_ratio[0], busiest),
        memory_used_bytes=_gauge(mean.gpu_memory_used_bytes[0], gpu_peak(scrapes, "memory_used_bytes", *span)),
        power_w=mean.gpu_power_w[0],
        energy_j=None if used is None else used.energy_j,
        energy_origin=None if used is None else used.origin.value,
        energy_per_output_token_j=None if used is None else used.per_token_j(output_tokens),
    )


def _missed(scrapes: Sequence[Scrape], in_flight_ns: tuple[float, float] | None) -> Iterator[str]:
    """In words, which of the server's pages were not read before the first request, or not after the last one."""
    if in_flight_ns is None:
        return
    sources = by_source(scrapes)
    if sources.keys() == {GPU_SOURCE}:
        yield "no metrics page of the server was read, but GPUs alone"
    for source, pages in sources.items():
        good = [page.taken_ns for page in pages if page.fault is None]
        if source == GPU_SOURCE:
            continue
        if not good:
            yield f"page {source} could not be read"
            continue
        if good[0] > in_flight_ns[0]:
            yield f"page {source} was not read before the first request"
        if good[-1] < in_flight_ns[1]:
            yield f"page {source} was not read after the last request"


def _failure(scrape: Scrape) -> str:
    return f"page {scrape.source} at {seconds(scrape.taken_ns):.1f} s: {scrape.fault}"
