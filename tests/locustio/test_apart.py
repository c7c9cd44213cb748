"""Locust and gevent stay out of everything that measures."""

import subprocess
import sys

MODULES = (
    *("loadgen.cli.run", "loadgen.cli.sweep", "loadgen.cli.locust", "loadgen.wiring.sweep"),
    *("loadgen.wiring.workers.child", "loadgen.locustio.conductor.conduct"),
)


def test_what_measures_loads_neither() -> None:
    """Nor the command that only starts it, nor the process that conducts for it."""
    script = f"import sys, {', '.join(MODULES)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.split()).isdisjoint({"locust", "gevent", "flask", "zmq"})
