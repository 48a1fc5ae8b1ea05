"""Whether masks have Pascal VOC's palette: without it, nothing says that their values are the twenty classes of VOC."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from shardwright.masks.mask_files import MaskFileError
from shardwright.sources.voc_code import VocFiles, palette_colour
from shardwright.storage import in_parallel, read_bytes, readers

_PNG = b"\x89PNG\r\n\x1a\n"
_INDEXED, _RGB, _RGBA = 3, 2, 6
_CLASSES = 20
_BORDER = 255
_COLOURS = {palette_colour(value) for value in (*range(_CLASSES + 1), _BORDER)}


def without_palette(files: VocFiles, names: Sequence[str]) -> tuple[list[str], int]:
    """Looks for the palette of VOC in masks: as a PNG's palette, or as the colours of all pixels.

    Args:
        files: reads the masks.
        names: the masks.

    Returns:
        The masks that have another palette or none, and how many masks could be read.
    """
    told = list(in_parallel(lambda name: _has_palette(files, name), names, readers(files.root)))
    known = [(name, found) for name, found in zip(names, told, strict=True) if found is not None]
    return [name for name, found in known if not found], len(known)


def _has_palette(files: VocFiles, name: str) -> bool | None:
    """Whether a mask has it; `None` where the mask cannot be read, which its image's row of the ledger says."""
    try:
        data = read_bytes(os.path.join(files.root, name))
        kind = data[25] if data.startswith(_PNG) and len(data) > 25 else None
        if kind == _INDEXED:
            return _is_vocs(next(_chunks(data, b"PLTE"), b""))
        if kind in (_RGB, _RGBA):
            return set(np.unique(files.read(name).values).tolist()) <= _COLOURS
        files.read(name)
    except (OSError, MaskFileError):
        return None
    return False


def _is_vocs(palette: bytes) -> bool:
    """Whether a palette begins as VOC's does, with the background and one class at least."""
    colours = [int.from_bytes(palette[i : i + 3], "big") for i in range(0, len(palette) - 2, 3)][: _CLASSES + 1]
    whole = 1 << 24
    return len(colours) > 1 and all(whole + found == palette_colour(value) for value, found in enumerate(colours))


def _chunks(data: bytes, kind: bytes) -> Iterator[bytes]:
    """Contents of the chunks of a kind in a PNG."""
    at = len(_PNG)
    while at + 8 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if data[at + 4 : at + 8] == kind:
            yield data[at + 8 : at + 8 + length]
        at += length + 12
