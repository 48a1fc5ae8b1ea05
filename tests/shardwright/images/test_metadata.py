"""Metadata is taken out of JPEG and PNG; pixels and orientation stay, and nothing private is left anywhere."""

import io
import re

import numpy as np
import pytest
from picturing import CAMERA, GPS, MAIN, pillow_exif
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

from shardwright.images.header import ImageError
from shardwright.images.jpeg import jpeg_segments
from shardwright.images.metadata import strip_metadata
from shardwright.images.png import png_chunks
from shardwright.images.read_header import read_header

MANY = 200_000_000
SECRETS = (
    b"SERIAL",
    b"maker's secret",
    b"Ann Author",
    b"my son",
    b"whisper",
    b"xmpmeta",
    b"GPSLatitude",
    b"8BIM",
    b"behind",
)


def picture(mode="RGB", size=(37, 29)):
    noise = np.random.default_rng(5).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC).convert(mode)


def pixels(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    return image.mode, np.asarray(image)


def jpeg(image, *, profile=True, **options):
    """Returns a JPEG with everything that may be private, built by Pillow and from bytes."""
    file = io.BytesIO()
    if profile:
        options["icc_profile"] = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    xmp = b"<x:xmpmeta exif:GPSLatitude='1'/>"
    image.save(
        file,
        "jpeg",
        exif=b"Exif\0\0" + pillow_exif(MAIN, CAMERA, GPS),
        comment=b"whisper",
        xmp=xmp,
        quality=80,
        **options,
    )
    data = file.getvalue()
    iptc = b"Photoshop 3.0\0" + b"8BIM\x04\x04\0\0\0\0\0\x04text"
    extra = b"\xff\xed" + (len(iptc) + 2).to_bytes(2, "big") + iptc
    jfxx = b"\xff\xe0\0\x0bJFXX\0\x13\1\1x"
    end = data.index(b"\xff\xe1")
    return data[:end] + jfxx + extra + b"junk" + data[end:] + b"behind the end"


def png(image, **options):
    text = PngInfo()
    text.add_text("Author", "Ann Author")
    text.add_text("Comment", "whisper " * 40, zip=True)
    text.add_itxt("XML:com.adobe.xmp", "<x:xmpmeta exif:GPSLatitude='1'/>")
    file = io.BytesIO()
    image.save(file, "png", pnginfo=text, exif=pillow_exif(MAIN, CAMERA, GPS), dpi=(300, 300), **options)
    return file.getvalue() + b"behind the end"


FILES = {
    "jpeg": jpeg(picture()),
    "jpeg, progressive": jpeg(picture(), progressive=True),
    "jpeg, restarts": jpeg(picture(), restart_marker_rows=1),
    "jpeg, gray": jpeg(picture("L"), profile=False),
    "jpeg, cmyk": jpeg(picture("CMYK"), profile=False),
    "jpeg, rgb without conversion": jpeg(picture(), keep_rgb=True),
    "png": png(picture()),
    "png, palette": png(picture("P"), transparency=3),
    "png, alpha": png(picture("RGBA")),
    "png, animated": png(picture(), save_all=True, append_images=[picture(size=(37, 29)).transpose(0)]),
}


@pytest.mark.parametrize("policy", ["private", "all"])
@pytest.mark.parametrize("kind", FILES)
def test_nothing_private_is_left_and_no_pixel_changes(kind, policy):
    data = FILES[kind]
    header = read_header(data, max_pixels=MANY)
    assert header.located
    assert header.orientation == 6
    stripped = strip_metadata(data, header, policy)
    left = read_header(stripped, max_pixels=MANY)
    assert not left.located
    assert (left.format, left.height, left.width, left.channels, left.orientation) == (
        *(header.format, header.height, header.width, header.channels, header.orientation),
    )
    before, after = pixels(data), pixels(stripped)
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    assert not [secret for secret in SECRETS if secret in stripped]
    assert strip_metadata(stripped, left, policy) == stripped


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_private_keeps_what_is_public(kind):
    header = read_header(FILES[kind], max_pixels=MANY)
    image = Image.open(io.BytesIO(strip_metadata(FILES[kind], header, "private")))
    exif = image.getexif()
    assert exif[0x0110] == "Model 3"
    assert exif.get_ifd(0x8769)[0x8827] == 200
    assert not exif.get_ifd(0x8825)
    if kind == "jpeg":
        assert b"acsp" in image.info["icc_profile"]
    else:
        assert round(image.info["dpi"][0]) == 300


def test_all_keeps_the_orientation_and_nothing_else():
    stripped = {k: strip_metadata(v, read_header(v, max_pixels=MANY), "all") for k, v in FILES.items()}
    for kind in ("jpeg", "png"):
        image = Image.open(io.BytesIO(stripped[kind]))
        assert dict(image.getexif()) == {0x0112: 6}
        assert "icc_profile" not in image.info
    markers = [segment.marker for segment in jpeg_segments(stripped["jpeg, cmyk"])]
    assert markers[:2] == [0xE1, 0xEE]  # Without Adobe's marker other colors would come out.
    assert {chunk.kind for chunk in png_chunks(stripped["png, palette"])} == {
        *("IHDR", "eXIf", "PLTE", "tRNS", "IDAT", "IEND"),
    }
    upright = FILES["jpeg"].replace(b"\x12\x01\x03\x00\x01\x00\x00\x00\x06", b"\x12\x01\x03\x00\x01\x00\x00\x00\x01")
    header = read_header(upright, max_pixels=MANY)
    assert header.orientation == 1
    assert b"Exif" not in strip_metadata(upright, header, "all")


def test_none_hands_back_the_bytes():
    header = read_header(FILES["jpeg"], max_pixels=MANY)
    assert strip_metadata(FILES["jpeg"], header, "none") is FILES["jpeg"]


def test_the_picture_is_copied_byte_for_byte():
    data = FILES["jpeg, progressive"]
    stripped = strip_metadata(data, read_header(data, max_pixels=MANY), "all")
    begin = re.search(rb"\xff\xc2", data).start()
    end = data.rindex(b"\xff\xd9") + 2
    assert stripped.endswith(data[begin:end])


@pytest.mark.shared_data
@pytest.mark.parametrize("policy", ["private", "all"])
def test_real_damaged_and_odd_files_keep_their_pixels(shared_data, policy):
    taken = 0
    for path in sorted((shared_data / "hostile").rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        try:
            header = read_header(data, max_pixels=MANY)
        except ImageError:
            continue
        stripped = strip_metadata(data, header, policy)
        left = read_header(stripped, max_pixels=MANY)
        assert (left.height, left.width, left.orientation, left.located) == (
            *(header.height, header.width, header.orientation, False),
        ), path.name
        try:
            expected = pixels(data)
        except (OSError, ValueError, SyntaxError):
            continue  # Pillow does not read it with any option.
        found = pixels(stripped)
        assert found[0] == expected[0], path.name
        np.testing.assert_array_equal(found[1], expected[1], path.name)
        taken += 1
    assert taken > 50
