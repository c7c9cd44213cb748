"""The folder of one run: manifest, records, server's samples, summary, reports. Layout: `<out>/<run_id>/`."""

import secrets as _secrets
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from loadgen.adapters.store.files import Scrubber, is_file, load_json, reason, replace_file, save_json
from loadgen.adapters.store.parts import join, part_of, parts_of
from loadgen.adapters.store.records import RecordReader, RecordWriter
from loadgen.adapters.store.scrapes import ScrapeReader, ScrapeWriter
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import SUMMARY_SCHEMA, Summary
from loadgen.core.record import RequestRecord
from loadgen.core.request import Phase
from loadgen.core.run import MANIFEST_SCHEMA, RunManifest
from loadgen.core.server.sample import Scrape

MANIFEST = "manifest.json"
RECORDS = "records.jsonl.zst"
SCRAPES = "server.jsonl.zst"
SUMMARY = "summary.json"


def new_run_id(unix_ns: int | None = None) -> str:
    """A run's name: UTC to the millisecond, so that names sort by time, and six random digits, so that no two agree."""
    now = time.time_ns() if unix_ns is None else unix_ns
    instant = datetime.fromtimestamp(now // 10**9, tz=UTC)
    return f"{instant:%Y%m%d-%H%M%S}-{now // 10**6 % 1000:03d}-{_secrets.token_hex(3)}"


class RunFolder:
    """One run's files. `secrets` are strings that must not be stored; see `Scrubber`.

    `truncated` is known once `records` was read to its end: True when the writer died before it closed the file.
    """

    def __init__(self, path: Path, *, secrets: tuple[str, ...] = ()) -> None:
        self.path = path
        self.truncated = False
        self._scrubber = Scrubber(secrets)

    @classmethod
    def create(cls, out: Path, run_id: str, *, secrets: tuple[str, ...] = ()) -> "RunFolder":
        """Makes `<out>/<run_id>/` and proves, by writing a file, that results can be stored there.

        Raises StoreError naming the path and the reason; a folder that is there already is never written into.
        """
        folder = cls(out / run_id, secrets=secrets)
        try:
            folder.path.mkdir(parents=True)
        except OSError as fault:
            raise StoreError(f"{folder.path}: cannot be created: {reason(fault)}") from fault
        probe = folder.path / ".probe"
        try:
            replace_file(probe, bytes(4096))
        except StoreError:
            with suppress(OSError):
                folder.path.rmdir()
            raise
        probe.unlink()
        return folder

    def drop(self) -> None:
        """Removes a run that could not be begun: nothing was sent, and readers take each folder for one that was."""
        shutil.rmtree(self.path, ignore_errors=True)

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """The run stored there. Raises StoreError saying what was expected and what was found."""
        if is_file(path / MANIFEST):
            return cls(path)
        if not path.exists():
            raise StoreError(f"{path}: no such run folder")
        if not path.is_dir():
            raise StoreError(f"{path}: expected the folder of a run (with {MANIFEST}), found a file")
        inside = sorted(manifest.parent.name for manifest in path.glob(f"*/{MANIFEST}"))
        hint = f"; it holds {len(inside)} runs, the newest is {path / inside[-1]}" if inside else ""
        raise StoreError(f"{path}: expected the folder of a run, found no {MANIFEST} in it{hint}")

    def record_writer(self) -> RecordWriter:
        """A sink that writes this run's records. Raises StoreError when there are records already."""
        return RecordWriter(self.path / RECORDS, scrubber=self._scrubber)

    def part_path(self, index: int) -> Path:
        """Where one of several processes writes its records."""
        return part_of(self.path / RECORDS, index)

    def join_parts(self, *, cut: Collection[int] = ()) -> dict[int, int]:
        """Makes one file of what several processes wrote; for each of those whose file was cut its number of records.

        Raises StoreError when that cannot be done; then the parts stay, and are read as they are.
        """
        paths = {self.part_path(index): index for index in cut}
        return {paths[path]: count for path, count in join(self.path / RECORDS, cut=paths).items()}

    def records(self) -> Iterator[RequestRecord]:
        """The stored records, streamed, in the order in which requests ended; a cut file gives all its whole records.

        Of a run of several processes they are in that order for each of them, and in files of their own when it died.
        Raises StoreError for a file that cannot be read or that holds something else.
        """
        whole, truncated = self.path / RECORDS, False
        parts = [] if whole.is_file() else parts_of(whole)
        for path in parts or [whole]:
            reader = RecordReader(path)
            yield from reader
            truncated = truncated or reader.truncated
        self.truncated = truncated

    def whole_records(self, summary: Summary) -> Iterator[RequestRecord]:
        """The stored records, streamed, which are to be all that the summary was made of.

        Raises StoreError as `records` does, and at the end when some are lacking.
        """
        measured = 0
        for record in self.records():
            measured += record.phase is Phase.MEASURE
            yield record
        if self.truncated or measured != summary.requests.planned:
            cut = ", and it was cut" if self.truncated else ""
            raise StoreError(
                f"{self.path / RECORDS}: expected records of {summary.requests.planned} measured requests, as the"
                f" summary says, found {measured}{cut}"
            )

    def damage(self) -> str | None:
        """What is wrong with the files of a run that has ended, None for nothing. Reads all of them."""
        try:
            self.load_manifest()
            summary = self.load_summary()
            for _ in chain(self.whole_records(summary), self.whole_scrapes(summary)):
                pass
        except StoreError as fault:
            return str(fault)
        return None

    def scrape_writer(self) -> ScrapeWriter:
        """A sink that writes what is read of the server. Raises StoreError when there are scrapes already."""
        return ScrapeWriter(self.path / SCRAPES, scrubber=self._scrubber)

    def scrapes(self) -> Iterator[Scrape]:
        """What was read of the server, streamed, in the order of reading; nothing when no page was.

        Raises StoreError for a file that cannot be read or that holds something else.
        """
        yield from ScrapeReader(self.path / SCRAPES)

    def whole_scrapes(self, summary: Summary) -> Iterator[Scrape]:
        """The same, which are to be all that the summary was made of.

        Raises StoreError as `scrapes` does, and at the end when some are lacking.
        """
        reader, found = ScrapeReader(self.path / SCRAPES), 0
        for scrape in reader:
            found += 1
            yield scrape
        if found != summary.server.scrapes or (found and reader.truncated):
            cut = ", and it was cut" if found and reader.truncated else ""
            raise StoreError(
                f"{self.path / SCRAPES}: expected {summary.server.scrapes} readings of the server's pages, as the"
                f" summary says, found {found}{cut}"
            )

    def save_manifest(self, manifest: RunManifest) -> None:
        """Replaces `manifest.json`, whole or not at all."""
        save_json(self.path / MANIFEST, manifest, self._scrubber)

    def load_manifest(self) -> RunManifest:
        """Reads `manifest.json`; raises StoreError for another schema."""
        return load_json(self.path / MANIFEST, RunManifest, MANIFEST_SCHEMA)

    def save_summary(self, summary: Summary) -> None:
        """Replaces `summary.json`, whole or not at all."""
        save_json(self.path / SUMMARY, summary, self._scrubber)

    def load_summary(self) -> Summary:
        """Reads `summary.json`; raises StoreError for another schema, or when the run never got as far as a summary."""
        return load_json(self.path / SUMMARY, Summary, SUMMARY_SCHEMA)

    def save_text(self, name: str, text: str) -> Path:
        """Stores a rendered report beside the data and returns its path. `name` is a plain file name."""
        if not name or Path(name).name != name or name.startswith("."):
            raise StoreError(f"{name!r}: expected a plain file name")
        replace_file(self.path / name, self._scrubber.text(text).encode("utf-8", "replace"))
        return self.path / name
