import csv
import pickle
import re
import struct
import zlib
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries

from shardwright.images import header as images_header
from shardwright.images import jpeg as jpeg_file
from shardwright.images.header import ImageError, ImageHeader
from shardwright.images.read_header import read_header

MANY = 200_000_000

# --- images built from bytes ----------------------------------------------------------------------------------------

QUANTIZATION = b"\x00" + bytes([1] * 64)
HUFFMAN = b"\x00" + bytes([0, 1] + [0] * 14) + b"\x00"


def segment(marker, body):
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def frame(height, width, channels=1, depth=8, marker=0xC0, factors=0x11):
    parts = b"".join(bytes([number + 1, factors, 0]) for number in range(channels))
    return segment(marker, struct.pack(">BHHB", depth, height, width, channels) + parts)


def jpeg(*before_scan, scan=b"\x12\xff\x00\x34", end=b"\xff\xd9", sof=None):
    head = segment(0xDB, QUANTIZATION) + segment(0xC4, HUFFMAN) + (frame(6, 4) if sof is None else sof)
    return b"\xff\xd8" + b"".join(before_scan) + head + segment(0xDA, b"\x01\x01\x00\x00\x3f\x00") + scan + end


def exif(order, value, kind=3, tag=0x0112, count=1):
    mark = {"<": b"II", ">": b"MM"}[order]
    value = struct.pack(order + {3: "H", 4: "I"}.get(kind, "I"), value).ljust(4, b"\0")
    other = struct.pack(order + "HHI", 0x010F, 2, 4) + b"abc\0"
    entry = struct.pack(order + "HHI", tag, kind, count) + value
    return mark + struct.pack(order + "HIH", 42, 8, 2) + other + entry + struct.pack(order + "I", 0)


def app1(tiff):
    return segment(0xE1, b"Exif\0\0" + tiff)


def chunk(kind, body, crc=None):
    return (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body) if crc is None else crc)
    )


def header_chunk(height, width, depth=8, color=0, interlace=0, compression=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, compression, 0, interlace))


def png(*chunks, end=True):
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + (chunk(b"IEND", b"") if end else b"")


def small_png(*between, height=2, width=2, **header):
    return png(header_chunk(height, width, **header), *between, chunk(b"IDAT", zlib.compress(bytes(6))))


def refusal(data, max_pixels=MANY):
    with pytest.raises(ImageError) as caught:
        read_header(data, max_pixels=max_pixels)
    return caught.value.code, caught.value.reason


def check_refusal(data, code, reason):
    found = refusal(data)
    assert found[0] == code
    assert reason in found[1]


# --- JPEG -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", [0xC0, 0xC1, 0xC2])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_jpeg_size_and_channels(marker, channels):
    data = jpeg(sof=frame(600, 65_500, channels, marker=marker))
    assert read_header(data, max_pixels=MANY) == ImageHeader("jpeg", 600, 65_500, channels, 1)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("kind", [3, 4])
def test_orientation_in_both_byte_orders(order, value, kind):
    tiff = exif(order, value, kind)
    assert read_header(jpeg(app1(tiff)), max_pixels=MANY).orientation == value
    assert read_header(small_png(chunk(b"eXIf", tiff)), max_pixels=MANY).orientation == value


@pytest.mark.parametrize(
    "tiff",
    [
        b"",
        b"II",
        b"II*\0",
        b"XX*\0\x08\0\0\0",
        b"II*\0\xff\xff\xff\xff",
        exif("<", 0),
        exif("<", 9),
        exif(">", 6, kind=2),
        exif(">", 6, count=2),
        exif(">", 6, tag=0x0113),
        exif("<", 6)[:-10],
        exif("<", 6)[:8] + b"\xff\xff" + exif("<", 1)[10:22],
    ],
)
def test_a_broken_orientation_is_upright(tiff):
    assert read_header(jpeg(app1(tiff)), max_pixels=MANY).orientation == 1
    assert read_header(small_png(chunk(b"eXIf", tiff)), max_pixels=MANY).orientation == 1


