"""Shapes of annotation tools as pixels, compared with what NumPy draws by the definition of each."""

import base64
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from shardwright.masks.coco_segmentation import mask_text
from shardwright.masks.drawn import DrawnMasks
from shardwright.masks.rle import RleError, draw

HEIGHT, WIDTH = 17, 23
SIDES = st.floats(-30, 50)


def pixels(shape, height=HEIGHT, width=WIDTH, size=None, clip=False):
    runs = DrawnMasks(clip=clip).parse(mask_text(size, json.dumps(shape)), height=height, width=width)
    # Sorted, apart and of positive length, as all runs are.
    assert (runs[:, 1] > 0).all()
    assert (runs[1:, 0] > runs[:-1].sum(axis=1)).all()
    return draw(runs, height, width)


@given(SIDES, SIDES, st.floats(0.1, 40), st.floats(0.1, 40), st.floats(-720, 720))
def test_an_ellipse_has_the_pixels_whose_center_is_in_it(x, y, rx, ry, degrees):
    rows, columns = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    along = ((columns - x) * cos + (rows - y) * sin) / rx
    across = ((rows - y) * cos - (columns - x) * sin) / ry
    distance = along**2 + across**2
    drawn = pixels({"ellipse": [x, y, rx, ry, degrees]}, clip=True)
    # A center that is on the outline to the last digits may be in it or not.
    clear = abs(distance - 1) > 1e-6
    np.testing.assert_array_equal(drawn[clear], (distance < 1)[clear])


@given(st.integers(0, 2**32 - 1), st.integers(1, HEIGHT), st.integers(1, WIDTH))
def test_counts_within_a_box_go_row_by_row_from_pixels_that_are_off(seed, rows, columns):
    random = np.random.default_rng(seed)
    part = random.integers(0, 2, (rows, columns), dtype=np.uint8)
    left, top = int(random.integers(0, WIDTH - columns + 1)), int(random.integers(0, HEIGHT - rows + 1))
    counts, value = [0], 0
    for pixel in part.reshape(-1).tolist():
        if pixel != value:
            counts.append(0)
            value = pixel
        counts[-1] += 1
    whole = np.zeros((HEIGHT, WIDTH), np.uint8)
    whole[top : top + rows, left : left + columns] = part
    np.testing.assert_array_equal(pixels({"rows": counts, "box": [left, top, columns, rows]}), whole)


def test_a_png_is_placed_where_it_belongs():
    part = np.array([[0, 1, 1], [1, 0, 0]], np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(part).save(buffer, "png")
    whole = np.zeros((HEIGHT, WIDTH), np.uint8)
    whole[5:7, 9:12] = part
    shape = {"png": base64.b64encode(buffer.getvalue()).decode(), "at": [9, 5]}
    np.testing.assert_array_equal(pixels(shape), whole)


def test_fractions_grow_with_the_image():
    shape = {"fractions": [[0.25, 0.5, 0.75, 0.5, 0.75, 1, 0.25, 1]]}
    for height, width in ((8, 8), (16, 40)):
        drawn = np.zeros((height, width), np.uint8)
        drawn[height // 2 :, width // 4 : 3 * width // 4] = 1
        np.testing.assert_array_equal(pixels(shape, height, width), drawn)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"ellipse": [1, 1, 0, 3, 0]}, "has no area"),
        ({"rows": [3], "box": [0, 0, 2, 2]}, "hold 3 pixels"),
        ({"rows": [5, -1], "box": [0, 0, 2, 2]}, "hold 4 pixels"),
        ({"rows": [4], "box": [WIDTH - 1, 0, 2, 2]}, "is not within the image"),
        ({"rows": [0], "box": [0, 0, 0, 0]}, "is not within the image"),
        ({"png": "AAAA", "at": [0, 0]}, "PNG"),
        ({"brush": []}, "has 0 values"),
        ({"brush": [0, 0, 0, 4, 56, 18, 48]}, "has 4 values"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(shape, message):
    with pytest.raises(RleError, match=message):
        pixels(shape)


def test_a_brush_stroke_that_ends_early_is_refused():
    words = 4 * HEIGHT * WIDTH
    head = f"{words:032b}{7:05b}{2:04b}{3:04b}{7:04b}{15:04b}"
    for rest in ("", "1", "100000", "0" + "11" + f"{99:016b}" + "1" * 8):
        bits = head + rest
        bits += "0" * (-len(bits) % 8)
        data = [int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)]
        with pytest.raises(RleError, match="ends after|is broken after"):
            pixels({"brush": data})
