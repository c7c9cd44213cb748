"""Requests whose head has no end, or takes for ever to come, end here: nothing above gets to see them."""

from asyncio import TimerHandle, Transport
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class BoundedHead(HttpToolsProtocol):
    """HTTP/1.1 as uvicorn has it, which by itself keeps of a head whatever is sent, for as long as it is sent.

    `MOST_BYTES` may come until a head is whole, and with them what follows in the same piece.
    """

    MOST_BYTES: ClassVar[int] = 2**20
    HEAD_S: ClassVar[float] = 30.0

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._bytes = 0
        self._timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._head_is_whole()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._timer is not None:
            self._bytes += len(data)
            if self._bytes > self.MOST_BYTES:
                self.transport.close()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """See `httptools`."""
        self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """See `httptools`."""
        self._head_is_whole()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.HEAD_S, self.transport.close)

    def _head_is_whole(self) -> None:
        self._bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
