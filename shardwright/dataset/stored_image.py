"""The bytes that are stored of one image: by default those of the file, else rotated, resized, converted, re-encoded.

An image is decoded only where the options require it: one that is upright, of the wanted size and of a format that is
kept passes through. Re-encoded bytes are the same only with the same versions of the libraries.
"""

from __future__ import annotations

import dataclasses

from shardwright.config import ImagesConfig
from shardwright.config.images import FULL, KEEP
from shardwright.dataset.image_encoding import encode_image, resize
from shardwright.images.decode import apply_orientation, convert, decode, header_of
from shardwright.images.geometry import DCT_RATIOS, Geometry, dct_ratio, plan_geometry, plan_longest_side
from shardwright.images.header import ImageHeader
from shardwright.images.metadata import strip_metadata
from shardwright.images.orientation import UPRIGHT, displayed_size
from shardwright.masks.coordinate_frame import CoordinateFrame


def may_decode(options: ImagesConfig) -> bool:
    """Returns whether any image is decoded before it is stored."""
    changed = options.size is not None or options.encoding != KEEP or options.orientation == "apply"
    return options.verify == FULL or changed or options.unsupported_formats != "reject"


def prepare(
    data: bytes, options: ImagesConfig, header: ImageHeader | None = None
) -> tuple[bytes, ImageHeader, CoordinateFrame]:
    """Prepares an image for storing.

    Args:
        data: the file as it was delivered.
        options: `images`.
        header: of the file, where it was read already.

    Returns:
        The bytes to store; their header, whose `located` is that of the file; the frame that annotations move to.

    Raises:
        ImageError: the file is refused, if possible by its header, before it is decoded.
    """
    picture = None
    if header is None:
        # With `verify: full` the same bytes were probed.
        known = options.verify == FULL
        convertible = options.unsupported_formats != "reject"
        header = header_of(data, max_pixels=options.max_pixels, convert=convertible, known=known)
    if header is None:
        picture, header = convert(data, max_pixels=options.max_pixels)
    frame = frames_of(header.height, header.width, header.orientation, options)
    turned, geometry = frame.turned, frame.geometry
    if picture is None and not turned and geometry is None and options.encoding == KEEP:
        return strip_metadata(data, header, options.strip_metadata), header, frame
    ratio = 1
    if picture is None:
        encoding = header.format if options.encoding == KEEP else options.encoding
        ratio = _ratio(geometry, turned) if header.format == "jpeg" else 1
        picture = decode(data, header, ratio)
    else:
        encoding = options.unsupported_formats if options.encoding == KEEP else options.encoding
    if turned:
        picture = apply_orientation(picture, header.orientation)
    if geometry is not None:
        picture = resize(picture, geometry, ratio)
    stored, written = encode_image(
        picture,
        encoding,
        orientation=UPRIGHT if turned else header.orientation,
        quality=options.quality,
        optimize=options.optimize,
        chroma=options.chroma,
    )
    return stored, dataclasses.replace(written, located=header.located), frame


def frames_of(height: int, width: int, orientation: int, options: ImagesConfig) -> CoordinateFrame:
    """Returns how annotations move from a file's pixels, of this size and orientation, to the stored pixels."""
    turned = options.orientation == "apply" and orientation != UPRIGHT
    displayed = displayed_size(height, width, orientation if turned else UPRIGHT)
    return CoordinateFrame(height, width, orientation, turned, _geometry(options, *displayed))


def _geometry(options: ImagesConfig, height: int, width: int) -> Geometry | None:
    """Returns the plan for pixels of that size; `None` where they have the wanted size already."""
    if isinstance(options.size, int):
        plan = plan_longest_side(height, width, options.size)
    elif options.size is not None:
        plan = plan_geometry(options.resize, height, width, *options.size)
    else:
        return None
    return None if (plan.height, plan.width) == (height, width) else plan


def _ratio(geometry: Geometry | None, turned: bool) -> int:
    """Returns the largest ratio that a JPEG may be reduced by while it is decoded, without enlarging it later."""
    if geometry is None:
        return 1
    # If the size is not a multiple of the ratio, the last pixel covers fewer pixels. Rotation would put it first and
    # shift all others.
    whole = (r for r in DCT_RATIOS if not (geometry.source_height % r or geometry.source_width % r))
    return min(dct_ratio(geometry), next(whole)) if turned else dct_ratio(geometry)
