"""What the page shows of a result: the verdict in words, tables and charts, all as the report has them."""

from dataclasses import dataclass

from loadgen.core.capacity.result import CapacityResult
from loadgen.core.capacity.search import Search
from loadgen.core.comparison.arms import ArmsComparison
from loadgen.core.metrics.summary import Analysis, Sweep
from loadgen.report.capacity import capacity_doubts, capacity_facts, capacity_headline, failure_lines, probe_table
from loadgen.report.charts import Chart, ladder_charts, quantile_chart, time_charts
from loadgen.report.comparison.charts import positions_chart, speedup_chart
from loadgen.report.comparison.doubts import doubts, headline
from loadgen.report.comparison.gates import gate_lines
from loadgen.report.comparison.tables import choice_table, explanations
from loadgen.report.comparison.words import advice, remarks, said_of, subtitle
from loadgen.report.html.capacity import attainment_chart
from loadgen.report.speculation_charts import speculation_charts
from loadgen.report.tables import TextTable
from loadgen.report.verdict import Doubt, Headline, run_doubts, run_headline, sweep_doubts, sweep_headline
from loadgen.report.words import variable_text

VIEW_SCHEMA = "loadgen.view/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One verdict and what it rests on. `said` are sentences that read on from the name before; tables have titles."""

    title: str | None = None
    headline: Headline
    answer: str | None = None
    doubts: tuple[Doubt, ...]
    said: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[tuple[str, TextTable], ...] = ()
    charts: tuple[Chart, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One part; of an experiment one for each ladder of load."""

    schema: str = VIEW_SCHEMA
    parts: tuple[Part, ...]


def view_of_run(analysis: Analysis) -> View:
    """The verdict on a run, its latencies by percentile, and how it went over time."""
    summary = analysis.summary
    drafts = [] if summary.speculation is None else speculation_charts(summary.speculation)
    return _view(
        Part(
            headline=run_headline(summary.verdict),
            doubts=tuple(run_doubts(summary.verdict)),
            charts=_drawable(quantile_chart(analysis), *drafts, *time_charts(summary)),
        )
    )


def view_of_sweep(sweep: Sweep) -> View:
    """The verdict on a ladder, and its curves against the load."""
    found = sweep_doubts(sweep)
    return _view(Part(headline=sweep_headline(sweep), doubts=tuple(found), charts=_drawable(*ladder_charts(sweep))))


def view_of_search(search: Search, result: CapacityResult) -> View:
    """What a search for a capacity came to, why not more, and its probes."""
    return _view(
        Part(
            headline=capacity_headline(search, result),
            doubts=tuple(capacity_doubts(result)),
            said=tuple(("", line) for line in failure_lines(result)),
            facts=tuple(capacity_facts(search, result)),
            tables=(("Probes", probe_table(result)),),
            charts=_drawable(attainment_chart(result)),
        )
    )


def view_of_experiment(ladders: tuple[ArmsComparison, ...]) -> View:
    """Whether the arms pay, up to which load, and what they stand on."""
    return _view(*map(_part, ladders))


def _part(comparison: ArmsComparison) -> Part:
    arms = ((ladder.arm.label, " ".join(said_of(ladder, comparison))) for ladder in comparison.arms)
    gates = ((f"{how}:", line) for how, line in gate_lines(comparison))
    return Part(
        title=subtitle(comparison),
        headline=headline(comparison),
        answer=f"by {variable_text(comparison.variable)}: {advice(comparison)}" if comparison.arms else None,
        doubts=tuple(doubts(comparison)),
        said=(*arms, *gates),
        tables=(("What to run", choice_table(comparison)), *explanations(comparison)),
        charts=_drawable(speedup_chart(comparison), positions_chart(comparison)),
        remarks=tuple(remarks(comparison)),
    )


def _view(*parts: Part) -> View:
    return View(parts=parts)


def _drawable(*charts: Chart) -> tuple[Chart, ...]:
    return tuple(chart for chart in charts if chart.drawable)
