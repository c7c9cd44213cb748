"""A prediction as a page. Whatever it shows is expected, and it says so."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from loadgen.core.simulation.prediction import Bounds, Point, Prediction
from loadgen.report.charts import Chart, Line, Mark, log_levels
from loadgen.report.html import page
from loadgen.report.prediction import (
    METHODS,
    bound_cells,
    conclusion,
    level_cells,
    limit_facts,
    remark,
    setting_facts,
)
from loadgen.report.verdict import Doubt, Headline
from loadgen.report.words import DASH, asked, first_upper, number

_DEFINITIONS = (
    ("Step", "seconds of one decode step of all requests together, without prompts"),
    ("TPOT", "seconds per output token of one request, the arithmetic of the other requests' prompts included"),
    ("Acceptance length", "tokens a step emits for one request, its own token included; over all steps"),
    ("Break-even length", "step with speculation over step without: the acceptance length at which nothing is gained"),
    ("Speedup", "of decoding: acceptance length over break-even length"),
    ("Free drafter", "the same drafts at no cost of time"),
    ("Perfect lengths", "exactly the tokens that will be accepted are proposed, each step"),
    ("Perfect drafter", "every draft token is accepted"),
    (
        "Combined",
        "perfect lengths, and at each step the longer of n-gram lookup and the drafter; charged lookup alone as"
        " published, the drafter where it is used, or the drafter on every step",
    ),
)


def prediction_html(prediction: Prediction) -> str:
    """The prediction as one HTML file that holds all it shows."""
    charts = prediction_charts(prediction)
    sections = [
        page.section("figures", "Key figures", page.figure_list(_figures(prediction))),
        page.section("ladder", "By concurrency", page.plots(charts, "pair", table=False)),
        page.section("levels", "Levels", _level_table(prediction.points)),
        page.section("bounds", "Bounds of the speedup", _bounds_table(prediction.bounds)),
        page.section("limits", "Limits", _facts(limit_facts(prediction))),
        page.section("setting", "Stands on", _facts(setting_facts(prediction))),
        page.section("definitions", "Definitions", _definitions()),
        page.raw_section("prediction"),
    ]
    name = f"{METHODS[prediction.method]}, {prediction.setting.target or 'measured step times'}"
    headline = Headline(words=f"Expected, not measured: {conclusion(prediction)}", kind="warning")
    notes = [Doubt(severity="warning", kind="note", advice="", seen=(("", note),)) for note in prediction.notes]
    return page.page(
        title=f"{name} · loadgen predict",
        header=f"""<header>
