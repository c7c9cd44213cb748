"""What the pages are made of: one HTML file that holds all it shows, its sections, tables, facts and charts.

Text from a server, a data set or a user reaches the page only through `esc`, `foreign` or `_data`; on top of that the
page's content security policy names its own style and script by hash, so that nothing else could run or load.
"""

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Any

from loadgen import __version__
from loadgen.core.analysis.gates import FailedGate
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.report.charts import Chart
from loadgen.report.tables import TextTable
from loadgen.report.verdict import Doubt, Headline
from loadgen.report.words import DASH, LATENCY_LABELS, definition, printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One key figure: its value with a unit, and what stands beside it. The label of a defined `term` leads there."""

    term: str | None = None
    label: str
    value: str
    unit: str = ""
    beside: str = ""


def page(*, title: str, header: str, main: str, charts: Iterable[Chart], raw: Mapping[str, Any]) -> str:
    """A whole page: the parts are HTML already, `raw` is what can be copied as JSON."""
    style = _resource("vendor/uplot/uPlot.min.css") + "\n" + _resource("page/page.css")
    licence = _resource("vendor/uplot/LICENSE").replace("*/", "* /")
    code = (_resource(name) for name in ("vendor/uplot/uPlot.iife.min.js", "page/chart.js", "page/page.js"))
    script = "\n".join((f"/*\n{licence}*/", *code))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    return Template(_resource("page/page.html")).substitute(
        policy=policy,
        version=esc(__version__),
        title=esc(title),
        style=style,
        header=header,
        main=main,
        charts=_data([chart.as_json() for chart in charts if chart.drawable]),
        raw=_data(raw, indent=2),
        script=script,
    )


def _resource(name: str) -> str:
    return resources.files("loadgen.report").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def esc(text: object) -> str:
    """Text as HTML text or as an attribute's value."""
    return html.escape(printable(str(text)), quote=True)


def foreign(text: object) -> str:
    """Text from outside in a line of ours: escaped, and isolated so that its direction stays its own."""
    return f"<bdi>{esc(text)}</bdi>"


