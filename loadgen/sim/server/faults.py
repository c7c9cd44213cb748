"""Faults of a server, on purpose: which request suffers which, and when the whole server does.

Times are seconds of the clock, whatever the simulation's speed.
"""

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from loadgen.core.errors import ConfigError
from loadgen.core.units import parse_duration_ns, seconds


class FaultKind(StrEnum):
    """What a request suffers; the values are the words of an option."""

    DELAY = "delay"
    STALL = "stall"
    RESET = "reset"
    ERROR_EVENT = "error"
    TRUNCATED = "truncate"
    RATE_LIMITED = "429"
    UNAVAILABLE = "503"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One request's fault.

    `delay`: nothing is sent for `delay_s`. After `after_events` events of the stream (0: instead of the first),
    `stall`: silence until the client leaves; `reset`: the connection is reset; `error`: an error event ends the stream;
    `truncate`: the connection closes. `429` and `503` refuse the request, with Retry-After where `retry_after_s` is set.
    """

    kind: FaultKind
    delay_s: float = 0.0
    after_events: int = 0
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """One restart: `at_s` after the start all streams are reset, and for `down_s` nothing is served."""

    at_s: float
    down_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """All faults of a server.

    `shares` are request faults with the share of requests that each hits; a request suffers one at most.
    For `slow_start_s` after the start the server is not ready. `lossy_ratio` is the share of tokens that a verifier
    which does not keep to the target's distribution replaces.
    """

    shares: tuple[tuple[float, Fault], ...] = ()
    slow_start_s: float = 0.0
    restart: Restart | None = None
    lossy_ratio: float = 0.0
    seed: int = 0

    def for_request(self, number: int) -> Fault | None:
        """The fault of the request with this number; equal seeds and numbers give equal faults."""
        if not self.shares:
            return None
        luck = random.Random(f"{self.seed}/{number}").random()
        for share, fault in self.shares:
            if luck < share:
                return fault
            luck -= share
        return None


def parse_faults(texts: Iterable[str], *, seed: int = 0) -> Faults:
    """The faults meant by texts such as `delay=500ms@10%`, `reset=3@1%`, `429=2s@5%`, `restart=30s:5s`, `lossy=5%`.

    Raises ConfigError for anything else, saying what was expected.
    """
    raise NotImplementedError
