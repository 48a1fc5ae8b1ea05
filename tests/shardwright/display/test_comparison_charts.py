"""Two samples in one chart: each is drawn as shares, for any number of values."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shardwright.display.charts import ChartSample, comparison_chart

VALUES = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=40)


def heights(body, style):
    """Heights of a line's steps, 1 for the highest place of the chart."""
    points = re.search(rf'<polyline class="line {style}" points="(.*?)"', body)[1]
    ys = [float(point.split(",")[1]) for point in points.split()][1:-1:2]
    return [(144 - y) / 136 for y in ys]


@given(VALUES, VALUES)
def test_lines_stay_in_the_chart_and_figures_are_those_of_the_values(one, other):
    sides = [ChartSample("<i>one", "s-train", np.array(one)), ChartSample("other", "s-eval", np.array(other))]
    body = comparison_chart("c", "light", sides)
    drawn = [heights(body, style) for style in ("s-train", "s-eval")]
    assert max(map(max, drawn)) > 0.999
    assert min(map(min, drawn)) >= 0
    assert "<i>" not in body
    assert 'id="c-t"' in body


def test_a_larger_sample_of_the_same_is_drawn_alike():
    one = np.arange(50.0)
    body = comparison_chart(
        "c", "light", [ChartSample("a", "s-train", one), ChartSample("b", "s-eval", np.repeat(one, 7))]
    )
    assert heights(body, "s-train") == heights(body, "s-eval")
    row = re.search('<tr><th scope="row">mean</th>(.*?)</tr>', body)[1]
    assert re.findall('<td class="n">(.*?)</td>', row) == ["24.5", "24.5"]


def test_an_empty_sample_is_reported():
    assert "has no values" in comparison_chart(
        "c", "light", [ChartSample("a", "s-train", np.ones(3)), ChartSample("b", "s-eval", np.empty(0))]
    )
