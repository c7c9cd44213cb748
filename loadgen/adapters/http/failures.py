"""System errors mapped, once, to the kinds of failure that a record knows."""

import errno
import os
import socket
import ssl

from loadgen.core.record import FailureKind

# What this machine has run out of: descriptors, local ports, buffers, memory.
_CLIENT_RESOURCE = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})


class WireError(Exception):
    """A fault on the way to the server; raised only between the modules of this package, and ends as an `Ending`."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


def connect_failure(error: OSError, where: str) -> WireError:
    """What an error while connecting to `where` amounts to."""
    if isinstance(error, ssl.SSLError):
        return WireError(FailureKind.TLS, f"TLS with {where}: {tls_reason(error)}")
    if isinstance(error, socket.gaierror):
        return WireError(FailureKind.CONNECT, f"{where}: name not resolved: {error.strerror}")
    if error.errno in _CLIENT_RESOURCE:
        return WireError(FailureKind.CLIENT_RESOURCE, f"{where}: {_resource_advice(error)}")
    if error.errno == errno.ETIMEDOUT:
        return WireError(FailureKind.CONNECT_TIMEOUT, f"{where}: the system gave up connecting")
    return WireError(FailureKind.CONNECT, f"{where}: {reason(error)}")


def reason(error: OSError) -> str:
    """The system's words for an error, such as `Connection refused`."""
    return os.strerror(error.errno) if error.errno else str(error) or type(error).__name__


def tls_reason(error: ssl.SSLError) -> str:
    """What OpenSSL or the certificate check said, without OpenSSL's source lines."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not accepted: {error.verify_message}"
    return error.reason or "the connection ended inside the handshake"


def _resource_advice(error: OSError) -> str:
    advice = {
        errno.EMFILE: "this process may open no more descriptors; raise `ulimit -n`",
        errno.EADDRNOTAVAIL: "no free local port; open connections less often or widen net.ipv4.ip_local_port_range",
    }
    return advice.get(error.errno or 0, reason(error))
