import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.images.geometry import (
    DCT_RATIOS,
    POLICIES,
    Geometry,
    dct_ratio,
    output_columns,
    output_rows,
    plan_geometry,
    plan_longest_side,
    source_columns,
    source_rows,
)

sides = st.integers(1, 3000)


@pytest.mark.parametrize(
    ("policy", "sizes", "expected"),
    [
        # source height, width, height, width -> crop top, left, height, width; resized height, width; pad top, left
        ("stretch", (1400, 2100, 352, 544), (0, 0, 1400, 2100, 352, 544, 0, 0)),
        ("fill_crop", (1400, 2100, 352, 544), (20, 0, 1359, 2100, 352, 544, 0, 0)),
        ("fill_crop", (1400, 2100, 512, 512), (0, 350, 1400, 1400, 512, 512, 0, 0)),
        ("letterbox", (1400, 2100, 512, 512), (0, 0, 1400, 2100, 341, 512, 85, 0)),
        ("letterbox", (2100, 1400, 512, 512), (0, 0, 2100, 1400, 512, 341, 0, 85)),
        ("letterbox", (256, 1600, 256, 800), (0, 0, 256, 1600, 128, 800, 64, 0)),
        ("letterbox", (1, 3000, 10, 10), (0, 0, 1, 3000, 1, 10, 4, 0)),
        ("fill_crop", (1, 3000, 3000, 1), (0, 1499, 1, 1, 3000, 1, 0, 0)),
    ],
)
def test_plans_known_by_hand(policy, sizes, expected):
    assert dataclasses.astuple(plan_geometry(policy, *sizes)) == (*sizes[:2], *expected, *sizes[2:])


@given(st.sampled_from(POLICIES), sides, sides, sides, sides)
def test_a_plan_keeps_its_policys_promise(policy, source_height, source_width, height, width):
    plan = plan_geometry(policy, source_height, source_width, height, width)
    assert (plan.height, plan.width) == (height, width)
    whole_source = (plan.crop_height, plan.crop_width) == (source_height, source_width)
    whole_output = (plan.resized_height, plan.resized_width) == (height, width)
    assert whole_source or policy == "fill_crop"
    assert whole_output or policy == "letterbox"
    # One side is used in full, and margins on both sides differ by one pixel at most.
    assert plan.crop_height == source_height or plan.crop_width == source_width
    assert plan.resized_height == height or plan.resized_width == width
    for margin, inner, outer in (
        (plan.crop_top, plan.crop_height, source_height),
        (plan.crop_left, plan.crop_width, source_width),
        (plan.pad_top, plan.resized_height, height),
        (plan.pad_left, plan.resized_width, width),
    ):
        assert 0 <= outer - inner - 2 * margin <= 1
    # A side that was computed is the exact quotient, rounded; one pixel at least.
    for side, exact, computed in (
        (plan.crop_height, Fraction(source_width * height, width), plan.crop_height < source_height),
        (plan.crop_width, Fraction(source_height * width, height), plan.crop_width < source_width),
        (plan.resized_height, Fraction(source_height * width, source_width), plan.resized_height < height),
        (plan.resized_width, Fraction(source_width * height, source_height), plan.resized_width < width),
    ):
        assert not computed or abs(side - exact) <= Fraction(1, 2) or (side == 1 and exact < 1)


@given(sides, sides, sides)
def test_the_longest_side_is_met_and_the_aspect_kept(source_height, source_width, longest):
    plan = plan_longest_side(source_height, source_width, longest)
    assert max(plan.height, plan.width) == longest
    assert plan == plan_geometry("stretch", source_height, source_width, plan.height, plan.width)
    shorter, source_shorter = min(plan.height, plan.width), min(source_height, source_width)
    exact = Fraction(source_shorter * longest, max(source_height, source_width))
    assert abs(shorter - exact) <= Fraction(1, 2) or (shorter == 1 and exact < 1)
    assert (plan.height >= plan.width) == (source_height >= source_width) or plan.height == plan.width


