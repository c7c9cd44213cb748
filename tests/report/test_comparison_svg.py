"""The charts of a comparison as pictures for documents."""

import re
from dataclasses import replace
from xml.etree import ElementTree

from loadgen.core.comparison.assembly import compare
from loadgen.report.comparison import document_charts
from loadgen.report.comparison.charts import load_charts, speedup_chart
from loadgen.report.svg import chart_svg
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder
from tests.report.comparisons import against, explained_arms, hostile_arms, three_arms


def test_charts_go_into_documents() -> None:
    """Well-formed SVG files that hold no script, with every line, its band and its label in them."""
    charts = document_charts(explained_arms())
    assert [chart.id for chart in charts] == [
        "arms-speedup",
        "arms-pareto",
        "arms-positions",
        "arms-tpot",
        "arms-tokens",
        "arms-length-eagle3",
        "arms-length-ngram",
        "arms-time-eagle3",
        "arms-time-ngram",
    ]
    for chart in charts:
        drawn = ElementTree.fromstring(chart_svg(chart))
        texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
        assert {chart.title, chart.x_label, *(line.label for line in chart.lines)} <= set(texts)
        assert not [element for element in drawn.iter() if "script" in element.tag]
        points = [point for group in drawn.iter("{http://www.w3.org/2000/svg}g") for point in group]
        pointed = [line for line in chart.lines if line.shape is not None]
        assert len(points) == sum(value is not None for line in pointed for value in line.values)
        width, height = (float(value) for value in drawn.attrib["viewBox"].split()[2:])
        circles = [point.attrib for point in points if "cx" in point.attrib]
        assert all(0 <= float(circle["cx"]) <= width for circle in circles)
        assert all(0 <= float(circle["cy"]) <= height for circle in circles)
    bands = chart_svg(charts[0]).count("fill-opacity")
    assert bands == sum(line.low is not None for line in charts[0].lines)


def test_hostile_labels_stay_text_in_an_svg(hostile_text: str) -> None:
    """Nothing of them becomes an element."""
    for chart in document_charts(hostile_arms(hostile_text)):
        drawn = ElementTree.fromstring(chart_svg(chart))
        names = {element.tag.rpartition("}")[2] for element in drawn.iter()}
        assert names <= {"svg", "rect", "text", "path", "circle", "clipPath", "g"}


def test_the_ticks_of_a_document_s_chart_are_round() -> None:
    """Also where the axis ends at a limit for bands that go beyond."""
    chart = replace(speedup_chart(three_arms()), top=3.45)
    texts = list(ElementTree.fromstring(chart_svg(chart)).iter("{http://www.w3.org/2000/svg}text"))
    ticks = [each.text for each in texts if each.attrib["text-anchor"] == "end" and each.text != "×"]
    assert ticks == ["0", "1", "2", "3"]


def test_a_band_that_is_cut_off_stays_beside_its_line() -> None:
    """Its ends lie on the limit of the axis: halfway from a narrow interval to an endless one it is half as high."""
    chart = speedup_chart(three_arms())
    line = replace(chart.lines[0], values=(1.0, 1.0, 1.0), low=(0.9, -50.0, 0.9), high=(1.1, 90.0, 1.1))
    drawn = ElementTree.fromstring(chart_svg(replace(chart, lines=(line,), top=2.0)))
    (band,) = [element for element in drawn.iter() if "fill-opacity" in element.attrib]
    heights = [float(corner.split()[1]) for corner in re.split("[MLZ]", band.attrib["d"]) if corner]
    axis = [
        float(found[1])
        for each in drawn.iter()
        if (found := re.match(r"M64 (.+)H", each.attrib.get("d", ""))) is not None
    ]
    assert (min(heights), max(heights)) == (min(axis), max(axis))


def test_one_level_has_its_intervals_drawn() -> None:
    """As bars about its points, since a band needs two."""
    found = against({8: 10}, {8: 20}, spread=0.05)
    comparison = replace(three_arms(), arms=(found,), baseline=replace(three_arms().baseline, levels=found.levels))
    drawn = ElementTree.fromstring(chart_svg(speedup_chart(comparison)))
    (band,) = [element for element in drawn.iter() if "fill-opacity" in element.attrib]
    corners = [tuple(map(float, corner.split())) for corner in re.split("[MLZ]", band.attrib["d"]) if corner]
    assert len({x for x, _ in corners}) == len({y for _, y in corners}) == 2


def test_labels_of_marks_keep_clear_of_lines() -> None:
    """A halo of paper is beneath the letters; the chart's other texts need none."""
    chart = speedup_chart(three_arms())
    texts = list(ElementTree.fromstring(chart_svg(chart)).iter("{http://www.w3.org/2000/svg}text"))
    haloed = [each for each in texts if "paint-order" in each.attrib]
    assert [each.text for each in haloed] == [mark.text for mark in chart.marks]
    assert {(each.attrib["stroke"], each.attrib["paint-order"]) for each in haloed} == {("#ffffff", "stroke")}


def test_two_crossovers_close_together_have_labels_apart() -> None:
    """Each in the colour of its arm, the second beneath the first."""
    chart = speedup_chart(three_arms())
    (mark,) = chart.marks
    assert mark.tone == next(line.tone for line in chart.lines if line.label == "N-gram (k = 7)")
    close = replace(chart, marks=(replace(mark, text="first"), replace(mark, x=mark.x * 1.02, text="second", tone=5)))
    places = {
        element.text: element.attrib
        for element in ElementTree.fromstring(chart_svg(close)).iter("{http://www.w3.org/2000/svg}text")
    }
    assert float(places["second"]["y"]) - float(places["first"]["y"]) >= float(places["second"]["font-size"])
    assert places["first"]["fill"] != places["second"]["fill"]


def test_arms_are_told_apart_without_colour() -> None:
    """Every one of eight has a shape of points of its own; the baseline has none, nor has any arm its colour."""
    arms = tuple(replace(EAGLE, name=f"arm-{place}", label=f"arm {place}") for place in range(8))
    runs = {BASELINE: ladder(BASELINE, {1: 20.0, 8: 22.0})} | {
        arm: ladder(arm, {1: 10.0 + place, 8: 15.0 + place}) for place, arm in enumerate(arms)
    }
    lines = load_charts(compare("x", "concurrency", runs, baseline=BASELINE, expected={}))[0].lines
    assert [line.shape for line in lines] == [None, *range(8)]
    assert lines[0].tone not in {line.tone for line in lines[1:]}
    drawn = chart_svg(load_charts(compare("x", "concurrency", runs, baseline=BASELINE, expected={}))[0])
    shapes = set()
    for point in re.findall(r"<g><(?:path|circle) (.*?)/>", drawn):
        corners = [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", point)]
        shapes.add(tuple((round(x - corners[0][0], 1), round(y - corners[0][1], 1)) for x, y in corners))
    assert len(shapes) == 8
    lone = compare("x", "concurrency", {BASELINE: ladder(BASELINE, {8: 22.0})}, baseline=BASELINE, expected={})
    assert chart_svg(load_charts(lone)[0]).count("<circle") == 1
