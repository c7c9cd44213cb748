"""Faults of a server, on purpose: which request suffers which, and when the whole server does.

Times are seconds of the clock, whatever the simulation's speed.
"""

import math
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from loadgen.core.errors import ConfigError
from loadgen.core.units import parse_duration_ns, seconds

_DOWN_S = 5.0


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
    `truncate`: the connection closes. `429` and `503` refuse the request, with Retry-After if `retry_after_s` is set.
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
    faults = Faults(seed=seed)
    for text in texts:
        try:
            faults = _with(faults, text)
        except ValueError as error:
            raise ConfigError(f"--fault {text}: {error}") from None
    total = math.fsum(share for share, _ in faults.shares)
    if total > 1 + 1e-9:
        raise ConfigError(f"--fault: a request suffers one fault at most, but the shares come to {total:.0%}")
    return faults


def _with(faults: Faults, text: str) -> Faults:
    """`NAME[=VALUE][@SHARE]` added. Without a share it hits every request."""
    head, at, share = text.partition("@")
    name, equals, value = head.partition("=")
    match name:
        case "slow-start" | "restart" | "lossy":
            if at:
                raise ValueError("this is the whole server's; it takes no share of requests")
            return _with_server_fault(faults, name, value)
        case "delay":
            fault = Fault(kind=FaultKind.DELAY, delay_s=_time_s(value))
        case "stall" | "reset" | "error" | "truncate":
            fault = Fault(kind=FaultKind(name), after_events=_events(value) if equals else 0)
        case "429" | "503":
            fault = Fault(kind=FaultKind(name), retry_after_s=_time_s(value) if equals else None)
        case _:
            raise ValueError(f"expected one of {', '.join([*FaultKind, 'slow-start', 'restart', 'lossy'])}")
    return replace(faults, shares=(*faults.shares, (_share_ratio(share) if at else 1.0, fault)))


def _with_server_fault(faults: Faults, name: str, value: str) -> Faults:
    match name:
        case "slow-start":
            there, added = faults.slow_start_s > 0, replace(faults, slow_start_s=_time_s(value))
        case "restart":
            start, colon, down = value.partition(":")
            restart = Restart(at_s=_time_s(start), down_s=_time_s(down) if colon else _DOWN_S)
            there, added = faults.restart is not None, replace(faults, restart=restart)
        case _:
            there, added = faults.lossy_ratio > 0, replace(faults, lossy_ratio=_share_ratio(value))
    if there:
        raise ValueError(f"{name} was given before; it happens once")
    return added


def _time_s(text: str) -> float:
    return seconds(parse_duration_ns(text))


def _events(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"expected a number of events, got {text!r}")
    return int(text)


def _share_ratio(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if found is None or not 0 < float(found[1]) <= 100:
        raise ValueError(f"expected a share such as 5%, got {text!r}")
    return float(found[1]) / 100
