"""What the page draws of acceptance."""

import math
from collections import Counter

from loadgen.core.metrics.summary import Speculation
from loadgen.report.charts import Chart, Line, in_ms, in_percent
from loadgen.report.speculation import view_with_positions

REQUEST_BIN_TOKENS = 0.1
"""Width of a bar in the histogram of requests by tokens per step."""


def speculation_charts(found: Speculation) -> list[Chart]:
    """Acceptance by draft token and along an answer, requests by tokens per step, and TPOT against it."""
    charts = [_positions_chart(found), _output_chart(found), _requests_chart(found), _tpot_chart(found)]
    return [chart for chart in charts if chart.drawable]


def _positions_chart(found: Speculation) -> Chart:
    """By draft token; nothing to draw where none was accepted."""
    view = view_with_positions(found)
    shares = () if view is None or view.by_position is None or not any(view.by_position) else view.by_position
    conditional = () if view is None or not shares else view.conditional_by_position
    lines = [Line(label="accepted", values=in_percent(shares), tone=0)]
    if conditional:
        lines.append(Line(label="conditional", values=in_percent(conditional), tone=1))
    return Chart(
        id="accepted-positions",
        title="Acceptance by draft token",
        kind="bars",
        unit="%",
        x=tuple(float(place) for place in range(1, len(shares) + 1)),
        lines=tuple(lines),
        x_label="draft token",
        height=230,
    )


def _output_chart(found: Speculation) -> Chart:
    bins = found.by_output_position
    return Chart(
        id="output-positions",
        title="Along an answer",
        kind="level",
        unit="tokens per step",
        x=tuple(float(one.last) for one in bins),
        lines=(
            Line(
                label="tokens per step, 95% interval",
                values=tuple(one.tokens_per_step for one in bins),
                low=tuple(one.low for one in bins),
                high=tuple(one.high for one in bins),
                tone=0,
            ),
        ),
        x_label="output token at which a step began, up to",
        log_x=len(bins) > 1,
        height=230,
    )


def _requests_chart(found: Speculation) -> Chart:
    """A histogram of requests from the points of the scatter plot, which stand evenly for all."""
    values = (
        [] if found.tpot_by_acceptance is None else [one.tokens_per_step for one in found.tpot_by_acceptance.points]
    )
    bins = Counter(math.floor(value / REQUEST_BIN_TOKENS) for value in values)
    places = range(min(bins), max(bins) + 1) if bins else range(0)
    return Chart(
        id="requests-tokens-per-step",
        title="Requests by tokens per step",
        kind="bars",
        unit="% of requests",
        x=tuple(round((place + 0.5) * REQUEST_BIN_TOKENS, 6) for place in places),
        lines=(Line(label="share", values=in_percent(bins[place] / len(values) for place in places), tone=0),),
        x_label="tokens per step",
        height=230,
    )


def _tpot_chart(found: Speculation) -> Chart:
    points = () if found.tpot_by_acceptance is None else found.tpot_by_acceptance.points
    return Chart(
        id="tpot-tokens-per-step",
        title="TPOT by tokens per step",
        kind="scatter",
        unit="ms",
        x=tuple(point.tokens_per_step for point in points),
        lines=(Line(label="a request", values=in_ms(point.tpot_s for point in points), tone=5),),
        x_label="tokens per step",
        height=230,
    )
