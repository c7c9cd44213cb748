"""A chart as an SVG file that needs no script: for documents, where a page cannot go."""

import html
import math
from collections.abc import Callable, Iterator, Sequence

from loadgen.report.charts import Chart, Line, Mark
from loadgen.report.words import asked, number, printable

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 44, 48
_LEGEND_ROW = 18
_TONES = ("#1d5b9c", "#b4540a", "#12755f", "#b3261e", "#6b6f75", "#7a3f9d", "#7d6700", "#c2318a")
_PLUS = ((-0.5, -1.5), (0.5, -1.5), (0.5, -0.5), (1.5, -0.5), (1.5, 0.5), (0.5, 0.5))
_SHAPES = (
    (),
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.3), (1.2, 0.9), (-1.2, 0.9)),
    ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
    ((0, 1.3), (1.2, -0.9), (-1.2, -0.9)),
    (*_PLUS, *((-x, -y) for x, y in _PLUS)),
    tuple((0.75 * (x - y), 0.75 * (x + y)) for x, y in (*_PLUS, *((-x, -y) for x, y in _PLUS))),
    tuple(
        (radius * math.sin(math.pi * corner / 5), -radius * math.cos(math.pi * corner / 5))
        for corner, radius in enumerate((1.7, 0.7) * 5)
    ),
)
"""Corners of the shapes of points, in radii, in the order of `SHAPES`; none for a circle."""

_RADIUS = 2.75
_BAR = 10
"""How wide the interval of a single level is drawn."""
_TICKS = 5
_CHARACTER = 6.6
"""About how wide a character of the legend is."""

_Scale = Callable[[float], float]


def chart_svg(chart: Chart) -> str:
    """The chart with its bands, marks and legend; for charts of lines over levels or plain numbers."""
    rows = list(_legend_rows(chart.lines))
    height = _HEIGHT + _LEGEND_ROW * len(rows)
    bottom = _HEIGHT - _BOTTOM
    top = chart.top or _nice(max((value for value in _values(chart) if value is not None), default=1.0) * 1.05)
    x, y = _x_scale(chart), _linear(0.0, top, bottom, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        ' font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<clipPath id="inside-{chart.id}"><path d="M0 {_TOP}H{_WIDTH}V{bottom}H0Z"/></clipPath>',
        _text(_LEFT, 22, chart.title, size=15, colour="#1c1e21"),
        _text(_WIDTH - _RIGHT, 22, chart.unit, anchor="end"),
        *_y_axis(y, top),
        *_x_axis(chart, x, bottom),
        *(_band(chart, line, x, y, top) for line in chart.lines if line.low is not None),
        *_mark_lines(chart, x, bottom),
        *(part for line in chart.lines for part in _line(chart, line, x, y)),
        *_labels(chart, x),
        *(
            part
            for row, entries in enumerate(rows)
            for part in _legend(entries, _HEIGHT + _LEGEND_ROW * row + _LEGEND_ROW / 2)
        ),
        "</svg>\n",
    ]
    return "\n".join(part for part in parts if part)


def _values(chart: Chart) -> Iterator[float | None]:
    for line in chart.lines:
        yield from line.values
        yield from line.high or ()


