"""Mask images: numbers as the file stores them, the same runs as by drawing, and other files refused."""

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from shardwright.images.colors import COLOR
from shardwright.masks import rle
from shardwright.masks.mask_pixels import (
    MaskFileError,
    MaskImage,
    gray_of,
    label_runs,
    mask_size,
    read_mask,
    value_runs,
)

MOST = 10_000
shapes = st.tuples(st.integers(1, 20), st.integers(1, 20))
small = shapes.flatmap(lambda shape: hnp.arrays(np.uint8, shape, elements=st.integers(0, 3)))
VALUES = np.array([[0, 1, 2], [3, 0, 255]], np.uint8)


def saved(pixels, kind="PNG", mode=None, **options):
    image = Image.fromarray(pixels, mode) if mode != "P" else Image.fromarray(pixels, "L")
    if mode == "P":
        image.putpalette([(7 * i + c) % 256 for i in range(256) for c in range(3)])
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png(width, height, bits, color, rows):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    data = b"".join(b"\0" + row for row in rows)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def read(data, most=MOST):
    return read_mask(data, max_pixels=most)


@given(small)
def test_runs_of_every_value_are_those_of_its_drawn_mask(values):
    found, runs = value_runs(values)
    assert int(runs[:, 1].sum()) == values.size
    for value in range(4):
        assert np.array_equal(runs[found == value], rle.encode(values == value))


@given(small, st.dictionaries(st.integers(0, 3), st.none() | st.integers(-1, 2), min_size=4, max_size=4))
def test_values_of_one_label_are_one_mask(values, labels):
    masks = label_runs(MaskImage(values, 8), labels)
    for label in range(-1, 3):
        of_label = [value for value, other in labels.items() if other == label]
        truth = np.isin(values, of_label)
        assert (label in masks) == bool(truth.any())
        if label in masks:
            assert np.array_equal(masks[label], rle.encode(truth))


def test_a_value_that_is_no_class_is_named():
    with pytest.raises(MaskFileError, match=r"1 pixel is 2 and 2 other values, .*known are 0, 1"):
        label_runs(MaskImage(VALUES, 8), {0: None, 1: 0})
    colors = np.array([[COLOR + 0xFF8000]], np.uint32)
    with pytest.raises(MaskFileError, match="1 pixel is #ff8000, which is not a class; known are #000000") as caught:
        label_runs(MaskImage(colors, 24), {COLOR: None})
    assert caught.value.code == "unknown_class"


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
@pytest.mark.parametrize("mode", ["L", "P"])
def test_gray_and_palette_are_read_as_stored(kind, mode):
    data = saved(VALUES, kind, mode)
    mask = read(data)
    assert mask.values.dtype == np.uint8
    assert np.array_equal(mask.values, VALUES)
    assert mask_size(data, max_pixels=MOST) == (2, 3)


