"""What a keeper lets through of a server's output."""

import tempfile
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.adapters.launch.keeper import Copier

SECRETS = ["sk-123456", "sk-123456-long"]


def copied(*pieces: bytes) -> bytes:
    """What arrives of output that comes in these pieces."""
    with tempfile.TemporaryFile() as file:
        copier = Copier(file.fileno(), SECRETS)
        for piece in pieces:
            copier.feed(piece)
        copier.flush()
        file.seek(0)
        return file.read()


@given(cuts=st.lists(st.integers(0, 80), max_size=6))
def test_secrets_are_blotted_out_however_it_is_cut(cuts: list[int]) -> None:
    """The longer of two that begin alike as a whole; all else arrives as it was, line ends and bad bytes too."""
    text = b"key sk-123456\r\n\xffload 10%\rload 20%\rsk-123456-long,sk-123456\nthe end of sk-12345"
    edges = [0, *sorted(cuts), len(text)]
    pieces = [text[edge:after] for edge, after in pairwise(edges)]
    assert copied(*pieces) == b"key [secret]\r\n\xffload 10%\rload 20%\r[secret],[secret]\nthe end of sk-12345"


@pytest.mark.parametrize("piece_bytes", [1_000, 65_536, 100_003])
def test_a_line_without_end_is_not_kept_back(piece_bytes: int) -> None:
    """It arrives in parts, and secrets at their seams are found."""
    text = (b"x" * 7 + b"sk-123456-long") * 10_000
    with tempfile.TemporaryFile() as file:
        copier = Copier(file.fileno(), SECRETS)
        for start in range(0, len(text), piece_bytes):
            copier.feed(text[start : start + piece_bytes])
        assert file.tell() > 50_000
        copier.flush()
        file.seek(0)
        assert file.read() == (b"x" * 7 + b"[secret]") * 10_000
