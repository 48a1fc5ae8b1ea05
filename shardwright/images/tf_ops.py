"""The TensorFlow ops on pixels that the transform, the loader and the exported model share.

All of them work eagerly and in a graph, on both supported TensorFlow versions. Pixels move by the same integers as
masks do in `geometry.py`; here they are tensors, because an image's size is known only when its header has been read.

JPEG is decoded at 1/8, 1/4 or 1/2 where the wanted size allows it: libjpeg then computes a smaller inverse DCT and most
pixels are never made ("scaled DCT", libjpeg.txt). The inverse DCT is named (`INTEGER_ACCURATE`), since the default of
TensorFlow's op is the less exact one and is not promised to stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from shardwright.images.geometry import DCT_RATIOS, Geometry, dct_ratio
from shardwright.images.header import check_size

Tensor = Any


# ImageNet: means and deviations of RGB on the 0..1 scale (torchvision), means of BGR on 0..255 (Caffe's models).
_TORCH_MEAN = (0.485, 0.456, 0.406)
_TORCH_STD = (0.229, 0.224, 0.225)
_CAFFE_MEAN_BGR = (103.939, 116.779, 123.68)
# Chroma of a JPEG that TensorFlow's encoder can write -> its option for it.
JPEG_CHROMA = {420: True, 444: False}
# Offset of the unit of densities in a JFIF header.
_DENSITY_UNIT = 13


class GeometryTensors(NamedTuple):
    """The fields of `geometry.Geometry` that pixels need, as int64 scalars."""

    crop_top: Tensor
    crop_left: Tensor
    crop_height: Tensor
    crop_width: Tensor
    resized_height: Tensor
    resized_width: Tensor
    pad_top: Tensor
    pad_left: Tensor


def plan_geometry(
    policy: str, source_height: Tensor, source_width: Tensor, height: Tensor | int, width: Tensor | int
) -> GeometryTensors:
    """Plans like `geometry.plan_geometry` for a source whose size is a tensor; a test compares the two.

    Args:
        policy: `stretch`, `fill_crop` or `letterbox`.
        source_height: int64 scalar.
        source_width: int64 scalar.
        height: rows of the output.
        width: columns of the output.

    Returns:
        int64 scalars.

    Raises:
        ValueError: the policy is not known.
    """
    if policy not in ("stretch", "fill_crop", "letterbox"):
        raise ValueError(f"resize policy {policy!r} is not known; use one of stretch, fill_crop, letterbox")
    target_height, target_width = tf.cast(height, tf.int64), tf.cast(width, tf.int64)
    crop_height, crop_width = source_height, source_width
    resized_height, resized_width = target_height, target_width
    taller = source_height * target_width > source_width * target_height
    if policy == "fill_crop":
        fit_height = tf.minimum(source_height, _rounded(source_width * target_height, target_width))
        fit_width = tf.minimum(source_width, _rounded(source_height * target_width, target_height))
        crop_height = tf.where(taller, fit_height, source_height)
        crop_width = tf.where(taller, source_width, fit_width)
    elif policy == "letterbox":
        fit_height = tf.minimum(target_height, _rounded(source_height * target_width, source_width))
        fit_width = tf.minimum(target_width, _rounded(source_width * target_height, source_height))
        resized_height = tf.where(taller, target_height, fit_height)
        resized_width = tf.where(taller, fit_width, target_width)
    return GeometryTensors(
        crop_top=(source_height - crop_height) // 2,
        crop_left=(source_width - crop_width) // 2,
        crop_height=crop_height,
        crop_width=crop_width,
        resized_height=resized_height,
        resized_width=resized_width,
        pad_top=(target_height - resized_height) // 2,
        pad_left=(target_width - resized_width) // 2,
    )


def _rounded(dividend: Tensor, divisor: Tensor) -> Tensor:
    return tf.maximum(tf.constant(1, tf.int64), (2 * dividend + divisor) // (2 * divisor))


def is_jpeg(encoded: Tensor) -> Tensor:
    """Returns whether the first three bytes are those of a JPEG: a boolean scalar for a string scalar."""
    return tf.equal(tf.strings.substr(encoded, 0, 3), b"\xff\xd8\xff")


def decode_jpeg(encoded: Tensor, ratio: int = 1) -> Tensor:
    """Decodes a JPEG to uint8 [ceil(h / ratio), ceil(w / ratio), 3], RGB; `ratio` is one of `DCT_RATIOS`."""
    return tf.io.decode_jpeg(encoded, channels=3, ratio=ratio, dct_method="INTEGER_ACCURATE")


def decode(encoded: Tensor) -> Tensor:
    """Decodes an image in its stored size and frame (EXIF orientation is not applied).

    Args:
        encoded: string scalar, JPEG or PNG. A PNG loses its alpha, and 16 bits become 8.

    Returns:
        uint8 [h, w, 3], RGB.

    Raises:
        tf.errors.InvalidArgumentError: the bytes cannot be decoded.
    """
    # The op goes by the content, and decodes a PNG as `decode_png` does; a branch of the graph costs a tenth more time.
    return decode_jpeg(encoded)


def encode_jpeg(
    image: Tensor | npt.NDArray[np.uint8], quality: int, *, optimize: bool = False, chroma: int = 420
) -> bytes:
    """Encodes a picture as `encoding.encode` does, to the last byte, without holding up Python's other threads.

    Args:
        image: uint8 [h, w, 3], RGB.
        quality: 1-100.
        optimize: its own Huffman tables: smaller and slower.
        chroma: of `JPEG_CHROMA`.

    Raises:
        ImageError: a side is longer than JPEG allows.
    """
    height, width, _ = image.shape
    check_size("jpeg", height, width, height * width)
    encoded: bytes = tf.io.encode_jpeg(
        image,
        format="rgb",
        quality=quality,
        optimize_size=optimize,
        chroma_downsampling=JPEG_CHROMA[chroma],
        x_density=1,
        y_density=1,
    ).numpy()
    # In the header the density, which the op gives in inches, has no unit.
    return encoded[:_DENSITY_UNIT] + b"\0" + encoded[_DENSITY_UNIT + 1 :]


def parse_tensor(encoded: Tensor) -> Tensor:
    """Reads an image that is stored as a serialized tensor: uint8 [h, w, 3]."""
    return tf.ensure_shape(tf.io.parse_tensor(encoded, tf.uint8), [None, None, 3])


def decode_raw(encoded: Tensor, height: Tensor, width: Tensor) -> Tensor:
    """Reads an image that is stored as nothing but its values: uint8 [height, width, 3]."""
    return tf.reshape(tf.io.decode_raw(encoded, tf.uint8), tf.stack([height, width, 3]))


def _decode_png(encoded: Tensor) -> Tensor:
    return tf.io.decode_png(encoded, channels=3)


def decode_resized(encoded: Tensor, height: int, width: int, policy: str) -> Tensor:
    """Decodes an image and brings it to one size.

    A JPEG is decoded at the largest DCT ratio that still has at least the pixels wanted; the rest of the way is an
    antialiased bilinear resize (triangle filter as wide as the shrinking asks for, half-pixel centers). Values are
    rounded half up. Borders of `letterbox` are 0. An image that needs no resizing is not touched.

    Args:
        encoded: string scalar, JPEG or PNG.
        height: rows of the output.
        width: columns of the output.
        policy: `stretch`, `fill_crop` or `letterbox`, as `geometry.plan_geometry` means them.

    Returns:
        uint8 [height, width, 3], RGB.

    Raises:
        ValueError: the policy is not known.
        tf.errors.InvalidArgumentError: the bytes cannot be decoded.
    """

    def jpeg() -> tuple[Tensor, Tensor, Tensor]:
        size = tf.io.extract_jpeg_shape(encoded, tf.int64)[:2]
        plan = plan_geometry(policy, size[0], size[1], height, width)
        fits = [
            (plan.crop_height >= r * plan.resized_height) & (plan.crop_width >= r * plan.resized_width)
            for r in DCT_RATIOS[:-1]
        ]
        # DCT_RATIOS falls, so a ratio fits whenever a larger one does: the misfits are counted from the front.
        branch = tf.add_n([tf.cast(~fit, tf.int32) for fit in fits])
        branches = [lambda r=r: decode_jpeg(encoded, r) for r in DCT_RATIOS]
        return tf.switch_case(branch, branches), tf.gather(tf.constant(DCT_RATIOS, tf.int64), branch), size

    def png() -> tuple[Tensor, Tensor, Tensor]:
        image = _decode_png(encoded)
        return image, tf.constant(1, tf.int64), tf.shape(image, tf.int64)[:2]

    image, ratio, size = tf.cond(is_jpeg(encoded), jpeg, png)
    plan = plan_geometry(policy, size[0], size[1], height, width)
    ready = (
        (plan.crop_height == ratio * height)
        & (plan.crop_width == ratio * width)
        & tf.reduce_all(tf.shape(image, tf.int64)[:2] == (height, width))
    )
    image = tf.cond(ready, lambda: image, lambda: _resample(image, plan, ratio, height, width))
    return tf.ensure_shape(image, [height, width, 3])


def decode_planned(encoded: bytes, plan: Geometry, *, jpeg: bool) -> npt.NDArray[np.uint8]:
    """Decodes like `decode_resized` if the header has been read: the same values, to the last bit.

    TensorFlow decodes and resamples. NumPy does the arithmetic around that, since thirty small ops, called one by one,
    take ten times as long as the pixels of a small image.

    Args:
        encoded: JPEG or PNG.
        plan: how its pixels are moved.
        jpeg: whether it is a JPEG.

    Returns:
        uint8 [height, width, 3], RGB.

    Raises:
        tf.errors.InvalidArgumentError: the bytes cannot be decoded.
    """
    ratio = dct_ratio(plan) if jpeg else 1
    image = decode_jpeg(encoded, ratio) if jpeg else _decode_png(encoded)
    shape = (plan.height, plan.width, 3)
    if (plan.crop_height, plan.crop_width) == (ratio * plan.height, ratio * plan.width) and image.shape == shape:
        # The tensor's own memory: `numpy()` would copy it.
        return np.frombuffer(memoryview(image), np.uint8).reshape(shape)
    resized = (plan.resized_height, plan.resized_width)
    to_output = np.array(resized, np.float32) / np.array((plan.crop_height, plan.crop_width), np.float32)
    resampled = tf.raw_ops.ScaleAndTranslate(
        images=tf.raw_ops.ExpandDims(input=image, axis=0),
        size=np.array(resized, np.int32),
        scale=to_output * np.float32(ratio),
        translation=-np.array((plan.crop_top, plan.crop_left), np.float32) * to_output,
        kernel_type="triangle",
        antialias=True,
    )
    # Means of bytes: positive, and below 255.5 also where the last digit is rounded up. So the cast is the floor.
    rounded = (np.frombuffer(memoryview(resampled), np.float32) + np.float32(0.5)).astype(np.uint8)
    framed = np.zeros(shape, np.uint8)
    rows, columns = (slice(pad, pad + side) for pad, side in zip((plan.pad_top, plan.pad_left), resized, strict=True))
    framed[rows, columns] = rounded.reshape(*resized, 3)
    return framed


def resize(image: Tensor, policy: str, height: Tensor, width: Tensor) -> Tensor:
    """Brings decoded pixels to a size by the filter of `decode_resized`.

    Args:
        image: uint8 [h, w, 3].
        policy: `stretch`, `fill_crop` or `letterbox`.
        height: rows of the output, int64 scalar.
        width: columns of the output, int64 scalar.

    Returns:
        uint8 [height, width, 3].
    """
    sides = tf.shape(image, tf.int64)
    plan = plan_geometry(policy, sides[0], sides[1], height, width)
    return _resample(image, plan, tf.constant(1, tf.int64), height, width)


def longest_side(height: Tensor, width: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """Returns the size that `geometry.plan_longest_side` gives a source, int64 scalars."""
    side = tf.constant(longest, tf.int64)
    shorter_height = tf.where(width > height, _rounded(height * side, width), side)
    return shorter_height, tf.where(height > width, _rounded(width * side, height), side)


def _resample(image: Tensor, plan: GeometryTensors, ratio: Tensor, height: Tensor | int, width: Tensor | int) -> Tensor:
    """Crops and resizes in one op; a decoded pixel at (y, x) covers `ratio` x `ratio` pixels of the source."""
    crop = tf.cast(tf.stack([plan.crop_height, plan.crop_width]), tf.float32)
    begin = tf.cast(tf.stack([plan.crop_top, plan.crop_left]), tf.float32)
    resized = tf.stack([plan.resized_height, plan.resized_width])
    to_output = tf.cast(resized, tf.float32) / crop
    resampled = tf.raw_ops.ScaleAndTranslate(
        images=image[tf.newaxis],
        size=tf.cast(resized, tf.int32),
        scale=to_output * tf.cast(ratio, tf.float32),
        translation=-begin * to_output,
        kernel_type="triangle",
        antialias=True,
    )[0]
    rounded = tf.cast(tf.clip_by_value(tf.floor(resampled + 0.5), 0.0, 255.0), tf.uint8)
    sides = tf.stack([tf.cast(height, tf.int64), tf.cast(width, tf.int64)])
    after = sides - resized - tf.stack([plan.pad_top, plan.pad_left])
    return tf.pad(rounded, [[plan.pad_top, after[0]], [plan.pad_left, after[1]], [0, 0]])


def normalize(
    image: Tensor, method: str, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
) -> Tensor:
    """Turns pixels into the numbers a model is given.

    Args:
        image: uint8 [..., 3], RGB.
        method: `unit` x / 255; `imagenet_torch` (x / 255 - mean) / std with ImageNet's figures; `imagenet_caffe` BGR
            with ImageNet's means taken off; `dataset` (x - mean) / std with the given figures; `none` the plain values.
        mean: per channel on the 0..255 scale, for `dataset`.
        std: per channel on the 0..255 scale, for `dataset`; 0, a channel that never varies, counts as 1.

    Returns:
        float32 [..., 3]; RGB, but BGR for `imagenet_caffe`.

    Raises:
        ValueError: the method is not known, or `dataset` lacks its figures.
    """
    if method == "none":
        return tf.cast(image, tf.float32)
    rule = normalization(method, mean, std)
    image = tf.reverse(image, axis=[-1]) if rule.reverse else image
    shape = tf.TensorShape(image.shape)
    width = None if shape.rank in (None, 1) else shape[-2]
    if width is None:
        return tf.cast(image, tf.float32) * rule.scale + rule.offset
    # TensorFlow broadcasts along three channels pixel by pixel; along a whole row it is four times as fast.
    rows = tf.cast(tf.reshape(image, [-1, width * 3]), tf.float32) * np.tile(rule.scale, width)
    # Adding zeros would be one more pass over a batch's memory: a seventh of the loader's work for an image.
    moved = rows + np.tile(rule.offset, width) if np.any(rule.offset) else rows
    return tf.reshape(moved, tf.shape(image))


class Normalization(NamedTuple):
    """The numbers of a normalization: `value * scale + offset` per channel, of BGR if `reverse`."""

    reverse: bool
    scale: npt.NDArray[np.float32]
    offset: npt.NDArray[np.float32]


def normalization(
    method: str, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
) -> Normalization:
    """Returns the numbers of a method of `normalize`, which explains the arguments.

    Raises:
        ValueError: the method is not known, or `dataset` lacks its figures.
    """
    if method == "none":
        means, deviations = np.zeros(3), np.ones(3)
    elif method == "unit":
        means, deviations = np.zeros(3), np.full(3, 255.0)
    elif method == "imagenet_torch":
        means, deviations = 255.0 * np.array(_TORCH_MEAN), 255.0 * np.array(_TORCH_STD)
    elif method == "imagenet_caffe":
        means, deviations = np.array(_CAFFE_MEAN_BGR), np.ones(3)
    elif method == "dataset":
        if mean is None or std is None:
            raise ValueError("normalize 'dataset' needs mean and std; take them from loader.dataset_statistics(...)")
        means, deviations = np.array(mean, np.float64), np.array(std, np.float64)
        deviations = np.where(deviations == 0, 1.0, deviations)
    else:
        raise ValueError(
            f"normalize {method!r} is not known; use one of unit, imagenet_torch, imagenet_caffe, dataset, none"
        )
    scale, offset = (1 / deviations).astype(np.float32), (-means / deviations).astype(np.float32)
    return Normalization(method == "imagenet_caffe", scale, offset)