def tiff(width, height, bits, rows, order="<"):
    """Returns a gray TIFF of the packed rows; black is 0."""
    pixels = b"".join(rows)
    tags = {256: width, 257: height, 258: bits, 259: 1, 262: 1, 273: 8, 277: 1, 278: height, 279: len(pixels)}
    entries = b"".join(struct.pack(f"{order}HHIHH", tag, 3, 1, value, 0) for tag, value in tags.items())
    begin = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", 8 + len(pixels))
    return begin + pixels + struct.pack(f"{order}H", len(tags)) + entries + bytes(4)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "TIFF of Motorola"])
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_few_bits_are_not_spread(bits, kind):
    # 0 1 and, with two bits or more, 3 in each of two rows.
    numbers = [0, 1, (1 << bits) - 1, 0]
    packed = sum(number << (8 * ((4 * bits + 7) // 8) - bits * (i + 1)) for i, number in enumerate(numbers))
    row = packed.to_bytes((4 * bits + 7) // 8, "big")
    order = ">" if kind.endswith("Motorola") else "<"
    mask = read(png(4, 2, bits, 0, [row, row]) if kind == "PNG" else tiff(4, 2, bits, [row, row], order))
    assert mask.values.tolist() == [numbers, numbers]
    assert (mask.bits == 1) == (bits == 1)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_kept(kind):
    values = np.array([[0, 256, 65535]], np.uint16)
    mask = read(saved(values, kind))
    assert (mask.values.dtype, mask.bits) == (np.uint16, 16)
    assert np.array_equal(mask.values, values)


@pytest.mark.parametrize("kind", ["PNG", "BMP"])
def test_black_and_white(kind):
    mask = read(saved(VALUES > 1, kind))
    assert np.array_equal(mask.values, VALUES > 1)
    assert mask.bits == 1


def test_colors_are_numbers_and_equal_parts_are_gray():
    pixels = np.array([[[255, 128, 0], [0, 0, 1]]], np.uint8)
    mask = read(saved(pixels))
    assert mask.colored
    assert mask.values.tolist() == [[COLOR + 0xFF8000, COLOR + 1]]
    assert gray_of(mask) is None
    gray = gray_of(read(saved(np.repeat(VALUES[..., None], 3, axis=-1))))
    assert np.array_equal(gray.values, VALUES)


def test_alpha_counts_only_where_it_is_opaque():
    pixels = np.dstack([VALUES, VALUES, VALUES, np.full_like(VALUES, 255)])
    assert np.array_equal(gray_of(read(saved(pixels))).values, VALUES)
    assert np.array_equal(read(saved(pixels[..., 2:], mode="LA")).values, VALUES)
    pixels[0, 0, 3] = 254
    with pytest.raises(MaskFileError, match="not opaque; save it without alpha"):
        read(saved(pixels))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"not a PNG, GIF, BMP or TIFF \(there are none\)"),
        (b"hello, world", "they begin with 68 65 6c 6c"),
        (saved(VALUES, "JPEG"), "JPEG, whose compression is lossy"),
        (saved(VALUES)[:-20], "end within a chunk"),
        (saved(VALUES, "BMP")[:40], "cannot be decoded"),
        (saved(VALUES, "TIFF")[:20], "cannot be decoded"),
        (saved(np.zeros((16, 16, 3), np.uint8), "TIFF", compression="jpeg"), "jpeg inside, which is lossy"),
        (saved(np.zeros((2, 2), np.float32), "TIFF"), "save whole numbers"),
        (png(1, 1, 16, 2, [bytes(6)]), "16 bits with colors"),
        (saved(VALUES, "TIFF", save_all=True, append_images=[Image.new("L", (3, 2))]), "holds 2 pictures"),
    ],
    ids=["nothing", "text", "jpeg", "png cut", "bmp cut", "tiff cut", "jpeg in tiff", "fractions", "deep", "two pages"],
)
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
def test_other_files_are_refused_with_the_reason(data, message):
    with pytest.raises(MaskFileError, match=message):
        read(data)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_the_header_is_checked_before_any_pixel_is_decoded(kind, monkeypatch):
    data = saved(np.zeros((40, 50), np.uint8), kind)
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("decoded"))
    with pytest.raises(MaskFileError, match="max_pixels is 1999"):
        read(data, most=1999)


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@given(st.binary(max_size=60), st.sampled_from(["PNG", "BMP", "TIFF"]), st.integers(0, 200))
def test_damaged_bytes_raise_nothing_else(noise, kind, place):
    data = saved(VALUES, kind)
    damaged = data[:place] + noise + data[place + len(noise) :]
    try:
        mask = read(damaged)
    except MaskFileError:
        return
    assert mask.values.ndim == 2


@pytest.mark.shared_data
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
def test_the_hostile_files_raise_nothing_else(shared_data):
    files = [path for path in sorted((shared_data / "hostile").rglob("*")) if path.is_file()]
    assert len(files) > 100
    read_well = 0
    for path in files:
        try:
            read_well += read_mask(path.read_bytes(), max_pixels=10**8).values.size > 0
        except MaskFileError:
            continue
    assert read_well > 5
