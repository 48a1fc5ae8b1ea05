"""Counts the parts of an image file before Pillow opens it: its readers take a step of Python, or a copy, for each.

A damaged file is not found here: the count ends, and Pillow names the damage.

After the GIF89a specification, TIFF 6.0 with the BigTIFF extension, Adobe's Photoshop file format, and Netpbm's PPM.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping

from shardwright.images.header import DAMAGED, TOO_LARGE, ImageError, check_number
from shardwright.untrusted.budget import Budget

# Pictures, and blocks of up to 255 bytes. Some encoders flush short ones.
GIF_BUDGET = Budget("pictures and blocks", objects=20_000, bytes_each=64)
# Directories and values; and the bytes of all values of a directory for each byte of the file: none are shared.
TIFF_BUDGET = Budget("directories and values", objects=20_000, bytes_each=64, ratio=2, unpacked=1 << 20)
# Resources have a header of 12 bytes and more.
PHOTOSHOP_BUDGET = Budget("resources", objects=20_000, bytes_each=64)
# The size, after comments that programs sign with.
PPM_BUDGET = Budget(header=1 << 16)

# Decoders of wavelets and of video take 12 bytes a pixel, and a blank picture of any size has some hundred bytes.
PIXEL_BUDGET = Budget("pixels", objects=50_000_000, ratio=1000)

_PPM = re.compile(rb"P[1-6fF](?:\s|#[^\n]*\n)+\S+(?:\s|#[^\n]*\n)+\S+\s")
# Bytes of a value by TIFF type.
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}


def check_parts(data: bytes) -> None:
    """Checks that a file has no more parts, and states no more bytes, than a real one.

    Args:
        data: the file, of any format.

    Raises:
        ImageError: it has, or its header does not end.
    """
    walk = next((walk for start, walk in _WALKS.items() if data.startswith(start)), None)
    if walk is None:
        return
    try:
        walk(data)
    except (IndexError, struct.error):
        return


def check_pixels(pixels: int, size: int) -> None:
    """Raises `ImageError` for a JPEG 2000 or AVIF of `size` bytes with far more pixels than a real one."""
    if pixels > max(PIXEL_BUDGET.objects, PIXEL_BUDGET.ratio * size):
        raise ImageError(TOO_LARGE, f"{pixels:,} pixels in {size:,} bytes, more than any real file")


def _check_gif(data: bytes) -> None:
    for count, _ in enumerate(_gif_blocks(data), 1):
        if count > GIF_BUDGET.objects:
            check_number(GIF_BUDGET, count, len(data))


def _gif_blocks(data: bytes) -> Iterator[int]:
    """Yields the place of each picture and each block; `IndexError` at a damaged end."""
    place = 13 + _palette_bytes(data[10])
    while (kind := data[place]) in (0x21, 0x2C):
        yield place
        if kind == 0x21:
            place += 2
        else:
            place += 10 + _palette_bytes(data[place + 9]) + 1
        while size := data[place]:
            yield place
            place += 1 + size
        place += 1


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _check_tiff(data: bytes) -> None:
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:4] in (b"+\0", b"\0+")
    # Number of entries, an entry's tag, type and count, the place of the next directory.
    head, entry, link = (f"{order}Q", f"{order}HHQ", f"{order}Q") if big else (f"{order}H", f"{order}HHI", f"{order}I")
    step, inline = (20, 8) if big else (12, 4)
    (place,) = struct.unpack_from(link, data, 8 if big else 4)
    count, seen = 0, set[int]()
    while place and place not in seen:
        seen.add(place)
        (entries,) = struct.unpack_from(head, data, place)
        place += struct.calcsize(head)
        count += 1 + entries
        check_number(TIFF_BUDGET, count, len(data))
        sizes = (struct.unpack_from(entry, data, at) for at in range(place, place + step * entries, step))
        stated = sum(size for _, kind, number in sizes if (size := _SIZES.get(kind, 1) * number) > inline)
        if stated > TIFF_BUDGET.most_unpacked(len(data)):
            raise ImageError(TOO_LARGE, f"values of {stated:,} bytes are stated in the {len(data):,} bytes of the TIFF")
        place += step * entries
        (place,) = struct.unpack_from(link, data, place)


def _check_photoshop(data: bytes) -> None:
    (colors,) = struct.unpack_from(">I", data, 26)
    place = 30 + colors
    (size,) = struct.unpack_from(">I", data, place)
    place += 4
    end, count = place + size, 0
    while place < end:
        count += 1
        if count > PHOTOSHOP_BUDGET.objects:
            check_number(PHOTOSHOP_BUDGET, count, len(data))
        name = data[place + 6] + 1
        place += 6 + name + name % 2
        (size,) = struct.unpack_from(">I", data, place)
        place += 4 + size + size % 2


def _check_ppm(data: bytes) -> None:
    if _PPM.match(data[: PPM_BUDGET.header]) is None:
        raise ImageError(DAMAGED, f"the size of the PPM is not in its first {PPM_BUDGET.header:,} bytes")


_WALKS: Mapping[bytes, Callable[[bytes], None]] = {
    **dict.fromkeys((b"GIF87a", b"GIF89a"), _check_gif),
    **dict.fromkeys((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), _check_tiff),
    b"8BPS": _check_photoshop,
    **dict.fromkeys((b"P1", b"P2", b"P3", b"P4", b"P5", b"P6"), _check_ppm),
}
