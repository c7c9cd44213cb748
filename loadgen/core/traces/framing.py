"""Bytes of a file to its rows: lines, or the elements of one JSON array. Any split of the bytes gives the same rows."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from loadgen.core.traces.row import BadRow, Reason

LARGEST_ROW_BYTES = 64 * 2**20

_ARRAY_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{},]|"', re.DOTALL)
_SPACE = b" \t\r\n"


class RawRow(NamedTuple):
    """Bytes of a row without its line end, its physical line (from 1) and its place in the file (bytes)."""

    line: int
    position: int
    data: bytes


def split_lines(chunks: Iterable[bytes]) -> Iterator[RawRow]:
    """Lines that end in LF, CRLF or CR, the last one with or without an end. Blank lines are yielded too.

    Raises BadRow when a line exceeds LARGEST_ROW_BYTES.
    """
    line, position, rest = 1, 0, b""
    for chunk in chunks:
        pieces = (rest + chunk).splitlines(keepends=True)
        # A CR at the end may be the first half of a CRLF; a piece without an end goes on in the next chunk.
        rest = pieces.pop() if pieces and not pieces[-1].endswith(b"\n") else b""
        for piece in pieces:
            yield RawRow(line, position, piece.rstrip(b"\r\n"))
            line += 1
            position += len(piece)
        if len(rest) > LARGEST_ROW_BYTES:
            raise BadRow(Reason.NOT_JSON, f"is longer than {LARGEST_ROW_BYTES >> 20} MiB", line=line)
    if rest:
        yield RawRow(line, position, rest.rstrip(b"\r\n"))


def split_array(chunks: Iterable[bytes]) -> Iterator[RawRow]:
    """Elements of the one JSON array that a file consists of.

    Only brackets, commas and strings are looked at: an element may still not be JSON. Raises BadRow when the array
    does not begin, does not end (a cut file), goes on after its end, or has an element over LARGEST_ROW_BYTES.
    """
    buffer, base, line = b"", 0, 1  # base: place of buffer[0] in the file; line: physical line of buffer[0]
    scan, start, depth, ended = 0, 0, 0, False
    for chunk in chunks:
        buffer += chunk
        while not ended:
            token = _ARRAY_TOKEN.search(buffer, scan)
            if token is None:
                scan = len(buffer)
                break
            text = token[0]
            if text == b'"':  # a string that goes on in the next chunk
                scan = token.start()
                break
            scan = token.end()
            if depth == 0 and (text != b"[" or buffer[: token.start()].strip(_SPACE)):
                raise BadRow(Reason.NOT_JSON, "expected a JSON array", line=line)
            if text in b"[{":
                depth += 1
                start = scan if depth == 1 else start
            elif text in b"]}":
                depth -= 1
                ended = depth == 0
            if ended or (text == b"," and depth == 1):
                element = buffer[start : token.start()]
                data = element.strip(_SPACE)
                if data or not ended:
                    lead = len(element) - len(element.lstrip(_SPACE))
                    yield RawRow(line + buffer.count(b"\n", 0, start + lead), base + start + lead, data)
                start = scan
        cut = scan if ended else start
        line += buffer.count(b"\n", 0, cut)
        base += cut
        buffer, scan, start = buffer[cut:], scan - cut, 0
        if ended and buffer.strip(_SPACE):
            raise BadRow(Reason.NOT_JSON, "there is more after the end of the JSON array", line=line)
        if len(buffer) > LARGEST_ROW_BYTES:
            raise BadRow(Reason.NOT_JSON, f"an element is longer than {LARGEST_ROW_BYTES >> 20} MiB", line=line)
    if not ended:
        last = line + buffer.count(b"\n")
        raise BadRow(Reason.NOT_JSON, "the JSON array does not end: the file is cut short", line=last)
