"""Thumbnails, hashes and measures: those of the displayed picture, the same on every machine, near the usual ones."""

import hashlib
import io
import json
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from picturing import pillow_exif
from PIL import Image

from shardwright.duplicates import hashes
from shardwright.duplicates.hashes import ImageHashes, as_int64, distance, image_hashes
from shardwright.images.decode import decode
from shardwright.images.header import ImageError
from shardwright.images.quality import measure, pixel_digest, reduction, thumbnail
from shardwright.images.read_header import read_header
from shardwright.ingest.known_files import probe_file

# Made with ImageHash 4.3.2 (average_hash, phash, dhash, whash) of `drawn(0)` to `drawn(7)`, saved as JPEG.
SIZES = [(480, 640), (333, 500), (1200, 900), (70, 64), (200, 200), (1030, 1400), (64, 900), (128, 128)]
REFERENCE = [
    (0xFD2F177F7F200043, 0x83CE7DD388786C25, 0xA14E65A5CACA5AD2, 0xFD2E157F7F220003),
    (0xDFECC8B8B1830F0C, 0xF9F991AC8B9C7C00, 0x3A9A1871632796D9, 0xDFE8C8B9B1830F0C),
    (0x31AF0F426363F243, 0xA19EEDCF6C5C8830, 0x655DD594D7C3C296, 0x31AF0F436363F243),
    (0xF09600E0F5168FE8, 0xF6665D8ECB695801, 0x242C84C16DA49F53, 0xF096C0E0F51F0FE8),
    (0x6F91A06061F7F212, 0xC72294B211F1C57F, 0xDC2D63DBCBC46426, 0x7F91A0E061F7F212),
    (0xEEA001E1291FC6A6, 0xF36BD5D0D3B0AE00, 0x0A4A4D0BABBD9C4C, 0xEAA081E1791FCEA6),
    (0xEC5ED41434EE9644, 0xD6D8F1D30A3F7300, 0x58B43425ED4A2EAD, 0xEC1E941535FE1E44),
    (0xDA9613410CCCE934, 0xFB1CD7D158E81506, 0x922EAEB31959CB68, 0xDE9E53410CECE934),
]
# The results of this code, as JPEG and as PNG: a change is another algorithm, and needs another `ALGORITHM`.
OURS = "f4a0692c152355089030bd7e3cb5e36d473ab407cf9f686beb66d14be730fbbb"
FIRST = (
    *(18243824252839133187, 9497667011652119589, 11623339451036097234, 18243542777862422531),
    *(0.500801, 0.161307, 0.006851, 0.497116, 0.523229, 0.489628, 0.499481),
)


def drawn(number, size=None):
    random = np.random.default_rng(number)
    height, width = size or SIZES[number]
    cells = Image.fromarray(random.integers(0, 256, (7, 9, 3), dtype=np.uint8))
    return cells.resize((width, height), Image.Resampling.BICUBIC)


def saved(picture, kind="jpeg", **options):
    file = io.BytesIO()
    picture.save(file, kind, **({"quality": 90, **options} if kind == "jpeg" else options))
    return file.getvalue()


def looked_at(data, function=thumbnail):
    return function(data, read_header(data, max_pixels=10**8))


def digest(data, header):
    return pixel_digest(decode(data, header), header)


def hashes_of(data):
    return image_hashes(looked_at(data).convert("L"))


def test_hashes_are_near_those_of_the_usual_implementation():
    ours = [hashes_of(saved(drawn(number))) for number in range(len(SIZES))]
    for kind in range(4):
        apart = [distance(one[kind], other[kind]) for one, other in zip(ours, REFERENCE, strict=True)]
        assert statistics.median(apart) <= 4
        assert max(apart) <= 8


def test_hashes_and_measures_are_the_same_on_every_machine():
    found = []
    for number in range(len(SIZES)):
        for kind in ("jpeg", "png"):
            data = saved(drawn(number), kind)
            row = probe_file(data, read_header(data, max_pixels=10**8), max_pixels=10**8, pixels=False)
            found.append((*row.hashes, *row.quality))
    assert found[0] == FIRST
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest() == OURS


@pytest.mark.parametrize(
    ("height", "width", "ratio"),
    [(64, 64, 1), (63, 900, 1), (126, 127, 1), (127, 127, 2), (128, 128, 2), (253, 400, 4), (1400, 2100, 8), (1, 1, 1)],
)
def test_reduction_leaves_a_short_side_of_64(height, width, ratio):
    assert reduction(height, width) == ratio == reduction(width, height)


