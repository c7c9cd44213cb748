"""What the page draws, as columns."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.metrics.summary import (
    Analysis,
    QuantileCurve,
    RequestPoint,
    Speculation,
    Summary,
    Sweep,
    TimeSeries,
    TpotByAcceptance,
)
from loadgen.core.run import Load, LoadMode
from loadgen.report.charts import Chart, ladder_charts, quantile_chart, time_charts
from loadgen.report.speculation_charts import speculation_charts


def well_formed(chart: Chart) -> bool:
    """As many values as places, places in order, nothing that JSON cannot hold."""
    finite = all(value is None or math.isfinite(value) for line in chart.lines for value in line.values) and all(
        map(math.isfinite, chart.x)
    )
    return finite and list(chart.x) == sorted(chart.x) and all(len(line.values) == len(chart.x) for line in chart.lines)


def with_curve(analysis: Analysis, points: list[tuple[float, float]]) -> Chart:
    """The quantile chart of one curve."""
    curve = QuantileCurve(p=tuple(p for p, _ in points), value_s=tuple(value for _, value in points))
    return quantile_chart(replace(analysis, curves={"ttft_s": curve}))


def test_percentiles_lie_where_the_tail_is_stretched(analysis: Analysis) -> None:
    """p90 is at 1, p99 at 2, values are milliseconds."""
    chart = with_curve(analysis, [(0.0, 0.01), (0.9, 0.05), (0.99, 0.2), (1.0, 0.9)])
    assert chart.x == pytest.approx((0.0, 1.0, 2.0))
    assert chart.lines[0].values == pytest.approx((10.0, 50.0, 200.0))


@pytest.mark.parametrize(
    "points",
    [
        [(1.0, 0.347)],
        [(0.0, 0.1), (1.0, 0.1)],
        [(0.0, 0.1), (0.5, 0.1), (0.5, 0.1), (1.0, 0.1)],
        [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0)],
    ],
)
def test_few_or_equal_values_are_drawn(analysis: Analysis, points: list[tuple[float, float]]) -> None:
    """One, two or three equal samples make a chart, not an error."""
    chart = with_curve(analysis, points)
    assert well_formed(chart)
    assert chart.drawable


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e4)), max_size=30))
def test_any_ascending_curve_is_well_formed(points: list[tuple[float, float]]) -> None:
    """Whatever the shares, places come out in order and aligned."""
    shares, values = sorted(p for p, _ in points), sorted(value for _, value in points)
    curve = QuantileCurve(p=tuple(shares), value_s=tuple(values))
    empty = Analysis(summary=None, curves={"e2el_s": curve, "tpot_s": curve}, failures=())  # type: ignore[arg-type]
    chart = quantile_chart(empty)
    assert well_formed(chart)
    assert chart.drawable == bool(points)


def test_from_due_shares_the_colour_and_is_dashed(analysis: Analysis) -> None:
    """The same metric in both forms is recognisable as such."""
    lines = {line.label: line for line in quantile_chart(analysis).lines}
    assert lines["TTFT"].tone == lines["TTFT from due"].tone
    assert lines["TTFT from due"].dashed
    assert not lines["TTFT"].dashed


def test_time_charts_share_one_axis(analysis: Analysis) -> None:
    """Every panel has the same places and the measured window behind it; counts become rates."""
    summary = analysis.summary
    step = replace(summary.time_series, step_s=2.0)
    charts = time_charts(replace(summary, time_series=step))
    assert all(well_formed(chart) for chart in charts)
    assert len({chart.x for chart in charts}) == 1
    assert {chart.band for chart in charts} == {(2.0, 52.0)}
    sent = next(line for line in charts[0].lines if line.label == "sent")
    assert sent.values[10] == step.sent[10] / 2.0
    assert charts[3].lines[0].values[0] is None


def test_a_closed_loop_offers_nothing(analysis: Analysis) -> None:
    """Without planned instants there is no offered line."""
    closed = replace(analysis.summary, load=Load(mode=LoadMode.CONCURRENCY, concurrency=8))
    assert "offered" not in [line.label for line in time_charts(closed)[0].lines]
    assert "offered" in [line.label for line in time_charts(analysis.summary)[0].lines]


def test_no_series_no_charts(hostile: Analysis, analysis: Analysis) -> None:
    """A run without a series, or with one of no bins, has no panels."""
    assert time_charts(hostile.summary) == []
    none = TimeSeries(start_s=0.0, step_s=1.0, **dict.fromkeys(TimeSeries.__slots__[2:], ()))
    summary: Summary = replace(analysis.summary, time_series=none)
    assert time_charts(summary) == []


def test_a_ladder_has_a_point_a_level(sweep: Sweep) -> None:
    """Levels in order, the knee and the invalid level marked, a log axis when levels span a lot."""
    charts = {chart.id: chart for chart in ladder_charts(sweep)}
    assert all(map(well_formed, charts.values()))
    tokens = charts["ladder-throughput"]
    assert tokens.x == (1, 2, 4, 8, 16, 32, 64)
    assert tokens.log_x
    assert [(mark.x, mark.bad) for mark in tokens.marks] == [(64, True), (16, False)]
    assert set(charts) == {
        "ladder-throughput",
        "ladder-requests",
        "ladder-ttft_s",
        "ladder-tpot_s",
        "ladder-e2el_s",
        "ladder-speed",
        "ladder-acceptance",
        "ladder-server",
        "ladder-cache",
    }


def test_a_ladder_without_drafts_or_a_scraped_server_has_no_such_charts(sweep: Sweep) -> None:
    """A baseline that was not scraped gets no empty panels."""
    ids = {chart.id for chart in ladder_charts(replace(sweep, levels=sweep.levels[:1]))}
    assert "ladder-throughput" in ids
    assert not {"ladder-acceptance", "ladder-server", "ladder-cache"} & ids


def test_the_server_is_drawn_over_the_client_s_own_axis(analysis: Analysis) -> None:
    """Running, waiting and generated tokens stand in the client's charts; a reading that failed is a gap."""
    charts = {chart.id: chart for chart in time_charts(analysis.summary)}
    assert all(map(well_formed, charts.values()))
    assert len({chart.x for chart in charts.values()}) == 1
    assert [line.label for line in charts["time-concurrency"].lines] == [
        "in flight",
        "server running",
        "server waiting",
    ]
    running = charts["time-concurrency"].lines[1].values
    assert (running[29], running[30]) == (pytest.approx(7.6), None)
    assert {"time-acceptance", "time-cache", "time-power", "time-preemptions"} <= set(charts)
    assert charts["time-cache"].lines[0].values[20] == pytest.approx(40.0)
    assert [line.label for line in charts["time-cache"].lines] == ["used", "fullest process", "prefix hits"]


