"""An analysis stays small however many events there are."""

import subprocess
import sys

import pytest

RUN = """
import re, resource, sys
from dataclasses import replace
from tests.core.analysis.factory import answered, manifest
from loadgen.core.analysis.analyse import analyse

REQUESTS, TOKENS = 50_000, 200
pattern = answered(0, tokens=TOKENS)

def records():
    for seq in range(REQUESTS):
        shift = seq * 4_000_000
        events = tuple(stamp + shift for stamp in pattern.event_ns)
        yield replace(
            pattern, seq=seq, sent_ns=shift, first_ns=events[0], first_output_ns=events[0], last_ns=events[-1],
            closed_ns=events[-1] + 1, event_ns=events,
        )

summary = analyse(records, manifest(slo={"ttft_s": 1.0})).summary
assert summary.tokens.output == REQUESTS * TOKENS
assert summary.latency.icl_s.n == REQUESTS * (TOKENS - 1)
if sys.platform == "darwin":
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
else:  # where ru_maxrss begins with the peak of the process that started this one
    print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 2**10)
"""


@pytest.mark.slow
def test_ten_million_events_stay_under_300_mb() -> None:
    """Peak resident memory of a fresh process that analyses 10 million token events, made one record at a time."""
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True, timeout=300)
    assert float(done.stdout) < 300
