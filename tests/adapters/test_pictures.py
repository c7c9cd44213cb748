"""Charts as pictures that need no reader of SVG."""

import struct
from dataclasses import replace

from loadgen.adapters.pictures import png_of
from loadgen.report.comparison.charts import speedup_chart
from loadgen.report.svg import chart_svg
from tests.report.comparisons import three_arms


def test_a_chart_becomes_a_picture_with_its_words() -> None:
    """Twice as large as the SVG, for dense screens; another title is another picture, so that words are drawn."""
    chart = speedup_chart(three_arms())
    picture, other = (png_of(chart_svg(each)) for each in (chart, replace(chart, title="Something else")))
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    assert width == 1440
    assert height > 800
    assert picture != other