def test_the_first_exif_block_counts_and_other_blocks_are_passed_over():
    xmp = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>")
    data = jpeg(segment(0xE0, b"JFIF\0"), xmp, app1(exif("<", 6)), app1(exif("<", 3)), segment(0xFE, b"note \xff\xd9"))
    assert read_header(data, max_pixels=MANY).orientation == 6


@pytest.mark.parametrize(
    "data",
    [
        jpeg(end=b"\xff\xff\xff\xd9"),
        jpeg(end=b"\xff\xd9" + b"\0" * 100),
        jpeg(end=b"\xff\xd9 trailing \xff\xd8\xff junk"),
        jpeg(b"\xff\xff", segment(0xE0, b"JFIF\0")),
        jpeg(segment(0xE0, b"JFIF\0"), b"junk\xff\x00junk"),
        jpeg(scan=b"\xff\xd0\x12\xff\xd7\x34"),
        jpeg(scan=b"\x01" + segment(0xC4, HUFFMAN) + segment(0xDA, b"\x01\x01\x00\x01\x3f\x00") + b"\x02"),
    ],
)
def test_odd_but_whole_jpegs_are_taken(data):
    assert read_header(data, max_pixels=MANY) == ImageHeader("jpeg", 6, 4, 1, 1)


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (jpeg(end=b""), "truncated", "no end-of-image marker"),
        (jpeg(end=b"\xff"), "truncated", "no end-of-image marker"),
        # The only end marker is that of a thumbnail inside a segment.
        (jpeg(app1(b"\xff\xd8\xff\xd9"), end=b""), "truncated", "no end-of-image marker"),
        (jpeg()[:40], "truncated", "end within a segment that begins at byte 4"),
        (b"\xff\xd8\xff\xe0", "truncated", "end within a segment"),
        (b"\xff\xd8\xff\xe0\x00", "truncated", "end within a segment"),
        (jpeg(b"\xff\xe0\x00\x01"), "damaged", "a segment of length 1 at byte 4"),
        (jpeg(sof=frame(1, 1) + frame(1, 1)), "damaged", "a second frame header"),
        (jpeg(sof=b""), "damaged", "begins before its size and coding tables"),
        (jpeg(sof=segment(0xC0, b"\x08\x00\x01")), "damaged", "frame header has 3 bytes"),
        (jpeg(sof=frame(1, 1, factors=0x51)), "damaged", "sampling factors"),
        (jpeg(sof=frame(0, 7)), "damaged", "7x0 (width x height): there are no pixels"),
        (jpeg(segment(0xDB, QUANTIZATION[:-1])), "damaged", "coding tables at byte 2"),
        (jpeg(segment(0xDB, b"\x04" + QUANTIZATION[1:])), "damaged", "coding tables"),
        (jpeg(segment(0xC4, b"\x00" + bytes([3] + [0] * 15) + b"abc")), "damaged", "coding tables"),
        (jpeg(segment(0xC4, HUFFMAN[:-1])), "damaged", "coding tables"),
        (jpeg(segment(0xC4, HUFFMAN[:-1] + b"\x10")), "damaged", "coding tables"),
        (jpeg(segment(0xC4, b"\x20" + HUFFMAN[1:])), "damaged", "coding tables"),
        (jpeg(b"\xff\xd8"), "damaged", "marker ffd8 at byte 2"),
        (jpeg(b"\xff\xf5\x00\x02"), "damaged", "marker fff5"),
        (b"\xff\xd8\xff\xd9", "damaged", "without picture data"),
        (jpeg(sof=frame(1, 1, marker=0xC3)), "unsupported_format", "lossless JPEG"),
        (jpeg(sof=frame(1, 1, marker=0xC9)), "unsupported_format", "arithmetic-coded JPEG"),
        (jpeg(sof=frame(1, 1, depth=12, marker=0xC1)), "unsupported_color", "12 bits per sample"),
        (jpeg(sof=frame(1, 1, channels=2)), "unsupported_color", "2 components"),
        (jpeg(sof=frame(65_535, 1)), "too_large", "sides of at most 65500"),
        (jpeg(scan=(b"\x01" + segment(0xDA, b"\x01\x01\x00\x01\x3f\x00")) * 500), "too_large", "more than 500 scans"),
    ],
)
def test_refused_jpegs(data, code, reason):
    check_refusal(data, code, reason)


