"""Text on its way out. A reader that goes away (`| head`, a terminal that is closed) ends the output, not the command
or its exit code."""

import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from loadgen.adapters.store.files import Scrubber, document, reason, whole_file
from loadgen.core.errors import StoreError


def show(text: str) -> None:
    """Prints text as it is to stdout. Raises StoreError when it cannot be written there."""
    write((text,), None)


def width_of() -> int:
    """Columns of the terminal, 100 when there is none."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100


def as_document(value: Any) -> str:
    """A summary or a sweep as the JSON file of a run's folder holds it."""
    return document(value, Scrubber()).decode()


def tell(line: str) -> None:
    """Prints a line to stderr. There is nobody to tell when that fails, so it is no error."""
    put(sys.stderr, f"{line}\n")


def write(pieces: Iterable[str], output: Path | None) -> None:
    """Text to a file, or to stdout for None and `-`. A file appears whole or not at all.

    Raises StoreError when it cannot be written.
    """
    if output is None or str(output) == "-":
        _to_stdout(pieces)
        return
    with whole_file(output) as file:
        file.writelines(piece.encode("utf-8", "replace") for piece in pieces)


def put(stream: TextIO | None, text: str) -> None:
    """Writes text to a stream at once; one that cannot be written to is left alone from then on."""
    try:
        if stream is not None:
            stream.write(text)
            stream.flush()
    except OSError:
        leave_alone(stream)


def _to_stdout(pieces: Iterable[str]) -> None:
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
    except OSError as fault:
        gone = isinstance(fault, BrokenPipeError) or _hung_up(fault)
        leave_alone(sys.stdout)
        if gone:
            return
        raise StoreError(f"stdout: cannot be written: {reason(fault)}") from fault


def _hung_up(fault: OSError) -> bool:
    """Whether stdout was a terminal that is no more; a disk that fails says the same."""
    return fault.errno == errno.EIO and stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode)


def leave_alone(stream: object) -> None:
    """Turns a stream nobody reads into one to nowhere: what it still holds would fail again when Python ends."""
    fileno = getattr(stream, "fileno", None)
    if fileno is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), fileno())
