"""What the charts of a comparison hold."""

import re
from dataclasses import replace

import pytest

from loadgen.core.comparison.arms import ArmsComparison
from loadgen.core.comparison.assembly import compare
from loadgen.report.comparison import comparison_html
from loadgen.report.comparison.charts import length_charts, load_charts, pareto_chart, speedup_chart, time_charts
from loadgen.report.svg import chart_svg
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder
from tests.report.comparisons import explained_arms, three_arms


def test_the_speedup_is_drawn_with_its_interval_and_where_it_ends(comparison: ArmsComparison) -> None:
    """A line with a band for each arm, what was expected of it dashed, the line at 1, a mark at each crossover."""
    chart = speedup_chart(comparison)
    assert [line.label for line in chart.lines] == [
        "EAGLE-3 (k = 3)",
        "EAGLE-3 (k = 3), expected",
        "N-gram (k = 7)",
        "Suffix (k = 7)",
        "no gain",
    ]
    for line in chart.lines:
        assert (line.low is None) == (line.high is None) == (line.label in ("EAGLE-3 (k = 3), expected", "no gain"))
        if line.low is not None and line.high is not None:
            assert all(low < value < high for low, value, high in zip(line.low, line.values, line.high, strict=True))
    assert chart.lines[-1].values == (1.0, 1.0, 1.0)
    (mark,) = chart.marks
    assert 4 < mark.x < 16
    assert mark.text == f"{mark.x:.0f}"
    assert chart.log_x


def test_steps_are_drawn_beside_what_they_have_to_emit(comparison: ArmsComparison) -> None:
    """A chart an arm; an arm whose steps are not known has none to draw."""
    charts = length_charts(comparison)
    assert [chart.title for chart in charts] == [ladder.arm.label for ladder in comparison.arms]
    assert [chart.drawable for chart in charts] == [True, True, False]
    emits, needs, expected = charts[0].lines
    assert emits.values == (3.0, 3.0, 3.0)
    assert needs.values == pytest.approx((3 * 9 / 20, 3 * 11 / 22, 3 * 20 / 30), rel=0.02)
    assert expected.values == (1.3, 1.5, 2.1)


def test_load_is_drawn_with_the_baseline(comparison: ArmsComparison) -> None:
    """TPOT in ms, the baseline first and in the colour of what is nobody's."""
    tpot, tokens = load_charts(comparison)
    assert tpot.lines[0].label == "Baseline"
    assert tpot.lines[0].values == pytest.approx((20, 22, 30), rel=0.02)
    assert len({line.tone for line in tpot.lines}) == 4
    assert tokens.drawable


def test_the_noise_floor_is_drawn_around_no_gain() -> None:
    """As a band, which never makes the chart higher than the arms do."""
    comparison = explained_arms()
    *arms, line = speedup_chart(comparison).lines
    assert line.low is not None
    assert line.high is not None
    assert all(low is not None and 0.9 < low < 1 for low in line.low)
    assert all(high is not None and 1 < high < 1.1 for high in line.high)
    assert comparison.again is not None
    first, *others = comparison.again.levels
    assert first.gain is not None
    wild = replace(first.gain.verdict, speedup=replace(first.gain.verdict.speedup, high=90.0))
    again = replace(comparison.again, levels=(replace(first, gain=replace(first.gain, verdict=wild)), *others))
    chart = speedup_chart(replace(comparison, again=again))
    assert chart.lines[-1].high is not None
    assert chart.lines[-1].high[0] == 90.0
    assert chart.top == 1.5 * max(value for arm in arms for value in arm.values if value is not None)
    assert "↑ 90.0" in chart_svg(chart)


def test_the_time_of_requests_is_stacked() -> None:
    """Shares of a request's time, a chart for each server that tells them: each lies on the one beneath, from decode up
    to the whole, and is drawn at its upper end."""
    baseline, *told = time_charts(explained_arms())
    assert [chart.title for chart in told] == [
        "EAGLE-3 (k = 3): time in the server",
        "N-gram (k = 7): time in the server",
    ]
    assert not baseline.drawable
    queue, prefill, decode = told[0].lines
    assert [line.label for line in told[0].lines] == ["queue", "prefill", "decode"]
    assert [line.values[0] for line in told[0].lines] == pytest.approx([2.0, 8.0, 90.0])
    assert (decode.low, prefill.low, queue.low) == ((0.0,) * 3, decode.high, prefill.high)
    assert queue.high == pytest.approx((100.0,) * 3)
    drawn = chart_svg(replace(told[0], lines=(queue,)))
    (line,) = re.findall(r'd="M([^"Z]+)" fill="none"', drawn)
    axis = [float(y) for y in re.findall(r'd="M64 ([\d.]+)H', drawn)]
    assert {float(point.split()[1]) for point in line.split("L")} == {min(axis)}
    assert not any(chart.drawable for chart in time_charts(three_arms()))
    assert "time in the server" in comparison_html(explained_arms())
    assert "time in the server" not in comparison_html(three_arms())


def test_time_that_is_nothing_or_not_told_is_not_stacked() -> None:
    """Without a queue there is no such area; a level at which the server told nothing has no ends."""
    comparison = explained_arms()
    first, second, third = (
        replace(level, told=replace(level.told, queue_ratio=0.0)) for level in comparison.arms[0].levels
    )
    silent = replace(second, told=replace(second.told, queue_ratio=None, prefill_ratio=None, decode_ratio=None))
    arm = replace(comparison.arms[0], levels=(first, silent, third))
    (chart,) = time_charts(replace(comparison, arms=(arm,)))[1:]
    assert [line.label for line in chart.lines] == ["prefill", "decode"]
    for line in chart.lines:
        for ends in (line.values, line.low, line.high):
            assert ends is not None
            assert [end is None for end in ends] == [False, True, False]


def test_users_and_servers_are_drawn_against_each_other() -> None:
    """A line an arm, each point a level: tokens a second for one user over tokens a second in all."""
    comparison = explained_arms()
    chart = pareto_chart(comparison)
    assert [line.label for line in chart.lines] == ["Baseline", "EAGLE-3 (k = 3)", "N-gram (k = 7)", "Baseline again"]
    assert list(chart.x) == sorted(chart.x)
    for line in chart.lines:
        assert sum(value is not None for value in line.values) == 3
    assert max(value for value in chart.lines[1].values if value is not None) == pytest.approx(1000 / 9, rel=0.01)


def test_users_are_drawn_against_each_gpu_where_every_arm_says_how_many_it_has() -> None:
    """An arm on twice as many GPUs gives half as much for each of the same; without its number servers are drawn."""
    runs = {replace(arm, gpus=gpus): ladder(arm, {1: 20.0, 4: 22.0}) for arm, gpus in ((BASELINE, 2), (EAGLE, 4))}
    baseline, eagle = runs
    found = compare("x", "concurrency", runs, baseline=baseline, expected={})
    chart = pareto_chart(found)
    assert (chart.title, chart.x_label) == (
        "Speed for one user, against all that a GPU gives",
        "output tokens/s per GPU",
    )
    rates = [level.output_tokens_per_s for arm in (found.baseline, *found.arms) for level in arm.levels]
    assert list(chart.x) == sorted([rates[0] / 2, rates[1] / 2, rates[2] / 4, rates[3] / 4])
    unknown = pareto_chart(replace(found, arms=(replace(found.arms[0], arm=replace(eagle, gpus=None)),)))
    assert (unknown.title, unknown.x_label) == (
        "Speed for one user, against all that a server gives",
        "output tokens/s per server",
    )
    assert list(unknown.x) == sorted(rates)
