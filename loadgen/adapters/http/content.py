"""Content-Encoding undone: we ask for `identity`, but a server or proxy that compresses all the same is understood."""

import zlib

from loadgen.adapters.http.failures import WireError
from loadgen.core.record import FailureKind

_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_READABLE = frozenset({"gzip", "x-gzip", "deflate"})


def content_decoder(encoding: str | None, status: int) -> "ContentDecoder | None":
    """A decoder for a response's Content-Encoding, None when its body stands as it is.

    Raises WireError (protocol) for an encoding we cannot read. The body of an error status is then kept raw: the status
    says more than the encoding does.
    """
    name = (encoding or "identity").strip().lower()
    if name in _READABLE:
        return ContentDecoder(name)
    if name in ("identity", "") or status >= 400:
        return None
    raise WireError(
        FailureKind.PROTOCOL, f"the response is in Content-Encoding {name!r}, though the request allowed only identity"
    )


class ContentDecoder:
    """Gzip or deflate, piece by piece, so that each piece keeps the stamp of the read it came with."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._inflate = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._started = False

    @property
    def complete(self) -> bool:
        """Whether the compressed stream has reached its own end; also true of a body without a byte."""
        return self._inflate.eof or not self._started

    def decode(self, data: bytes) -> bytes:
        """What `data` adds, possibly nothing yet. Raises WireError (protocol) when it is no such stream."""
        try:
            return self._decode(data)
        except zlib.error as error:
            raise WireError(FailureKind.PROTOCOL, f"broken {self._name} body: {error}") from error

    def _decode(self, data: bytes) -> bytes:
        if not self._started and self._name == "deflate" and data[:1] and data[0] & 0x0F != 8:
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without zlib's head, as some servers send it
        self._started = True
        out = self._inflate.decompress(data)
        while self._inflate.eof and self._inflate.unused_data:  # gzip members may follow one another
            rest = self._inflate.unused_data
            self._inflate = zlib.decompressobj(_GZIP_OR_ZLIB)
            out += self._inflate.decompress(rest)
        return out