@given(st.integers(1, 700), st.integers(1, 700))
def test_no_stronger_reduction_leaves_64(height, width):
    ratio = reduction(height, width)
    assert ratio == 1 or -(-min(height, width) // ratio) >= 64
    assert ratio == 8 or -(-min(height, width) // (2 * ratio)) < 64


@pytest.mark.parametrize("size", [(127, 127), (253, 311), (505, 505), (512, 700), (509, 1003)])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
def test_a_jpeg_is_decoded_at_the_reduced_size(size, options):
    picture = looked_at(saved(drawn(0, size), **options))
    ratio = reduction(*size)
    assert ratio > 1
    # Nothing but the decoder reduces a JPEG.
    assert picture.size == (-(-size[1] // ratio), -(-size[0] // ratio))


@pytest.mark.parametrize("mode", ["L", "CMYK", "RGB"])
def test_reduced_while_decoding_is_reduced_afterwards(mode):
    whole = drawn(1, (512, 640)).convert(mode)
    data = saved(whole)
    afterwards = Image.open(io.BytesIO(data)).convert("RGB").reduce(8)
    assert np.abs(np.asarray(looked_at(data)).astype(int) - np.asarray(afterwards)).mean() < 2


def test_formats_give_nearly_the_same_hashes():
    for number in range(len(SIZES)):
        one, other = hashes_of(saved(drawn(number), quality=98)), hashes_of(saved(drawn(number), "png"))
        assert max(map(distance, one, other)) <= 4


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_what_is_displayed_counts(orientation, kind):
    upright = drawn(2, (300, 200))
    # The stored picture that this orientation turns into the upright one.
    turns = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = upright if turns[orientation] is None else upright.transpose(turns[orientation])
    data = saved(stored, kind, exif=b"Exif\0\0" + pillow_exif({0x0112: orientation}))
    assert read_header(data, max_pixels=10**8).orientation == orientation
    assert looked_at(data).size == (100, 150)
    assert max(map(distance, hashes_of(data), hashes_of(saved(upright, kind)))) <= 2
    if kind == "png":
        assert looked_at(data, digest) == looked_at(saved(upright, kind), digest)


def test_equal_pixels_are_found_in_any_format():
    lossy = saved(drawn(3, (90, 120)))
    copies = [
        saved(Image.open(io.BytesIO(lossy)), "png"),
        saved(Image.open(io.BytesIO(lossy)), "png", compress_level=1),
        lossy[:2] + b"\xff\xfe\x00\x07other" + lossy[2:],
    ]
    assert {looked_at(copy, digest) for copy in copies} == {looked_at(lossy, digest)}
    assert looked_at(saved(drawn(3, (90, 121))), digest) != looked_at(lossy, digest)
    turned = Image.open(io.BytesIO(lossy)).transpose(Image.Transpose.ROTATE_180)
    assert looked_at(saved(turned, "png"), digest) != looked_at(lossy, digest)


def test_same_bytes_of_pixels_in_another_shape_are_other_pixels():
    flat = [saved(Image.new("RGB", size), "png") for size in ((64, 100), (100, 64))]
    assert looked_at(flat[0], digest) != looked_at(flat[1], digest)


def test_damage_in_the_coded_data_shows_at_any_reduction():
    data = saved(drawn(0, (600, 800)))
    scan = data.index(b"\xff\xda")
    cut = data[: scan + (len(data) - scan) // 2] + b"\xff\xd9"
    header = read_header(data, max_pixels=10**8)
    with pytest.raises(ImageError, match="truncated") as error:
        thumbnail(cut[:-2], header)
    assert error.value.code == "damaged"
    png = saved(drawn(0, (100, 100)), "png")
    middle = png.index(b"IDAT") + 200
    broken = png[:middle] + bytes(40) + png[middle + 40 :]
    row = probe_file(broken, read_header(png, max_pixels=10**8), max_pixels=10**8, pixels=True)
    assert (row.code, row.hashes, row.quality, row.pixels) == ("damaged", None, None, None)


def test_long_strips_are_shortened():
    assert looked_at(saved(drawn(0, (20, 9000)), "png")).size == (3000, 20)


@given(arrays.arrays(np.uint8, arrays.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=80)))
def test_any_picture_has_hashes_of_64_bits(levels):
    found = image_hashes(Image.fromarray(levels))
    assert all(0 <= value < 2**64 for value in found)
    assert [as_int64(value) % 2**64 for value in found] == list(found)
    assert all(-(2**63) <= as_int64(value) < 2**63 for value in found)
    assert all(distance(as_int64(value), value) == 0 for value in found)


GREY = arrays.arrays(
    np.uint8,
    st.tuples(st.integers(1, 130), st.integers(1, 130)) | st.tuples(st.integers(1, 900), st.integers(1, 9)),
    elements=st.integers(0, 255) | st.sampled_from([0, 255]),
)


@given(st.lists(GREY, min_size=1, max_size=4))
def test_pictures_together_have_the_hashes_of_each_alone(pictures):
    lumas = [Image.fromarray(levels) for levels in pictures]
    assert hashes.hashes_of(lumas) == [image_hashes(luma) for luma in lumas]


@pytest.mark.parametrize("level", [0, 1, 127, 255])
def test_a_flat_picture_has_no_bits_but_its_mean(level):
    found = image_hashes(Image.new("L", (90, 70), level))
    assert found == ImageHashes(0, 1 << 63 if level else 0, 0, 0)


def test_the_first_bit_is_the_highest():
    levels = np.zeros((64, 64), np.uint8)
    levels[:8, :8] = 255
    assert image_hashes(Image.fromarray(levels)).average == 1 << 63
    levels[:] = 0
    levels[-8:, -8:] = 255
    assert image_hashes(Image.fromarray(levels)).average == 1
    rising = np.tile(np.arange(72, dtype=np.uint8) * 3, (64, 1))
    assert image_hashes(Image.fromarray(rising)).difference == 2**64 - 1


def by_definition(pixels, levels):
    """The measures as their authors define them, in floats."""
    red, green, blue = pixels.reshape(-1, 3).astype(float).T
    wide = levels.astype(float)
    laplacian = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * wide[1:-1, 1:-1]
    opponent = red - green, (red + green) / 2 - blue
    colorfulness = np.hypot(*(o.std() for o in opponent)) + 0.3 * np.hypot(*(o.mean() for o in opponent))
    sharpness = laplacian.std() if laplacian.size else 0.0
    return np.array([levels.mean(), levels.std(), sharpness, colorfulness, red.mean(), green.mean(), blue.mean()]) / 255


@given(
    arrays.arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3))),
    st.sampled_from([1, 50, 2**14]),
)
def test_measures_follow_their_definitions(pixels, at_once):
    from shardwright.images import quality

    picture = Image.fromarray(pixels)
    luma = picture.convert("L")
    before, quality._AT_ONCE = quality._AT_ONCE, at_once
    try:
        found = measure(picture, luma)
    finally:
        quality._AT_ONCE = before
    assert np.allclose(found, by_definition(pixels, np.asarray(luma)), atol=2e-6)
    assert all(value == round(value, 6) for value in found)


def test_blur_noise_and_color_are_measured():
    from PIL import ImageFilter

    noise = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    sharp = Image.fromarray(noise).resize((128, 128))
    soft = sharp.filter(ImageFilter.GaussianBlur(6))
    gray = sharp.convert("L").convert("RGB")
    dark = Image.eval(sharp, lambda level: level // 2)
    clear, blurred, faded, dim = (measure(p, p.convert("L")) for p in (sharp, soft, gray, dark))
    assert blurred.sharpness < clear.sharpness / 3
    assert faded.colorfulness == 0 < clear.colorfulness
    assert dim.brightness < 0.6 * clear.brightness
    assert dim.contrast < 0.6 * clear.contrast


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"exif": b"Exif\0\0" + pillow_exif({0x0112: 6})}])
def test_of_known_bytes_the_header_alone_is_read(options):
    data = saved(drawn(0, (90, 120)), **options)
    whole = read_header(data, max_pixels=10**8)
    assert read_header(data, max_pixels=10**8, known=True) == whole
    # Bytes after the picture data do not change it.
    exif = b"Exif\0\0" + pillow_exif({0x0112: 8})
    late = b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif
    assert read_header(data[:-2] + late + b"\xff\xd9", max_pixels=10**8) == whole
    cut = data[: data.index(b"\xff\xda") + 40]
    assert read_header(cut, max_pixels=10**8, known=True) == whole
    with pytest.raises(ImageError, match="end-of-image"):
        read_header(cut, max_pixels=10**8)
