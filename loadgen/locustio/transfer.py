"""A file that grows on one machine, carried to another in pieces: bounded, checked, and never out of order."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from zlib import crc32

PIECE_BYTES = 256 * 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bytes of a file from `offset` on, with their checksum."""

    offset: int
    content: bytes
    crc: int


class Growing:
    """The file at its origin: what is new in it since it was read last, or from that byte on."""

    def __init__(self, path: Path, *, from_byte: int = 0) -> None:
        self.path = path
        self._sent_bytes = from_byte
        self._hash = sha256()

    def pieces(self) -> Iterator[Piece]:
        """What is new, until there is nothing more; nothing of a file that is not there yet."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._sent_bytes)
            while content := file.read(PIECE_BYTES):
                piece = Piece(offset=self._sent_bytes, content=content, crc=crc32(content))
                self._hash.update(content)
                self._sent_bytes += len(content)
                yield piece

    @property
    def size_bytes(self) -> int:
        """What was given out."""
        return self._sent_bytes

    @property
    def sha256(self) -> str:
        """Of all that was given out."""
        return self._hash.hexdigest()


class Carried:
    """The same file where it arrives; it is made with its first piece."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size_bytes = 0
        self._hash = sha256()

    def add(self, piece: Piece) -> None:
        """Takes the next piece. Raises ValueError for one that is damaged or out of order, OSError for a full disk."""
        if piece.offset != self._size_bytes:
            raise ValueError(f"expected the bytes from {self._size_bytes} on, got those from {piece.offset} on")
        if crc32(piece.content) != piece.crc:
            raise ValueError(f"the bytes from {piece.offset} on were damaged on their way")
        with self.path.open("ab" if piece.offset else "xb") as file:
            file.write(piece.content)
        self._size_bytes += len(piece.content)
        self._hash.update(piece.content)

    def complete(self, origin: Path) -> None:
        """Takes what its origin, which is on this machine, has beyond; nothing of one that is not there.

        Raises OSError where that cannot be written.
        """
        for piece in Growing(origin, from_byte=self._size_bytes).pieces():
            self.add(piece)

    def check(self, *, size_bytes: int, sha256: str) -> None:
        """Raises ValueError where it is not the whole file."""
        if size_bytes != self._size_bytes:
            raise ValueError(f"expected {size_bytes} bytes in all, got {self._size_bytes}")
        if sha256 != self._hash.hexdigest():
            raise ValueError("the file as a whole is not the one that was sent")