def test_the_cache_of_one_process_is_one_line(analysis: Analysis) -> None:
    """Where mean and fullest are the same, and nothing was found in the prefix cache, there is one line to read."""
    told = analysis.summary.server_series
    assert told is not None
    nothing = tuple(0.0 for _ in told.prefix_hit_ratio)
    single = replace(told, kv_used_max_ratio=told.kv_used_mean_ratio, prefix_hit_ratio=nothing)
    charts = {chart.id: chart for chart in time_charts(replace(analysis.summary, server_series=single))}
    assert [line.label for line in charts["time-cache"].lines] == ["used"]


def test_what_the_server_does_not_tell_has_no_chart(analysis: Analysis) -> None:
    """Engines without a KV gauge, GPUs or preemptions leave no empty panels."""
    told = analysis.summary.server_series
    assert told is not None
    nothing = (None,) * len(told.running_requests)
    silent = replace(
        told,
        kv_used_mean_ratio=nothing,
        kv_used_max_ratio=nothing,
        prefix_hit_ratio=nothing,
        acceptance_length=nothing,
        gpu_power_w=nothing,
        gpu_utilisation_ratio=nothing,
        gpu_memory_used_bytes=nothing,
        preemptions_per_s=tuple(0.0 for _ in nothing),
    )
    ids = {chart.id for chart in time_charts(replace(analysis.summary, server_series=silent))}
    assert ids == {"time-requests", "time-tokens", "time-concurrency", "time-ttft", "time-tpot"}


