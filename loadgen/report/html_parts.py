"""What pages are made of: the page itself, sections, figures, charts, tables, facts.

Text from a server, a data set or a user reaches a page only through `esc` or `data`; on top of that the page's content
security policy names its own style and script by hash, so that nothing else could run or load.
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
from loadgen.report.charts import Chart
from loadgen.report.words import DASH, definition, printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One key figure: a term, its value with a unit, and what stands beside it. A `term` of the page's definitions
    makes the label lead there."""

    term: str | None = None
    label: str
    value: str
    unit: str = ""
    beside: str = ""


def page(*, title: str, header: str, main: str, charts: Iterable[Chart], raw: Mapping[str, Any]) -> str:
    """A whole page: its title, header and main part as HTML, charts to draw and the data it was made of."""
    style = _resource("vendor/uplot/uPlot.min.css") + "\n" + _resource("page/page.css")
    licence = _resource("vendor/uplot/LICENSE").replace("*/", "* /")
    script = f"/*\n{licence}*/\n{_resource('vendor/uplot/uPlot.iife.min.js')}\n{_resource('page/page.js')}"
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
        charts=data([chart.as_json() for chart in charts if chart.drawable]),
        raw=data(raw, indent=2),
        script=script,
    )


def _resource(name: str) -> str:
    """A file of this package as text."""
    return resources.files("loadgen.report").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    """The source expression of a policy that allows just this text."""
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def esc(text: object) -> str:
    """Any text as HTML."""
    return html.escape(printable(str(text)), quote=True)


def foreign(text: object) -> str:
    """Text from outside in a line of ours: escaped, and isolated so that its direction stays its own."""
    return f"<bdi>{esc(text)}</bdi>"


def data(value: object, indent: int | None = None) -> str:
    """JSON for a script element: strict, ASCII, and without a character that could end the element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, indent=indent)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def section(name: str, title: str, body: str, *, valid: bool = True) -> str:
    """A section with its heading, marked where the measurement is invalid."""
    tag = "" if valid else ' <span class="tag invalid">invalid measurement</span>'
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{esc(title)}{tag}</h2>\n{body}\n</section>'


def term(key: str, label: str) -> str:
    """A label that leads to its definition."""
    return f'<a href="#term-{key}" title="{esc(definition(key))}">{esc(label)}</a>'


def verdict_box(words: str, kind: str, findings: Sequence[str]) -> str:
    """The box at the top: a sentence, its kind, and findings as list items."""
    listed = f'<ul class="findings">{"".join(findings)}</ul>' if findings else ""
    return f'<section class="verdict {kind}" aria-label="Verdict"><p>{esc(words)}</p>{listed}</section>'


def figures(figures: Iterable[Figure], *, doubtful: bool = False) -> str:
    """Key figures as a list of definitions."""
    cells = []
    for figure in figures:
        unit = f' <span class="unit">{esc(figure.unit)}</span>' if figure.unit and figure.value != DASH else ""
        absent = " absent" if figure.value == DASH else ""
        label = esc(figure.label) if figure.term is None else term(figure.term, figure.label)
        beside = f'<dd class="beside">{esc(figure.beside)}</dd>' if figure.beside else ""
        cells.append(f'<div><dt>{label}</dt><dd class="value{absent}">{esc(figure.value)}{unit}</dd>{beside}</div>')
    return f'<dl class="figures{" doubtful" if doubtful else ""}">{"".join(cells)}</dl>'


def plots(charts: Sequence[Chart], layout: str, *, table: bool = True) -> str:
    """Charts in a layout; with `table`, the same values as one table, for charts that no table of the page covers."""
    drawn = f'<div class="plots {layout}">{"".join(_plot(chart) for chart in charts)}</div>'
    if not table:
        return drawn
    names = " ".join(chart.id for chart in charts)
    return (
        f'{drawn}<details class="values" data-charts="{esc(names)}" hidden><summary>The values as a table</summary>'
        '<div class="wide" tabindex="0" role="region" aria-label="Values of the chart"></div></details>'
    )


def _plot(chart: Chart) -> str:
    """The place of one chart, with its legend and what a reader without sight is told."""
    caption = f'<h3>{esc(chart.title)}</h3><span class="per">{esc(chart.unit)}</span>'
    if not chart.drawable:
        return f'<figure><figcaption>{caption}</figcaption><p class="nothing">There is no value to draw.</p></figure>'
    scale = '<button type="button" class="scale" hidden></button>' if chart.choose_scale else ""
    lines = ", ".join(line.label for line in chart.lines)
    spoken = f"Chart: {chart.title} in {chart.unit}, {lines}, by {chart.x_label}. Arrow keys read it point by point."
    return (
        f'<figure><figcaption>{caption}{scale}<ul class="legend"></ul><span class="per at"></span></figcaption>'
        f'<div class="plot" id="plot-{chart.id}" role="img" tabindex="0" aria-label="{esc(spoken)}"></div>'
        "</figure>"
    )


FULL = ' class="full"'


def table(caption: str, head: str, rows: Iterable[str], label: str, css: str = "") -> str:
    """A table that scrolls by itself when the window is narrow; the caption stands outside so that it does not."""
    return (
        f'<p class="caption">{caption}</p><div class="wide" tabindex="0" role="region" aria-label="{esc(label)}">'
        f"<table{css}><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def head(titles: Iterable[str]) -> str:
    """A header row; a title that begins with `<` is text and aligns left."""
    cells = "".join(
        f'<th scope="col" class="text">{esc(title[1:])}</th>'
        if title.startswith("<")
        else f'<th scope="col">{esc(title)}</th>'
        for title in titles
    )
    return f"<tr>{cells}</tr>"


def cell(text: str) -> str:
    """A cell of a number or a dash."""
    return f'<td class="absent">{DASH}</td>' if text == DASH else f"<td>{esc(text)}</td>"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A list of facts; the values are HTML already."""
    return f'<dl class="facts">{"".join(f"<dt>{esc(label)}</dt><dd>{value}</dd>" for label, value in rows)}</dl>'


def json_facts(values: Mapping[str, Any]) -> str:
    """A list of facts of JSON values."""
    return facts((printable(str(key)), json_value(value)) for key, value in values.items())


def json_value(value: object) -> str:
    """A JSON value as HTML."""
    if value is None:
        return DASH
    if isinstance(value, str | int | float):
        return foreign(value if isinstance(value, str) else json.dumps(value, allow_nan=False))
    return f"<code>{foreign(json.dumps(value, allow_nan=False, ensure_ascii=False))}</code>"


def raw_section(title: str = "The summary as JSON") -> str:
    """The section that shows the page's data as JSON."""
    return section(
        "data",
        "Data",
        f'<div class="raw"><details class="raw-json"><summary>{esc(title)}</summary>'
        '<pre tabindex="0" aria-label="Summary as JSON"></pre></details>'
        '<button type="button" class="copy" hidden>Copy as JSON</button></div>',
    )
