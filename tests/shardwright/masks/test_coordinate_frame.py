"""Annotations reach the stored pixels from either frame, turned and resized as the pixels are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from picturing import DISPLAYED

from shardwright.images import boxes, geometry
from shardwright.masks import rle
from shardwright.masks.coordinate_frame import CoordinateFrame

sides = st.integers(1, 20)


@given(
    sides,
    sides,
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, *geometry.POLICIES]),
    sides,
    sides,
)
def test_masks_of_either_frame_come_to_lie_where_the_pixels_are(
    height, width, orientation, turned, displayed, policy, new_height, new_width
):
    mask = np.random.default_rng([height, width]).random((height, width)) < 0.5
    shown = DISPLAYED[orientation](mask)
    stored = shown if turned else mask
    plan = None if policy is None else geometry.plan_geometry(policy, *stored.shape, new_height, new_width)
    frames = CoordinateFrame(height, width, orientation, turned, plan)
    annotated = shown if displayed else mask
    assert frames.size(displayed) == annotated.shape
    expected = stored
    if plan is not None:
        rows, columns = geometry.source_rows(plan), geometry.source_columns(plan)
        expected = stored[np.ix_(rows.clip(0), columns.clip(0))] & (rows >= 0)[:, None] & (columns >= 0)
    found = frames.move_runs(rle.encode(annotated), displayed)
    np.testing.assert_array_equal(found, rle.encode(expected))


@pytest.mark.parametrize(
    ("orientation", "frame", "size", "displayed"),
    [
        (1, "auto", None, False),
        (1, "displayed", (10, 20), False),  # An upright image has one frame.
        (6, "auto", None, True),
        (6, "auto", (10, 20), False),
        (6, "auto", (20, 10), True),
        (6, "auto", (3, 3), True),
        (3, "auto", (10, 20), True),  # Both have this size, so it decides nothing.
        (6, "stored", (20, 10), False),
        (6, "displayed", (10, 20), True),
    ],
)
def test_the_frame_follows_from_the_masks_size_else_it_is_the_displayed_one(orientation, frame, size, displayed):
    assert CoordinateFrame(10, 20, orientation).is_displayed(frame, size) is displayed


def test_a_square_mask_is_in_the_displayed_frame():
    assert CoordinateFrame(10, 10, 6).is_displayed("auto", (10, 10))


def test_boxes_move_with_the_pixels():
    lists = {boxes.XMIN: [0.0], boxes.XMAX: [0.25], boxes.YMIN: [0.5], boxes.YMAX: [1.0], boxes.LABEL: [2]}
    upright = CoordinateFrame(20, 40, 1)
    assert not upright.moves_boxes
    assert upright.move_boxes(lists, displayed=False) == lists
    turned = CoordinateFrame(20, 40, 6, turned=True).move_boxes(lists, displayed=False)
    edges = [turned[name][0] for name in (boxes.XMIN, boxes.XMAX, boxes.YMIN, boxes.YMAX)]
    assert edges == [0.0, 0.5, 0.0, 0.25]
    back = CoordinateFrame(20, 40, 6).move_boxes(turned, displayed=True)
    assert {name: list(values) for name, values in back.items()} == lists
    cropped = CoordinateFrame(20, 40, 1, geometry=geometry.plan_geometry("fill_crop", 20, 40, 10, 10))
    assert not len(cropped.move_boxes(lists, displayed=False)[boxes.XMIN])
    assert cropped.move_boxes({}, displayed=False) == {}
