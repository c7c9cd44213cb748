"""TLS over bytes that we read ourselves, so that receive stamps hold for encrypted connections too."""

import ssl

_READ_BYTES = 65536


class TlsSession:
    """One client side of TLS between two memory buffers: raw bytes on one side, plain ones on the other.

    `ended` once the peer has said that nothing more comes; a connection that ends without it may have been cut.
    """

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.ended = False

    def handshake(self, received: bytes | None = None) -> bool:
        """Goes on with the handshake after `received`; whether it is done. Raises ssl.SSLError when it fails."""
        if received is not None:
            self._incoming.write(received)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def encrypt(self, data: bytes) -> None:
        """Adds plain bytes to what `outgoing` gives."""
        view = memoryview(data)
        while view:
            view = view[self._tls.write(view) :]

    def outgoing(self) -> bytes:
        """Raw bytes that are to be sent now; empties the buffer."""
        return self._outgoing.read()

    def decrypt(self, received: bytes | memoryview) -> bytes:
        """The plain bytes that `received` completes, possibly none. Raises ssl.SSLError."""
        self._incoming.write(received)
        pieces = []
        try:
            while piece := self._tls.read(_READ_BYTES):
                pieces.append(piece)
            self.ended = True  # an empty read is the peer's close_notify
        except ssl.SSLWantReadError:
            pass
        return b"".join(pieces)
