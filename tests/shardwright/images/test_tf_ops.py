"""The pixel ops: one geometry with the masks, decoded with as little work as the size allows."""

import io

import build
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from property_tests import tries

from shardwright.dataset.stored_image import encode_image
from shardwright.images import geometry, tf_ops
from shardwright.images.header import ImageError

SIDES = st.integers(1, 5000)
POLICIES = st.sampled_from(geometry.POLICIES)


def smooth(height, width, seed=0):
    """A photograph-like image: no detail finer than a fifth of it, so that neither JPEG nor a filter loses much."""
    noise = np.random.default_rng(seed).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC))


@tries(200)
@given(POLICIES, SIDES, SIDES, SIDES, SIDES)
def test_the_plan_in_a_graph_is_the_plan_for_masks(policy, h, w, height, width):
    expected = geometry.plan_geometry(policy, h, w, height, width)
    plan = tf_ops.plan_geometry(policy, tf.constant(h, tf.int64), tf.constant(w, tf.int64), height, width)
    assert {k: int(v) for k, v in plan._asdict().items()} == {k: getattr(expected, k) for k in plan._fields}


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="'squeeze' is not known; use one of stretch"):
        tf_ops.decode_resized(build.encoded(smooth(8, 8)), 8, 8, "squeeze")


@pytest.mark.parametrize("kind", ["png", "jpeg"])
@pytest.mark.parametrize("policy", geometry.POLICIES)
def test_an_image_of_the_wanted_size_is_not_touched(kind, policy):
    data = build.encoded(smooth(33, 47), kind)
    image = tf_ops.decode_resized(data, 33, 47, policy).numpy()
    np.testing.assert_array_equal(image, tf_ops.decode(data).numpy())
    np.testing.assert_array_equal(image, np.asarray(Image.open(io.BytesIO(data))))


@pytest.mark.parametrize(("ratio", "size"), [(8, (240, 400)), (4, (120, 200)), (2, (60, 100)), (1, (30, 50))])
def test_a_jpeg_is_decoded_at_the_largest_ratio_that_is_enough(ratio, size):
    data = build.encoded(smooth(*size), "jpeg", quality=95)
    image = tf_ops.decode_resized(data, 30, 50, "stretch").numpy()
    np.testing.assert_array_equal(image, tf_ops.decode_jpeg(data, ratio).numpy())


def test_one_pixel_less_takes_the_next_ratio():
    data = build.encoded(smooth(239, 400), "jpeg", quality=95)
    assert tf_ops.decode_jpeg(data, 8).shape[:2] == (30, 50)
    image = tf_ops.decode_resized(data, 30, 50, "stretch").numpy()
    assert (image != tf_ops.decode_jpeg(data, 8).numpy()).any()


@tries(40)
@given(POLICIES, st.integers(40, 400), st.integers(40, 400), st.integers(8, 90), st.integers(8, 90), st.integers(0, 99))
def test_scaled_decoding_shows_the_same_picture(policy, h, w, height, width, seed):
    source = smooth(h, w, seed)
    scaled = tf_ops.decode_resized(
        build.encoded(source, "jpeg", quality=98, subsampling=0), height, width, policy
    ).numpy()
    whole = tf_ops.decode_resized(build.encoded(source), height, width, policy).numpy()
    assert np.abs(scaled.astype(int) - whole).mean() < 4


@tries(60)
@given(POLICIES, st.integers(1, 90), st.integers(1, 90), st.integers(1, 90), st.integers(1, 90))
def test_pixels_go_where_masks_go(policy, h, w, height, width):
    """A ramp over the rows (and the columns) shows the source pixel of every output pixel."""
    plan = geometry.plan_geometry(policy, h, w, height, width)
    rows, columns = geometry.source_rows(plan), geometry.source_columns(plan)
    source = np.zeros((h, w, 3), np.uint8)
    source[..., 0] = np.linspace(20, 250, h).round()[:, None]
    source[..., 1] = np.linspace(20, 250, w).round()
    image = tf_ops.decode_resized(build.encoded(source), height, width, policy).numpy().astype(int)
    shown = (rows >= 0)[:, None] & (columns >= 0)
    assert not image[~shown].any()
    inside = image[np.ix_(rows >= 0, columns >= 0)]
    # Nearest and antialiased sampling differ by up to a source or an output pixel; at the edges the filter leans in.
    steps = {"rows": 230 / max(h - 1, 1), "columns": 230 / max(w - 1, 1)}
    row_step = steps["rows"] * max(1, plan.crop_height / plan.resized_height)
    column_step = steps["columns"] * max(1, plan.crop_width / plan.resized_width)
    np.testing.assert_array_less(np.abs(inside[..., 0] - source[rows[rows >= 0], 0, 0][:, None]), row_step + 2)
    np.testing.assert_array_less(np.abs(inside[..., 1] - source[0, columns[columns >= 0], 1]), column_step + 2)


