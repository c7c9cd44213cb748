"""Searches for a capacity as weeks of history in a Prometheus' store: what they found is theirs, when is not.

Between two tests the result of the first one stands on a page that is scraped every hour, as the service keeps it.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_SAMPLE = re.compile(r"(?P<series>loadgen_(?P<name>\w+)\{.*\}) (?P<value>\S+) (?P<at>[\d.]+)")
_KEPT = "capacity_"
_ENDED = "capacity_ended_timestamp_seconds"
_HOUR_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A search's folder, when it is to have ended, and until when its result stands (Unix time, s)."""

    folder: Path
    end_s: float
    until_s: float


def blocks(tests: Sequence[Test], store: Path, scratch: Path) -> None:
    """Writes all tests into a store that no Prometheus uses."""
    promtool = shutil.which("promtool")
    assert promtool is not None, "there is no promtool: install Debian's package prometheus"
    for place, test in enumerate(tests):
        export = scratch / f"{place}.om"
        line = [sys.executable, "-m", "loadgen", "export", str(test.folder), "--format", "openmetrics"]
        text = subprocess.run(line, capture_output=True, text=True, check=True, timeout=120).stdout
        export.write_text("".join(_moved(text.splitlines(), test)), encoding="utf-8")
        load = [promtool, "tsdb", "create-blocks-from", "openmetrics", str(export), str(store)]
        subprocess.run(load, check=True, capture_output=True, timeout=120)


def _moved(lines: Sequence[str], test: Test) -> Iterator[str]:
    """The export at another time. Samples of one series stay together, as the form demands."""
    last_s = max(float(found["at"]) for line in lines if (found := _SAMPLE.fullmatch(line)) is not None)
    moved_s = test.end_s - last_s
    for line in lines:
        found = _SAMPLE.fullmatch(line)
        if found is None:
            yield f"{line}\n"
            continue
        at_s, value = float(found["at"]) + moved_s, found["value"]
        if found["name"] == _ENDED:
            value = f"{float(value) + moved_s:.3f}"
        yield f"{found['series']} {value} {at_s:.3f}\n"
        if found["name"].startswith(_KEPT):
            for again in range(1, int((test.until_s - at_s) / _HOUR_S) + 1):
                yield f"{found['series']} {value} {at_s + again * _HOUR_S:.3f}\n"