def _data(value: object, indent: int | None = None) -> str:
    """JSON for a script element: strict, ASCII, and without a character that could end the element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, indent=indent)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def section(name: str, title: str, body: str, *, valid: bool = True) -> str:
    """A section with its heading; one of an invalid measurement says so beside it."""
    tag = "" if valid else ' <span class="tag invalid">invalid measurement</span>'
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{esc(title)}{tag}</h2>\n{body}\n</section>'


def term_link(key: str, label: str) -> str:
    """A label that leads to its definition."""
    return f'<a href="#term-{key}" title="{esc(definition(key))}">{esc(label)}</a>'


def verdict_box(
    headline: Headline,
    doubts: Iterable[Doubt],
    gates: Iterable[FailedGate] = (),
    *,
    answer: str = "",
    label: str = "Verdict",
) -> str:
    """The headline, the answer where there is one (HTML already), then gates that failed, then the doubts.

    `label` is what a screen reader calls it: of several on a page each needs its own.
    """
    gates_failed = (_item("gate failed", "invalid", f"<p>{esc(gate.evidence)}</p>") for gate in gates)
    listed = "".join((*gates_failed, *map(_doubt, doubts)))
    return (
        f'<section class="verdict {headline.kind}" aria-label="{esc(label)}">'
        f'<p class="headline">{esc(headline.words)}</p>'
        + (f'<p class="answer">{answer}</p>' if answer else "")
        + (f'<ul class="findings">{listed}</ul>' if listed else "")
        + "</section>"
    )


def _doubt(doubt: Doubt) -> str:
    seen = (f"<p>{esc(f'At {where}: ' if where else '')}{foreign(evidence)}</p>" for where, evidence in doubt.seen)
    advice = f'<p class="advice">{foreign(doubt.advice)}</p>' if doubt.advice else ""
    return _item(doubt.severity, doubt.severity, "".join(seen) + advice)


def _item(tag: str, css: str, body: str) -> str:
    return f'<li><span><span class="tag {esc(css)}">{esc(tag)}</span></span><div>{body}</div></li>'


def figure_list(figures: Iterable[Figure], *, doubtful: bool = False) -> str:
    """Key figures side by side; `doubtful` ones are those of an invalid measurement."""
    cells = []
    for figure in figures:
        unit = f' <span class="unit">{esc(figure.unit)}</span>' if figure.unit and figure.value != DASH else ""
        absent = " absent" if figure.value == DASH else ""
        label = esc(figure.label) if figure.term is None else term_link(figure.term, figure.label)
        beside = f'<dd class="beside">{esc(figure.beside)}</dd>' if figure.beside else ""
        cells.append(f'<div><dt>{label}</dt><dd class="value{absent}">{esc(figure.value)}{unit}</dd>{beside}</div>')
    return f'<dl class="figures{" doubtful" if doubtful else ""}">{"".join(cells)}</dl>'


def plots(charts: Sequence[Chart], layout: str, *, table: bool = True) -> str:
    """Charts in a layout; with `table`, the same values as one table, for charts that no table of the page covers."""
    drawn = f'<div class="plots {layout}">{"".join(_plot(chart) for chart in charts)}</div>'
    if not table:
        return drawn
    names = " ".join(chart.id for chart in charts)
    label = f"Values: {', '.join(chart.title for chart in charts)}"
    return (
        f'{drawn}<details class="values" data-charts="{esc(names)}" hidden><summary>The values as a table</summary>'
        f'<div class="wide" tabindex="0" role="region" aria-label="{esc(label)}"></div></details>'
    )


def _plot(chart: Chart) -> str:
    caption = f'<h3>{esc(chart.title)}</h3><span class="per">{esc(chart.unit)}</span>'
    if not chart.drawable:
        return f'<figure><figcaption>{caption}</figcaption><p class="nothing">There is no value to draw.</p></figure>'
    scale = '<button type="button" class="scale" hidden></button>' if chart.choose_scale else ""
    save = (
        '<button type="button" class="save" hidden>save as PNG'
        f'<span class="unseen">: {esc(chart.title)}</span></button>'
    )
    lines = ", ".join(line.label for line in chart.lines)
    spoken = f"Chart: {chart.title} in {chart.unit}, {lines}, by {chart.x_label}. Arrow keys read it point by point."
    return (
        f'<figure><figcaption>{caption}{scale}{save}<ul class="legend"></ul><span class="per at"></span></figcaption>'
        f'<div class="plot" id="plot-{chart.id}" role="img" tabindex="0" aria-label="{esc(spoken)}"></div>'
        "</figure>"
    )


MOST_ROWS = 40
"""A table of more rows scrolls by itself under its head."""

FULL = ' class="full"'
"""A table of all the width there is."""


def data_table(caption: str, head: str, rows: Iterable[str], label: str, css: str = "", *, about: str = "") -> str:
    """A table that scrolls by itself when the window is narrow; what is said of it stands outside, and does not."""
    rows = list(rows)
    bodies = [f"<tbody>{''.join(rows)}</tbody>"]
    return grouped_table(caption, head, bodies, label, css, about=about, tall=len(rows) > MOST_ROWS)


def grouped_table(
    caption: str, head: str, bodies: Iterable[str], label: str, css: str = "", *, about: str = "", tall: bool = False
) -> str:
    """The same out of whole bodies, one a group of rows; a `tall` one scrolls under its head."""
    said = f'<p class="caption">{caption}</p>' if caption else ""
    return (
        f'{said}{about}<div class="wide{" tall" if tall else ""}" tabindex="0" role="region" aria-label="{esc(label)}">'
        f"<table{css}><thead>{head}</thead>{''.join(bodies)}</table></div>"
    )


def row_group(label: str, columns: int, rows: Iterable[str]) -> str:
    """Rows under a heading of their own as wide as the table; `label` is HTML already."""
    heading = f'<tr><th scope="rowgroup" colspan="{columns}">{label}</th></tr>'
    return f"<tbody>{heading}{''.join(rows)}</tbody>"


def text_table(told: TextTable, label: str) -> str:
    """A table that a terminal shows too."""
    css = [' class="word"' if title.startswith("<") else "" for title in told.titles]
    head = "".join(_head_cell(title.removeprefix("<"), word) for word, title in zip(css, told.titles, strict=True))
    rows = []
    for place, row in enumerate(told.rows):
        marked = ' class="marked"' if place in told.marked else ""
        cells = "".join(
            f"<td{word}>{esc(cell)}</td>" if word else value_cell(cell)
            for word, cell in zip(css[1:], row[1:], strict=True)
        )
        rows.append(f'<tr{marked}><th scope="row">{esc(row[0])}</th>{cells}</tr>')
    terms = "".join(f"<dt>{esc(title)}</dt><dd>{esc(about)}.</dd>" for title, about in told.told())
    about = f'<dl class="told">{terms}</dl>' if terms else ""
    return data_table(esc(told.caption), f"<tr>{head}</tr>", rows, label, about=about)


def head_row(titles: Iterable[str]) -> str:
    """Header cells; a title that begins with `<` heads a column of text."""
    cells = (_head_cell(title.removeprefix("<"), ' class="text"' if title.startswith("<") else "") for title in titles)
    return f"<tr>{''.join(cells)}</tr>"


def _head_cell(title: str, css: str) -> str:
    """A cell over a column; one without a title is no header, which a screen reader would read out as nothing."""
    return f'<th scope="col"{css}>{esc(title)}</th>' if title else f"<td{css}></td>"


def value_cell(text: str) -> str:
    """A cell with a value, or with the dash of an absent one."""
    return f'<td class="absent">{DASH}</td>' if text == DASH else f"<td>{esc(text)}</td>"


def fact_list(rows: Iterable[tuple[str, str]]) -> str:
    """A list of facts; the values are HTML already."""
    return f'<dl class="facts">{"".join(f"<dt>{esc(label)}</dt><dd>{value}</dd>" for label, value in rows)}</dl>'


def json_facts(values: Mapping[str, Any]) -> str:
    """A list of facts out of JSON values."""
    return fact_list((printable(str(key)), _json_value(value)) for key, value in values.items())


def _json_value(value: object) -> str:
    if value is None:
        return DASH
    if isinstance(value, str | int | float):
        return foreign(value if isinstance(value, str) else json.dumps(value, allow_nan=False))
    return f"<code>{foreign(json.dumps(value, allow_nan=False, ensure_ascii=False))}</code>"


RUN_TERMS = (
    "output_tokens_per_s",
    "requests_per_s",
    "failed_ratio",
    "attainment_ratio",
    "acceptance_length",
    "acceptance_ratio",
    "tokens_per_step",
    "coverage_ratio",
    "knee",
    "error_adjusted",
)
_TERM_LABELS = {
    "output_tokens_per_s": "Output tokens/s",
    "requests_per_s": "Requests/s",
    "failed_ratio": "Failed or dropped",
    "attainment_ratio": "SLO attained",
    "acceptance_length": "Acceptance length",
    "acceptance_ratio": "Acceptance ratio",
    "tokens_per_step": "Tokens per step",
    "coverage_ratio": "Coverage",
    "knee": "Knee",
    "error_adjusted": "failed = ∞",
}


def definitions(terms: Iterable[str], estimator: str) -> str:
    """What each of the page's terms means."""
    rows = []
    for term in terms:
        label = LATENCY_LABELS.get(term) or _TERM_LABELS[term]
        rows.append(f'<dt id="term-{term}">{esc(label)}</dt><dd>{esc(definition(term))}</dd>')
    needed = ", ".join(f"{least} for {name.replace('_', '.')}" for name, (_, least) in PERCENTILES.items())
    rows.append(f"<dt>Percentiles</dt><dd>{foreign(estimator)}. Values needed: {needed}.</dd>")
    return f'<dl class="definitions">{"".join(rows)}</dl>'


def raw_section(what: str = "summary") -> str:
    """The place of the data that can be read and copied; `what` names them."""
    return section(
        "data",
        "Data",
        f'<div class="raw"><details class="raw-json"><summary>The {what} as JSON</summary>'
        f'<pre tabindex="0" role="region" aria-label="{what.capitalize()} as JSON"></pre></details>'
        '<button type="button" class="copy" hidden>Copy as JSON</button></div>',
    )
