"""The client's own health over the measured window: CPU used, and how late the event loop ran."""

import asyncio
import time

from loadgen.core.run import ClientFacts, TimingSource

_BEAT_S = 0.05
_MAX_BEATS = 200_000


class Health:
    """Measures this process between `begin` and `end`. A stall is how much later than asked a loop timer fired."""

    def __init__(self) -> None:
        self._stalls: list[float] = []
        self._begun: tuple[int, int] | None = None
        self._ended: tuple[int, int] | None = None

    def begin(self) -> None:
        """The measured window starts."""
        if self._begun is None:
            self._stalls.clear()
            self._begun = (time.perf_counter_ns(), time.process_time_ns())

    def end(self) -> None:
        """The measured window is over; the first call counts."""
        if self._ended is None and self._begun is not None:
            self._ended = (time.perf_counter_ns(), time.process_time_ns())

    async def beat(self) -> None:
        """Runs until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _BEAT_S
            await asyncio.sleep(_BEAT_S)
            if self._ended is None and len(self._stalls) < _MAX_BEATS:
                self._stalls.append(max(0.0, loop.time() - due))

    def facts(self, timing_source: TimingSource) -> ClientFacts:
        """What was measured; None where the window never began or was too short to tell."""
        cpu_ratio = None
        if self._begun is not None and self._ended is not None:
            wall, cpu = (end - begin for begin, end in zip(self._begun, self._ended, strict=True))
            cpu_ratio = cpu / wall if wall >= 100_000_000 else None
        stalls = sorted(self._stalls)
        return ClientFacts(
            timing_source=timing_source,
            cpu_ratio=cpu_ratio,
            loop_stall_p99_s=stalls[int(0.99 * (len(stalls) - 1))] if len(stalls) >= 100 else None,
            loop_stall_max_s=stalls[-1] if stalls else None,
        )
