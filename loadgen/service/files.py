"""The files of a run, as they are given to people."""

import json
import logging
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loadgen.adapters.store.run_folder import RECORDS
from loadgen.core.errors import ExitCode
from loadgen.service.admission.files import file_within
from loadgen.service.jobs.order import LOG, REPORT, SUMMARY, VIEW
from loadgen.service.jobs.states import ENDED, State
from loadgen.service.problems import busy, conflict, not_found
from loadgen.service.runs import results_in

_LOG = logging.getLogger("loadgen.service")
_REPORT_S = 300.0
_NICE = 10
_ASIDE = 2
"""Commands of ours at a time."""
_ROOM = 12
"""Of the threads that answer requests so many may wait for one, so that there are always others."""
_AGAIN_S = 5
_LONGEST_DETAIL = 1000
_CHUNK_BYTES = 1 << 18
_LOG_BYTES = 1 << 16


class RunFiles:
    """Reads beneath the folder of runs. Raises Problem for what is not there, or not yet, or not any more."""

    def __init__(self, folder: Path, *, aside: int = _ASIDE, room: int = _ROOM) -> None:
        self._folder = folder
        self._aside, self._room = threading.BoundedSemaphore(aside), threading.BoundedSemaphore(room)

    def summary(self, run: Mapping[str, Any]) -> bytes:
        """The whole result, as the file of that kind has it."""
        return self._read(run, SUMMARY)

    def view(self, run: Mapping[str, Any]) -> bytes:
        """The verdict in words, tables and charts, as the page shows them."""
        return self._read(run, VIEW)

    def log(self, run: Mapping[str, Any]) -> bytes:
        """The end of what the process of a run wrote."""
        path = self._folder / str(run["id"]) / LOG
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _LOG_BYTES))
                return file.read()
        except OSError:
            raise not_found("log") from None

    def report(self, run: Mapping[str, Any]) -> bytes:
        """The report as a page; made from the records when it is asked for first."""
        path = self._folder / str(run["id"]) / REPORT
        if not path.is_file():
            results = self._results(run)
            with self._turn():
                if not path.is_file():
                    _render(results, path)
        return self._read(run, REPORT)

    def records(self, run: Mapping[str, Any]) -> Iterator[bytes]:
        """All records of all its parts in the order of their folders: zstd frames in a row are one stream."""
        found = sorted(self._results(run).rglob(RECORDS))
        if not found:
            raise not_found("record")
        return _chunks(found)

    def listed(self, run: Mapping[str, Any]) -> list[tuple[str, int]]:
        """Names and sizes in bytes of all that a run left."""
        results = self._results(run)
        return sorted(
            (str(path.relative_to(results)), path.stat().st_size) for path in results.rglob("*") if path.is_file()
        )

    def one(self, run: Mapping[str, Any], name: str) -> Path:
        """One of them. Raises ConfigError for a name outside."""
        return file_within(self._results(run), name)

    def archive(self, run: Mapping[str, Any]) -> Iterator[bytes]:
        """The folder of results as a tar stream, for a run that has ended: what is still written is not whole."""
        if State(run["state"]) not in ENDED:
            raise conflict("the run is not over")
        return _packed(self._results(run))

    def compared(
        self, baseline: Mapping[str, Any], candidate: Mapping[str, Any], gates: Sequence[str] = ()
    ) -> dict[str, Any]:
        """The comparison as `loadgen compare --json` has it, of whatever the two sent."""
        paths = [str(self._results(run)) for run in (baseline, candidate)]
        judged = [f"--fail-on={gate}" for gate in gates]
        with self._turn():
            done = _aside("compare", *paths, "--json", "--allow-unlike", "--allow-invalid", *judged)
        if done.returncode not in (ExitCode.DONE, ExitCode.GATE_FAILED):
            raise conflict(_said("cannot be compared", done, self._folder))
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Waits until a command of ours may run. Raises Problem where enough wait already."""
        if not self._room.acquire(blocking=False):
            raise busy("many reports and comparisons are being made", again_in_s=_AGAIN_S)
        try:
            with self._aside:
                yield
        finally:
            self._room.release()

    def _results(self, run: Mapping[str, Any]) -> Path:
        results = results_in(self._folder, run)
        if results is None or not results.is_dir():
            raise not_found("result")
        return results

    def _read(self, run: Mapping[str, Any], name: str) -> bytes:
        try:
            return (self._folder / str(run["id"]) / name).read_bytes()
        except OSError:
            raise not_found("result") from None


def _aside(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """A command of ours in a process of its own, which steps back behind whatever measures."""
    command = ("nice", "-n", str(_NICE), sys.executable, "-m", "loadgen", *arguments)
    try:
        return subprocess.run(  # noqa: S603
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_REPORT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise conflict(f"this takes too long here; `loadgen {arguments[0]}` does it without a limit") from None


def _said(what: str, done: "subprocess.CompletedProcess[bytes]", folder: Path) -> str:
    """What a command of ours gave as its reason, without where the service keeps its files."""
    said = done.stderr.decode(errors="replace").strip().removeprefix("loadgen: ")
    return f"{what}: {said}".replace(str(folder), "")[:_LONGEST_DETAIL]


def _render(results: Path, path: Path) -> None:
    done = _aside("report", str(results), "--html", str(path))
    if done.returncode not in (0, 1, 3):
        _LOG.warning("a report cannot be made", extra={"said": done.stderr.decode(errors="replace")[-500:]})
        raise conflict(_said("the report cannot be made", done, path.parent.parent))


def _chunks(paths: list[Path]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk


class _Pipe:
    """What a tar file is written to, a part at a time."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self.parts.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        parts, self.parts = self.parts, []
        return b"".join(parts)


def _packed(folder: Path) -> Iterator[bytes]:
    pipe = _Pipe()
    with tarfile.open(fileobj=pipe, mode="w|", bufsize=_CHUNK_BYTES) as archive:  # type: ignore[call-overload]
        for path in sorted(folder.rglob("*")):
            archive.add(path, arcname=str(Path(folder.name) / path.relative_to(folder)), recursive=False)
            yield pipe.taken()
    yield pipe.taken()
