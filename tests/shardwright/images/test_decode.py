"""Pixels of every color and format: those that TensorFlow decodes, or a refusal; never a bomb's."""

import dataclasses
import io
import re
import struct
import subprocess
import sys
import warnings
import zlib

import build
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from picturing import pillow_exif
from PIL import Image, ImageFile

from shardwright.images.decode import FORMATS, apply_orientation, convert, decode, other_header
from shardwright.images.exif import only_orientation
from shardwright.images.geometry import DCT_RATIOS
from shardwright.images.header import ImageError
from shardwright.images.read_header import read_header

MANY = 200_000_000


def picture(mode="RGB", size=(40, 24)):
    noise = np.random.default_rng(3).integers(0, 256, (4, 5, 4), dtype=np.uint8)
    image = Image.fromarray(noise, "RGBA").resize(size, Image.Resampling.BICUBIC)
    return image if mode == "RGBA" else image.convert("RGB").convert(mode)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_by_hand(depth, color, samples, extra=b""):
    """A PNG of one row; `samples` are its packed bytes."""
    width = len(samples) * 8 // (depth * {0: 1, 2: 3, 4: 2, 6: 4}[color])
    header = struct.pack(">IIBBBBB", width, 1, depth, color, 0, 0, 0)
    data = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(b"\0" + samples)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + data


