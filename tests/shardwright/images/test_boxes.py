"""Boxes: normalised, checked, cut at the border, and moved as the pixels are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import AnnotationError
from shardwright.images import boxes
from shardwright.images.boxes import Box, box_features, box_values, move_boxes
from shardwright.images.geometry import POLICIES, plan_geometry
from shardwright.masks import rle

sides = st.integers(1, 60)


def values(box, height=20, width=40, **more):
    return box_values(Box(*box), height=height, width=width, label=2, text="cat", **more)


def test_names_and_units_are_those_of_the_object_detection_api():
    found = values((10, 5, 30, 20), flags={"difficult": 1, "truncated": 0})
    assert found == {
        "image/object/bbox/xmin": [0.25],
        "image/object/bbox/ymin": [0.25],
        "image/object/bbox/xmax": [0.75],
        "image/object/bbox/ymax": [1.0],
        "image/object/class/label": [3],
        "image/object/class/text": ["cat"],
        "image/object/difficult": [1],
        "image/object/truncated": [0],
    }
    kinds = box_features(("difficult", "truncated"))
    assert set(kinds) == set(found)
    assert (kinds[boxes.XMIN], kinds[boxes.LABEL], kinds[boxes.TEXT]) == ("float32", "int64", "bytes")


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ((3, 3, 3, 9), "has no area"),
        ((9, 3, 3, 9), "has no area"),
        ((40, 0, 41, 9), "is outside of the image, 20x40"),
        ((-1, 0, 0, 9), "is outside"),
        ((float("nan"), 0, 1, 1), "xmin is 'nan'"),
        ((0, 0, float("inf"), 1), "xmax is 'inf'"),
        ((0, 1e300, 1, 1), "ymin is '1e\\+300'"),
        ((0, True, 1, 9), "ymin is 'True'"),
        ((0, "5", 1, 9), "ymin is '5'"),
    ],
)
def test_invalid_boxes_are_refused_with_their_values(box, message):
    with pytest.raises(AnnotationError, match=message):
        values(box)


def test_an_image_without_pixels_has_no_box():
    with pytest.raises(AnnotationError, match="0x5"):
        values((0, 0, 1, 1), height=0, width=5)


@given(sides, sides, st.lists(st.integers(-80, 80), min_size=4, max_size=4, unique=True), st.booleans())
def test_a_box_is_cut_at_the_border_or_refused_beyond_it(height, width, numbers, clip):
    (xmin, xmax), (ymin, ymax) = sorted(numbers[:2]), sorted(numbers[2:])
    box = (xmin, ymin, xmax, ymax)
    inside = xmin < width and xmax > 0 and ymin < height and ymax > 0
    near = max(-xmin, -ymin, xmax - width, ymax - height) <= 1
    if not (inside and (near or clip)):
        with pytest.raises(AnnotationError, match=f"{height}x{width}") as caught:
            values(box, height, width, clip=clip)
        assert caught.value.code == ("bad_box" if near or clip else "beyond_image")
        return
    found = values(box, height, width, clip=clip)
    assert found[boxes.XMIN][0] * width == pytest.approx(max(xmin, 0))
    assert found[boxes.YMAX][0] * height == pytest.approx(min(ymax, height))


@pytest.mark.parametrize(("beyond", "refused"), [(5, False), (5.1, True)])
def test_the_tolerance_grows_with_the_side(beyond, refused):
    if refused:
        with pytest.raises(AnnotationError, match="input.labels.beyond_image: clip"):
            values((0, 0, 1000 + beyond, 9), 10, 1000)
    else:
        assert values((0, 0, 1000 + beyond, 9), 10, 1000)[boxes.XMAX] == [1.0]


def test_a_box_that_fits_the_turned_image_is_told_so():
    with pytest.raises(AnnotationError, match="it fits the image turned by 90 degrees .input.labels.orientation"):
        values((0, 0, 18, 38), 20, 40)


@st.composite
def boxed_images(draw):
    height, width = draw(sides), draw(sides)
    found = []
    for _ in range(draw(st.integers(0, 4))):
        top, left = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
        found.append((left, top, draw(st.integers(left + 1, width)), draw(st.integers(top + 1, height))))
    return height, width, found


@given(boxed_images(), st.sampled_from(POLICIES), sides, sides)
def test_boxes_go_where_the_pixels_in_them_go(image, policy, height, width):
    source_height, source_width, found = image
    plan = plan_geometry(policy, source_height, source_width, height, width)
    rows = [values(box, source_height, source_width, flags={"is_crowd": i}) for i, box in enumerate(found)]
    lists = {name: [value for row in rows for value in row[name]] for name in box_features(("is_crowd",))}
    lists = {
        name: [v.encode() for v in column] if name == boxes.TEXT else np.array(column) for name, column in lists.items()
    }
    moved = move_boxes(lists, plan)
    assert {len(column) for column in moved.values()} == {len(moved[boxes.XMIN])}
    kept = list(moved["image/object/is_crowd"])
    assert kept == sorted(kept)
    for number, (left, top, right, bottom) in enumerate(found):
        mask = np.zeros((source_height, source_width), bool)
        mask[top:bottom, left:right] = True
        drawn = rle.draw(rle.resample(rle.encode(mask), plan), height, width)
        if number not in kept:
            assert not drawn.any()
            continue
        i = kept.index(number)
        edges = (
            moved[name][i] * side for name, side in zip(boxes_in_order, (width, width, height, height), strict=True)
        )
        xmin, xmax, ymin, ymax = edges
        # Exactly the pixels whose centers are in the moved box, except for centers on its edge.
        ys, xs = np.nonzero(drawn)
        assert len(ys) == 0 or (xmin - 1e-3 <= xs.min() + 0.5 and xs.max() + 0.5 <= xmax + 1e-3)
        assert len(ys) == 0 or (ymin - 1e-3 <= ys.min() + 0.5 and ys.max() + 0.5 <= ymax + 1e-3)
        assert 0 <= xmin < xmax <= width * (1 + 1e-6)
        assert 0 <= ymin < ymax <= height * (1 + 1e-6)


boxes_in_order = (boxes.XMIN, boxes.XMAX, boxes.YMIN, boxes.YMAX)


def test_stretching_leaves_every_digit():
    lists = {boxes.XMIN: np.array([1 / 3], np.float32)}
    assert move_boxes(lists, plan_geometry("stretch", 7, 11, 30, 20)) == lists
