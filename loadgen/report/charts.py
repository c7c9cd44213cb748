"""What the HTML report draws, as columns of numbers: every chart is one x column and lines over it, None for a gap."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from loadgen.core.metrics.summary import Analysis, QuantileCurve, Summary, Sweep, TimeSeries
from loadgen.core.run import LoadMode
from loadgen.report.words import LATENCY_LABELS, asked

_LOG_LEVELS_FROM = 8

SHAPES = (
    "circle",
    "square",
    "triangle",
    "diamond",
    "triangle on its tip",
    "plus",
    "saltire",
    "star",
)
"""The shapes of points, which the page and the SVG draw alike."""

_BAND_HEADROOM = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chart. `tone` numbers a colour of the page, `dashed` and the `shape` of its points tell it apart
    without colour: a place among `SHAPES`; None has points only where the line would not be seen without.

    `low` and `high` bound a band around it, where it has one.
    """

    label: str
    values: tuple[float | None, ...]
    tone: int
    dashed: bool = False
    shape: int | None = 0
    low: tuple[float | None, ...] | None = None
    high: tuple[float | None, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A vertical mark at `x` with a word beside it, in the colour of the line that it belongs to, if any."""

    x: float
    text: str
    bad: bool = False
    tone: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart. `kind` of the x axis: `quantile` (x = -log10(1 - share)), `time` (seconds), `level`, `plain`.

    `bars` has a bar at each x for each line, at most two; `scatter` points and no lines; x is ascending, may repeat.

    `stacked` lines are shares, each an area of its own from its `low` to its `high`, one upon the other.

    `band` shades a span of x. `log_y` is the scale drawn first; `choose_scale` lets the reader change it. `top` is
    where a linear axis of values ends, though the band of a line goes beyond; None: it holds every band.
    """

    id: str
    title: str
    kind: str
    unit: str
    x: tuple[float, ...]
    lines: tuple[Line, ...]
    x_label: str
    log_x: bool = False
    log_y: bool = False
    choose_scale: bool = False
    band: tuple[float, float] | None = None
    marks: tuple[Mark, ...] = ()
    height: int = 280
    top: float | None = None
    stacked: bool = False

    @property
    def drawable(self) -> bool:
        """Whether there is a single value to draw."""
        return any(value is not None for line in self.lines for value in line.values)

    def as_json(self) -> dict[str, object]:
        """The chart as JSON-ready values."""
        return asdict(self)


def log_levels(levels: Sequence[float]) -> bool:
    """Whether rising levels are drawn over their logarithm: the last is many times the first, which is not 0."""
    return bool(levels) and levels[0] > 0 and levels[-1] / levels[0] >= _LOG_LEVELS_FROM


def band_top(lines: Iterable[Line]) -> float | None:
    """Where the axis of values ends, so that one wide interval leaves the lines readable; None where none is so wide.

    Bands may go half as high again as the highest value; what goes beyond is cut off there, and is marked.
    """
    lines = list(lines)
    values = [value for line in lines for value in line.values if value is not None]
    ends = [end for line in lines for end in line.high or () if end is not None]
    limit = _BAND_HEADROOM * max(values, default=0.0)
    return limit if max(ends, default=0.0) > limit > 0 else None


def quantile_chart(analysis: Analysis) -> Chart:
    """The latency distributions by percentile, tail stretched, in ms."""
    names = [name for name in LATENCY_LABELS if name in analysis.curves]
    columns = {name: _tail_points(analysis.curves[name]) for name in names}
    x = tuple(sorted({at for column in columns.values() for at in column}))
    lines = tuple(
        Line(
            label=LATENCY_LABELS[name],
            values=tuple(columns[name].get(at) for at in x),
            tone=tone,
            dashed=name.endswith("_from_due_s"),
        )
        for tone, name in zip(_tones(names), names, strict=True)
    )
    return Chart(
        id="quantiles",
        title="Latency by percentile",
        kind="quantile",
        unit="ms",
        x=x,
        lines=lines,
        x_label="percentile",
        log_y=True,
        choose_scale=True,
        height=320,
    )


def _tones(names: Sequence[str]) -> list[int]:
    """One colour a metric; the from-due form of a metric shares its colour and is dashed."""
    order = list(dict.fromkeys(name.replace("_from_due", "") for name in names))
    return [order.index(name.replace("_from_due", "")) for name in names]


def _tail_points(curve: QuantileCurve) -> dict[float, float]:
    """Points of a curve at x = -log10(1 - p), ms. The maximum, p = 1, lies at infinity and is left to the table.

    Equal shares keep the larger value, so that few or equal samples still give a drawable line.
    """
    points = {-math.log10(1 - p): value * 1e3 for p, value in zip(curve.p, curve.value_s, strict=True) if p < 1}
    if not points and curve.value_s:
        return {-math.log10(0.5): curve.value_s[-1] * 1e3}
    return {round(x, 6) + 0.0: value for x, value in points.items()}


def time_charts(summary: Summary) -> list[Chart]:
    """The run over time, the server's own figures beside the client's on one axis; server charts only with values."""
    series, told = summary.time_series, summary.server_series
    if series is None or not series.sent:
        return []
    x = tuple(round(series.start_s + i * series.step_s, 6) for i in range(len(series.sent)))
    window = summary.window
    band = None if window is None else (window.start_s, window.end_s)

    def chart(name: str, title: str, unit: str, *lines: Line) -> Chart:
        shown = tuple(line for line in lines if any(value is not None for value in line.values))
        return Chart(id=name, title=title, kind="time", unit=unit, x=x, lines=shown, x_label="s", band=band, height=150)

    rates = [
        Line(label="sent", values=_per_second(series.sent, series), tone=0),
        Line(label="completed", values=_per_second(series.completed, series), tone=2),
    ]
    if summary.load.mode is not LoadMode.CONCURRENCY:
        rates.insert(0, Line(label="offered", values=_per_second(series.due, series), tone=4, dashed=True))
    if any(series.failed):
        rates.append(Line(label="failed", values=_per_second(series.failed, series), tone=3))
    tokens = [Line(label="arrived", values=_per_second(series.output_tokens, series), tone=0)]
    in_flight = [Line(label="in flight", values=tuple(series.concurrency), tone=0)]
    if told is not None:
        tokens.append(Line(label="server generated", values=told.generation_tokens_per_s, tone=1, dashed=True))
        in_flight.append(Line(label="server running", values=told.running_requests, tone=1, dashed=True))
        in_flight.append(Line(label="server waiting", values=told.waiting_requests, tone=3))
    client = [
        chart("time-requests", "Requests", "requests/s", *rates),
        chart("time-tokens", "Output tokens", "tokens/s", *tokens),
        chart("time-concurrency", "In flight", "requests", *in_flight),
        chart(
            "time-ttft",
            "TTFT, by the instant of sending",
            "ms",
            Line(label="p50", values=in_ms(series.ttft_p50_s), tone=0),
            Line(label="p95", values=in_ms(series.ttft_p95_s), tone=1, dashed=True),
        ),
        chart(
            "time-tpot",
            "TPOT, by the instant of sending",
            "ms",
            Line(label="p50", values=in_ms(series.tpot_p50_s), tone=0),
        ),
    ]
    if told is None:
        return client
    cache = [Line(label="used", values=in_percent(told.kv_used_mean_ratio), tone=0)]
    if told.kv_used_max_ratio != told.kv_used_mean_ratio:
        cache.append(Line(label="fullest process", values=in_percent(told.kv_used_max_ratio), tone=1, dashed=True))
    if any(told.prefix_hit_ratio):
        cache.append(Line(label="prefix hits", values=in_percent(told.prefix_hit_ratio), tone=2))
    server = [
        chart(
            "time-acceptance",
            "Acceptance length, by the server's counters",
            "tokens",
            Line(label="acceptance length", values=told.acceptance_length, tone=0),
        ),
        chart("time-cache", "KV cache", "%", *cache),
        chart("time-power", "GPU power", "W", Line(label="all GPUs", values=told.gpu_power_w, tone=0)),
        chart(
            "time-gpu-use", "GPU use", "%", Line(label="mean", values=in_percent(told.gpu_utilisation_ratio), tone=0)
        ),
        chart(
            "time-gpu-memory",
            "GPU memory",
            "GiB",
            Line(label="all GPUs", values=in_gib(told.gpu_memory_used_bytes), tone=0),
        ),
    ]
    if any(told.preemptions_per_s):
        preempted = Line(label="preempted", values=told.preemptions_per_s, tone=3)
        server.append(chart("time-preemptions", "Preemptions", "requests/s", preempted))
    return client + [one for one in server if one.drawable]


def _per_second(counts: Iterable[float], series: TimeSeries) -> tuple[float, ...]:
    return tuple(count / series.step_s for count in counts)


def in_ms(values: Iterable[float | None]) -> tuple[float | None, ...]:
    """Seconds as milliseconds."""
    return tuple(None if value is None else value * 1e3 for value in values)


def in_percent(ratios: Iterable[float | None]) -> tuple[float | None, ...]:
    """Shares of 0..1 as percent."""
    return tuple(None if ratio is None else ratio * 100 for ratio in ratios)


def in_gib(sizes_bytes: Iterable[float | None]) -> tuple[float | None, ...]:
    """Bytes as GiB."""
    return tuple(None if size is None else size / 2**30 for size in sizes_bytes)


def ladder_charts(sweep: Sweep) -> list[Chart]:
    """Throughput and latency against the level of the ladder, in the order of the levels; equal levels are allowed."""
    levels = sorted(sweep.levels, key=lambda level: level.level)
    x = tuple(level.level for level in levels)
    if not x:
        return []
    marks = [Mark(x=level.level, text="invalid", bad=True) for level in levels if not level.summary.verdict.valid]
    if sweep.knee is not None:
        marks.append(Mark(x=sweep.knee.level, text=f"knee {asked(sweep.knee.level)}"))
    x_label = "concurrency" if sweep.variable == "concurrency" else "requests/s asked for"

    def chart(name: str, title: str, unit: str, *lines: Line, choose_scale: bool = False) -> Chart:
        return Chart(
            id=name,
            title=title,
            kind="level",
            unit=unit,
            x=x,
            lines=tuple(line for line in lines if any(value is not None for value in line.values)),
            x_label=x_label,
            log_x=log_levels(x),
            choose_scale=choose_scale,
            marks=tuple(marks),
            height=230,
        )

    def latency(name: str) -> Chart:
        samples = [getattr(level.summary.latency, name) for level in levels]
        return chart(
            f"ladder-{name}",
            LATENCY_LABELS[name],
            "ms",
            Line(label="p50", values=in_ms(sample.p50 for sample in samples), tone=0),
            Line(label="p95", values=in_ms(sample.p95 for sample in samples), tone=1, dashed=True),
            choose_scale=True,
        )

    throughputs = [level.summary.throughput for level in levels]
    tokens = Line(label="output tokens", values=tuple(t.output_tokens_per_s for t in throughputs), tone=0)
    charts = [chart("ladder-throughput", "Throughput", "tokens/s", tokens)]
    goodputs = tuple(t.goodput_rps for t in throughputs)
    requests = [Line(label="completed", values=tuple(t.requests_per_s for t in throughputs), tone=0)]
    if any(goodput is not None for goodput in goodputs):
        requests.append(Line(label="good", values=goodputs, tone=2, dashed=True))
    charts.append(chart("ladder-requests", "Requests", "requests/s", *requests))
    charts += [latency("ttft_s"), latency("tpot_s"), latency("e2el_s"), _speed_chart(sweep)]
    servers = [level.summary.server for level in levels]

    def acceptance(name: str) -> tuple[float | None, ...]:
        return tuple(
            None if level.summary.speculation is None else getattr(level.summary.speculation, name) for level in levels
        )

    told = [
        chart(
            "ladder-acceptance",
            "Tokens of a step",
            "tokens",
            Line(label="tokens per step", values=acceptance("tokens_per_step"), tone=0),
            Line(
                label="acceptance length",
                values=acceptance("acceptance_length"),
                tone=1,
                dashed=True,
            ),
        ),
        chart(
            "ladder-server",
            "In the server, at most",
            "requests",
            Line(label="running", values=tuple(one.running_requests.peak for one in servers), tone=0),
            Line(label="waiting", values=tuple(one.waiting_requests.peak for one in servers), tone=3, dashed=True),
        ),
        chart(
            "ladder-cache",
            "KV cache, at most",
            "%",
            Line(label="KV cache", values=in_percent(one.kv_used_ratio.peak for one in servers), tone=0),
        ),
    ]
    return charts + [one for one in told if one.drawable]


def _speed_chart(sweep: Sweep) -> Chart:
    """What one user gets against what the server gives in all: 1 / median TPOT over output tokens/s, level by level."""
    points = sorted(
        (tokens, 1 / tpot, level.level, level.summary.verdict.valid)
        for level in sweep.levels
        if (tokens := level.summary.throughput.output_tokens_per_s) is not None
        and (tpot := level.summary.latency.tpot_s.p50)
    )
    marks = [Mark(x=tokens, text="invalid", bad=True) for tokens, _, _, valid in points if not valid]
    if sweep.knee is not None:
        marks.extend(Mark(x=tokens, text="knee") for tokens, _, level, _ in points if level == sweep.knee.level)
    return Chart(
        id="ladder-speed",
        title="Speed for one user",
        kind="plain",
        unit="tokens/s",
        x=tuple(point[0] for point in points),
        lines=(Line(label="1 / median TPOT", values=tuple(point[1] for point in points), tone=5),),
        x_label="output tokens/s in all",
        marks=tuple(marks),
        height=230,
    )
