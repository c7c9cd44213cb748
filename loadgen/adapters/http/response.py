"""One HTTP/1.1 response: httptools does the parsing, this puts what it finds into an inbox with the read's stamp."""

import httptools

from loadgen.adapters.http.content import ContentDecoder, content_decoder
from loadgen.adapters.http.failures import WireError
from loadgen.core.errors import InternalError
from loadgen.core.record import FailureKind
from loadgen.engine.ports import Inbox

_HEAD_LIMIT_BYTES = 256 * 1024
_SNIPPET_BYTES = 60


class Response:
    """The response to one request, fed with what each read brought.

    `begun` once any byte of it came, `body_begun` once the body had one, `complete` once the message has ended by its
    own framing; `keep_alive`: whether the connection may serve another request. `framed` is false for a body that
    lasts until the connection closes.
    """

    __slots__ = (
        "_decoder",
        "_encoding",
        "_head_bytes",
        "_inbox",
        "_informational",
        "_parser",
        "_stamp",
        "begun",
        "body_begun",
        "chunked",
        "complete",
        "framed",
        "keep_alive",
    )

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._stamp = 0
        self._head_bytes = 0
        self._encoding: str | None = None
        self._decoder: ContentDecoder | None = None
        self._informational = False
        self.begun = False
        self.body_begun = False
        self.complete = False
        self.keep_alive = False
        self.framed = False
        self.chunked = False
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes | memoryview, stamp: int) -> None:
        """Takes what one read brought in at `stamp` (ns, run axis). Raises WireError when it is not HTTP/1.1.

        Bytes after the message's end are not an error of it; they cost the connection its `keep_alive`.
        """
        self._stamp = stamp
        self.begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if isinstance(error.__context__, WireError):
                raise error.__context__ from None
            if isinstance(error.__context__, Exception):
                raise InternalError("reading a response failed in our own code") from error.__context__
            if self.complete:
                self.keep_alive = False
                return
            snippet = bytes(data[:_SNIPPET_BYTES])
            raise WireError(FailureKind.PROTOCOL, f"not an HTTP/1.1 response: {error}, near {snippet!r}") from error
        if self._inbox.headers_ns is None:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_LIMIT_BYTES:
                raise WireError(FailureKind.PROTOCOL, f"response headers of more than {_HEAD_LIMIT_BYTES} bytes")

    def end_of_stream(self, *, authenticated: bool) -> None:
        """The peer has closed its side: that ends an unframed body well. Raises WireError (truncated) for any other.

        `authenticated`: the close is known to be the peer's own (RFC 9112, 9.8); always so without TLS.
        """
        if self._inbox.headers_ns is None:
            raise WireError(FailureKind.TRUNCATED, "the connection was closed inside the response's headers")
        if self.framed:
            received = self._inbox.bytes_received
            raise WireError(
                FailureKind.TRUNCATED, f"the connection was closed inside the response, after {received} bytes"
            )
        if not authenticated:
            raise WireError(
                FailureKind.TRUNCATED, "the connection was closed without TLS saying that the response ended"
            )
        self._finish()

    def release(self) -> None:
        """Lets go of the parser, which holds on to this in turn: a request leaves nothing for the cyclic collector."""
        del self._parser

    # What httptools calls.

    def on_message_begin(self) -> None:
        if self.complete:
            self.keep_alive = False  # more than was asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._inbox.headers_ns is not None:
            return  # a trailer, or what follows the message
        match name.lower():
            case b"content-type":
                self._inbox.content_type = value.decode("latin-1")
            case b"content-encoding":
                self._encoding = value.decode("latin-1")
            case b"content-length":
                self.framed = True
            case b"transfer-encoding":
                self.framed = self.chunked = b"chunked" in value.lower()
            case b"retry-after":
                self._inbox.retry_after_s = retry_after_s(value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        status = self._parser.get_status_code()
        if status == 101:
            raise WireError(FailureKind.PROTOCOL, "the server switched to another protocol")
        self._informational = 100 <= status < 200
        if self._informational:
            return
        self._inbox.status = status
        self._inbox.headers_ns = self._stamp
        self.keep_alive = self._parser.should_keep_alive()
        self._decoder = content_decoder(self._encoding, status)

    def on_body(self, data: bytes) -> None:
        if self.complete:
            return
        if self._decoder is not None:
            data = self._decoder.decode(data)
            if not data:
                return
        self.body_begun = True
        self._inbox.stamps.append(self._stamp)
        self._inbox.pieces.append(data)

    def on_message_complete(self) -> None:
        if self._informational:
            self._informational = self.framed = self.chunked = False
            self._encoding = self._inbox.content_type = self._inbox.retry_after_s = None
        elif not self.complete:
            self._finish()

    def _finish(self) -> None:
        if self._decoder is not None and not self._decoder.complete:
            raise WireError(FailureKind.TRUNCATED, "the compressed body ends before its own end")
        self.complete = True


def retry_after_s(value: str | None) -> float | None:
    """A Retry-After header in seconds; None without one and for its other form, a date."""
    try:
        s = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return s if 0 <= s < float("inf") else None
