"""Files of JSON lines, appended to while a run is under way, readable up to the last block after any kind of death.

One value a line, zstd-compressed in blocks that are flushed and written as values come. A reader of a cut file gets
every line whose block is whole.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import zstandard

from loadgen.adapters.store.files import Scrubber, decode, reason, sync_folder
from loadgen.core.errors import InternalError, StoreError

Value = TypeVar("Value")

PENDING_LIMIT_BYTES = 64 * 2**20
_COMPRESSION_LEVEL = 1
_READ_BYTES = 16_384


class LineWriter(Generic[Value]):
    """A sink on a file: `put` costs an append, a thread of its own encodes, compresses and writes.

    While the disk keeps up, each value is on its way to the kernel within milliseconds; behind a slow disk they are
    written in batches. At most `limit_bytes` by `size_of`, which estimates a value, wait in memory. `kind` names the
    values in errors.
    """

    def __init__(
        self,
        path: Path,
        *,
        kind: str,
        size_of: Callable[[Value], int],
        scrubber: Scrubber | None = None,
        limit_bytes: int = PENDING_LIMIT_BYTES,
    ) -> None:
        """Creates the file. Raises StoreError when it cannot be created or is there already."""
        self._path = path
        self._kind, self._size_of = kind, size_of
        self._limit_bytes = limit_bytes
        self._scrubber = scrubber or Scrubber()
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as fault:
            raise StoreError(f"{path}: cannot be created: {reason(fault)}") from fault
        self._changed = threading.Condition()
        self._pending: deque[tuple[Value, int]] = deque()
        self._pending_bytes = 0
        self._refused = 0
        self._failure: StoreError | InternalError | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._write, name=f"{kind}-writer", daemon=True)
        self._thread.start()

    def put(self, value: Value) -> None:
        """Accepts one value, without waiting.

        Raises StoreError when it was not accepted: the writer is closed, the disk failed, or it is so slow that
        `limit_bytes` wait already.
        """
        size = self._size_of(value)
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self._closing:
                raise StoreError(f"{self._path}: a {self._kind} came after the file was closed")
            if self._pending and self._pending_bytes + size > self._limit_bytes:
                self._refused += 1
                raise StoreError(
                    f"{self._path}: the disk is too slow: {len(self._pending)} {self._kind}s wait to be written, no"
                    " more fit"
                )
            self._pending.append((value, size))
            self._pending_bytes += size
            if len(self._pending) == 1:
                self._changed.notify()

    def close(self) -> None:
        """Writes what was accepted, ends the frame, syncs to the disk. A second call does nothing.

        Raises StoreError for whatever went wrong since the writer was made; all that could be written is on the disk.
        """
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        if self._refused:
            raise StoreError(f"{self._path}: {self._refused} {self._kind}s were refused because the disk was too slow")

    def _write(self) -> None:
        compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL, write_checksum=True).compressobj()
        try:
            while batch := self._take():
                pieces = []
                for value in batch:
                    pieces.append(compressor.compress(self._scrubber.encode(value)))
                    pieces.append(compressor.compress(b"\n"))
                pieces.append(compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
                self._append(b"".join(pieces))
            self._append(compressor.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH))
            os.fsync(self._file.fileno())
            sync_folder(self._path.parent)
        except OSError as fault:
            self._fail(StoreError(f"{self._path}: cannot be written: {reason(fault)}"))
        except InternalError as fault:
            self._fail(fault)
        finally:
            with suppress(OSError):
                self._file.close()

    def _take(self) -> list[Value]:
        """All that waits; empty once the writer is closing and nothing does."""
        with self._changed:
            while not self._pending and not self._closing:
                self._changed.wait()
            batch = [value for value, _ in self._pending]
            self._pending.clear()
            self._pending_bytes = 0
            return batch

    def _append(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]

    def _fail(self, failure: StoreError | InternalError) -> None:
        with self._changed:
            self._failure = failure
            self._pending.clear()
            self._pending_bytes = 0


class LineReader(Generic[Value]):
    """Reads a file of lines as a stream, in the order in which they were written.

    `truncated` is set once the end was reached without an end of frame: the writer died. Every whole line before that
    is given; a cut is never an error. `fault_of` says what is wrong with a value that has the right form.
    """

    def __init__(
        self, path: Path, of: type[Value], schema: str, *, fault_of: Callable[[Value], str | None] = lambda _: None
    ) -> None:
        self._path, self._schema, self._fault_of = path, schema, fault_of
        self._decoder = msgspec.json.Decoder(of)
        self.truncated = False

    def __iter__(self) -> Iterator[Value]:
        """The values. Raises StoreError for a file that cannot be read or a whole line that is of another schema."""
        rest, number = b"", 0
        for block in self._blocks():
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                number += 1
                where = f"{self._path}: line {number}"
                value = decode(line, self._decoder, self._schema, where)
                if (fault := self._fault_of(value)) is not None:
                    raise StoreError(f"{where}: {fault}")
                yield value
        if rest:
            self.truncated = True

    def _blocks(self) -> Iterator[bytes]:
        """The plain bytes. A file may hold several frames, one after the other."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:  # killed before the first line
            self.truncated = True
            return
        except OSError as fault:
            raise StoreError(f"{self._path}: cannot be read: {reason(fault)}") from fault
        with file:
            frame = zstandard.ZstdDecompressor().decompressobj()
            fed = False
            while data := file.read(_READ_BYTES):
                while data:
                    if frame.eof:
                        frame = zstandard.ZstdDecompressor().decompressobj()
                    try:
                        plain = frame.decompress(data)
                    except zstandard.ZstdError as fault:
                        if not fed:
                            raise StoreError(f"{self._path}: expected zstd-compressed JSON lines: {fault}") from fault
                        self.truncated = True
                        return
                    fed = True
                    if plain:
                        yield plain
                    data = frame.unused_data if frame.eof else b""
            if not frame.eof:
                self.truncated = True
