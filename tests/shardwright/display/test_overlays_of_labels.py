"""Pictures of images with several classes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.display.overlays import captioned, class_bars

IMAGE = np.random.default_rng(0).integers(0, 200, (30, 100, 3), dtype=np.uint8)


def test_the_lines_stand_below_the_enlarged_image():
    drawn = captioned(IMAGE, ["truth: a, b", "predicted: none"])
    large = IMAGE.repeat(3, axis=0).repeat(3, axis=1)
    np.testing.assert_array_equal(drawn[:90], large)
    below = drawn[90:]
    assert below.shape == (2 * 14 + 4, 300, 3)
    assert below.min() < 10
    assert not np.array_equal(below, captioned(IMAGE, ["truth: a", "predicted: none"])[90:])


@tries(20)
@given(st.lists(st.text(), min_size=1, max_size=3), st.integers(1, 400))
def test_names_from_strangers_are_cut_to_the_width(names, width):
    image = np.zeros((5, width, 3), np.uint8)
    assert captioned(image, names).shape[1] == width * max(1, -(-240 // width))
    counts = np.arange(len(names))
    assert class_bars(counts, counts, counts, names).ndim == 3


def test_bars_are_as_long_as_their_counts():
    drawn = class_bars([30, 0], [10, 0], [0, 20], ["a", "b"])
    blue, orange, gray = (0, 114, 178), (230, 159, 0), (160, 160, 160)
    lengths = [[int((drawn[top + 10] == color).all(-1).sum()) for color in (blue, orange, gray)] for top in (20, 40)]
    assert lengths == [[165, 55, 0], [0, 0, 110]]
    assert class_bars([0], [0], [0], ["nothing"]).shape[2] == 3