def test_values_are_rounded_half_up():
    source = np.array([[[0, 1, 254], [1, 2, 255]]], np.uint8)
    assert tf_ops.decode_resized(build.encoded(source), 1, 1, "stretch").numpy().tolist() == [[[1, 2, 255]]]


def test_a_graph_gives_static_shapes_and_takes_both_formats():
    traced = tf.function(lambda data: tf_ops.decode_resized(data, 20, 30, "letterbox"))
    concrete = traced.get_concrete_function(tf.TensorSpec([], tf.string))
    assert concrete.structured_outputs.shape == (20, 30, 3)
    for kind in ("png", "jpeg"):
        data = build.encoded(smooth(57, 41), kind)
        np.testing.assert_array_equal(traced(data), tf_ops.decode_resized(data, 20, 30, "letterbox"))


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1"])
def test_other_color_modes_become_rgb(mode):
    file = io.BytesIO()
    Image.fromarray(smooth(20, 20)).convert(mode).save(file, "png")
    assert tf_ops.decode_resized(file.getvalue(), 10, 10, "stretch").shape == (10, 10, 3)


@tries(30)
@given(
    st.integers(1, 70), st.integers(1, 70), st.integers(1, 100), st.sampled_from(sorted(tf_ops.JPEG_CHROMA)),
    st.booleans(), st.integers(0, 9),
)  # fmt: skip
def test_tensorflow_encodes_as_pillow_to_the_last_byte(height, width, quality, chroma, optimize, seed):
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    image[: height // 2] //= 16
    options = {"quality": quality, "optimize": optimize, "chroma": chroma}
    expected, header = encode_image(Image.fromarray(image), "jpeg", **options)
    assert tf_ops.encode_jpeg(tf.constant(image), quality, optimize=optimize, chroma=chroma) == expected
    assert (header.height, header.width, header.channels) == (height, width, 3)


def test_a_side_that_is_too_long_for_jpeg_is_refused():
    with pytest.raises(ImageError, match="sides of at most 65500"):
        tf_ops.encode_jpeg(tf.zeros([1, 65501, 3], tf.uint8), 90)


@pytest.mark.parametrize("data", [b"", b"text", b"\xff\xd8\xff", build.encoded(smooth(64, 64), "jpeg")[:-200]])
def test_damaged_bytes_are_an_error(data):
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf_ops.decode_resized(data, 8, 8, "stretch")


@tries(60)
@given(
    POLICIES, st.sampled_from(["png", "jpeg"]), st.integers(1, 300), st.integers(1, 300), st.integers(1, 90),
    st.integers(1, 90),
)  # fmt: skip
def test_a_planned_image_is_that_of_the_graph(policy, kind, h, w, height, width):
    """The exported model computes the values that the transform stores, to the last digit."""
    data = build.encoded(smooth(h, w), kind)
    plan = geometry.plan_geometry(policy, h, w, height, width)
    planned = tf_ops.decode_planned(data, plan, jpeg=kind == "jpeg")
    np.testing.assert_array_equal(planned, tf_ops.decode_resized(data, height, width, policy))


def test_normalizations_against_their_definitions():
    image = np.random.default_rng(0).integers(0, 256, (2, 3, 4, 3), dtype=np.uint8)
    plain = image.astype(np.float64)
    torch = (plain / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    caffe = plain[..., ::-1] - [103.939, 116.779, 123.68]
    expected = {"none": plain, "unit": plain / 255, "imagenet_torch": torch, "imagenet_caffe": caffe}
    for method, value in expected.items():
        result = tf_ops.normalize(image, method)
        assert result.dtype == tf.float32
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-5)
    result = tf_ops.normalize(image, "dataset", mean=[10, 20, 30], std=[2, 4, 0])
    np.testing.assert_allclose(result, (plain - [10, 20, 30]) / [2, 4, 1], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="needs mean and std"):
        tf_ops.normalize(image, "dataset")
    with pytest.raises(ValueError, match="'zscore' is not known"):
        tf_ops.normalize(image, "zscore")
