"""The stored bytes of one image, by every option; it is decoded only where an option requires it."""

import io
import threading

import build
import numpy as np
import pytest
from ingesting import run, tree
from picturing import DISPLAYED, GPS, pillow_exif
from PIL import Image, ImageOps

from shardwright.config import ImagesConfig
from shardwright.dataset import stored_image as prepare_module
from shardwright.dataset.stored_image import prepare
from shardwright.images import decode
from shardwright.images.header import ImageError
from shardwright.images.read_header import read_header
from shardwright.ingest import run_ingest as ingest_run
from shardwright.ingest import write_shards as write

MANY = 200_000_000


def stored(data, **options):
    return prepare(data, ImagesConfig(**options))


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)))


@pytest.fixture
def no_pixels(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("decoded")

    monkeypatch.setattr(prepare_module, "decode", fail)
    monkeypatch.setattr(prepare_module, "convert", fail)


@pytest.mark.parametrize(
    ("orientation", "options"),
    [
        (6, {}),
        (6, {"unsupported_formats": "png", "quality": 10}),
        (1, {"orientation": "apply"}),
        (1, {"orientation": "apply", "resize": "stretch", "size": (24, 40)}),
        (1, {"resize": "longest_side", "size": 40}),
    ],
)
@pytest.mark.usefixtures("no_pixels")
def test_what_needs_nothing_passes_through(orientation, options):
    data = build.encoded(build.cloudy(3), "jpeg", orientation)
    bytes_, header, frames = stored(data, **options)
    assert bytes_ is data
    assert header == read_header(data, max_pixels=MANY)
    assert (frames.turned, frames.geometry) == (False, None)


@pytest.mark.usefixtures("no_pixels")
def test_metadata_is_stripped_without_decoding():
    data = build.encoded(build.cloudy(3), "jpeg", exif=b"Exif\0\0" + pillow_exif({0x0112: 3}, gps=GPS))
    bytes_, header, _ = stored(data, strip_metadata="private")
    assert header.located
    assert not read_header(bytes_, max_pixels=MANY).located
    assert read_header(bytes_, max_pixels=MANY).orientation == 3


@pytest.mark.parametrize("kind", ["png", "jpeg"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("orientation", range(2, 9))
def test_what_is_to_be_turned_is_turned_and_keeps_its_format(kind, mode, orientation):
    source = build.cloudy(3, mode=mode)
    data = build.encoded(source, kind, orientation, **({"quality": 95, "subsampling": 0} if kind == "jpeg" else {}))
    bytes_, header, frames = stored(data, orientation="apply", quality=95, chroma=444)
    expected = np.asarray(source)
    expected = np.stack([DISPLAYED[orientation](band) for band in np.atleast_3d(expected).transpose(2, 0, 1)], axis=-1)
    assert header == read_header(bytes_, max_pixels=MANY)
    assert (header.format, header.orientation, header.channels) == (kind, 1, expected.shape[2])
    assert (header.height, header.width) == expected.shape[:2]
    assert (frames.height, frames.width, frames.orientation, frames.turned) == (24, 40, orientation, True)
    difference = np.abs(np.atleast_3d(pixels(bytes_)).astype(int) - expected)
    assert difference.mean() < (1e-9 if kind == "png" else 4)


@pytest.mark.parametrize("encoding", ["jpeg", "png", "tensor", "raw"])
def test_images_are_re_encoded_in_the_stored_frame(encoding):
    bytes_, header, frames = stored(build.encoded(build.cloudy(3), "png", 6), encoding=encoding)
    assert (header.format, header.height, header.width, header.channels, header.orientation) == (encoding, 24, 40, 3, 6)
    assert not frames.turned
    if encoding in ("jpeg", "png"):
        assert read_header(bytes_, max_pixels=MANY) == header
        upright = ImageOps.exif_transpose(Image.open(io.BytesIO(bytes_)))
        assert upright.size == (24, 40)
    else:
        assert bytes_.endswith(np.asarray(build.cloudy(3)).tobytes())


@pytest.mark.parametrize(
    ("resize", "size", "expected"),
    [
        ("stretch", (10, 12), (10, 12)),
        ("fill_crop", (10, 12), (10, 12)),
        ("letterbox", (10, 12), (10, 12)),
        ("longest_side", 20, (12, 20)),
        ("longest_side", 80, (48, 80)),
    ],
)
@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_images_are_resized_and_keep_their_format(kind, resize, size, expected):
    bytes_, header, frames = stored(build.encoded(build.cloudy(3), kind), resize=resize, size=size)
    assert (header.height, header.width, header.format) == (*expected, kind)
    assert read_header(bytes_, max_pixels=MANY) == header
    assert (frames.geometry.height, frames.geometry.width) == expected


@pytest.mark.parametrize("size", [(160, 240), (163, 245)])
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("resize", ["stretch", "fill_crop"])
def test_a_turn_and_a_resize_together_are_one_after_the_other(orientation, resize, size):
    """Also where a JPEG is scaled while it is decoded and its sides are not multiples of the ratio."""
    source = build.cloudy(3, size=size)
    data = build.encoded(source, "jpeg", orientation, quality=98, subsampling=0)
    small, header, _ = stored(data, orientation="apply", resize=resize, size=(20, 30), encoding="png")
    turned, _, _ = stored(data, orientation="apply", encoding="png")
    after, _, _ = stored(turned, resize=resize, size=(20, 30))
    assert (header.height, header.width) == (20, 30)
    assert np.abs(pixels(small).astype(int) - pixels(after)).mean() < 1.5


def test_other_formats_are_converted_where_that_is_wanted():
    data = build.encoded(build.cloudy(3), "webp", 6, lossless=True)
    with pytest.raises(
        ImageError, match="the bytes are WebP; save it as JPEG or PNG, or set images.unsupported_formats"
    ):
        stored(data)
    bytes_, header, frames = stored(data, unsupported_formats="png")
    assert (header.format, header.orientation, frames.height, frames.width) == ("png", 6, 24, 40)
    assert read_header(bytes_, max_pixels=MANY) == header
    np.testing.assert_array_equal(pixels(bytes_), build.cloudy(3))
    assert stored(data, unsupported_formats="jpeg")[1].format == "jpeg"
    assert stored(data, unsupported_formats="jpeg", encoding="png")[1].format == "png"
    upright, header, _ = stored(data, unsupported_formats="png", orientation="apply", resize="longest_side", size=20)
    assert (header.height, header.width, header.orientation) == (20, 12, 1)
    assert not Image.open(io.BytesIO(upright)).getexif()


def test_an_animations_still_image_is_what_is_encoded():
    frames = [Image.new("RGB", (4, 4), color) for color in ("red", "blue")]
    data = build.encoded(frames[0], "png", save_all=True, append_images=frames[1:])
    bytes_, _, _ = stored(data, encoding="png")
    assert Image.open(io.BytesIO(bytes_)).n_frames == 1
    np.testing.assert_array_equal(pixels(bytes_), frames[0])


@pytest.mark.parametrize(
    "options",
    [
        {"orientation": "apply"},
        {"encoding": "png"},
        {"unsupported_formats": "png", "resize": "longest_side", "size": 8},
    ],
)
@pytest.mark.parametrize("kind", ["png", "jpeg", "webp", "tiff"])
def test_what_is_too_large_is_refused_by_its_header(kind, options, monkeypatch):
    monkeypatch.setattr(prepare_module, "decode", lambda *_: pytest.fail("decoded"))
    monkeypatch.setattr(decode, "_eight_bits", lambda *_: pytest.fail("decoded"))
    data = build.encoded(build.cloudy(3), kind, 6)
    with pytest.raises(ImageError) as caught:
        stored(data, max_pixels=40 * 24 - 1, **options)
    assert caught.value.code == (
        "too_large" if kind in ("png", "jpeg") or "unsupported_formats" in options else "unsupported_format"
    )


def test_pixels_that_cannot_be_decoded_are_refused_and_the_bytes_pass_through_otherwise():
    data = build.encoded(build.cloudy(3, size=(200, 200)))
    at = data.index(b"IDAT") + 30
    length = int.from_bytes(data[at - 34 : at - 30], "big")
    import struct
    import zlib

    body = data[at - 26 : at - 26 + length]
    broken = body[: length // 2] + bytes(length - length // 2)
    data = data[: at - 26] + broken + struct.pack(">I", zlib.crc32(b"IDAT" + broken)) + data[at - 26 + length + 4 :]
    assert stored(data)[0] is data
    with pytest.raises(ImageError) as caught:
        stored(data, encoding="jpeg")
    assert caught.value.code == "damaged"


HOSTILE = [
    {},
    {"unsupported_formats": "png"},
    {"unsupported_formats": "jpeg", "orientation": "apply"},
    {"strip_metadata": "all", "resize": "letterbox", "size": (32, 48), "unsupported_formats": "png"},
    {"strip_metadata": "private", "encoding": "tensor", "unsupported_formats": "jpeg"},
]


@pytest.mark.shared_data
@pytest.mark.parametrize("options", HOSTILE, ids=lambda options: " ".join(map(str, options.values())) or "defaults")
def test_no_hostile_file_ends_the_run(shared_data, options):
    taken = 0
    refused = {}
    for path in sorted((shared_data / "hostile").rglob("*")):
        if not path.is_file():
            continue
        try:
            bytes_, header, frames = stored(path.read_bytes(), **options)
        except ImageError as error:
            refused[path.name] = error
            continue
        taken += 1
        assert header.format in ({options["encoding"]} if "encoding" in options else {"jpeg", "png"})
        if header.format != "tensor":
            found = read_header(bytes_, max_pixels=MANY)
            assert (found.height, found.width, found.orientation) == (header.height, header.width, header.orientation)
            assert not (found.located and "strip_metadata" in options)
        if options.get("orientation") == "apply":
            assert header.orientation == 1
        assert frames.geometry is None or (header.height, header.width) == (32, 48)
    assert all(error.code and error.reason and " at 0x" not in error.reason for error in refused.values())
    assert refused["decompression_bomb.gif"].code == (
        "too_large" if "unsupported_formats" in options else "unsupported_format"
    )
    assert taken > (80 if "unsupported_formats" in options else 60)


@pytest.mark.parametrize("images", [{"verify": "full"}, {"size": [8, 8], "resize": "stretch"}, {}])
def test_where_cores_are_left_threads_decode_the_images_of_a_shard(tmp_path, monkeypatch, images):
    random = np.random.default_rng(3)
    for i in range(24):
        file = tmp_path / "in" / f"{i:02}.png"
        file.parent.mkdir(exist_ok=True)
        Image.fromarray(random.integers(0, 256, (16, 24, 3), np.uint8)).save(file)
    # One is damaged: it is rejected in its place.
    file.write_bytes(file.read_bytes()[:-40])
    prepared, found = write.prepare, {}
    raw = {"input": {"images": str(tmp_path / "in"), "labels": {"format": "none"}}, "task": "classification"}
    for cores in (1, 4):
        callers = set()

        def noted(*arguments, callers=callers):
            callers.add(threading.get_ident())
            return prepared(*arguments)

        monkeypatch.setattr(ingest_run, "usable_cores", lambda cores=cores: cores)
        monkeypatch.setattr(write, "prepare", noted)
        run({**raw, "images": images}, tmp_path / f"out{cores}")
        found[cores] = tree(tmp_path / f"out{cores}")
        assert (threading.get_ident() in callers) == (cores == 1 or not images)
    assert found[1] == found[4]
