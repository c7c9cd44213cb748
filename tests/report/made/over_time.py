"""A run over time, as the client and as the server saw it."""

from loadgen.core.metrics.summary import TimeSeries
from loadgen.core.server.series import ServerSeries


def series(seconds: int = 60) -> TimeSeries:
    """A run that ramps up, stays level, and drains."""
    busy = [min(i / 5, 1.0, (seconds - i) / 4) for i in range(seconds)]
    wobble = [1 + 0.06 * ((i * 7) % 11 - 5) / 5 for i in range(seconds)]
    return TimeSeries(
        start_s=0.0,
        step_s=1.0,
        due=tuple(round(20 * b) for b in busy),
        sent=tuple(round(20 * b * w) for b, w in zip(busy, wobble, strict=True)),
        completed=tuple(round(19 * b * w) for b, w in zip(busy, reversed(wobble), strict=True)),
        failed=tuple(1 if i in (20, 21, 44) else 0 for i in range(seconds)),
        output_tokens=tuple(2400 * b * w for b, w in zip(busy, wobble, strict=True)),
        concurrency=tuple(8 * b for b in busy),
        ttft_p50_s=tuple(None if i in (0, 58, 59) else 0.05 * w for i, w in enumerate(wobble)),
        ttft_p95_s=tuple(None if i in (0, 58, 59) else 0.11 * w for i, w in enumerate(wobble)),
        tpot_p50_s=tuple(None if i in (0, 57, 58, 59) else 0.0081 * w for i, w in enumerate(wobble)),
    )


def server_series(seconds: int = 60) -> ServerSeries:
    """What the server told meanwhile; a page was missed at the 30th second."""
    busy = [min(i / 5, 1.0, (seconds - i) / 4) for i in range(seconds)]

    def values(scale: float) -> tuple[float | None, ...]:
        return tuple(None if i == 30 else scale * b for i, b in enumerate(busy))

    return ServerSeries(
        edges_s=tuple(float(i) for i in range(seconds + 1)),
        running_requests=values(7.6),
        waiting_requests=values(0.3),
        kv_used_mean_ratio=values(0.4),
        kv_used_max_ratio=values(0.61),
        prompt_tokens_per_s=values(9_700.0),
        generation_tokens_per_s=values(2_390.0),
        preemptions_per_s=values(0.02),
        prefix_hit_ratio=values(0.12),
        acceptance_length=tuple(None if i == 30 else 2.44 for i in range(seconds)),
        gpu_power_w=values(612.0),
        gpu_utilisation_ratio=values(0.93),
        gpu_memory_used_bytes=tuple(None if i == 30 else 148.0 * 2**30 for i in range(seconds)),
    )
