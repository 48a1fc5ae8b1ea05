"""A small picture of an image for hashes, measures and contact sheets: decoded at a reduced size, turned as displayed.

A JPEG is decoded at the strongest of 1/8, 1/4, 1/2 and 1 that leaves a short side of at least 64: libjpeg then computes
only the lowest coefficients of each block, which is a mean over areas, but still reads all of the data: damage shows.
Other formats are decoded whole and reduced by the same factor, again by means over areas.
"""

from __future__ import annotations

import hashlib

import numpy as np
from PIL import Image

from shardwright.conversion import DCT_RATIOS, decode, turn
from shardwright.images import ImageHeader

SHORTEST_SIDE = 64
# A strip of many times its own width is reduced along its length, which nothing that is measured minds.
_LONGEST_SIDE = 4096


def reduction(height: int, width: int) -> int:
    """The strongest of 8, 4, 2, 1 that leaves a short side of at least 64 pixels (rounded up, as libjpeg does)."""
    short = min(height, width)
    return next((ratio for ratio in DCT_RATIOS if -(-short // ratio) >= SHORTEST_SIDE), 1)


def thumbnail(data: bytes, header: ImageHeader) -> Image.Image:
    """Decodes an image at a reduced size.

    Args:
        data: the whole file.
        header: what `read_header` said of it; with it the size was checked.

    Returns:
        A picture of mode `RGB`, turned as it is displayed; transparency is dropped, as TensorFlow drops it.

    Raises:
        ImageError: the picture data are damaged.
    """
    ratio = reduction(header.height, header.width)
    picture = decode(data, header, ratio)
    if header.format != "jpeg":
        picture = picture.reduce(ratio)
    picture = picture.reduce((-(-picture.width // _LONGEST_SIDE), -(-picture.height // _LONGEST_SIDE)))
    return turn(picture, header.orientation).convert("RGB")


def pixel_digest(data: bytes, header: ImageHeader) -> bytes:
    """SHA-256 over size and all pixels of an image at full size, as displayed: equal for equal pixels in any format.

    Raises:
        ImageError: the picture data are damaged.
    """
    picture = turn(decode(data, header), header.orientation).convert("RGB")
    digest = hashlib.sha256(f"{picture.width}x{picture.height}:".encode())
    digest.update(np.asarray(picture).data)
    return digest.digest()
