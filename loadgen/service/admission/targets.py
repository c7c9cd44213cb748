"""The servers that a run names: checked against the list, and by what they are told apart for leases."""

import socket
from collections.abc import Callable, Iterable
from ipaddress import ip_address

from loadgen.adapters.http.destination import Destination
from loadgen.core.errors import ConfigError
from loadgen.service.admission.addresses import LOOPBACK, Address, AllowList, is_forbidden, normal_name, plain

Resolver = Callable[[str, int], Iterable[Address]]


def resolve_name(host: str, port: int) -> list[Address]:
    """The addresses of a name, in whatever form the system reads one. Raises ConfigError when there are none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ConfigError("the host's name cannot be resolved") from None
    return list(dict.fromkeys(ip_address(str(place[0]).partition("%")[0]) for *_, place in found))


def check_url(url: str, allowed: AllowList, resolve: Resolver) -> frozenset[str]:
    """By which keys the server at that URL is leased, one for its name and one for each of its addresses.

    Raises ConfigError for what is no URL, PermissionError for what is not allowed.
    """
    destination = Destination.from_url(url)
    if destination.secrets:
        raise ConfigError("expected a URL without a password: name a variable that holds the key by api_key_env")
    if destination.unix_path is not None:
        raise PermissionError("a unix socket cannot be reached from the service")
    return check_host(destination.host, destination.port, allowed, resolve)


def check_host(host: str, port: int, allowed: AllowList, resolve: Resolver) -> frozenset[str]:
    """The same of a host and a port."""
    if not allowed.admits_name(host, port):
        raise PermissionError(f"{normal_name(host)}:{port} is not on the service's list of allowed hosts")
    addresses = list(resolve(host, port))
    for address in addresses:
        if is_forbidden(address) or not allowed.admits_resolved(host, address, port):
            raise PermissionError(f"{normal_name(host)} means an address that no run may reach")
    return frozenset({_key(normal_name(host), port), *(_key(_host_of(address), port) for address in addresses)})


def _host_of(address: Address) -> str:
    inner = plain(address)
    return LOOPBACK if inner.is_loopback else str(inner)


def _key(host: str, port: int) -> str:
    return f"{host}:{port}"
