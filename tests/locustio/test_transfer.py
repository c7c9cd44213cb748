"""A growing file carried in pieces."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.locustio.transfer import PIECE_BYTES, Carried, Growing, Piece


def test_a_file_arrives_while_it_grows(tmp_path: Path) -> None:
    """Byte for byte, in pieces of bounded size, and the whole is checked at last."""
    source, target = tmp_path / "records", tmp_path / "carried"
    growing, carried = Growing(source), Carried(target)
    assert list(growing.pieces()) == []
    written = b""
    for part in (b"a" * 10, b"", bytes(range(256)) * (2 * PIECE_BYTES // 256) + b"end"):
        written += part
        source.write_bytes(written)
        for piece in growing.pieces():
            assert len(piece.content) <= PIECE_BYTES
            carried.add(piece)
    carried.check(size_bytes=growing.size_bytes, sha256=growing.sha256)
    assert target.read_bytes() == written


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda piece: replace(piece, content=b"xyz"), "damaged"),
        (lambda piece: replace(piece, offset=1), "expected the bytes from 0 on"),
    ],
)
def test_a_piece_that_is_not_the_next_whole_one_is_refused(
    tmp_path: Path, spoil: Callable[[Piece], Piece], said: str
) -> None:
    """Damaged on its way, or out of order; nothing of it is written."""
    (tmp_path / "records").write_bytes(b"abc")
    carried = Carried(tmp_path / "carried")
    (piece,) = Growing(tmp_path / "records").pieces()
    with pytest.raises(ValueError, match=said):
        carried.add(spoil(piece))
    assert not carried.path.exists()
    carried.add(piece)
    with pytest.raises(ValueError, match="expected 4 bytes in all, got 3"):
        carried.check(size_bytes=4, sha256="")
    with pytest.raises(ValueError, match="not the one that was sent"):
        carried.check(size_bytes=3, sha256="")


def test_a_file_that_is_there_is_not_written_into(tmp_path: Path) -> None:
    """Whoever names one that exists already has no business with it."""
    (tmp_path / "records").write_bytes(b"abc")
    (tmp_path / "carried").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        Carried(tmp_path / "carried").add(next(Growing(tmp_path / "records").pieces()))
    assert (tmp_path / "carried").read_bytes() == b"mine"


def test_what_a_dead_sender_left_is_taken_from_where_it_lies(tmp_path: Path) -> None:
    """From the byte on that did not arrive."""
    source = tmp_path / "records"
    source.write_bytes(b"abc")
    carried = Carried(tmp_path / "carried")
    for piece in Growing(source).pieces():
        carried.add(piece)
    source.write_bytes(b"abcdef")
    carried.complete(source)
    carried.complete(tmp_path / "no such file")
    assert carried.path.read_bytes() == b"abcdef"
