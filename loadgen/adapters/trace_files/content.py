"""The bytes of a data file, decompressed: read once in order, then row by row at their places."""

import os
import tempfile
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO

import zstandard

from loadgen.core.errors import DataError
from loadgen.core.traces.framing import LARGEST_ROW_BYTES

CHUNK_BYTES = 2**20
HEAD_BYTES = 2**18

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP, _ZSTD, _XZ, _BZIP2 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh"


class Content:
    """An open data file. A compressed one, or one that is no regular file, is copied to a temporary file first."""

    def __init__(self, path: Path) -> None:
        """Raises DataError for a file that cannot be read, or whose compressed data is broken or cut short."""
        self.path = path
        try:
            self._file: IO[bytes] = path.open("rb")
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None
        try:
            self._digest = sha256()
            self._is_copy = False
            self.disk_bytes = 0
            start = self._file.read(8)
            if self._file.seekable():
                self._file.seek(0)
            if start.startswith((_XZ, _BZIP2)):
                raise DataError(f"{path}: is compressed in a way that is not read here; expected plain, gzip or zstd")
            if start.startswith((_GZIP, _ZSTD)) or not path.is_file():
                self._unpack(start)
            else:
                self.disk_bytes = self._now()[0]
            self._state = self._now()
            self.size_bytes = self._state[0]
            self.start = len(_BYTE_ORDER_MARK) if self.at(0, 3) == _BYTE_ORDER_MARK else 0
        except BaseException:
            self._file.close()
            raise

    def _unpack(self, start: bytes) -> None:
        """Replaces the open file by a temporary one with its content."""
        source = self._file
        copy: IO[bytes] = tempfile.TemporaryFile(prefix="loadgen-")  # noqa: SIM115  lives as long as this object
        try:
            with source:
                raw = self._raw(source, b"" if source.seekable() else start)
                for piece in _decompressed(raw, start, self.path):
                    copy.write(piece)
            copy.flush()
        except BaseException:
            copy.close()
            raise
        self._file, self._is_copy = copy, True

    def _raw(self, source: IO[bytes], pending: bytes) -> Iterator[bytes]:
        while piece := pending or source.read(CHUNK_BYTES):
            pending = b""
            self._digest.update(piece)
            self.disk_bytes += len(piece)
            yield piece

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns

    def head(self) -> bytes:
        """The first bytes, without a byte order mark: as many as the first JSON line, a long prompt, has."""
        head = self.at(self.start, HEAD_BYTES)
        while head.lstrip().startswith(b"{") and b"\n" not in head and len(head) < LARGEST_ROW_BYTES:
            longer = self.at(self.start, 2 * len(head))
            if len(longer) == len(head):
                break
            head = longer
        return head

    def chunks(self) -> Iterator[bytes]:
        """All bytes after a byte order mark. The digest is known once the first pass over them has ended."""
        if not self._is_copy:
            self._digest = sha256(self.at(0, self.start))
        position = self.start
        while piece := self.at(position, CHUNK_BYTES):
            position += len(piece)
            if not self._is_copy:
                self._digest.update(piece)
            yield piece

    def sha256(self) -> str:
        """SHA-256 of the file as it lies on the disk, after `chunks` has been read to its end."""
        return self._digest.hexdigest()

    def at(self, position: int, size: int) -> bytes:
        """Bytes at a place in the decompressed content."""
        return os.pread(self._file.fileno(), size, position)

    def check_unchanged(self) -> None:
        """Raises DataError when the file was written to since it was opened."""
        if not self._is_copy and self._now() != self._state:
            raise DataError(f"{self.path}: was changed while it was in use")

    def close(self) -> None:
        """Closes the file; a temporary one is gone then."""
        self._file.close()


def _decompressed(raw: Iterator[bytes], start: bytes, path: Path) -> Iterator[bytes]:
    """The content of gzip members or zstd frames, one after the other; other data as it is."""
    if not start.startswith((_GZIP, _ZSTD)):
        yield from raw
        return

    def new() -> "zlib._Decompress | zstandard.ZstdDecompressionObj":
        if start.startswith(_GZIP):
            return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        return zstandard.ZstdDecompressor().decompressobj()

    member, is_open = new(), False
    try:
        for piece in raw:
            rest = piece
            while rest:
                yield member.decompress(rest)
                is_open = not member.eof
                rest = member.unused_data if member.eof else b""
                if member.eof:
                    member = new()
    except (zlib.error, zstandard.ZstdError) as error:
        raise DataError(f"{path}: its compressed data is broken: {error}") from None
    if is_open:
        raise DataError(f"{path}: its compressed data is cut short")