def test_acceptance_is_drawn_from_what_there_is(analysis: Analysis) -> None:
    """Bars by draft token in percent, the line along an answer with its band, each request as a point."""
    found = analysis.summary.speculation
    assert found is not None
    charts = {chart.id: chart for chart in speculation_charts(found)}
    assert all(map(well_formed, charts.values()))
    positions = charts["accepted-positions"]
    assert [line.values for line in positions.lines] == [
        pytest.approx((71.0, 46.0, 27.0)),
        pytest.approx((71.0, 64.8, 58.7)),
    ]
    along = charts["output-positions"]
    assert (along.x, along.lines[0].low, along.lines[0].high) == ((8.0, 16.0), (2.15, None), (2.25, None))
    scatter = charts["tpot-tokens-per-step"]
    assert (scatter.x, scatter.lines[0].values) == ((1.2, 3.9), pytest.approx((16.2, 5.1)))
    assert speculation_charts(Speculation(origin="counters")) == []


@given(st.lists(st.floats(min_value=1, max_value=9), min_size=1, max_size=30))
def test_every_request_is_in_one_bar(tokens: list[float]) -> None:
    """The bars of the histogram add up to all requests, each in the bar that holds its value."""
    points = tuple(RequestPoint(tokens_per_step=each, tpot_s=0.01) for each in sorted(tokens))
    found = Speculation(
        origin="stream",
        tpot_by_acceptance=TpotByAcceptance(n=len(points), slope=None, correlation=None, points=points),
    )
    bars = next(chart for chart in speculation_charts(found) if chart.id == "requests-tokens-per-step")
    shares = bars.lines[0].values
    assert sum(share or 0.0 for share in shares) == pytest.approx(100)
    assert shares[0]
    assert shares[-1]
    assert abs(bars.x[0] - min(tokens)) <= 0.05 + 1e-6
    assert abs(bars.x[-1] - max(tokens)) <= 0.05 + 1e-6


def test_levels_out_of_order_and_twice(sweep: Sweep, hostile_sweep: Sweep, empty_sweep: Sweep) -> None:
    """Equal levels, levels run in falling order and levels without a value are drawn as they are."""
    for odd in (hostile_sweep, replace(sweep, levels=(*reversed(sweep.levels), sweep.levels[0]))):
        assert all(map(well_formed, ladder_charts(odd)))
    assert ladder_charts(hostile_sweep)[0].lines[0].values[0] is None
    assert ladder_charts(empty_sweep) == []


def test_a_line_without_values_is_left_out(analysis: Analysis) -> None:
    """Bins too small for a p95 leave no empty entry in the legend."""
    series = replace(analysis.summary.time_series, ttft_p95_s=(None,) * len(analysis.summary.time_series.sent))
    ttft = next(
        chart for chart in time_charts(replace(analysis.summary, time_series=series)) if chart.id == "time-ttft"
    )
    assert [line.label for line in ttft.lines] == ["p50"]


def test_a_percentile_that_no_level_of_a_ladder_has_is_no_line(sweep: Sweep) -> None:
    """Nor an entry of the legend."""
    levels = []
    for level in sweep.levels:
        latency = level.summary.latency
        few = replace(latency, ttft_s=replace(latency.ttft_s, p95=None))
        levels.append(replace(level, summary=replace(level.summary, latency=few)))
    charts = {chart.id: chart for chart in ladder_charts(replace(sweep, levels=tuple(levels)))}
    assert [line.label for line in charts["ladder-ttft_s"].lines] == ["p50"]
    assert [line.label for line in charts["ladder-tpot_s"].lines] == ["p50", "p95"]
