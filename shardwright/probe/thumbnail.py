"""A small picture of an image for hashes, measures and contact sheets: decoded at a reduced size, turned as displayed.

A JPEG is decoded at the strongest of 1/8, 1/4, 1/2 and 1 that leaves a short side of at least 64: libjpeg then computes
only the lowest coefficients of each block, which is a mean over areas, but still reads all of the data: damage shows.
Other formats are decoded whole and reduced by the same factor, again by means over areas.
"""

from __future__ import annotations

import hashlib

import numpy as np
from PIL import Image

from shardwright.image_files.conversion import DCT_RATIOS, decode, turn
from shardwright.image_files.image_header import ImageHeader

SHORTEST_SIDE = 64
# A strip of many times its own width is reduced along its length, which nothing that is measured minds.
_LONGEST_SIDE = 4096


def reduction(height: int, width: int) -> int:
    """The strongest of 8, 4, 2, 1 that leaves a short side of at least 64 pixels (rounded up, as libjpeg does)."""
    short = min(height, width)
    return next((ratio for ratio in DCT_RATIOS if -(-short // ratio) >= SHORTEST_SIDE), 1)


def thumbnail(data: bytes, header: ImageHeader) -> Image.Image:
    """Decodes a JPEG or PNG at a reduced size.

    Args:
        data: the whole file.
        header: what `read_header` said of it; with it the size was checked.

    Returns:
        A picture of mode `RGB`, turned as it is displayed; transparency is dropped, as TensorFlow drops it.

    Raises:
        ImageError: the picture data are damaged.
    """
    if header.format != "jpeg":
        return reduced(decode(data, header), header)
    return _finished(decode(data, header, reduction(header.height, header.width)), header)


def reduced(picture: Image.Image, header: ImageHeader) -> Image.Image:
    """The same of a picture that is decoded already, at full size in the stored frame."""
    return _finished(picture.reduce(reduction(header.height, header.width)), header)


def pixel_digest(picture: Image.Image, header: ImageHeader) -> bytes:
    """SHA-256 over size and all pixels of an image, as displayed: equal for equal pixels in any format.

    Args:
        picture: at full size, in the stored frame.
        header: says how it is turned.
    """
    displayed = turn(picture, header.orientation).convert("RGB")
    digest = hashlib.sha256(f"{displayed.width}x{displayed.height}:".encode())
    digest.update(np.asarray(displayed).data)
    return digest.digest()


def _finished(picture: Image.Image, header: ImageHeader) -> Image.Image:
    if max(picture.size) > _LONGEST_SIDE:
        picture = picture.reduce((-(-picture.width // _LONGEST_SIDE), -(-picture.height // _LONGEST_SIDE)))
    turned = turn(picture, header.orientation)
    return turned if turned.mode == "RGB" else turned.convert("RGB")
