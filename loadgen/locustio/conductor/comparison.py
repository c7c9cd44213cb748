"""A comparison of several servers over one ladder: an experiment, from the options of a form to its report."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from loadgen.adapters.store.files import Scrubber, document, replace_file
from loadgen.core.experiment.plan import Role
from loadgen.core.server.configuration import SpeculationConfiguration
from loadgen.engine.live import LiveCounts
from loadgen.locustio.conductor.following import Follower
from loadgen.locustio.conductor.ladder import REPORT
from loadgen.locustio.conductor.measured import Measured, variable_of
from loadgen.locustio.conductor.stopping import nothing, on_interrupt
from loadgen.locustio.conductor.telling import Tell
from loadgen.options.locust import LocustOptions, comparison_of
from loadgen.report.comparison import comparison_html, comparison_text
from loadgen.report.comparison.charts import length_charts, load_charts, speedup_chart
from loadgen.report.comparison.gates import failed_gates
from loadgen.wiring.experiment import FinishedExperiment, run_experiment
from loadgen.wiring.experiment_report import ExperimentResult, experiment_result
from loadgen.wiring.target import ask_target, destination_of
from loadgen.wiring.watch import Watch


async def run_comparison(options: LocustOptions, tell: Tell, follower: Follower) -> dict[str, Any]:
    """Runs it to its end, which is told as values; raises LoadgenError where it cannot be run."""
    shown = _Display(tell, follower)
    experiment = comparison_of(options, await _told(options, shown))
    done = await run_experiment(experiment, out=options.out, display=shown, watch=Watch(monitor=follower))
    on_interrupt(nothing)
    follower.catch_up()
    told: dict[str, Any] = {
        "code": int(done.code),
        "interrupted": done.interrupted,
        "failed_gates": [],
        "path": str(done.folder.path.resolve()),
    }
    result = _result(done)
    return told if result is None else told | _reported(done, result)


def measured_of(options: LocustOptions) -> Measured:
    """Where the levels of the arms are put together."""
    experiment = comparison_of(options)
    arms = [arm.name for arm in experiment.planned_arms() if arm.role is not Role.AGAIN]
    load = experiment.load
    asked = load.request_rate or load.concurrency or ()
    rates = load.request_rate is not None
    return Measured(variable=variable_of(rates=rates), asked=asked, arms=arms, attainment=options.slo_attainment)


async def _told(options: LocustOptions, shown: "_Display") -> dict[str, dict[str, Any]]:
    """How the arms speculate, by what their servers say; of one that drafts without a word on how, `unknown`."""
    found: dict[str, dict[str, Any]] = {}
    for name, url in options.arm.items():
        target = comparison_of(options).session_options(url)
        facts = await ask_target(destination_of(target), target)
        if (facts.configuration is None or not facts.configuration.speculates) and facts.speculation is None:
            continue
        told = facts.speculation or SpeculationConfiguration()
        found[name] = {"method": told.method or "unknown", "draft_tokens": told.draft_tokens}
        shown.tell(f"{name} speculates by {found[name]['method']}, as its server says")
    return found


def _result(done: FinishedExperiment) -> ExperimentResult | None:
    """What it came to, also one that was stopped; None where there is nothing to compare."""
    return experiment_result(done.folder.path) if done.comparable else None


def _reported(done: FinishedExperiment, result: ExperimentResult) -> dict[str, Any]:
    path = (done.folder.path / REPORT).resolve()
    replace_file(path, comparison_html(*result.ladders).encode("utf-8", "replace"))
    (comparison,) = result.ladders
    charts = (speedup_chart(comparison), *load_charts(comparison), *length_charts(comparison))
    return {
        "code": int(done.code_with(result)),
        "failed_gates": failed_gates(comparison),
        "report": str(path),
        "charts": [chart.as_json() for chart in charts if chart.drawable],
        "text": comparison_text(comparison, width=100, color=False),
        "document": document(result, Scrubber()).decode(),
    }


class _Display:
    """Tells of an experiment as of a ladder: each cell is a level."""

    def __init__(self, tell: Tell, follower: Follower) -> None:
        self._tell, self._follower = tell, follower

    def tell(self, line: str) -> None:
        """What people should know."""
        self._tell("note", text=line)

    def starting(self, title: str, waited_s: float, last_line: str | None, left_s: float | None) -> None:
        """A server is waited for."""
        self._tell("starting", waited_s=waited_s, line=last_line or title)

    def cell(self, live: LiveCounts, title: str, after_s: float | None) -> AbstractAsyncContextManager[object]:
        """A run is under way."""
        return self._follower.display(live, title, None)