@given(st.sampled_from(POLICIES), sides, sides, st.integers(1, 400), st.integers(1, 400))
def test_the_ratio_is_the_largest_that_leaves_enough_pixels(policy, source_height, source_width, height, width):
    plan = plan_geometry(policy, source_height, source_width, height, width)
    ratio = dct_ratio(plan)

    def enough(r):
        return plan.crop_height // r >= plan.resized_height and plan.crop_width // r >= plan.resized_width

    assert ratio == max(r for r in DCT_RATIOS if r == 1 or enough(r))


@given(st.integers(1, 400), st.integers(1, 400))
def test_positions_are_half_pixel_centers(source, resized):
    plan = plan_geometry("stretch", source, 1, resized, 1)
    with_floats = np.floor((np.arange(resized) + 0.5) * source / resized).astype(np.int64)
    exact = np.array([(2 * i + 1) * source // (2 * resized) for i in range(resized)])
    rows = source_rows(plan)
    assert np.array_equal(rows, exact)
    assert np.abs(rows - with_floats).max() <= 1  # Floats may round a position that is a whole number down.
    assert rows.dtype == np.int64
    assert rows.min() >= 0
    assert rows.max() < source
    assert (np.diff(rows) >= 0).all()


def test_borders_are_minus_one_and_crops_are_offset():
    letterboxed = plan_geometry("letterbox", 4, 8, 8, 8)
    assert source_rows(letterboxed).tolist() == [-1, -1, 0, 1, 2, 3, -1, -1]
    assert source_columns(letterboxed).tolist() == list(range(8))
    cropped = plan_geometry("fill_crop", 4, 8, 2, 2)
    assert source_rows(cropped).tolist() == [1, 3]
    assert source_columns(cropped).tolist() == [3, 5]


@given(st.sampled_from(POLICIES), st.integers(1, 60), st.integers(1, 60), st.integers(1, 60), st.integers(1, 60))
def test_where_the_source_comes_to_lie_is_where_the_output_takes_it_from(policy, h, w, height, width):
    plan = plan_geometry(policy, h, w, height, width)
    for source, sampled, shown in (
        (h, source_rows(plan), output_rows(plan)),
        (w, source_columns(plan), output_columns(plan)),
    ):
        inside = sampled[sampled >= 0].tolist()
        assert shown.first.tolist() == [sum(place < i for place in inside) for i in range(source + 1)]
        assert shown.is_shown.tolist() == [int(i in inside) for i in range(source + 1)]


@pytest.mark.parametrize("source", [1, 7, 100, 350])
@pytest.mark.parametrize("resized", [1, 5, 99, 352])
def test_positions_are_tensorflows(source, resized):
    tf = pytest.importorskip("tensorflow")
    numbers = np.arange(source, dtype=np.float32).reshape(1, source, 1, 1)
    theirs = tf.image.resize(numbers, (resized, 1), method="nearest").numpy().reshape(-1).astype(int)
    ours = source_rows(plan_geometry("stretch", source, 1, resized, 1))
    # TensorFlow computes in float32: where (i + 0.5) * N / n is a whole number it may come out just below.
    whole = (2 * np.arange(resized) + 1) * source % (2 * resized) == 0
    assert (theirs == ours)[~whole].all()


@pytest.mark.parametrize(
    ("policy", "sizes", "message"),
    [
        ("squash", (1, 1, 1, 1), "'squash' is not known; use one of stretch, fill_crop, letterbox"),
        ("stretch", (0, 1, 1, 1), "source height is 0"),
        ("stretch", (1, 1, 1, -2), "width is -2"),
    ],
)
def test_impossible_calls_are_refused(policy, sizes, message):
    with pytest.raises(ValueError, match=message):
        plan_geometry(policy, *sizes)


@pytest.mark.parametrize("change", [{"crop_top": 1}, {"crop_left": -1}, {"pad_top": 3}, {"resized_width": 0}])
def test_a_geometry_checks_itself(change):
    plan = plan_geometry("stretch", 4, 4, 2, 2)
    with pytest.raises(ValueError, match=next(iter(change))):
        Geometry(**{**dataclasses.asdict(plan), **change})