TAKEN = {
    "gray jpeg": build.encoded(picture("L"), "jpeg"),
    "color jpeg": build.encoded(picture(), "jpeg"),
    "progressive jpeg": build.encoded(picture(), "jpeg", progressive=True),
    "cmyk jpeg": build.encoded(picture("CMYK"), "jpeg"),
    "cmyk jpeg without Adobe's marker": build.encoded(picture("CMYK"), "jpeg").replace(
        b"\xff\xee\0\x0eAdobe", b"\xff\xee\0\x0eadobe"
    ),
    "rgb jpeg": build.encoded(picture(), "jpeg", keep_rgb=True),
    "black and white png": build.encoded(picture("1"), "png"),
    "gray png": build.encoded(picture("L"), "png"),
    "gray and alpha png": build.encoded(picture("RGBA").convert("LA"), "png"),
    "alpha png": build.encoded(picture("RGBA"), "png"),
    "palette png": build.encoded(picture("P"), "png"),
    "palette png with transparency": build.encoded(picture("P"), "png", transparency=bytes(range(256))),
    "png with a transparent color": build.encoded(picture(), "png", transparency=(1, 2, 3)),
    "2-bit png": png_by_hand(2, 0, bytes([0b00011011, 0b11100100])),
    "4-bit png": png_by_hand(4, 0, bytes(range(0, 256, 17))),
    "16-bit gray png": png_by_hand(16, 0, bytes(range(100, 164))),
    "16-bit gray and alpha png": png_by_hand(16, 4, bytes(range(100, 164))),
    "16-bit color png": png_by_hand(16, 2, bytes(range(100, 160))),
    "16-bit alpha png": png_by_hand(16, 6, bytes(range(100, 164))),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_pixels_are_tensorflows(kind):
    from shardwright.images import tf_ops

    image = decode(TAKEN[kind], read_header(TAKEN[kind], max_pixels=MANY))
    assert image.mode in ("L", "RGB")
    np.testing.assert_array_equal(np.asarray(image.convert("RGB")), tf_ops.decode(TAKEN[kind]).numpy())


@pytest.mark.parametrize("kind", ["gray jpeg", "color jpeg", "progressive jpeg", "cmyk jpeg"])
@pytest.mark.parametrize("ratio", DCT_RATIOS)
def test_a_jpeg_is_scaled_while_it_is_decoded(kind, ratio):
    image = decode(TAKEN[kind], read_header(TAKEN[kind], max_pixels=MANY), ratio)
    assert image.size == (-(-40 // ratio), -(-24 // ratio))


@given(st.integers(8, 100), st.integers(8, 100), st.sampled_from(DCT_RATIOS))
def test_the_ratio_is_met_for_any_size(height, width, ratio):
    data = build.encoded(Image.new("L", (width, height)), "jpeg")
    image = decode(data, read_header(data, max_pixels=MANY), ratio)
    assert image.size == (-(-width // ratio), -(-height // ratio))


CONVERTED = {
    "GIF": (build.encoded(picture("P"), "gif"), "RGB"),
    "WebP": (build.encoded(picture(), "webp", lossless=True), "RGB"),
    "WebP with alpha": (build.encoded(picture("RGBA"), "webp", lossless=True, exact=True), "RGB"),
    "BMP": (build.encoded(picture(), "bmp"), "RGB"),
    "black and white BMP": (build.encoded(picture("1"), "bmp"), "L"),
    "TIFF": (build.encoded(picture(), "tiff"), "RGB"),
    "packed TIFF": (build.encoded(picture(), "tiff", compression="tiff_lzw"), "RGB"),
    "TIFF with alpha": (build.encoded(picture("RGBA"), "tiff"), "RGB"),
    "AVIF": (build.encoded(picture(), "avif", quality=100, subsampling="4:4:4"), "RGB"),
    "JPEG 2000": (build.encoded(picture(), "jpeg2000"), "RGB"),
    "PPM": (build.encoded(picture(), "ppm"), "RGB"),
    "gray PPM": (build.encoded(picture("L"), "ppm"), "L"),
}


@pytest.mark.parametrize("kind", CONVERTED)
def test_other_formats_are_converted(kind):
    data, mode = CONVERTED[kind]
    image, header = convert(data, max_pixels=MANY)
    assert image.mode == mode
    assert header.format in kind
    assert (header.height, header.width, header.orientation) == (24, 40, 1)
    source = picture("RGBA") if "alpha" in kind else picture()
    reference = Image.open(io.BytesIO(data)).convert(mode) if "GIF" in kind or "white" in kind else source.convert(mode)
    difference = np.abs(np.asarray(image).astype(int) - np.asarray(reference))
    assert difference.max() <= (30 if kind == "AVIF" else 0)
    assert not image.info


def test_every_format_that_is_known_to_be_converted_is_tried():
    assert {name for name in FORMATS if any(name in kind for kind in CONVERTED)} == set(FORMATS) - {"Photoshop"}


def test_inks_of_a_tiff_and_upper_bits():
    inks = np.array([[[0, 255, 100, 0], [10, 20, 30, 128]]], np.uint8)
    image, _ = convert(build.encoded(Image.fromarray(inks, "CMYK"), "tiff"), max_pixels=MANY)
    assert np.asarray(image).tolist() == [[[255, 0, 155], [245 * 127 // 255, 235 * 127 // 255, 225 * 127 // 255]]]
    deep = np.array([[0, 255, 256, 65535]], np.uint16)
    image, header = convert(build.encoded(Image.fromarray(deep), "tiff"), max_pixels=MANY)
    assert np.asarray(image).tolist() == [[0, 0, 1, 255]]
    assert header.channels == 1


@pytest.mark.parametrize("kind", ["webp", "tiff", "avif"])
@pytest.mark.parametrize("orientation", [1, 2, 3, 6, 8])
def test_an_orientation_is_reported_and_the_pixels_are_the_stored_ones(kind, orientation):
    options = {} if kind == "tiff" else {"lossless": True} if kind == "webp" else {"quality": 100}
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = build.encoded(picture("L").convert("RGB"), kind, exif=exif, **options)
    image, header = convert(data, max_pixels=MANY)
    assert header.orientation == orientation
    assert image.size == (40, 24)
    assert other_header(data, max_pixels=MANY) == header
    assert np.abs(np.asarray(image).astype(int) - np.asarray(picture("L").convert("RGB"))).mean() < 3


def test_the_location_of_other_formats_is_reported():
    exif = b"Exif\0\0" + pillow_exif(gps={2: (1.0, 2.0, 3.0)})
    assert convert(build.encoded(picture(), "webp", exif=exif), max_pixels=MANY)[1].located
    assert not convert(build.encoded(picture(), "webp"), max_pixels=MANY)[1].located


def test_of_an_animation_the_first_picture_is_taken():
    frames = [picture("L").point(lambda v, n=n: (v + 60 * n) % 256).convert("RGB") for n in range(3)]
    for kind, options in (("webp", {"lossless": True}), ("tiff", {})):
        data = build.encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
        np.testing.assert_array_equal(np.asarray(convert(data, max_pixels=MANY)[0]), np.asarray(frames[0]))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pixels_turn_by_the_exif_orientation(orientation):
    stored = picture("L", (3, 2))
    data = build.encoded(stored, "png", exif=only_orientation(orientation) or None)
    displayed = apply_orientation(decode(data, read_header(data, max_pixels=MANY)), orientation)
    from PIL import ImageOps

    np.testing.assert_array_equal(
        np.asarray(displayed), np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    )


def refusal(data, max_pixels=MANY):
    with pytest.raises(ImageError) as caught:
        convert(data, max_pixels=max_pixels)
    return caught.value.code


def test_what_has_no_meaning_in_eight_bits_is_refused():
    assert refusal(build.encoded(Image.new("F", (4, 4), 0.5), "tiff")) == "unsupported_color"
    assert refusal(build.encoded(Image.new("I", (4, 4), 70000), "tiff")) == "unsupported_color"
    assert refusal(build.encoded(picture().convert("LAB"), "tiff")) == "unsupported_color"
    assert refusal(b"\0\0\0\x18ftypheic" + bytes(40)) == "unsupported_format"


BOMBS = {
    "GIF": b"GIF89a"
    + struct.pack("<HH", 65535, 65535)
    + b"\0\0\0"
    + b","
    + struct.pack("<HHHH", 0, 0, 65535, 65535)
    + b"\0\2\2L\1\0;",
    "frame of a GIF": b"GIF89a"
    + struct.pack("<HH", 4, 4)
    + b"\0\0\0"
    + b","
    + struct.pack("<HHHH", 0, 0, 60000, 60000)
    + b"\0\2\2L\1\0;",
    "BMP": b"BM" + struct.pack("<IIIIiiHHIIIIII", 1000, 0, 54, 40, 40000, 40000, 1, 24, 0, 0, 0, 0, 0, 0) + bytes(100),
    "WebP": re.sub(
        rb"(VP8L....\x2f)....",
        lambda found: found[1] + struct.pack("<I", 16382 | 16382 << 14),
        build.encoded(picture(), "webp", lossless=True),
        flags=re.DOTALL,
    ),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_refused_by_its_header_and_never_loaded(kind, monkeypatch):
    loaded = []
    for name in ("load", "load_prepare"):
        monkeypatch.setattr(ImageFile.ImageFile, name, lambda image: loaded.append(image))
    assert refusal(BOMBS[kind], max_pixels=100_000_000) == "too_large"
    other_header(CONVERTED["TIFF"][0], max_pixels=MANY)
    assert not loaded
    convert(CONVERTED["BMP"][0], max_pixels=MANY)  # A warning about a bomb would be seen.
    assert loaded


def test_the_size_of_every_kind_of_webp_is_known_before_it_is_opened(monkeypatch):
    frames = [picture(), picture().transpose(0)]
    kinds = {
        b"VP8 ": build.encoded(frames[0], "webp"),
        b"VP8L": build.encoded(frames[0], "webp", lossless=True),
        b"VP8X": build.encoded(frames[0], "webp", save_all=True, append_images=frames[1:]),
    }
    monkeypatch.setitem(FORMATS, "WebP", lambda _: pytest.fail("opened"))
    for kind, data in kinds.items():
        assert data[12:16] == kind
        with pytest.raises(ImageError, match=r"40x24 \(width x height\) are 960 pixels"):
            convert(data, max_pixels=959)


@pytest.mark.slow
def test_bombs_need_no_memory(tmp_path):
    """Runs all of them in a process with a limit of a gigabyte, which reports its peak memory."""
    for kind, data in BOMBS.items():
        (tmp_path / kind).write_bytes(data)
    script = """
import resource, sys
from pathlib import Path
from shardwright.running.processes import peak_memory
from shardwright.images.decode import convert, other_header
from shardwright.images.header import ImageError
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
before = peak_memory()
for file in Path(sys.argv[1]).iterdir():
    for read in (convert, other_header):
        try:
            read(file.read_bytes(), max_pixels=100_000_000)
        except ImageError as error:
            print(error.code)
print("grown", peak_memory() - before)
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    *codes, grown = done.stdout.splitlines()
    assert codes == ["too_large"] * 2 * len(BOMBS)
    assert int(grown.split()[1]) < 20_000_000


def test_pillows_own_limit_is_neither_needed_nor_left_changed(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert convert(CONVERTED["TIFF"][0], max_pixels=960)[0].size == (40, 24)
        assert decode(TAKEN["alpha png"], read_header(TAKEN["alpha png"], max_pixels=960)).size == (40, 24)
    assert refusal(CONVERTED["TIFF"][0], max_pixels=959) == "too_large"
    assert Image.MAX_IMAGE_PIXELS == 10


@given(st.data())
def test_damaged_files_are_pixels_or_a_refusal(data):
    kind = data.draw(st.sampled_from(sorted(CONVERTED)))
    broken = bytearray(CONVERTED[kind][0])
    for _ in range(data.draw(st.integers(0, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    broken = broken[: data.draw(st.integers(0, len(broken)) | st.just(len(broken)))]
    try:
        image, header = convert(bytes(broken), max_pixels=1_000_000)
    except ImageError:
        return
    assert image.size == (header.width, header.height)


def segment(marker, body):
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


# The segments before a picture -> whether the decoder may have it without Pillow's parser.
BEFORE = {
    b"": True,
    segment(0xFE, b"a comment"): True,
    segment(0xE0, b"JFIF\0\1"): False,
    segment(0xE0, b"JFIF\0\1\1"): True,
    segment(0xEE, b"Adobe\0"): False,
    segment(0xE2, b"ICC_PROFILE\0\1"): False,
    segment(0xE2, b"ICC_PROFILE\0\1\1"): True,
    segment(0xE1, b"Exif\0\0II*\0"): False,
    segment(0xED, b"Photoshop 3.0\x008BIM\3\xed"): False,
    segment(0xE5, b"whatever"): True,
    segment(0xFE, b"") + b"junk": False,
    b"\xff": False,
    b"\xff\x01": False,
    b"\xff\xd0": False,
}


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_a_jpeg_is_decoded_as_by_pillow_whatever_stands_before_it(before, mode):
    image = build.encoded(picture(mode), "jpeg")
    data = image[:2] + before + image[2:]
    header = read_header(data, max_pixels=MANY)
    assert header.plain == (BEFORE[before] and mode != "CMYK")
    for ratio in DCT_RATIOS:
        assert_same_either_way(data, header, ratio)


@given(st.integers(2, 10**6), st.binary(max_size=3), st.sampled_from(["L", "RGB"]), st.booleans())
def test_a_damaged_jpeg_is_refused_as_by_pillow(place, patch, mode, progressive):
    data = bytearray(build.encoded(picture(mode), "jpeg", progressive=progressive))
    place = 2 + place % (len(data) - 2)
    data[place : place + len(patch)] = patch
    try:
        header = read_header(bytes(data), max_pixels=MANY)
    except ImageError:
        return
    assert_same_either_way(bytes(data), header, 2)


def assert_same_either_way(data, header, ratio):
    """Holds what is decoded, or why nothing is, against what Pillow's own reader of JPEG files makes of it."""
    made = []
    for plain in (header.plain, False):
        try:
            image = decode(data, dataclasses.replace(header, plain=plain), ratio)
            made.append((image.mode, image.size, image.tobytes(), image.info))
        except ImageError as error:
            made.append((error.code, error.reason))
    assert made[0] == made[1]
