"""Metrics of a command while it runs: from its options to a page, and what tells its series apart."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadgen import __version__
from loadgen.adapters.prometheus.capacity import EndedSearch
from loadgen.adapters.prometheus.monitor import Monitor, WatchedRun
from loadgen.adapters.prometheus.series import Labels
from loadgen.adapters.prometheus.server import MetricsServer
from loadgen.adapters.prometheus.upkeep import Upkeep
from loadgen.adapters.store.files import Scrubber
from loadgen.core.capacity.result import CapacityResult
from loadgen.core.capacity.search import Search
from loadgen.core.request import Endpoint
from loadgen.core.run import Load, RunManifest
from loadgen.core.units import duration_text
from loadgen.options.fields import parse_listen
from loadgen.options.metrics import MetricsOptions
from loadgen.wiring.push import pushing
from loadgen.wiring.session import Session

_LONGEST_LABEL = 100
_UNKNOWN, _NO_METHOD = "unknown", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Tells a monitor of runs. An arm's name and method, where there is one, stand in front of what its server says."""

    monitor: Monitor
    arm_name: str | None = None
    method: str | None = None

    def arm(self, name: str, method: str | None) -> "Watch":
        """For the runs of an arm of an experiment."""
        return replace(self, arm_name=name, method=method or _NO_METHOD)

    def tell(self, command: str, folder: Path) -> None:
        """What is under way and where it is kept."""
        self.monitor.tell(info_of(command, folder))

    def begin(self, session: Session, load: Load, *, origin_unix_ns: int) -> WatchedRun:
        """A run begins."""
        return self.monitor.begin(self._labels(session), load, origin_unix_ns=origin_unix_ns)

    def searched(self, session: Session, search: Search, result: CapacityResult) -> None:
        """A search for a capacity is over, now."""
        labels = self._labels(session)
        self.monitor.searched(EndedSearch(labels=labels, search=search, result=result, ended_unix_s=time.time()))

    def _labels(self, session: Session) -> Labels:
        facts, options, scrubber = session.facts, session.options, Scrubber(session.secrets)
        return Labels(
            server=_label(self.arm_name or facts.engine or _UNKNOWN, scrubber),
            method=_label(self.method or _method(session.server_facts), scrubber),
            model=_label(facts.model, scrubber),
            workload=_label(_workload(options.trace, options.prompts), scrubber),
        )


@contextmanager
def watching(options: MetricsOptions, endpoint: Endpoint, tell: Callable[[str], None]) -> Iterator[Watch | None]:
    """Serves or pushes metrics, as the options say, until the block is left. None where they ask for neither.

    Raises ConfigError when the port cannot be had, or what a push needs is not there.
    """
    if options.prometheus_port is None and options.otlp_endpoint is None:
        yield None
        return
    monitor = Monitor()
    with (
        closing(Upkeep(monitor.take_in)),
        _serving(options, monitor, tell),
        pushing(options.otlp_endpoint, monitor, endpoint=endpoint, tell=tell),
    ):
        yield Watch(monitor=monitor)


@contextmanager
def _serving(options: MetricsOptions, monitor: Monitor, tell: Callable[[str], None]) -> Iterator[None]:
    """The page, until the block is left and for the time that it is to stay, which SIGINT or SIGTERM cuts short.

    It does not stay when the block fails.
    """
    if options.prometheus_port is None:
        yield
        return
    host, number = parse_listen(options.prometheus_port)
    with closing(MetricsServer(monitor, host=host, port=number)) as server:
        tell(f"metrics for Prometheus: {server.url}")
        yield
        if options.prometheus_linger:
            before = signal.signal(
                signal.SIGTERM, signal.default_int_handler
            )  # the exit code is the result's either way
            try:
                tell(f"metrics stay for {duration_text(options.prometheus_linger)}; Ctrl-C ends that")
                time.sleep(options.prometheus_linger)
            except KeyboardInterrupt:
                tell("metrics end")
            finally:
                signal.signal(signal.SIGTERM, before)


def info_of(command: str, folder: Path) -> dict[str, str]:
    """The labels of `loadgen_run_info`."""
    return {"command": command, "run_id": folder.resolve().name, "version": __version__}


def stored_labels(manifest: RunManifest, arm_name: str | None = None, method: str | None = None) -> Labels:
    """The labels that a run had on the live page; secrets are not in a manifest."""
    options, scrubber = manifest.options, Scrubber()
    trace, prompts = (options.get(name) for name in ("trace", "prompts"))
    if arm_name is not None:
        method = method or _NO_METHOD
    return Labels(
        server=_label(arm_name or manifest.target.engine or _UNKNOWN, scrubber),
        method=_label(method or _method(manifest.server), scrubber),
        model=_label(manifest.target.model, scrubber),
        workload=_label(_workload(trace and Path(trace), prompts and Path(prompts)), scrubber),
    )


def _method(server: Mapping[str, Any]) -> str:
    """How a server says that it drafts."""
    speculation, configuration = server.get("speculation"), server.get("configuration")
    if speculation is not None:
        return str(speculation.get("method") or _UNKNOWN)
    return _NO_METHOD if configuration is not None and configuration.get("speculates") is False else _UNKNOWN


def _workload(trace: Path | None, prompts: Path | None) -> str:
    """The data by the name of its file."""
    return next((path.name for path in (trace, prompts) if path is not None), "synthetic")


def _label(text: str, scrubber: Scrubber) -> str:
    """A word of a server or a user as the value of a label."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in scrubber.text(text))
    return printable[:_LONGEST_LABEL] or _UNKNOWN