def _nice(value: float, steps: Sequence[float] = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)) -> float:
    """The next number of the form 1, 1.5, 2, 3, 4, 5, 6, 8 × 10^n, or of other `steps`, which end in 10."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(float(step * power) for step in steps if step * power >= value)


def _linear(low: float, high: float, begin: float, end: float) -> _Scale:
    return lambda value: begin + (value - low) / (high - low) * (end - begin)


def _x_scale(chart: Chart) -> _Scale:
    begin, end = _LEFT + 16, _WIDTH - _RIGHT - 16
    low, high = (0.0 if chart.kind == "plain" else chart.x[0]), chart.x[-1]
    if high <= low:
        return lambda _: (begin + end) / 2
    if chart.log_x:
        scale = _linear(math.log(low), math.log(high), begin, end)
        return lambda value: scale(math.log(value))
    return _linear(low, high, begin, end)


def _y_axis(y: _Scale, top: float) -> Iterator[str]:
    apart = _nice(top / _TICKS, (1, 2, 2.5, 5, 10))
    for step in range(int(top / apart * (1 + 1e-9)) + 1):
        value = float(f"{apart * step:.6g}")
        yield f'<path d="M{_LEFT} {y(value):.1f}H{_WIDTH - _RIGHT}" stroke="#e3e5e8"/>'
        yield _text(_LEFT - 8, y(value) + 4, asked(value), anchor="end")


def _x_axis(chart: Chart, x: _Scale, bottom: float) -> Iterator[str]:
    levels = chart.x
    if chart.kind == "plain":
        levels = tuple(_nice(chart.x[-1]) * step / _TICKS for step in range(_TICKS + 1))
        levels = tuple(level for level in levels if level <= chart.x[-1])
    for level in levels:
        yield _text(x(level), bottom + 18, asked(level), anchor="middle")
    yield _text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 38, chart.x_label, anchor="middle")


def _band(chart: Chart, line: Line, x: _Scale, y: _Scale, top: float) -> str:
    """Its ends lie within the axis, so that between levels it goes from end to end: an end far beyond would fill all
    that lies before it."""
    assert line.low is not None
    assert line.high is not None
    ends = [
        (x(at), y(min(max(low, 0.0), top)), y(min(high, top)))
        for at, low, high in zip(chart.x, line.low, line.high, strict=True)
        if low is not None and high is not None
    ]
    if not ends:
        return ""
    if len(ends) == 1:
        ((at, low, high),) = ends
        ends = [(at - _BAR / 2, low, high), (at + _BAR / 2, low, high)]
    there = [f"{at:.1f} {high:.1f}" for at, _, high in ends]
    back = [f"{at:.1f} {low:.1f}" for at, low, _ in reversed(ends)]
    path = "L".join((*there, *back))
    look = f'fill="{_TONES[line.tone]}" fill-opacity="{0.5 if chart.stacked else 0.16}"'
    return f'<path d="M{path}Z" {look} clip-path="url(#inside-{chart.id})"/>'


def _line(chart: Chart, line: Line, x: _Scale, y: _Scale) -> Iterator[str]:
    """Points without a value are passed over."""
    values = line.values if not chart.stacked or line.high is None else line.high
    points = [(x(at), y(value)) for at, value in zip(chart.x, values, strict=True) if value is not None]
    if not points:
        return
    path = "L".join(f"{at:.1f} {value:.1f}" for at, value in points)
    yield f'<path d="M{path}" fill="none" stroke="{_TONES[line.tone]}" stroke-width="2"{_dash(line)}/>'
    if line.shape is not None or len(points) == 1:
        drawn = "".join(_point(line, at, value) for at, value in points)
        yield f"<g>{drawn}</g>"


def _point(line: Line, x: float, y: float) -> str:
    look = f'fill="#ffffff" stroke="{_TONES[line.tone]}" stroke-width="1.25"'
    corners = _SHAPES[line.shape or 0]
    if not corners:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" {look}/>'
    path = "L".join(f"{x + right * _RADIUS:.1f} {y + down * _RADIUS:.1f}" for right, down in corners)
    return f'<path d="M{path}Z" {look}/>'


def _mark_colour(mark: Mark) -> str:
    return "#6b6f75" if mark.tone is None else _TONES[mark.tone]


def _mark_lines(chart: Chart, x: _Scale, bottom: float) -> Iterator[str]:
    for mark in chart.marks:
        yield f'<path d="M{x(mark.x):.1f} {_TOP}V{bottom}" stroke="{_mark_colour(mark)}" stroke-dasharray="3 3"/>'


def _labels(chart: Chart, x: _Scale) -> Iterator[str]:
    """The words of the marks, and how far bands reach that are cut off: each as high up as none is in its way."""
    wanted = [(x(mark.x), mark.text, _mark_colour(mark)) for mark in sorted(chart.marks, key=lambda mark: mark.x)]
    wanted += [
        (x(at), f"\u2191 {number(high)}", _TONES[line.tone])
        for line in chart.lines
        for at, high in zip(chart.x, line.high or (), strict=False)
        if chart.top is not None and high is not None and high > chart.top
    ]
    rows: list[list[tuple[float, float]]] = []
    for at, words, colour in wanted:
        width = _CHARACTER * len(words)
        begin = at + 4 if at + 4 + width <= _WIDTH else at - 4 - width
        free = (
            row for row, taken in enumerate(rows) if all(begin > high or begin + width < low for low, high in taken)
        )
        row = next(free, len(rows))
        if row == len(rows):
            rows.append([])
        rows[row].append((begin - 4, begin + width + 4))
        yield _text(begin, _TOP + 10 + 14 * row, words, colour=colour, halo=True)


def _legend_rows(lines: Sequence[Line]) -> Iterator[list[tuple[float, Line]]]:
    """Lines with where their entries begin, as many in a row as there is room for."""
    row: list[tuple[float, Line]] = []
    at = float(_LEFT)
    for line in lines:
        width = 34 + _CHARACTER * len(line.label)
        if row and at + width > _WIDTH - _RIGHT:
            yield row
            row, at = [], float(_LEFT)
        row.append((at, line))
        at += width + 12
    if row:
        yield row


def _legend(entries: Sequence[tuple[float, Line]], y: float) -> Iterator[str]:
    for at, line in entries:
        yield f'<path d="M{at:.1f} {y - 4:.1f}h24" stroke="{_TONES[line.tone]}" stroke-width="2"{_dash(line)}/>'
        if line.shape is not None:
            yield _point(line, at + 12, y - 4)
        yield _text(at + 30, y, line.label)


def _dash(line: Line) -> str:
    return ' stroke-dasharray="6 4"' if line.dashed else ""


def _text(
    x: float, y: float, text: str, *, size: int = 12, anchor: str = "start", colour: str = "#4a4e54", halo: bool = False
) -> str:
    """Text with its baseline at `y`; a `halo` of paper keeps lines that cross it from its letters."""
    around = ' stroke="#ffffff" stroke-width="4" stroke-linejoin="round" paint-order="stroke"' if halo else ""
    look = f'font-size="{size}" text-anchor="{anchor}" fill="{colour}"{around}'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{html.escape(printable(text), quote=True)}</text>'
