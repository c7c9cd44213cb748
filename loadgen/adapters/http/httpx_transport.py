"""The second transport, on httpx2: HTTP/2, proxies, whatever the native one does not speak.

It stamps where a coroutine gets to see the bytes, which is later than the kernel and later than the socket, and says so
(`TimingSource.COROUTINE`). It sends nothing again.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import httpx2

from loadgen.adapters.http.content import content_decoder
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.dialer import Dialer
from loadgen.adapters.http.failures import WireError, connect_failure, tls_reason
from loadgen.adapters.http.head import checked_id
from loadgen.adapters.http.limits import check_connections
from loadgen.adapters.http.response import retry_after_s
from loadgen.core.errors import ConfigError, InternalError, TargetError
from loadgen.core.record import FailureKind
from loadgen.core.run import TimingSource
from loadgen.engine.ports import Clock, Ending, Inbox, Timeouts

_STREAMS_A_LANE = 100  # what servers usually allow on one HTTP/2 connection; more would wait inside the client
_HTTPX_LAYERS = 2  # httpx2's error and httpcore2's
_OPENING_LAYERS = ("connection", "proxy", "socks")
_UNLIMITED = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=None)


class HttpxTransport:
    """Requests to one path of one destination through httpx2, without its pool limits, retries or environment.

    `http2` is negotiated on TLS and taken for granted (prior knowledge) without. `proxy` is a URL and the only way to
    one: proxy variables of the environment are not read. A request counts as sent once httpx2 starts to connect or
    to write for it, so its own delay before that is the client's lag and not the server's latency.
    """

    def __init__(
        self,
        destination: Destination,
        clock: Clock,
        *,
        path: str,
        timeouts: Timeouts | None = None,
        http2: bool = False,
        proxy: str | None = None,
    ) -> None:
        """Raises ConfigError when the destination's TLS files or the proxy URL cannot be used."""
        self._destination = destination
        self._clock = clock
        self._timeouts = timeouts or Timeouts()
        self._http2 = http2
        self._proxy = _proxy(proxy)
        self._context = destination.ssl_context()
        self._headers = destination.encoded_headers()
        self._url = destination.origin + destination.request_target(path)
        self._lanes: list[_Lane] = []

    @property
    def timing_source(self) -> TimingSource:
        """Always a coroutine."""
        return TimingSource.COROUTINE

    def prepare(self, body: bytes, request_id: str) -> httpx2.Request:
        """The request as httpx2 wants it. Raises ConfigError for an id that no header can hold."""
        headers = {**self._headers, b"X-Request-Id": checked_id(request_id).encode("ascii")}
        idle_s = self._timeouts.idle_s
        limits = {"connect": self._timeouts.connect_s, "read": idle_s, "write": idle_s, "pool": None}
        return httpx2.Request("POST", self._url, headers=headers, content=body, extensions={"timeout": limits})

    async def open(self, connections: int) -> None:
        """Checks that the destination takes a connection (unless a proxy stands before it); httpx2 opens its own later.

        Raises TargetError when it does not, ConfigError when this process cannot hold that many connections.
        """
        check_connections(connections, local_ports=self._destination.unix_path is None)
        if self._proxy is not None:
            return
        try:
            dialled = await Dialer(self._destination, stamps=False).dial(self._timeouts.connect_s)
        except WireError as error:
            raise TargetError(f"{self._destination.url}: {error.message}") from error
        dialled.sock.close()

    async def exchange(self, prepared: Any, inbox: Inbox) -> Ending:
        """Sends the request and returns when its response has ended, failed or timed out."""
        lane = self._lane()
        lane.in_flight += 1
        progress = _Progress(self._clock, inbox)
        prepared.extensions["trace"] = progress.observe
        inbox.sent_ns = self._clock.now_ns()
        failure = None
        try:
            async with asyncio.timeout(self._timeouts.total_s):
                await self._stream(lane.transport, prepared, inbox)
        except TimeoutError:
            failure = WireError(FailureKind.TOTAL_TIMEOUT, f"not complete {self._timeouts.total_s} s after it was sent")
        except WireError as error:
            failure = error
        except (httpx2.TransportError, OSError) as error:
            failure = _failure(error, inbox, self._destination.url, reused=progress.opening_ns is None)
        finally:
            lane.in_flight -= 1
        now = self._clock.now_ns()
        if failure is None:
            return Ending(closed_ns=now)
        return Ending(closed_ns=now, kind=failure.kind, message=failure.message)

    async def close(self) -> None:
        """Closes every connection."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            await lane.transport.aclose()

    async def _stream(self, transport: httpx2.AsyncHTTPTransport, request: httpx2.Request, inbox: Inbox) -> None:
        now_ns = self._clock.now_ns
        response = await transport.handle_async_request(request)
        try:
            inbox.headers_ns = inbox.first_byte_ns = inbox.last_activity_ns = now_ns()
            inbox.status = response.status_code
            inbox.content_type = response.headers.get("content-type")
            inbox.retry_after_s = retry_after_s(response.headers.get("retry-after"))
            decoder = content_decoder(response.headers.get("content-encoding"), response.status_code)
            async for data in response.stream:  # type: ignore[union-attr]  # an async transport's stream is async
                stamp = now_ns()
                inbox.last_activity_ns = stamp
                inbox.bytes_received += len(data)
                piece = data if decoder is None else decoder.decode(data)
                if piece:
                    inbox.stamps.append(stamp)
                    inbox.pieces.append(piece)
            if decoder is not None and not decoder.complete:
                raise WireError(FailureKind.TRUNCATED, "the compressed body ends before its own end")
        finally:
            await response.aclose()

    def _lane(self) -> "_Lane":
        """A client with room for another request: without a limit in HTTP/1.1, by streams in HTTP/2."""
        for lane in self._lanes:
            if not self._http2 or lane.in_flight < _STREAMS_A_LANE:
                return lane
        unix_path = self._destination.unix_path
        transport = httpx2.AsyncHTTPTransport(
            verify=self._context if self._context is not None else False,
            trust_env=False,
            http1=not self._http2 or self._destination.secure,
            http2=self._http2,
            limits=_UNLIMITED,
            proxy=self._proxy,
            uds=unix_path,
            socket_options=None if unix_path else [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        )
        self._lanes.append(_Lane(transport))
        return self._lanes[-1]


class _Lane:
    """One httpx2 connection pool and how many requests it carries."""

    def __init__(self, transport: httpx2.AsyncHTTPTransport) -> None:
        self.transport = transport
        self.in_flight = 0


class _Progress:
    """Learns from httpx2's trace when it really starts on a request, and how long a connection for it took to open."""

    def __init__(self, clock: Clock, inbox: Inbox) -> None:
        self._clock = clock
        self._inbox = inbox
        self._started = False
        self.opening_ns: int | None = None

    async def observe(self, name: str, info: dict[str, Any]) -> None:
        layer, _, step = name.partition(".")
        if step.endswith(".started"):
            now = self._clock.now_ns()
            if not self._started:
                self._started = True
                self._inbox.sent_ns = now
            if layer in _OPENING_LAYERS and self.opening_ns is None:
                self.opening_ns = now
        elif step.endswith(".complete") and layer in _OPENING_LAYERS and self.opening_ns is not None:
            self._inbox.connect_ns = self._clock.now_ns() - self.opening_ns


