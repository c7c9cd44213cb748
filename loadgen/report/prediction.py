"""A prediction as terminal text, as JSON and as a page. Whatever it shows is expected, and it says so."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from loadgen.core.simulation.prediction import Bounds, Point, Prediction
from loadgen.report import text_parts
from loadgen.report.charts import Chart, Line, Mark
from loadgen.report.html import page
from loadgen.report.text_parts import INDENT, bar
from loadgen.report.verdict import Doubt, Headline
from loadgen.report.words import DASH, asked, milliseconds, number, percent, printable

_METHODS = {
    "ngram": "n-gram lookup",
    "draft_model": "a draft model",
    "eagle": "EAGLE",
    "eagle3": "EAGLE-3",
    "mtp": "multi-token prediction",
    "suffix": "suffix lookup",
}

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


def prediction_json(prediction: Prediction) -> str:
    """Strict JSON, indented, with a newline at its end."""
    return json.dumps(asdict(prediction), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def conclusion(prediction: Prediction) -> str:
    """The answer in one sentence or two."""
    drafts = prediction.draft_tokens
    name = f"{_METHODS[prediction.method]} with {drafts} draft token{'' if drafts == 1 else 's'}"
    first, last = prediction.points[0], prediction.points[-1]
    critical = prediction.critical_batch
    if first.speedup <= 1:
        text = f"{name} is not expected to pay: a step emits {number(first.acceptance_length)} tokens at"
        return f"{text} {first.concurrency} and has to emit {number(first.break_even_acceptance_length)}."
    text = f"{name} is expected to decode {number(first.speedup)} times as fast at {first.concurrency}"
    if len(prediction.points) > 1:
        text += f" and {number(last.speedup)} times at {last.concurrency}"
    if critical is None:
        beyond = "in the range that was measured" if prediction.measured else "at any concurrency"
        return f"{text}; it does not stop paying {beyond}."
    return f"{text}; it stops paying at about {critical:.0f} concurrent requests."


def prediction_text(prediction: Prediction, *, width: int = 100, color: bool = False) -> str:
    """The answer first, then the ladder with a bar of the speedup, the limits, the bounds, and what it stands on."""
    room = width - INDENT
    parts: list[RenderableType] = [
        Text("EXPECTED, NOT MEASURED  ", style="bold cyan").append(_first_upper(conclusion(prediction)), style="bold"),
        *(Text(f"  ! {printable(note)}", style="yellow") for note in prediction.notes),
        text_parts.section("By concurrency; steps and TPOT in ms", _ladder(prediction, room)),
        text_parts.section("Speedup of decoding", _bars(prediction.points, room)),
        text_parts.section("Limits", text_parts.facts(_limits(prediction))),
    ]
    if any(bounds.draft_free is not None for bounds in prediction.bounds):
        parts.append(text_parts.section("Bounds of the speedup", _bounds(prediction.bounds, room)))
    parts.append(text_parts.section("Stands on", text_parts.facts(_setting(prediction))))
    return text_parts.rendered(parts, width, color)


def _first_upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _ladder(prediction: Prediction, room: int) -> RenderableType:
    titles = (
        ">concurrency",
        ">step",
        ">with",
        ">break-even",
        ">speedup",
        ">TPOT",
        ">with",
        ">tokens/s",
        ">with",
        "",
    )
    rows = [
        [
            *(
                Text(cell)
                for cell in (
                    str(point.concurrency),
                    milliseconds(point.t_ar_s),
                    milliseconds(point.t_sd_s),
                    number(point.break_even_acceptance_length),
                    number(point.speedup),
                    milliseconds(point.tpot_ar_s),
                    milliseconds(point.tpot_sd_s),
                    number(point.output_tokens_per_s_ar),
                    number(point.output_tokens_per_s_sd),
                )
            ),
            _mark(point),
        ]
        for point in prediction.points
    ]
    table, _ = text_parts.table(titles, rows, room, leave_out=(1, 2, 7, 8))
    length = number(prediction.points[0].acceptance_length)
    note = (
        f"{length} tokens a step are expected; break-even is what a step has to emit for speculation to gain nothing."
    )
    return Group(table, Text(note, style="dim"))


def _mark(point: Point) -> Text:
    if point.fits_memory is False:
        return Text("! memory full", style="yellow")
    return Text("✗ slower", style="red") if point.speedup <= 1 else Text("")


def _bars(points: Sequence[Point], room: int) -> RenderableType:
    """A bar a level, in one scale with a line at 1: what reaches beyond it is gained."""
    cells = max(6, room - 24)
    largest = max(1.0, *(point.speedup for point in points))
    one = round(cells / largest)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(width=cells, no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    for point in points:
        drawn = bar(point.speedup, (largest,), cells)
        text = Text(drawn[:one], style="cyan" if point.speedup > 1 else "red")
        text.append(drawn[one:].replace("█", "▓"), style="green")
        if len(drawn) < one:
            text.append(" " * (one - len(drawn) - 1) + "│", style="dim")
        grid.add_row(str(point.concurrency), text, f"{number(point.speedup)} ×")
    return grid


def _limits(prediction: Prediction) -> list[tuple[str, str]]:
    critical, context = prediction.critical_batch, prediction.critical_context_tokens
    if critical is None:
        pays = "at every concurrency" if not prediction.measured else "at every level that was measured"
    elif critical == 0:
        pays = "not even for one request"
    else:
        pays = f"up to about {critical:.0f} concurrent requests"
    rows = [("Pays", f"{pays}, at {prediction.traffic.context_tokens:.0f} tokens of context")]
    if context is not None:
        rows.append(("Critical context", f"{context:.0f} tokens; above it no concurrency is too high"))
    if prediction.ridge_tokens is not None:
        rows.append(
            ("Arithmetic", f"takes as long as reading the weights at {prediction.ridge_tokens:.0f} tokens a step")
        )
    if prediction.draft_tokens_by_batch:
        rows.append(("Best draft length", _schedule_text(prediction)))
    if prediction.memory_concurrency_ar is not None and prediction.memory_concurrency_sd is not None:
        rows.append(
            (
                "Memory",
                f"holds {prediction.memory_concurrency_ar} requests of this context,"
                f" {prediction.memory_concurrency_sd} beside the drafter",
            )
        )
    return rows


def _schedule_text(prediction: Prediction) -> str:
    ranges = prediction.draft_tokens_by_batch
    return ", ".join(f"{first} to {last}: {tokens}" for first, last, tokens in ranges) + " draft tokens"


def _bound_cells(bounds: Bounds) -> list[str]:
    combined = bounds.combined
    three = (None, None, None)
    if combined is not None:
        three = (combined.lookup_cost, combined.cost_where_used, combined.cost_every_step)  # type: ignore[assignment]
    return [number(value) for value in (bounds.draft_free, bounds.oracle_length, bounds.perfect_drafter, *three)]


def _bounds(bounds: Sequence[Bounds], room: int) -> RenderableType:
    titles = [">concurrency", ">free drafter", ">perfect lengths", ">perfect drafter"]
    combined = any(one.combined is not None for one in bounds)
    if combined:
        titles += [">combined: lookup cost", ">where used", ">every step"]
    rows = [[Text(str(one.concurrency)), *map(Text, _bound_cells(one))][: len(titles)] for one in bounds]
    table, _ = text_parts.table(titles, rows, room, leave_out=(3, 1) if combined else ())
    return table


def _setting(prediction: Prediction) -> list[tuple[str, str]]:
    setting, traffic = prediction.setting, prediction.traffic
    rows = []
    if setting.target is not None:
        gpus = f"{setting.gpus} × " if setting.gpus > 1 else ""
        draft = f", drafting: {setting.draft}" if setting.draft else ""
        rows.append(("Server", printable(f"{setting.target} on {gpus}{setting.gpu}{draft}")))
    rows.append(("Step times", printable(setting.step_times_from)))
    rows.append(("Acceptance", printable(setting.acceptance_from) + _coverage_text(prediction)))
    rows.append(
        (
            "Traffic",
            f"{printable(setting.workload)}: {traffic.prompt_tokens:.0f} prompt and {traffic.output_tokens:.0f} output"
            f" tokens, context {traffic.context_tokens:.0f}",
        )
    )
    return rows


def _coverage_text(prediction: Prediction) -> str:
    ratio = prediction.coverage_ratio
    if ratio == 1:
        return ""
    drafting = 1 + (prediction.points[0].acceptance_length - 1) / ratio
    return f"; {percent(ratio)} of the steps draft, and those emit {number(drafting)} tokens"


# The page


def prediction_html(prediction: Prediction) -> str:
    """The prediction as one HTML file that holds all it shows."""
    charts = prediction_charts(prediction)
    sections = [
        page.section("figures", "Key figures", page.figure_list(_figures(prediction))),
        page.section("ladder", "By concurrency", page.plots(charts, "pair", table=False)),
        page.section("levels", "Levels", _level_table(prediction.points)),
        page.section("bounds", "Bounds of the speedup", _bounds_table(prediction.bounds)),
        page.section("limits", "Limits", _facts(_limits(prediction))),
        page.section("setting", "Stands on", _facts(_setting(prediction))),
        page.section("definitions", "Definitions", _definitions()),
        page.raw_section("prediction"),
    ]
    name = f"{_METHODS[prediction.method]}, {prediction.setting.target or 'measured step times'}"
    headline = Headline(words=f"Expected, not measured: {conclusion(prediction)}", kind="warning")
    notes = [Doubt(severity="warning", kind="note", advice="", seen=(("", note),)) for note in prediction.notes]
    return page.page(
        title=f"{name} · loadgen predict",
        header=f"""<header>
