"""Mask images: the number or color of every pixel of a mask file, and its pixels as runs.

A mask is a PNG, GIF, BMP or TIFF whose pixels are numbers. They are gray values of 1 to 16 bits as they are stored, the
indices of a palette, or RGB colors. The size is checked by the header before any pixel is decoded. Pillow decodes; its
pixels are used only if they are those of the file. Pillow spreads gray of 2 and 4 bits over 0 to 255, which is undone.
It cuts colors of 16 bits, which are refused. Files with lossy compression are refused: it blurs the numbers.

The order of a GIF's palette is that of the program that wrote it, so the colors of its pixels count, not the indices.

JPEGs and other lossy files are read only where a threshold makes their noise harmless.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import BmpImagePlugin, GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, TiffImagePlugin

from shardwright.images.colors import COLOR, show_value
from shardwright.images.header import ImageError
from shardwright.images.parts import check_parts
from shardwright.images.read_header import read_header
from shardwright.masks.rle import RleError, Runs, normalize
from shardwright.running.progress import counted

_PNG, _BMP, _TIFF, _JPEG = b"\x89PNG\r\n\x1a\n", b"BM", (b"II*\0", b"MM\0*"), b"\xff\xd8\xff"
_GIF = (b"GIF87a", b"GIF89a")
_PLUGINS: tuple[tuple[bytes | tuple[bytes, ...], Callable[[Any], Image.Image]], ...] = (
    (_PNG, PngImagePlugin.PngImageFile),
    (_BMP, BmpImagePlugin.BmpImageFile),
    (_TIFF, TiffImagePlugin.TiffImageFile),
    (_GIF, GifImagePlugin.GifImageFile),
    (_JPEG, JpegImagePlugin.JpegImageFile),
)
_LOSSY = ("jpeg", "tiff_jpeg", "webp", "jpeg2000")
# Bits of gray -> the factor by which Pillow spreads the values.
_SPREAD = {2: 85, 4: 17}
_BITS_PER_SAMPLE, _PHOTOMETRIC = 258, 262
_MIN_IS_WHITE = 0
_RGB, _GREY_ALPHA, _RGBA = 2, 4, 6
_SHOWN = 8
# Gray that was compressed as colors has parts that differ by less, on average.
_MOST_CHROMA = 4.0


class MaskFileError(RleError):
    """A mask image cannot be read as one; the message contains the reason and the fix."""

    code = "bad_mask"


class MaskImage(NamedTuple):
    """A decoded mask.

    Attributes:
        values: (height, width): uint8 or uint16 of gray values or palette indices, uint32 of colors (`COLOR` plus
            the color as a number).
        bits: of a value; 1 for black and white.
        palette: the color of each index, as in `values`; empty where the file has no palette.
        inverted: whether the file stores white as 0, as TIFFs may; `values` are as displayed, white is the largest.
        opacity: the color of all pixels, where only their opacity differs and `values` are that; else `None`.
        lossy: whether the file was compressed with loss.
    """

    values: npt.NDArray[Any]
    bits: int
    palette: tuple[int, ...] = ()
    inverted: bool = False
    opacity: int | None = None
    lossy: bool = False

    @property
    def colored(self) -> bool:
        """True if the values are colors."""
        return self.values.dtype == np.uint32

    def stored(self) -> MaskImage:
        """Returns the numbers in the file: of a palette its indices, of an inverted TIFF 0 for white."""
        if self.inverted:
            return self._replace(values=self.values.dtype.type((1 << self.bits) - 1) - self.values, inverted=False)
        return self._replace(palette=())

    def displayed(self) -> MaskImage:
        """Returns what a viewer shows: of a palette its colors, as gray where all of the used ones are gray."""
        if not self.palette:
            return self
        colors = np.zeros(max(len(self.palette), 256), np.uint32) + np.uint32(COLOR)
        colors[: len(self.palette)] = self.palette
        mask = self._replace(values=colors[self.values], bits=24, palette=())
        return gray_of(mask) or mask

    def as_colors(self) -> MaskImage:
        """Returns what a viewer shows as colors, gray also."""
        mask = self.displayed()
        if mask.colored or mask.bits > 8:
            return mask
        if mask.opacity is not None:
            return mask._replace(values=np.where(mask.values > 0, np.uint32(mask.opacity), np.uint32(COLOR)), bits=24)
        spread = {1: 255, **_SPREAD}.get(mask.bits, 1)
        return mask._replace(values=mask.values.astype(np.uint32) * np.uint32(spread * 0x010101) + np.uint32(COLOR))


def mask_size(data: bytes, *, max_pixels: int) -> tuple[int, int]:
    """Returns height and width of a mask image from its header.

    Args:
        data: the whole file.
        max_pixels: the most pixels a mask may have.

    Raises:
        MaskFileError: it is not a PNG, GIF, BMP or TIFF, or is too large, truncated or damaged.
    """
    width, height = _open(data, max_pixels).size
    return int(height), int(width)


def png_size(start: bytes) -> tuple[int, int] | None:
    """Returns height and width from the first 24 bytes of a PNG; `None` for other bytes."""
    if len(start) < 24 or not start.startswith(_PNG) or start[12:16] != b"IHDR":
        return None
    return int.from_bytes(start[20:24], "big"), int.from_bytes(start[16:20], "big")


def read_mask(data: bytes, *, max_pixels: int, lossy: bool = False) -> MaskImage:
    """Decodes a mask image.

    Args:
        data: the whole file.
        max_pixels: the most pixels a mask may have.
        lossy: whether compression with loss is accepted; such a mask is gray.

    Raises:
        MaskFileError: see `mask_size`; or its pixels are neither numbers nor opaque colors, or its compression is
            lossy.
    """
    image = _open(data, max_pixels, lossy=lossy)
    frames = _attempt(lambda: getattr(image, "n_frames", 1))
    if frames != 1:
        raise MaskFileError(f"it holds {frames} pictures; save one of them")
    compression = str(image.info.get("compression", ""))
    if lossy and (compression in _LOSSY or data.startswith(_JPEG)):
        pixels = _attempt(lambda: np.asarray(image.convert("RGB"))).astype(np.int16)
        if np.ptp(pixels, axis=2).mean() > _MOST_CHROMA:
            raise MaskFileError("its compression is lossy and blurs its colors; save masks as PNG")
        return MaskImage(pixels.mean(axis=2).round().astype(np.uint8), 8, lossy=True)
    if compression in _LOSSY:
        raise MaskFileError(f"it is a TIFF with {compression} inside, which is lossy; save it as PNG")
    tags = image.tag_v2 if isinstance(image, TiffImagePlugin.TiffImageFile) else {}
    bits, color = int(tags.get(_BITS_PER_SAMPLE, (8,))[0]) if image.mode == "L" else 8, None
    if data.startswith(_PNG):
        bits, color = data[24], data[25]
    if bits == 16 and color in (_RGB, _GREY_ALPHA, _RGBA):
        raise MaskFileError("it is a PNG of 16 bits with colors or alpha; save it with 8 bits, or as gray")
    if data.startswith(_GIF):
        mask = _colored(_attempt(lambda: np.asarray(image.convert("RGBA"))))
        return gray_of(mask) or mask
    pixels = _attempt(lambda: np.asarray(image))
    inverted = tags.get(_PHOTOMETRIC) == _MIN_IS_WHITE
    if pixels.dtype == bool:
        return MaskImage(pixels.astype(np.uint8), 1, inverted=inverted)
    if pixels.ndim == 3:
        return _colored(pixels)
    if image.mode == "L" and bits in _SPREAD:
        pixels = pixels // np.uint8(_SPREAD[bits])
    if pixels.dtype.kind not in "iu" or pixels.min() < 0 or int(pixels.max()) > 0xFFFF:
        raise MaskFileError(f"its pixels are {image.mode}, from {pixels.min()} to {pixels.max()}; save whole numbers")
    if pixels.dtype != np.uint8:
        # Pillow turns the gray of 8 bits only.
        pixels = np.uint16(0xFFFF) - pixels.astype(np.uint16) if inverted else pixels.astype(np.uint16)
    parts = (image.getpalette("RGB") or []) if image.mode == "P" else []
    colors = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    palette = tuple(COLOR | red << 16 | green << 8 | blue for red, green, blue in colors)
    return MaskImage(pixels, bits if pixels.dtype == np.uint8 else 16, palette, inverted)


def value_runs(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Runs]:
    """Finds every run of equal values down the columns, in one pass over the pixels.

    Args:
        values: (height, width), at least one pixel.

    Returns:
        The value of each run, and the runs, int64 (n, 2): column by column, they cover the whole image.
    """
    flat = values.ravel(order="F")
    begins = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1]).astype(np.int64)
    lengths = np.diff(begins, append=flat.size)
    return flat[begins], np.stack([begins, lengths], axis=1)


def label_runs(
    mask: MaskImage, labels: Mapping[int, int | None], *, others: int | None = None, refuse: bool = True
) -> dict[int, Runs]:
    """Returns the masks of the classes in a mask image.

    Args:
        mask: the image.
        labels: value -> label; `None` for the background.
        others: label of values that are not in `labels`, where they are not refused.
        refuse: whether a value that is not in `labels` is an error.

    Returns:
        Label -> runs, for the labels that occur.

    Raises:
        MaskFileError: a value is not in `labels` (code `unknown_class`); names it and how many pixels have it.
    """
    found, runs = value_runs(mask.values)
    values, inverse = np.unique(found, return_inverse=True)
    unknown = [value for value in values.tolist() if value not in labels] if refuse else []
    if unknown:
        pixels = int(runs[found == unknown[0], 1].sum())
        further = f" and {counted(len(unknown) - 1, 'other value')}" if len(unknown) > 1 else ""
        known = [show_value(value) for value in labels]
        shown = ", ".join(known[:_SHOWN]) + (", …" if len(known) > _SHOWN else "")
        raise MaskFileError(
            f"{counted(pixels, 'pixel is', 'pixels are')} {show_value(unknown[0])}{further}, which is not a class; "
            f"known are {shown}",
            "unknown_class",
        )
    label_of = [labels.get(value, others) for value in values.tolist()]
    masks = {}
    for label in sorted({label for label in label_of if label is not None}):
        # Two values of one label may touch.
        wanted = np.array([other == label for other in label_of])
        masks[label] = normalize(runs[wanted[inverse.reshape(-1)]])
    return masks


def gray_of(mask: MaskImage) -> MaskImage | None:
    """Returns the gray values of a mask that was saved as colors of three equal parts, or `None` if one is not."""
    values = mask.values & np.uint32(0xFF)
    if not np.array_equal(mask.values, values * np.uint32(0x010101) + np.uint32(COLOR)):
        return None
    return MaskImage(values.astype(np.uint8), 8)


def _open(data: bytes, max_pixels: int, *, lossy: bool = False) -> Image.Image:
    """Opens a Pillow image, which reads only the header, and checks its size."""
    plugin = next((plugin for start, plugin in _PLUGINS if data.startswith(start)), None)
    if plugin is None:
        begin = f"they begin with {data[:8].hex(' ')}" if data else "there are none"
        raise MaskFileError(f"its bytes are not a PNG, GIF, BMP or TIFF ({begin})")
    if plugin is JpegImagePlugin.JpegImageFile and not lossy:
        raise MaskFileError("it is a JPEG, whose compression is lossy and blurs the numbers; save masks as PNG")
    try:
        if data.startswith(_PNG):
            read_header(data, max_pixels=max_pixels)
        check_parts(data)
    except ImageError as error:
        raise MaskFileError(error.reason) from None
    # The plugins directly, since Image.open has a separate limit that the whole process shares.
    image = _attempt(lambda: plugin(io.BytesIO(data)))
    width, height = image.size
    if min(width, height) < 1 or width * height > max_pixels:
        raise MaskFileError(f"its header states {height}x{width} (height x width); images.max_pixels is {max_pixels}")
    return image


def _colored(pixels: npt.NDArray[Any]) -> MaskImage:
    if pixels.dtype != np.uint8 or pixels.shape[2] not in (2, 3, 4):
        raise MaskFileError(f"its pixels are {pixels.dtype} with {pixels.shape[2]} parts; save it as gray or RGB")
    if pixels.shape[2] in (2, 4):
        alpha, pixels = pixels[..., -1], pixels[..., :-1]
        if alpha.min() < 255:
            if (pixels == pixels[0, 0]).all():
                color = int.from_bytes(bytes(pixels[0, 0].tolist() * (3 // pixels.shape[2])), "big")
                return MaskImage(np.ascontiguousarray(alpha), 8, opacity=COLOR + color if alpha.any() else None)
            # A viewer shows what is transparent as nothing: black, the background.
            if pixels[alpha == 0].any() or ((alpha > 0) & (alpha < 255)).any():
                raise MaskFileError("it has pixels that are not opaque; save it without alpha")
    if pixels.shape[2] == 1:
        return MaskImage(np.ascontiguousarray(pixels[..., 0]), 8)
    parts = pixels.astype(np.uint32)
    return MaskImage(parts[..., 0] << 16 | parts[..., 1] << 8 | parts[..., 2] | np.uint32(COLOR), 24)


def _attempt(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # Pillow's parsers raise exceptions of many types.
        raise MaskFileError(f"it cannot be decoded ({type(error).__name__}); save it again") from None
