"""`server.jsonl.zst`: one scrape a line, in the order in which the pages were read."""

from pathlib import Path

from loadgen.adapters.store.files import Scrubber
from loadgen.adapters.store.lines import LineReader, LineWriter
from loadgen.core.server.sample import SCRAPE_SCHEMA, Scrape

_SCRAPE_BYTES = 500
_SAMPLE_BYTES = 2_000


class ScrapeWriter(LineWriter[Scrape]):
    """The sink of what a probe reads."""

    def __init__(self, path: Path, *, scrubber: Scrubber | None = None) -> None:
        """Creates the file. Raises StoreError when it cannot be created or is there already."""
        super().__init__(path, kind="scrape", size_of=_bytes, scrubber=scrubber)


class ScrapeReader(LineReader[Scrape]):
    """Reads such a file as a stream; one that is not there has no scrapes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Scrape, SCRAPE_SCHEMA)


def _bytes(scrape: Scrape) -> int:
    return _SCRAPE_BYTES + _SAMPLE_BYTES * (len(scrape.samples) + len(scrape.gpus)) + len(scrape.fault or "")