<p class="eyebrow">loadgen predict</p>
<h1>{page.esc(_first_upper(name))}</h1>
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
            log_x=x[0] > 0 and x[-1] / x[0] >= 8,
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
    rows = []
    for point in points:
        cells = (
            milliseconds(point.t_ar_s),
            milliseconds(point.t_sd_s),
            number(point.break_even_acceptance_length),
            number(point.speedup),
            milliseconds(point.tpot_ar_s),
            milliseconds(point.tpot_sd_s),
            number(point.output_tokens_per_s_ar),
            number(point.output_tokens_per_s_sd),
        )
        word = _mark(point).plain
        rows.append(
            f'<tr><th scope="row">{point.concurrency}</th>{"".join(map(page.value_cell, cells))}'
            f'<td class="text">{page.esc(word)}</td></tr>'
        )
    caption = "Expected values; the second of each pair is with speculation."
    return page.data_table(caption, page.head_row(titles), rows, "Level table", page.FULL)


def _bounds_table(bounds: Sequence[Bounds]) -> str:
    titles = ["concurrency", "free drafter", "perfect lengths", "perfect drafter"]
    combined = any(one.combined is not None for one in bounds)
    if combined:
        titles += ["combined: lookup cost", "where used", "every step"]
    rows = [
        f'<tr><th scope="row">{one.concurrency}</th>'
        f"{''.join(map(page.value_cell, _bound_cells(one)[: len(titles) - 1]))}</tr>"
        for one in bounds
    ]
    caption = "Speedups that cannot be passed, each with one thing made perfect. A dash: not known."
    return page.data_table(caption, page.head_row(titles), rows, "Bounds table", page.FULL)


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    return page.fact_list((label, page.esc(value)) for label, value in rows)


def _definitions() -> str:
    rows = "".join(f"<dt>{page.esc(term)}</dt><dd>{page.esc(text)}.</dd>" for term, text in _DEFINITIONS)
    return f'<dl class="definitions">{rows}</dl>'
