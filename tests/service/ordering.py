"""A process that measures, given its order by a test."""

import os
import subprocess
import sys

import msgspec

from loadgen.service.jobs.order import Order


def carried_out(order: Order) -> "subprocess.CompletedProcess[bytes]":
    """Once it has ended by itself: its input stays open, since the end of it is the order to stop."""
    reading, writing = os.pipe()
    try:
        os.write(writing, msgspec.json.encode(order) + b"\n")
        command = (sys.executable, "-m", "loadgen.service.child")
        return subprocess.run(command, stdin=reading, capture_output=True, timeout=60, check=False)
    finally:
        os.close(reading)
        os.close(writing)