<p class="eyebrow">loadgen predict</p>
<h1>{page.esc(first_upper(name))}</h1>
{page.verdict_box(headline, notes)}
</header>""",
        main="\n".join(sections),
        charts=charts,
        raw=asdict(prediction),
    )


def prediction_charts(prediction: Prediction) -> list[Chart]:
    """Speedup with its bounds, acceptance against break-even, TPOT and throughput, over concurrency."""
    points, bounds = prediction.points, prediction.bounds
    x = tuple(float(point.concurrency) for point in points)
    marks: tuple[Mark, ...] = ()
    critical = prediction.critical_batch
    if critical and x[0] <= critical <= x[-1]:
        marks = (Mark(x=critical, text=f"stops paying at {critical:.0f}", bad=True),)

    def chart(name: str, title: str, unit: str, lines: Iterable[Line], *, choose_scale: bool = False) -> Chart:
        return Chart(
            id=name,
            title=title,
            kind="level",
            unit=unit,
            x=x,
            lines=tuple(line for line in lines if any(value is not None for value in line.values)),
            x_label="concurrency",
            log_x=log_levels(x),
            choose_scale=choose_scale,
            marks=marks,
            height=230,
        )

    speedups = [
        Line(label="expected", values=tuple(point.speedup for point in points), tone=0),
        Line(label="free drafter", values=tuple(one.draft_free for one in bounds), tone=2, dashed=True),
        Line(label="perfect lengths", values=tuple(one.oracle_length for one in bounds), tone=4, dashed=True),
        Line(
            label="combined, drafter on every step",
            values=tuple(None if one.combined is None else one.combined.cost_every_step for one in bounds),
            tone=5,
            dashed=True,
        ),
        Line(label="break-even", values=tuple(1.0 for _ in points), tone=3, dashed=True),
    ]
    lengths = [
        Line(label="tokens a step", values=tuple(point.acceptance_length for point in points), tone=0),
        Line(
            label="break-even",
            values=tuple(point.break_even_acceptance_length for point in points),
            tone=3,
            dashed=True,
        ),
    ]
    tpot = [
        Line(label="with speculation", values=tuple(point.tpot_sd_s * 1e3 for point in points), tone=0),
        Line(label="without", values=tuple(point.tpot_ar_s * 1e3 for point in points), tone=1, dashed=True),
    ]
    tokens = [
        Line(label="with speculation", values=tuple(point.output_tokens_per_s_sd for point in points), tone=0),
        Line(label="without", values=tuple(point.output_tokens_per_s_ar for point in points), tone=1, dashed=True),
    ]
    return [
        chart("predict-speedup", "Speedup of decoding", "×", speedups),
        chart("predict-length", "Acceptance length against break-even", "tokens", lengths),
        chart("predict-tpot", "TPOT", "ms", tpot, choose_scale=True),
        chart("predict-tokens", "Throughput", "tokens/s", tokens, choose_scale=True),
    ]


def _figures(prediction: Prediction) -> list[page.Figure]:
    first, last = prediction.points[0], prediction.points[-1]
    critical = prediction.critical_batch
    figures = [
        page.Figure(label=f"Speedup at {point.concurrency}", value=number(point.speedup), unit="×")
        for point in (first, last)[: len(prediction.points)]
    ]
    figures.append(
        page.Figure(
            label="Stops paying at",
            value=DASH if critical is None else asked(round(critical)),
            unit="" if critical is None else "concurrent",
            beside="pays at every level" if critical is None else "",
        )
    )
    figures.append(
        page.Figure(
            label="Acceptance length",
            value=number(first.acceptance_length),
            unit="tokens",
            beside=f"break-even {number(first.break_even_acceptance_length)} at {first.concurrency}",
        )
    )
    return figures


def _level_table(points: Sequence[Point]) -> str:
    titles = ["concurrency", "step, ms", "with", "break-even", "speedup", "TPOT, ms", "with", "tokens/s", "with", "<"]
    rows = [
        f'<tr><th scope="row">{point.concurrency}</th>{"".join(map(page.value_cell, level_cells(point)))}'
        f'<td class="text">{page.esc(remark(point))}</td></tr>'
        for point in points
    ]
    caption = "Expected values; the second of each pair is with speculation."
    return page.data_table(caption, page.head_row(titles), rows, "Level table", page.FULL)


def _bounds_table(bounds: Sequence[Bounds]) -> str:
    titles = ["concurrency", "free drafter", "perfect lengths", "perfect drafter"]
    combined = any(one.combined is not None for one in bounds)
    if combined:
        titles += ["combined: lookup cost", "where used", "every step"]
    rows = [
        f'<tr><th scope="row">{one.concurrency}</th>'
        f"{''.join(map(page.value_cell, bound_cells(one)[: len(titles) - 1]))}</tr>"
        for one in bounds
    ]
    caption = "Speedups that cannot be passed, each with one thing made perfect. A dash: not known."
    return page.data_table(caption, page.head_row(titles), rows, "Bounds table", page.FULL)


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    return page.fact_list((label, page.esc(value)) for label, value in rows)


def _definitions() -> str:
    rows = "".join(f"<dt>{page.esc(term)}</dt><dd>{page.esc(text)}.</dd>" for term, text in _DEFINITIONS)
    return f'<dl class="definitions">{rows}</dl>'
