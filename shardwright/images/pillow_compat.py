"""The parts of Pillow that are not public and that we use. Checked with Pillow 11.3 to 12.3.

`tests/shardwright/images/test_pillow_compat.py` fails when a release of Pillow changes them.
"""

from __future__ import annotations

from PIL import Image, ImageFile


def decode_jpeg(data: bytes, mode: str, size: tuple[int, int], ratio: int) -> Image.Image:
    """Decodes a JPEG without Pillow's reader of segments. The arguments of its decoder are not a public interface.

    Args:
        data: the file.
        mode: of the pixels, `L` or `RGB`.
        size: width and height of the result.
        ratio: 1, 2, 4 or 8: the sides are divided by it while they are decoded.

    Raises:
        OSError, ValueError: the file is damaged.
    """
    return Image.frombytes(mode, size, data, "jpeg", mode, "", ratio, 0)


def decode_in_one_piece(image: ImageFile.ImageFile, size: int) -> None:
    """Lets the decoder take `size` bytes at once, so that it never stops within a row to ask for more."""
    image.decodermaxblock = size
