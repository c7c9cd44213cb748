"""What the benchmark scripts share: the reference programs, pinned children with their resource usage, small sums."""

import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from loadgen.adapters.store.run_folder import RunFolder

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_MATERIAL = Path(os.environ.get("LOADGEN_TEST_MATERIAL", ROOT.parent / "shared"))


@dataclass(frozen=True)
class Cores:
    """Where server and client run; the same core for both only when there is no other."""

    server: int
    client: int

    @classmethod
    def chosen(cls) -> "Cores":
        """The first two cores that this process may use."""
        allowed = sorted(os.sched_getaffinity(0))
        return cls(server=allowed[0], client=allowed[-1] if len(allowed) == 1 else allowed[1])

    @property
    def apart(self) -> set[int]:
        """Those that the server leaves; its own where there is no other."""
        allowed = os.sched_getaffinity(0)
        return (allowed - {self.server}) or allowed

    def together(self, processes: int) -> set[int]:
        """Where so many processes run: apart from the server if there is a core for each, else on all."""
        return self.apart if len(self.apart) >= processes else os.sched_getaffinity(0)


@dataclass(frozen=True)
class Used:
    """What a finished child used: CPU of user and system, wall time, the largest resident set."""

    cpu_s: float
    wall_s: float
    max_rss_bytes: int
    output: str


def build(material: Path, into: Path, *names: str) -> list[Path]:
    """Compiles the reference programs. Ends the script with a clear message when that cannot be done."""
    built = []
    for name in names:
        source = material / "truth-server" / f"{name}.c"
        if not source.is_file():
            sys.exit(f"{source}: not found; give the folder of the reference sources with --material DIR")
        done = subprocess.run(["cc", "-O2", "-o", into / name, source, "-lm"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"cc cannot build {source}:\n{done.stderr}")
        built.append(into / name)
    return built


def run_pinned(command: Sequence[str | Path], core: int | set[int], *, cwd: Path | None = None) -> Used:
    """Runs a command on one core or several to its end, counting its children's usage. Ends the script if it fails."""
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=output,
            cwd=cwd or ROOT,
            preexec_fn=lambda: os.sched_setaffinity(0, {core} if isinstance(core, int) else core),
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.perf_counter() - started
        output.seek(0)
        text = output.read()
    if process.returncode:
        sys.exit(f"exit code {process.returncode} of: {' '.join(map(str, command))}\n{text}")
    return Used(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss * 1024, text)


@contextmanager
def truth_server(binary: Path, core: int, port: int, log: Path, **options: float) -> Iterator[int]:
    """The reference server on its core until the block ends; then its log is complete. Gives its process number."""
    command = [binary, "--port", port, "--log", log]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", value]
    process = subprocess.Popen(
        [str(part) for part in command],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    try:
        _wait_for(port, process)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if process.poll() is not None:
            sys.exit(f"the reference server ended at once (exit code {process.returncode}); is port {port} free?")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    sys.exit(f"the reference server does not listen on port {port}")


def stolen_ms(core: int) -> float:
    """How long a hypervisor has had others run on that core since the machine started; 0 where there is none."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name == f"cpu{core}":
            return int(ticks[7]) * 1e3 / os.sysconf("SC_CLK_TCK")
    return 0.0


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def loadgen_run(
    port: int, core: int | set[int], out: Path, *options: str | float
) -> tuple[Used, RunFolder, dict[str, Any]]:
    """`loadgen run` as a user gives it; its usage, its folder and its summary."""
    used = run_pinned(command_line("run", port, out, *options, "--json"), core)
    summary = json.loads(used.output)
    return used, RunFolder.open(out / summary["run_id"]), summary


def command_line(command: str, port: int, out: Path, *options: str | float) -> list[str]:
    """A command of Loadgen that sends load to the reference server."""
    line = [sys.executable, "-m", "loadgen", command, "--url", f"http://127.0.0.1:{port}"]
    line += ["--endpoint", "completions", "--model", "truth", "--input-tokens", "8", "--out", str(out)]
    return [*line, "--no-progress", "--allow-invalid", *map(str, options)]


def percentile(values: Sequence[float], p: float) -> float:
    """Linear between order statistics."""
    return float(np.percentile(values, p))


def median_of(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure over repeats; nested objects likewise."""
    merged: dict[str, Any] = {}
    for name, value in samples[0].items():
        column = [sample[name] for sample in samples]
        if isinstance(value, dict):
            merged[name] = median_of(column)
        else:
            known = [item for item in column if item is not None]
            merged[name] = statistics.median(known) if known else None
    return merged


def raise_file_limit() -> None:
    """As many descriptors as the system allows, for this process and its children."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def host() -> dict[str, Any]:
    """The machine in a few words."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), "unknown")
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "python": sys.version.split()[0]}


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table for people, on standard error; the JSON is on standard output."""
    table = Table(title=title, title_justify="left")
    for index, name in enumerate(header):
        table.add_column(name, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    Console(stderr=True).print(table)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def ratio(ours: float | None, theirs: float | None) -> float | None:
    """ours / theirs; None when one is missing or the other is zero."""
    return None if ours is None or not theirs else ours / theirs