# --- PNG ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("color", "depths", "channels"),
    [(0, (1, 2, 4, 8, 16), 1), (2, (8, 16), 3), (3, (1, 2, 4, 8), 3), (4, (8, 16), 2), (6, (8, 16), 4)],
)
@pytest.mark.parametrize("interlace", [0, 1])
def test_png_size_and_channels(color, depths, channels, interlace):
    for depth in range(17):
        data = small_png(
            chunk(b"PLTE", bytes(6)), height=30, width=1_000_000, depth=depth, color=color, interlace=interlace
        )
        if depth in depths:
            assert read_header(data, max_pixels=MANY) == ImageHeader("png", 30, 1_000_000, channels, 1)
        else:
            assert refusal(data)[0] == "unsupported_color"


def test_png_extras_may_be_broken_and_bytes_may_follow():
    data = small_png(chunk(b"tEXt", b"note", crc=1)) + b"trailing"
    assert read_header(data, max_pixels=MANY) == ImageHeader("png", 2, 2, 1, 1)


@pytest.mark.parametrize("kind", [b"eXIf", b"iTXt"])
def test_a_chunk_that_is_read_must_be_whole(kind):
    body = exif("<", 6)
    assert read_header(small_png(chunk(kind, body)), max_pixels=MANY)
    with pytest.raises(ImageError, match=f"the checksum of the PNG's chunk {kind.decode()} at byte .* is wrong"):
        read_header(small_png(chunk(kind, body, crc=1)), max_pixels=MANY)


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n", "truncated", "end before its IEND chunk"),
        (b"\x89PN", "truncated", "within the signature"),
        (small_png()[:-12], "truncated", "end before its IEND chunk"),
        (small_png()[:-1], "truncated", "end before its IEND chunk"),
        (small_png()[:-14], "truncated", "end within a chunk IDAT"),
        (png(header_chunk(2, 2)), "damaged", "without picture data"),
        (png(chunk(b"CgBI", b"1234"), header_chunk(2, 2)), "damaged", "begins with a chunk CgBI"),
        (png(chunk(b"IHDR", bytes(12))), "damaged", "header has 12 bytes"),
        (png(header_chunk(2, 2), header_chunk(2, 2)), "damaged", "a chunk IHDR at byte 33"),
        (small_png(chunk(b"ABCD", b"")), "damaged", "a chunk ABCD at byte 33"),
        (small_png(chunk(b"IDAT", b"x", crc=1)), "damaged", "checksum of the PNG's chunk IDAT at byte 33"),
        (small_png(b"\xff\xff\xff\xffIDAT1234"), "damaged", "no chunk begins there"),
        (small_png(b"\0\0\0\0\xe9\xe9\xe9\xe91234"), "damaged", "no chunk begins there"),
        (small_png(color=3), "damaged", "no palette before"),
        (small_png(height=0), "damaged", "there are no pixels"),
        (small_png(color=1), "unsupported_color", "color type 1 with 8 bits"),
        (small_png(interlace=2), "unsupported_format", "interlace 2"),
        (small_png(compression=1), "unsupported_format", "compression 1"),
        (small_png(width=1_000_001), "too_large", "sides of at most 1000000"),
    ],
)
def test_refused_pngs(data, code, reason):
    check_refusal(data, code, reason)


# --- both, and neither ----------------------------------------------------------------------------------------------


