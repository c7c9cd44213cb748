"""What the rules judge by."""

from collections.abc import Mapping
from dataclasses import dataclass

from loadgen.core.analysis.tallies import Oddities
from loadgen.core.metrics.summary import FailureSample, Summary
from loadgen.core.run import RunManifest
from loadgen.core.stats.drift import Drift


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A run, as far as its findings depend on it.

    `due` counts requests that fell due in the part of the window in which requests are started, `due_and_sent` those of
    them that left within it or would have but for the cap or a previous turn. `residence_s` is the mean time in flight
    of the requests that completed in the window, `early_e2el_s` and `late_e2el_s` the median latency of the first and
    last ones sent,
    `growth_ratio` the mean concurrency of the window's last third over that of its first. `tokens_generated` counts
    output tokens of every phase and outcome, `tokens_prompted` input tokens; None when some request's are not known.
    `tokens_completed` are the output tokens of requests that completed, as far as they are known. `refused` counts
    readings of the server's pages with values that cannot be, and tells the first.
    """

    summary: Summary
    manifest: RunManifest
    oddities: Oddities
    failures: tuple[FailureSample, ...]
    drifts: Mapping[str, Drift]
    missing_records: int
    due: int
    due_and_sent: int
    completed_in_window: int
    own_lag_p99_s: float | None
    residence_s: float | None
    early_e2el_s: float | None
    late_e2el_s: float | None
    growth_ratio: float | None
    tokens_generated: int | None
    tokens_completed: int
    tokens_prompted: int | None
    refused: tuple[int, str | None] = (0, None)

    @property
    def window_s(self) -> float:
        """Length of the window, 0 without one."""
        window = self.summary.window
        return 0.0 if window is None else window.end_s - window.start_s
