"""The bytes that are stored of one image: by default the file's own, else turned, resized, converted, encoded anew.

Pixels are made only where the options ask for it, so an image that is upright, of the wanted size and of a format that
is kept passes through, whatever they say of others. Re-encoded bytes are the same on one stack only.
"""

from __future__ import annotations

import dataclasses

from shardwright.config import ImagesConfig
from shardwright.config.images import FULL
from shardwright.dataset.image_encoding import encode_image, resize
from shardwright.images.decode import apply_orientation, convert, decode, header_of
from shardwright.images.geometry import DCT_RATIOS, Geometry, dct_ratio, plan_geometry, plan_longest_side
from shardwright.images.header import ImageHeader
from shardwright.images.metadata import strip_metadata
from shardwright.images.orientation import UPRIGHT, displayed_size
from shardwright.masks.coordinate_frame import CoordinateFrame

KEEP = "none"


def prepare(data: bytes, options: ImagesConfig) -> tuple[bytes, ImageHeader, CoordinateFrame]:
    """Makes what is stored of an image.

    Args:
        data: the file as it was delivered.
        options: `images`.

    Returns:
        The bytes to store; their header, whose `located` is that of the file; how annotations get there.

    Raises:
        ImageError: the file is refused; before any decoding where its header is reason enough.
    """
    picture = None
    # With `verify: full` the same bytes were probed.
    known = options.verify == FULL
    header = header_of(data, max_pixels=options.max_pixels, convert=options.convert != "reject", known=known)
    if header is None:
        picture, header = convert(data, max_pixels=options.max_pixels)
    frames = frames_of(header.height, header.width, header.orientation, options)
    turned, geometry = frames.turned, frames.geometry
    if picture is None and not turned and geometry is None and options.reencode == KEEP:
        return strip_metadata(data, header, options.strip_metadata), header, frames
    ratio = 1
    if picture is None:
        encoding = header.format if options.reencode == KEEP else options.reencode
        ratio = _ratio(geometry, turned) if header.format == "jpeg" else 1
        picture = decode(data, header, ratio)
    else:
        encoding = options.convert if options.reencode == KEEP else options.reencode
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
    return stored, dataclasses.replace(written, located=header.located), frames


def frames_of(height: int, width: int, orientation: int, options: ImagesConfig) -> CoordinateFrame:
    """How annotations get from a file's pixels, of this size and orientation, to those that are stored of it."""
    turned = options.orientation == "apply" and orientation != UPRIGHT
    displayed = displayed_size(height, width, orientation if turned else UPRIGHT)
    return CoordinateFrame(height, width, orientation, turned, _geometry(options, *displayed))


def _geometry(options: ImagesConfig, height: int, width: int) -> Geometry | None:
    """The plan for pixels of that size; `None` where they have the wanted size already."""
    if isinstance(options.size, int):
        plan = plan_longest_side(height, width, options.size)
    elif options.size is not None:
        plan = plan_geometry(options.resize, height, width, *options.size)
    else:
        return None
    return None if (plan.height, plan.width) == (height, width) else plan


def _ratio(geometry: Geometry | None, turned: bool) -> int:
    """The largest ratio that a JPEG may be divided by while it is decoded, so that nothing has to be enlarged again."""
    if geometry is None:
        return 1
    # Of a picture that is turned, a last pixel that stands for fewer than the others would come first, and shift all.
    whole = (r for r in DCT_RATIOS if not (geometry.source_height % r or geometry.source_width % r))
    return min(dct_ratio(geometry), next(whole)) if turned else dct_ratio(geometry)
