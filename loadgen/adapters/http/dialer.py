"""Opening a connection: name resolution, every address in turn, unix sockets, the TLS handshake."""

import asyncio
import socket
import ssl
from dataclasses import dataclass
from typing import Any, TypeAlias

from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.failures import WireError, connect_failure
from loadgen.adapters.http.stamps import request_stamps
from loadgen.adapters.http.tls import TlsSession
from loadgen.core.record import FailureKind

_Address: TypeAlias = tuple[int, Any]  # family and socket address
_HANDSHAKE_READ_BYTES = 65536
_BACKLOG_RETRY_S = 0.005


@dataclass(frozen=True, slots=True)
class Dialled:
    """An open, non-blocking socket, ready for a request. `stamped`: the system took the request for kernel stamps."""

    sock: socket.socket
    tls: TlsSession | None
    stamped: bool


class Dialer:
    """Opens connections to one destination. Names are resolved once, at the first need or ahead by `resolve`."""

    def __init__(self, destination: Destination, *, stamps: bool) -> None:
        """Raises ConfigError when the destination's TLS files cannot be used."""
        self._destination = destination
        self._where = destination.unix_path or f"{destination.host} port {destination.port}"
        self._context = destination.ssl_context()
        if self._context is not None:
            self._context.set_alpn_protocols(["http/1.1"])
        self._stamps = stamps
        self._addresses: list[_Address] = []

    async def resolve(self) -> None:
        """Looks the host's addresses up, unless that is done. Raises WireError (connect) when there are none."""
        if not self._addresses:
            self._addresses = await self._look_up()

    async def dial(self, limit_s: float | None) -> Dialled:
        """Opens a connection within `limit_s` seconds, shared out over the addresses still to be tried.

        The address that answered is tried first from then on. Raises WireError with the kind that the last address met.
        """
        loop = asyncio.get_running_loop()
        deadline = None if limit_s is None else loop.time() + limit_s
        try:
            async with asyncio.timeout_at(deadline):
                await self.resolve()
        except TimeoutError:
            raise WireError(
                FailureKind.CONNECT_TIMEOUT, f"{self._where}: name not resolved within {limit_s:g} s"
            ) from None
        failure = WireError(FailureKind.CONNECT, f"{self._where}: no address")
        addresses = list(self._addresses)
        for position, address in enumerate(addresses):
            share = None if deadline is None else (deadline - loop.time()) / (len(addresses) - position)
            try:
                async with asyncio.timeout(share):
                    dialled = await self._reach(address)
            except TimeoutError:
                failure = WireError(FailureKind.CONNECT_TIMEOUT, f"{self._where}: not connected within {limit_s:g} s")
            except OSError as error:
                failure = connect_failure(error, self._where)
            else:
                if position > 0:
                    self._addresses.remove(address)
                    self._addresses.insert(0, address)
                return dialled
            if failure.kind in (FailureKind.TLS, FailureKind.CLIENT_RESOURCE):
                break  # the next address would meet the same
        raise failure

    async def _look_up(self) -> list[_Address]:
        destination = self._destination
        if destination.unix_path is not None:
            return [(socket.AF_UNIX, destination.unix_path)]
        host, port, kind = destination.host, destination.port, socket.SOCK_STREAM
        try:
            try:
                found = socket.getaddrinfo(host, port, type=kind, flags=socket.AI_NUMERICHOST)
            except socket.gaierror:  # a name, so ask for it, in a thread
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=kind)
        except (OSError, UnicodeError) as error:
            failure = error if isinstance(error, OSError) else OSError(str(error))
            raise connect_failure(failure, self._where) from error
        return list(dict.fromkeys((family, address) for family, _, _, _, address in found))

    async def _reach(self, address: _Address) -> Dialled:
        """Connects to one address. Raises OSError."""
        family, place = address
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            stamped = False
            if family == socket.AF_UNIX:
                await _connect_unix(sock, place)
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                stamped = self._stamps and request_stamps(sock)
                await asyncio.get_running_loop().sock_connect(sock, place)
                if sock.getsockname() == sock.getpeername():  # the system joined the socket to itself: nobody listens
                    raise ConnectionRefusedError("nothing listens there")
            tls = None
            if self._context is not None:
                tls = TlsSession(self._context, self._destination.host)
                await _shake_hands(tls, sock)
        except BaseException:
            sock.close()
            raise
        return Dialled(sock, tls, stamped)


async def _connect_unix(sock: socket.socket, path: str) -> None:
    """Connects at once or, while the server's backlog is full (EAGAIN, with nothing to wait on), again and again."""
    while True:
        try:
            sock.connect(path)
        except BlockingIOError:
            await asyncio.sleep(_BACKLOG_RETRY_S)
        else:
            return


async def _shake_hands(tls: TlsSession, sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    received: bytes | None = None
    while True:
        done = tls.handshake(received)
        if out := tls.outgoing():
            await loop.sock_sendall(sock, out)
        if done:
            return
        received = await loop.sock_recv(sock, _HANDSHAKE_READ_BYTES)
        if not received:
            raise ssl.SSLError("the server closed the connection inside the handshake")
