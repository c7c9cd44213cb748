"""What was read of a server, on disk."""

from pathlib import Path

import pytest

from loadgen.adapters.store.run_folder import SCRAPES, RunFolder
from loadgen.core.errors import StoreError
from loadgen.core.server.sample import Counters, Gauges, GpuSample, Scrape, ServerSample

PAGE = Scrape(
    taken_ns=-5,
    took_ns=3,
    source="0",
    samples=(
        ServerSample(
            engine="1",
            counters=Counters(prompt_tokens=0.0, accepted_by_position=(3.0, 1.0)),
            gauges=Gauges(kv_used_ratio=0.25),
            started_unix_s=1e9,
        ),
    ),
)
GPUS = Scrape(taken_ns=7, took_ns=1, source="gpu", gpus=(GpuSample(gpu="0", power_w=350.5),))
FAILED = Scrape(taken_ns=9, took_ns=1, source="0", fault="HTTP 500")


def write(folder: RunFolder) -> None:
    writer = folder.scrape_writer()
    for scrape in (PAGE, GPUS, FAILED):
        writer.put(scrape)
    writer.close()


def test_scrapes_come_back_as_they_were(tmp_path: Path) -> None:
    """Values, order, and what is not known; as often as they are asked for."""
    folder = RunFolder.create(tmp_path, "run")
    write(folder)
    assert tuple(folder.scrapes()) == tuple(folder.scrapes()) == (PAGE, GPUS, FAILED)


def test_a_run_without_scrapes_has_none(tmp_path: Path) -> None:
    """No file, no error."""
    assert tuple(RunFolder.create(tmp_path, "run").scrapes()) == ()


def test_a_cut_file_gives_what_is_whole(tmp_path: Path) -> None:
    """As after a crash: every whole scrape, and no error."""
    folder = RunFolder.create(tmp_path, "run")
    write(folder)
    file = folder.path / SCRAPES
    whole = file.read_bytes()
    counts = set()
    for size in range(0, len(whole), 7):
        file.write_bytes(whole[:size])
        found = tuple(folder.scrapes())
        assert found == (PAGE, GPUS, FAILED)[: len(found)]
        counts.add(len(found))
    assert 0 in counts


def test_another_file_is_said(tmp_path: Path) -> None:
    """Records in the place of scrapes."""
    folder = RunFolder.create(tmp_path, "run")
    (folder.path / SCRAPES).write_bytes(b"no zstd at all")
    with pytest.raises(StoreError, match=r"server\.jsonl\.zst: expected zstd"):
        tuple(folder.scrapes())


def test_no_secret_of_a_page_is_stored(tmp_path: Path) -> None:
    """A fault may quote an address with a key in it."""
    folder = RunFolder.create(tmp_path, "run", secrets=("sk-secret-key",))
    writer = folder.scrape_writer()
    writer.put(Scrape(taken_ns=1, took_ns=1, source="0", fault="ConnectError: sk-secret-key"))
    writer.close()
    (found,) = folder.scrapes()
    assert found.fault == "ConnectError: [secret]"
