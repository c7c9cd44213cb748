"""Holds every connection of a process against the allow-list, at the address that it really goes to.

A name may mean another address when it is connected to than when it was checked. Python tells of each connection before
it is opened (an audit event, which nothing in the process can turn off); one that is not allowed fails there, as a
connection that a firewall refuses does.
"""

import errno
import socket
import sys
from typing import Any

from loadgen.service.admission.addresses import AllowList, literal_address

_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


def guard_connections(allowed: AllowList) -> None:
    """From now on, and to the end of the process, nothing else is reached."""

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _EVENTS and len(arguments) > 1:
            check_connection(allowed, arguments[0], arguments[1])

    sys.addaudithook(check)


def check_connection(allowed: AllowList, sock: Any, place: Any) -> None:
    """Raises PermissionError for a place that is not allowed."""
    if getattr(sock, "family", None) not in (socket.AF_INET, socket.AF_INET6) or not isinstance(place, tuple):
        return  # a socket of this machine's own, which a URL cannot name here
    address = literal_address(str(place[0]))
    port = int(place[1])
    if address is None or not allowed.admits_connection(address, port):
        raise PermissionError(errno.EACCES, "this address is not on the service's list of allowed hosts")
