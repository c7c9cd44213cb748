"""A million rows in bounded memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = 1_000_000
LIMIT_MB = 200

# Runs in a process of its own, whose peak is that of the reader alone.
READ = r"""
import json, re, resource, sys
from loadgen.adapters.trace_files import open_trace
from loadgen.core.traces.part import Part
from loadgen.core.traces.texts import InventedTokenIds

with open_trace(sys.argv[1], need_times=True, texts=InventedTokenIds(seed=1, low=0, high=50_000)) as source:
    requests = sum(len(one.turns) for one in source.conversations())
    thinned = source.part(Part(thin_ratio=0.01, speed=2, spread=True)).facts
    facts = source.facts
if sys.platform == "darwin":
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
else:  # where ru_maxrss begins with the peak of the process that started this one
    peak_mb = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) / 2**10
print(json.dumps({
    "rows": facts.rows, "used": facts.used, "sessions": facts.sessions, "requests": requests,
    "thinned": thinned.used, "peak_mb": peak_mb,
}))
"""


def write_azure(path: Path) -> None:
    with path.open("w") as file:
        file.write("TIMESTAMP,ContextTokens,GeneratedTokens\r\n")
        for n in range(ROWS):
            second, rest = divmod(n, 20)
            hours, minutes, seconds = second // 3600, second // 60 % 60, second % 60
            stamp = f"2024-05-10 {hours:02d}:{minutes:02d}:{seconds:02d}.{rest * 50_000:06d}+00:00"
            file.write(f"{stamp},{n % 900 + 1},{n % 40 + 1}\r\n")


def write_bailian(path: Path) -> None:
    with path.open("w") as file:
        for n in range(ROWS):
            parent = -1 if n % 3 == 0 else n - 1
            blocks = [*range(n - n % 3, n + 1)]
            file.write(
                f'{{"chat_id": {n}, "parent_chat_id": {parent}, "timestamp": {n / 20}, "type": "text", '
                f'"turn": {n % 3 + 1}, "input_length": {16 * len(blocks)}, "output_length": {n % 40 + 1}, '
                f'"hash_ids": {blocks}}}\n'
            )


@pytest.mark.slow
@pytest.mark.parametrize(("write", "sessions"), [(write_azure, 0), (write_bailian, (ROWS + 2) // 3)])
def test_a_million_rows_stay_under_the_limit(tmp_path: Path, write: object, sessions: int) -> None:
    """Checked, described, cut and iterated with every row used once, at a peak of at most 200 MB."""
    path = tmp_path / "large"
    write(path)  # type: ignore[operator]
    done = subprocess.run([sys.executable, "-c", READ, str(path)], check=True, capture_output=True, timeout=600)
    result = json.loads(done.stdout)
    assert (result["rows"], result["used"], result["requests"]) == (ROWS, ROWS, ROWS)
    assert result["sessions"] == sessions
    assert 0.008 * ROWS < result["thinned"] < 0.012 * ROWS
    assert result["peak_mb"] < LIMIT_MB
