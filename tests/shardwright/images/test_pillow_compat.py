"""The parts of Pillow that are used and are not public."""

import io

import numpy as np
import pytest
from compat import checked_with
from PIL import Image, JpegImagePlugin

from shardwright.images.pillow_compat import decode_in_one_piece, decode_jpeg


def jpeg(mode, size=(200, 120)):
    noise = np.random.default_rng(5).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).resize(size).convert(mode).save(file, "JPEG")
    return file.getvalue()


def test_the_version_is_one_that_was_checked():
    checked_with("pillow", ">=11.3,<12.4")


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_pixels_are_those_of_the_public_reader(mode, ratio):
    data = jpeg(mode)
    with Image.open(io.BytesIO(data)) as public:
        public.draft(None, (public.width // ratio, public.height // ratio))
        expected = np.asarray(public)
    size = (200 // ratio, 120 // ratio)
    np.testing.assert_array_equal(np.asarray(decode_jpeg(data, mode, size, ratio)), expected)


def test_a_damaged_file_is_an_error():
    with pytest.raises((OSError, ValueError)):
        decode_jpeg(jpeg("RGB")[:400], "RGB", (200, 120), 1)


def test_the_decoder_takes_a_file_in_one_piece():
    """The reader hands its decoder as many bytes as were asked for, all of a file at once."""
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(5).integers(0, 256, (400, 400, 3), dtype=np.uint8)).save(file, "JPEG")
    data = file.getvalue()
    taken = []

    class Noted(io.BytesIO):
        def read(self, size=-1):
            found = super().read(size)
            taken.append(len(found))
            return found

    image = JpegImagePlugin.JpegImageFile(Noted(data))
    decode_in_one_piece(image, len(data))
    taken.clear()
    image.load()
    assert len(data) > JpegImagePlugin.ImageFile.MAXBLOCK
    assert max(taken) > JpegImagePlugin.ImageFile.MAXBLOCK
