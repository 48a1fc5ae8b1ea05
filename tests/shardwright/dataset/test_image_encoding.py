"""Stored pixels: read back by TensorFlow's ops; resized where masks go."""

import io

import build
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from property_tests import tries

from shardwright.dataset.stored_image import CHROMA, encode_image, resize, tensor_proto
from shardwright.images import geometry
from shardwright.images.decode import decode
from shardwright.images.geometry import DCT_RATIOS
from shardwright.images.header import ImageError, ImageHeader
from shardwright.images.read_header import read_header
from shardwright.masks import rle

MANY = 200_000_000
SIDES = st.integers(8, 90)


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("encoding", ["jpeg", "png"])
def test_a_file_has_the_returned_header(encoding, orientation, mode):
    data, header = encode_image(build.cloudy(3, mode=mode), encoding, orientation=orientation)
    assert header == ImageHeader(encoding, 24, 40, 1 if mode == "L" else 3, orientation)
    assert read_header(data, max_pixels=MANY) == header
    assert set(Image.open(io.BytesIO(data)).info) <= {
        "exif",
        "jfif",
        "jfif_version",
        "jfif_unit",
        "jfif_density",
        "dpi",
    }


def test_options_of_jpeg_and_png():
    small, large = (encode_image(build.cloudy(3), "jpeg", quality=quality)[0] for quality in (30, 95))
    assert len(small) < len(large)
    assert len(encode_image(build.cloudy(3), "jpeg", optimize=True)[0]) < len(encode_image(build.cloudy(3), "jpeg")[0])
    for chroma, factors in ((444, (1, 1)), (422, (2, 1)), (420, (2, 2))):
        image = Image.open(io.BytesIO(encode_image(build.cloudy(3), "jpeg", chroma=chroma)[0]))
        assert image.layer[0][1:3] == factors
    assert set(CHROMA) == {444, 422, 420}
    image = Image.open(io.BytesIO(encode_image(build.cloudy(3), "png")[0]))
    np.testing.assert_array_equal(image, build.cloudy(3))


@pytest.mark.parametrize("shape", [(24, 40, 3), (1, 1, 3), (300, 2, 3), (5,)])
def test_a_tensor_is_one_to_tensorflow(shape):
    import tensorflow as tf

    values = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    data = tensor_proto(values.tobytes(), shape)
    parsed = tf.io.parse_tensor(data, tf.uint8)
    np.testing.assert_array_equal(parsed, values)
    assert parsed.shape == shape
    assert data == tf.io.serialize_tensor(values).numpy()


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_tensor_and_raw_bytes_have_three_channels(mode):
    import tensorflow as tf

    expected = np.asarray(build.cloudy(3, mode=mode).convert("RGB"))
    data, header = encode_image(build.cloudy(3, mode=mode), "tensor", orientation=3)
    assert header == ImageHeader("tensor", 24, 40, 3, 3)
    np.testing.assert_array_equal(tf.io.parse_tensor(data, tf.uint8), expected)
    data, header = encode_image(build.cloudy(3, mode=mode), "raw")
    assert header == ImageHeader("raw", 24, 40, 3, 1)
    np.testing.assert_array_equal(tf.reshape(tf.io.decode_raw(data, tf.uint8), [24, 40, 3]), expected)


def test_a_side_too_long_for_jpeg_is_refused():
    with pytest.raises(ImageError, match="decoders take sides of at most 65500"):
        encode_image(Image.new("L", (65_501, 1)), "jpeg")


def plan(policy, h, w, height, width):
    if policy == "longest_side":
        return geometry.plan_longest_side(h, w, max(height, width))
    return geometry.plan_geometry(policy, h, w, height, width)


@tries(60)
@given(st.sampled_from([*geometry.POLICIES, "longest_side"]), SIDES, SIDES, SIDES, SIDES, st.integers(0, 99))
def test_drawn_shapes_and_their_masks_stay_together(policy, h, w, height, width, seed):
    """A white shape on black and its mask go the same way."""
    random = np.random.default_rng(seed)
    g = plan(policy, h, w, height, width)
    # If sizes differ a lot, a mask of single pixels has no area to speak of.
    smallest = min(g.crop_height, g.crop_width, g.resized_height, g.resized_width)
    image = Image.new("L", (w, h))
    x, y = g.crop_left + random.uniform(0.3, 0.7) * g.crop_width, g.crop_top + random.uniform(0.3, 0.7) * g.crop_height
    ImageDraw.Draw(image).ellipse(
        (x - 0.3 * g.crop_width, y - 0.3 * g.crop_height, x + 0.3 * g.crop_width, y + 0.3 * g.crop_height), fill=255
    )
    mask = np.asarray(image) > 0
    shown = np.asarray(resize(image, g)) > 127
    moved = rle.draw(rle.resample(rle.encode(mask), g), g.height, g.width) > 0
    assert shown.shape == moved.shape
    overlap = (shown & moved).sum() / max(1, (shown | moved).sum())
    assert overlap > (0.9 if smallest >= 40 else 0.6 if smallest >= 8 else 0.0)


@tries(40)
@given(st.sampled_from(geometry.POLICIES), st.integers(5, 20), st.integers(5, 20), st.sampled_from(DCT_RATIOS[:-1]))
def test_a_picture_scaled_while_decoding_shows_the_same(policy, height, width, ratio):
    source = build.cloudy(3, size=(width * ratio * 2 + 3, height * ratio * 2 + 5))
    file = io.BytesIO()
    source.save(file, "jpeg", quality=98, subsampling=0)
    g = geometry.plan_geometry(policy, source.height, source.width, height, width)
    scaled = decode(file.getvalue(), read_header(file.getvalue(), max_pixels=MANY), ratio)
    difference = np.abs(np.asarray(resize(scaled, g, ratio)).astype(int) - np.asarray(resize(source, g)))
    assert difference.mean() < 4


@pytest.mark.parametrize("policy", geometry.POLICIES)
def test_the_filter_is_the_transforms(policy):
    from shardwright.images import tf_ops

    source = build.cloudy(3, size=(97, 61))
    file = io.BytesIO()
    source.save(file, "png")
    theirs = tf_ops.decode_resized(file.getvalue(), 30, 37, policy).numpy().astype(int)
    ours = np.asarray(resize(source, geometry.plan_geometry(policy, 61, 97, 30, 37)))
    assert np.abs(theirs - ours).max() <= 2