def _failure(error: Exception, inbox: Inbox, url: str, *, reused: bool) -> WireError:
    """The kind of a fault that httpx2 reports, by the types of the error and of what lies beneath it."""
    beneath = list(_chain(error))
    begun = inbox.headers_ns is not None
    tls = next((cause for cause in beneath if isinstance(cause, ssl.SSLError)), None)
    words = str(error) or type(error).__name__
    match error:
        case httpx2.ConnectTimeout():
            return WireError(FailureKind.CONNECT_TIMEOUT, f"{url}: not connected in time")
        case httpx2.ReadTimeout():
            silence = "silence inside the response" if begun else "nothing of a response in time"
            return WireError(FailureKind.IDLE_TIMEOUT if begun else FailureKind.READ_TIMEOUT, silence)
        case httpx2.WriteTimeout():
            return WireError(FailureKind.WRITE, "the server did not take the request in time")
        case _ if tls is not None:
            return WireError(FailureKind.TLS, f"TLS with {url}: {tls_reason(tls)}")
        case httpx2.ConnectError():
            system = (cause for cause in beneath if isinstance(cause, OSError) and cause.errno is not None)
            return connect_failure(next(system, OSError(words)), url)
        case httpx2.ProxyError():
            return WireError(FailureKind.CONNECT, f"proxy: {words}")
        case httpx2.RemoteProtocolError() if begun:
            return WireError(FailureKind.TRUNCATED, f"the response broke off: {words}")
        case httpx2.RemoteProtocolError() if len(beneath) > _HTTPX_LAYERS:  # the parser's own error lies beneath
            return WireError(FailureKind.PROTOCOL, f"not an HTTP response: {words}")
        case httpx2.LocalProtocolError() | httpx2.UnsupportedProtocol():
            raise InternalError(f"a request was made that cannot be sent: {words}") from error
        case _ if begun:
            return WireError(FailureKind.READ, f"{words}, after {inbox.bytes_received} bytes of the response")
        case _ if reused:
            return WireError(FailureKind.REUSED_CONNECTION, f"a kept connection was lost: {words}")
        case httpx2.WriteError():
            return WireError(FailureKind.WRITE, words)
        case _:
            return WireError(FailureKind.READ, f"{words}, before any byte of a response")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what lies beneath it: the cause, or the foreign error that httpcore2 keeps as its argument."""
    beneath: BaseException | None = error
    while beneath is not None:
        yield beneath
        inner = beneath.exceptions if isinstance(beneath, BaseExceptionGroup) else (beneath.__cause__, *beneath.args)
        beneath = next((item for item in inner if isinstance(item, BaseException)), None)


def _proxy(url: str | None) -> httpx2.Proxy | None:
    if url is None:
        return None
    try:
        return httpx2.Proxy(url)
    except (ValueError, httpx2.InvalidURL):
        raise ConfigError("proxy: expected http://host:port, https://host:port or socks5://host:port") from None
