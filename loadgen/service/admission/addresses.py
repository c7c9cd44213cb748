"""Addresses that no run may reach, and the hosts that an allow-list lets it reach.

Without any library of the service: the process that measures holds its connections against it, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from loadgen.core.errors import ConfigError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

LOOPBACK = "loopback"
_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
_HIGHEST_PORT = 65_535

_NEVER: tuple[Network, ...] = tuple(
    ip_network(network)
    for network in (
        "169.254.0.0/16",  # link-local, and in it the metadata of most clouds
        "fe80::/10",
        "fd00:ec2::/32",  # Amazon's metadata
        "fd20:ce::/32",  # Google's
        "100.100.100.200/32",  # Alibaba's
        "192.0.0.192/32",  # Oracle's
        "168.63.129.16/32",  # Azure's wire server
        "0.0.0.0/8",
        "::/128",
        "224.0.0.0/4",
        "ff00::/8",
        "255.255.255.255/32",
    )
)
_NAT64 = ip_network("64:ff9b::/96")


def plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, else itself, without a zone."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    inner = address.ipv4_mapped or address.sixtofour
    if inner is not None:
        return inner
    if address.teredo is not None:
        return address.teredo[1]
    return IPv6Address(int(address))


def is_forbidden(address: Address) -> bool:
    """Whether no list may allow it: metadata services, link-local, multicast, and what is no host."""
    inner = plain(address)
    return any(inner in network for network in _NEVER if network.version == inner.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the list: a name, a domain with all beneath it, or a network; None of `port` is any."""

    name: str | None = None
    beneath: bool = False
    network: Network | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class AllowList:
    """Which hosts may be reached. `text` is what it was made from."""

    entries: tuple[Entry, ...]
    text: tuple[str, ...]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "AllowList":
        """Raises ConfigError that says what was expected."""
        return cls(tuple(entry for text in texts for entry in _entries(text.strip())), tuple(texts))

    def admits_name(self, host: str, port: int) -> bool:
        """Whether that host, as a URL names it, stands on the list. Of an address, see `admits_address`."""
        name = normal_name(host)
        literal = literal_address(name)
        if literal is not None:
            return self.admits_address(literal, port)
        return any(
            entry.port in (None, port)
            and entry.name is not None
            and (name.endswith("." + entry.name) if entry.beneath else name == entry.name)
            for entry in self.entries
        )

    def admits_address(self, address: Address, port: int) -> bool:
        """Whether the address itself stands on the list, in one of its networks."""
        inner = plain(address)
        return not is_forbidden(inner) and any(
            entry.port in (None, port)
            and entry.network is not None
            and entry.network.version == inner.version
            and inner in entry.network
            for entry in self.entries
        )

    def admits_resolved(self, host: str, address: Address, port: int) -> bool:
        """Whether a host that stands on the list may be reached at the address that its name has now.

        A name that comes to mean this machine needs it on the list, so that nobody who rules a name reaches it.
        """
        inner = plain(address)
        if is_forbidden(inner) or not self.admits_name(host, port):
            return False
        return self.admits_address(inner, port) if inner.is_loopback else True

    def admits_connection(self, address: Address, port: int) -> bool:
        """The same when the name is not known any more: what no name on the list could ever mean."""
        inner = plain(address)
        if is_forbidden(inner):
            return False
        if self.admits_address(inner, port):
            return True
        named = any(
            entry.name is not None and entry.name not in _LOOPBACK_NAMES and entry.port in (None, port)
            for entry in self.entries
        )
        return named and not inner.is_loopback


def normal_name(host: str) -> str:
    """A host's name as it is compared."""
    return host.rstrip(".").lower()


def literal_address(host: str) -> Address | None:
    """The address that a host is written as; None for a name."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _entries(text: str) -> list[Entry]:
    host, port = _split(text)
    if host == LOOPBACK:
        names = [Entry(name=name, port=port) for name in sorted(_LOOPBACK_NAMES)]
        return [*names, *(Entry(network=ip_network(network), port=port) for network in ("127.0.0.0/8", "::1/128"))]
    try:
        return [Entry(network=ip_network(host), port=port)]
    except ValueError:
        pass
    beneath = host.startswith("*.")
    name = normal_name(host.removeprefix("*."))
    if not name or not all(part.replace("-", "").replace("_", "").isalnum() for part in name.split(".")):
        raise ConfigError(
            "--allow-host: expected loopback, NAME, *.DOMAIN, an address or a network, with or without :PORT;"
            f" got {text!r}"
        )
    return [Entry(name=name, beneath=beneath, port=port)]


def _split(text: str) -> tuple[str, int | None]:
    """The host and the port, of `host`, `host:1`, `::1`, `[::1]:1`."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    else:
        host, port = text, ""
    if not port:
        return host, None
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _HIGHEST_PORT):
        raise ConfigError(f"--allow-host: expected a port of 1 to {_HIGHEST_PORT} behind the colon, got {text!r}")
    return host, int(port)
