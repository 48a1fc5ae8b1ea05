"""COCO's segmentations: polygons, counts and compressed counts of the same mask; broken ones are refused."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from shardwright.masks import rle
from shardwright.masks.coco_segmentation import CocoMasks, mask_text
from shardwright.masks.dialects import compress_counts, to_counts


def parse(segmentation, height=4, width=6, size=None):
    return CocoMasks().parse(mask_text(size, json.dumps(segmentation)), height=height, width=width)


@given(arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=12)), st.booleans())
def test_all_three_forms_are_the_same_mask(mask, with_size):
    """Here every pixel is a separate polygon."""
    height, width = mask.shape
    polygons = [[x, y, x + 1, y, x + 1, y + 1, x, y + 1] for y, x in np.argwhere(mask).tolist()]
    counts = to_counts(rle.encode(mask), mask.size)
    forms = [{"size": [height, width], "counts": form} for form in (counts, compress_counts(counts))]
    for form in [polygons, *forms] if polygons else forms:
        runs = parse(form, height, width, (height, width) if with_size else None)
        np.testing.assert_array_equal(runs, rle.encode(mask))


def test_polygons_of_an_object_are_joined_even_where_they_overlap():
    square = [0, 0, 2, 0, 2, 2, 0, 2]
    assert rle.area(parse([square, square])) == 4
    assert rle.area(parse([square, [1, 0, 3, 0, 3, 2, 1, 2]])) == 6


@pytest.mark.parametrize(
    ("segmentation", "code", "message"),
    [
        (None, "bad_segmentation", "the segmentation is null; write polygons"),
        ([], "bad_segmentation", r"the segmentation is \[\]"),
        ("abc", "bad_segmentation", 'the segmentation is "abc"'),
        ({}, "bad_segmentation", "it contains nothing"),
        ({"counts": [24]}, "bad_segmentation", "it contains 'counts'"),
        ({"size": [4, 6], "counts": 24}, "bad_segmentation", "run lengths need"),
        ([0, 0, 4, 0, 4, 4], "bad_polygon", r"polygon 1 of 6 is 0, not a list; write polygons \[\[x, y"),
        ([[0, 0, 4, 0, 4, 4], [0, 0, 4, 4]], "bad_polygon", "polygon 2 of 2 has 4 numbers"),
        ([[0, 0, 4, 0, 4, 4, 1]], "bad_polygon", "polygon 1 of 1 has an odd count of 7"),
        ([[0, 0, 4, float("nan"), 4, 4]], "bad_polygon", "number 4 of 6 is nan"),
        ({"size": [4, 6], "counts": [23]}, "bad_rle", "the counts add up to 23"),
        ({"size": [4, 6], "counts": [20.0, 4]}, "bad_rle", "not a whole number"),
        ({"size": [4, 6], "counts": "~"}, "bad_rle", "character 1 of 1 is '~'"),
        ({"size": [4, 7], "counts": [28]}, "size_mismatch", "the mask has 4x7 .* the file has 4x6$"),
        ({"size": [6, 4], "counts": [24]}, "size_mismatch", "drawn on the turned image"),
        ({"size": ["4", None], "counts": [24]}, "size_mismatch", "the mask has '4'xNone"),
    ],
)
def test_broken_segmentations_have_a_code(segmentation, code, message):
    with pytest.raises(rle.RleError, match=message) as error:
        parse(segmentation)
    assert error.value.code == code


def test_a_mask_of_an_image_of_another_size_is_refused():
    with pytest.raises(rle.RleError, match="the image has 40x60 .* the file has 4x6") as error:
        parse([[0, 0, 4, 0, 4, 4]], size=(40, 60))
    assert error.value.code == "size_mismatch"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=8) | st.dictionaries(st.sampled_from(["size", "counts", "x"]), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(JSON)
@example([[0, 0, 4, 0, 4, 4]])
@example({"size": [4, 6], "counts": [2, 3, 19]})
def test_any_json_is_a_mask_or_an_error_of_ours(segmentation):
    try:
        runs = parse(segmentation)
    except rle.RleError:
        return
    assert rle.draw(runs, 4, 6).shape == (4, 6)