def test_the_size_limit_is_inclusive_and_named():
    for data in (jpeg(sof=frame(20, 30)), small_png(height=20, width=30)):
        assert read_header(data, max_pixels=600).width == 30
        code, reason = refusal(data, max_pixels=599)
        assert code == "too_large"
        assert reason == "30x20 (width x height) are 600 pixels; images.max_pixels is 599"
    bomb = small_png(height=1_000_000, width=1_000_000)
    assert refusal(bomb)[0] == "too_large"
    assert refusal(bomb, max_pixels=10**15)[1].endswith("TensorFlow decodes at most 536870911")


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (b"", "empty_file", "no bytes"),
        (b"\xff\xd8", "truncated", "ends after 2 bytes"),
        (bytes(1000), "not_an_image", "all 1000 bytes are zero"),
        (b"  <!DOCTYPE html>", "not_an_image", "HTML or XML"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0",
            "not_an_image",
            "a Git LFS pointer, not the image; run `git lfs pull`",
        ),
        (b"hello, world", "not_an_image", "begin with 68 65 6c 6c 6f 2c 20 77"),
        (b"GIF89a", "unsupported_format", "the bytes are GIF"),
        (b"RIFF\n\n\n\nWEBPVP8 ", "unsupported_format", "the bytes are WebP"),
        (b"BM6000", "unsupported_format", "the bytes are BMP"),
        (b"II*\0", "unsupported_format", "the bytes are TIFF"),
        (b"MM\0*", "unsupported_format", "the bytes are TIFF"),
        (b"\0\0\0\x20ftypavif", "unsupported_format", "the bytes are AVIF"),
        (b"\0\0\0\x0aftypheic", "unsupported_format", "the bytes are HEIC"),
        (b"\xff\x0a", "unsupported_format", "the bytes are JPEG XL"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "unsupported_format", "the bytes are JPEG XL"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "unsupported_format", "the bytes are JPEG 2000"),
    ],
)
def test_other_files_are_named(data, code, reason):
    check_refusal(data, code, reason)


@given(
    st.binary(max_size=300), st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", jpeg()[:200], small_png()])
)
def test_any_bytes_give_a_header_or_an_image_error(data, start):
    check_any(start + data)


