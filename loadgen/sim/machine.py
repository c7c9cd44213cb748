"""What this machine gives a client that measures."""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from loadgen.adapters.clock import MonotonicClock
from loadgen.sim.check import Check, at_most, ought_to_reach

_SLEEPS, _SLEEP_NS = 100, 3_000_000
_LEAST_DESCRIPTORS, _LEAST_PORTS = 4096, 10_000


async def check_machine() -> list[Check]:
    """What this machine gives a client: timer precision, descriptors, ports, cores. Advice, except for the timer."""
    clock = MonotonicClock()
    late = []
    for _ in range(_SLEEPS):
        due = clock.now_ns() + _SLEEP_NS
        await clock.sleep_until(due)
        late.append((clock.now_ns() - due) / 1e9)
    clock.close()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [
        at_most(
            "machine.timer_late_p99_s",
            float(np.percentile(late, 99)),
            0.003,
            advice="something else uses this machine's cores: requests will leave late",
        ),
        ought_to_reach(
            "machine.descriptors",
            _descriptor_limit(),
            _LEAST_DESCRIPTORS,
            advice="raise the hard limit (ulimit -Hn): each connection takes a descriptor",
        ),
        ought_to_reach(
            "machine.local_ports",
            _local_ports(),
            _LEAST_PORTS,
            advice="widen net.ipv4.ip_local_port_range: each connection to one address takes a port",
        ),
        ought_to_reach(
            "machine.cores",
            cores,
            2,
            advice="with one core a server on this machine and the client take turns",
        ),
    ]


def _descriptor_limit() -> int | None:
    """Open descriptors that this process may reach; None where there is no such limit."""
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if hard == resource.RLIM_INFINITY else hard


def _local_ports() -> int | None:
    """Ports for outgoing connections to one address; None where the system does not say."""
    with suppress(OSError, ValueError):
        first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
        return last - first + 1
    return None
