"""What probing one file tells, and how it is kept: one line of text with its own checksum, found by content."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PIL import Image

from shardwright.fingerprint import canonical_json
from shardwright.image_files.conversion import convert, decode
from shardwright.image_files.image_header import ImageError, ImageHeader
from shardwright.probe.hashes import ImageHashes, hashes_of
from shardwright.probe.quality import Quality, measure
from shardwright.probe.thumbnail import pixel_digest, reduced, thumbnail

# Of all that makes a row of an image's bytes: raised whenever one of them gives other values.
ALGORITHM = 1


@dataclass(frozen=True)
class ProbeRow:
    """What the pixels of one image tell. Depends on the file's bytes alone, on no option.

    Attributes:
        hashes: its hashes; `None` where the pixels cannot be decoded.
        quality: its measures, likewise.
        pixels: SHA-256 of the displayed pixels, where it was asked for.
        code: why it cannot be decoded, as a word; empty where it can.
        reason: the same as a sentence.
    """

    hashes: ImageHashes | None
    quality: Quality | None
    pixels: bytes | None = None
    code: str = ""
    reason: str = ""

    def to_text(self, digest: bytes) -> str:
        """The row as text: a checksum, which covers the content's digest too, and JSON."""
        body = canonical_json(
            [self.hashes, self.quality, self.pixels.hex() if self.pixels else None, self.code, self.reason]
        )
        return f"{_checksum(digest, body):08x} {body}"

    @staticmethod
    def from_text(digest: bytes, text: str) -> ProbeRow | None:
        """Reads what `to_text` made for the same content; `None` when it is damaged."""
        try:
            checksum, _, body = text.partition(" ")
            if int(checksum, 16) != _checksum(digest, body):
                return None
            hashes, quality, pixels, code, reason = json.loads(body)
            return ProbeRow(
                ImageHashes(*hashes) if hashes else None,
                Quality(*quality) if quality else None,
                bytes.fromhex(pixels) if pixels else None,
                code,
                reason,
            )
        except (ValueError, TypeError):
            return None


class Decoded(NamedTuple):
    """A file whose pixels were decoded.

    Attributes:
        picture: its thumbnail, mode `RGB`, as it is displayed.
        pixels: see `ProbeRow`.
    """

    picture: Image.Image
    pixels: bytes | None


def rows_of(decoded: Sequence[Decoded]) -> list[ProbeRow]:
    """What decoded files show."""
    lumas = [one.picture.convert("L") for one in decoded]
    told = zip(decoded, lumas, hashes_of(lumas), strict=True)
    return [ProbeRow(hashes, measure(one.picture, luma), one.pixels) for one, luma, hashes in told]


def decode_file(data: bytes, header: ImageHeader | None, *, max_pixels: int, pixels: bool) -> Decoded | ProbeRow:
    """Decodes one file to be looked at.

    Args:
        data: the whole file.
        header: what `conversion.header_of` said of it: `None` for a format that has to be converted.
        max_pixels: the most pixels such a file may have.
        pixels: also hash all of its pixels at full size.

    Returns:
        The decoded file; the row of a JPEG or PNG that cannot be decoded.

    Raises:
        ImageError: a file of another format cannot be converted.
    """
    if header is None:
        picture, header = convert(data, max_pixels=max_pixels)
        return Decoded(reduced(picture, header), pixel_digest(picture, header) if pixels else None)
    try:
        return Decoded(thumbnail(data, header), pixel_digest(decode(data, header), header) if pixels else None)
    except ImageError as error:
        return ProbeRow(None, None, None, error.code, error.reason)


def probe_file(data: bytes, header: ImageHeader | None, *, max_pixels: int, pixels: bool) -> ProbeRow:
    """Looks at the pixels of one file: `decode_file` and `rows_of`."""
    decoded = decode_file(data, header, max_pixels=max_pixels, pixels=pixels)
    return rows_of([decoded])[0] if isinstance(decoded, Decoded) else decoded


def _checksum(digest: bytes, body: str) -> int:
    return zlib.crc32(body.encode("utf-8", "surrogatepass"), zlib.crc32(digest))