@tries(400)
@given(st.data())
def test_any_damage_gives_a_header_or_an_image_error(data):
    tiff = exif("<", 6)
    image = bytearray(data.draw(st.sampled_from([jpeg(app1(tiff)), small_png(chunk(b"eXIf", tiff))])))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(image) - 1))
        image[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        image = image or bytearray(b"\xff")
    check_any(bytes(image))


@given(
    st.lists(st.sampled_from([0xFF, 0x00, 0xD0, 0xD7, 0xD8, 0xD9, 0xCF, 0x12]), max_size=24).map(bytes),
    st.integers(1, 9),
)
def test_a_scan_ends_at_the_first_marker_that_is_not_its_own(data, at_once):
    end = re.search(rb"\xff[^\x00\xff\xd0-\xd7]", data)
    many = 0 if at_once % 2 else 1 << 13
    with mock.patch.multiple(jpeg_file, _AT_ONCE=at_once, _WORTH_ARRAYS=many):
        found = jpeg_file._scan_end(data, 0)
        assert found == (end.start() if end else None)
        assert jpeg_file._scan_end(b"\xff\xd9" + data, 2) == (None if found is None else found + 2)


def check_any(data):
    try:
        header = read_header(data, max_pixels=1000)
    except ImageError as refused:
        error = refused
    else:
        error = None
    if error is not None:
        assert error.code in images_header.CODES
        assert pickle.loads(pickle.dumps(error)).reason == error.reason
        return
    assert 0 < header.height * header.width <= 1000
    assert header.orientation in range(1, 9)


# --- against the decoders that the pixels will meet -----------------------------------------------------------------


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def test_pngs_of_all_kinds_decode_to_the_same_pixels_everywhere(tf):
    """The expected pixels are computed here, so that both TensorFlows agree with them and with each other."""
    rng = np.random.default_rng(3)
    height, width = 3, 5
    for color, channels in ((0, 1), (2, 3), (3, 1), (4, 2), (6, 4)):
        for depth in {0: (1, 2, 4, 8, 16), 3: (1, 2, 4, 8)}.get(color, (8, 16)):
            values = rng.integers(0, 2**depth, (height, width, channels))
            bits = (values.reshape(height, -1, 1) >> np.arange(depth - 1, -1, -1)) & 1
            rows = np.packbits(bits.reshape(height, -1).astype(np.uint8), axis=1)
            packed = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
            palette = rng.integers(0, 256, (2**depth, 3)).astype(np.uint8)
            extras = [chunk(b"PLTE", palette.tobytes()), chunk(b"tRNS", b"\x80")] if color == 3 else []
            data = png(header_chunk(height, width, depth, color), *extras, chunk(b"IDAT", packed))
            if color == 3:
                expected = palette[values[..., 0]]
            else:
                whole = values >> 8 if depth == 16 else values * 255 // (2**depth - 1)
                expected = np.broadcast_to(whole[..., : 3 if channels > 2 else 1], (height, width, 3))
            header = read_header(data, max_pixels=MANY)
            assert (header.height, header.width) == (height, width)
            for decode in (tf.io.decode_png, tf.io.decode_jpeg):
                assert np.array_equal(decode(data, channels=3).numpy(), expected), (color, depth)


@pytest.mark.parametrize("form", ["grayscale", "rgb"])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpegs_that_tensorflow_writes(tf, form, progressive):
    pixels = np.zeros((7, 9, 1 if form == "grayscale" else 3), np.uint8)
    data = tf.io.encode_jpeg(pixels, format=form, progressive=progressive).numpy()
    assert read_header(data, max_pixels=MANY) == ImageHeader("jpeg", 7, 9, pixels.shape[2], 1)
    for end in range(len(data)):
        assert refusal(data[:end])[0] in ("empty_file", "truncated")


@pytest.mark.shared_data
def test_hostile_files_are_refused_or_really_decode(tf, shared_data):
    folder = shared_data / "hostile"
    rows = list(csv.DictReader((folder / "manifest.csv").open(encoding="utf-8", newline="")))
    refused = {}
    for row in rows:
        data = (folder / row["file"]).read_bytes()
        try:
            header = read_header(data, max_pixels=MANY)
        except ImageError as error:
            refused[row["file"]] = error.code
            continue
        for decode in (tf.io.decode_jpeg, tf.io.decode_png):
            decoded = decode(data, channels=3)
            assert decoded.dtype == tf.uint8
            assert decoded.shape == (header.height, header.width, 3), row["file"]
        if row["pillow_format"] == "JPEG":  # Pillow also takes a PNG's orientation from XMP and from text.
            assert header.orientation == int(row["exif_orientation"] or 1), row["file"]
    assert len(rows) == 114
    assert {name for name in refused if name.endswith((".jpg", ".png", ".jpeg", ".JPG")) and "_as." not in name} == {
        "5d7cd45.jpg", "broken.png", "broken_data_stream.png", "truncated_end_chunk.png", "truncated_image.png",
        "truncated_jpeg.jpg", "ultrahdr.jpg", "derived/empty.jpg", "derived/html_error.jpg", "derived/no_eoi.jpg",
        "derived/soi_only.jpg", "derived/trunc_25.jpg", "derived/trunc_50.jpg", "derived/trunc_99.jpg",
    }  # fmt: skip
    for name, code in refused.items():
        kind = next(row["category"] for row in rows if row["file"] == name)
        if kind.startswith(("gif", "webp", "tiff", "bmp", "avif", "heic", "jxl")) or "_as." in name:
            assert code == "unsupported_format", name


@pytest.mark.shared_data
def test_real_photographs_are_all_taken(shared_data):
    found = set()
    for path in sorted((shared_data / "flowers").rglob("*.jpg")):
        header = read_header(path.read_bytes(), max_pixels=MANY)
        found.add((header.format, header.height, header.width, header.channels, header.orientation))
    for path in sorted((shared_data / "steel_defects").rglob("*.*g")):
        header = read_header(path.read_bytes(), max_pixels=MANY)
        found.add((header.format, header.height, header.width))
    assert found == {("jpeg", 128, 128, 3, 1), ("jpeg", 200, 200), ("png", 200, 200)}
