"""What this machine lets one process open, checked before the load rather than met in the middle of it."""

from pathlib import Path

from loadgen.core.errors import ConfigError

_SPARE_DESCRIPTORS = 64  # files, pipes and control connections beside the load's own
_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def raise_descriptor_limit() -> int | None:
    """Lifts the soft limit on open descriptors to the hard one; what may be open then, None where there is no limit."""
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):  # some systems allow less than the hard limit they name
            pass
    return None if soft == resource.RLIM_INFINITY else soft


def check_connections(connections: int, *, local_ports: bool) -> None:
    """Raises ConfigError when this process cannot hold that many connections at once.

    `local_ports`: each takes a port of this machine (TCP), not only a descriptor.
    """
    if local_ports and _PORT_RANGE.exists():
        first, last = map(int, _PORT_RANGE.read_text().split())
        if connections > last - first + 1:
            raise ConfigError(
                f"{connections} connections: this machine has {last - first + 1} local ports for one destination;"
                f" widen net.ipv4.ip_local_port_range or use more machines"
            )
    limit = raise_descriptor_limit()
    used = _open_descriptors()
    if limit is not None and connections + used + _SPARE_DESCRIPTORS > limit:
        raise ConfigError(
            f"{connections} connections: this process may have {limit} open descriptors and uses {used};"
            f" raise the hard limit (ulimit -Hn) or use more workers"
        )


def _open_descriptors() -> int:
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0
