"""Masks inside records: runs as numbers, run lengths as text, images."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shardwright.masks.rle import Runs
from shardwright.masks.rle_dialects import ABSOLUTE, COCO, COUNTS, RELATIVE, SIIM, Dialect
from shardwright.sources.mask_code import MaskFiles
from shardwright.storage.parts import split_part

_FROM_0 = Dialect(base=0)


@dataclass(frozen=True)
class RunPairs:
    """Starts and lengths from 0, column by column: Shardwright's own; see `shardwright.sources.base.MaskCode`."""

    def size(self, text: str) -> None:
        """Runs do not say how large their image is."""

    def masks(self, label: int, text: str, *, height: int, width: int) -> Iterable[tuple[int, Runs]]:
        """Reads the numbers, written as text."""
        return _FROM_0.masks(label, text, height=height, width=width)


class RecordMasks(MaskFiles):
    """Images of masks; a text is checksum and path of one, a part of its file."""

    def name(self, text: str) -> str:
        """See `MaskFiles.name`: a part's path has a NUL of its own."""
        return text.partition("\0")[2] if text.count("\0") > 1 else text

    def shown(self, text: str) -> str:
        """What messages call a mask; where its file was unpacked to is nobody's business."""
        part = split_part(self.name(text))
        return f"{os.path.basename(part.path)}, mask at byte {part.start}"


def text_dialect(code: Mapping[str, str | int]) -> Dialect:
    """How run lengths as text are written: the usual way, as far as `input.labels` does not say otherwise.

    Args:
        code: `runs`, `order` and `base`, as far as they are given.
    """
    runs = str(code.get("runs", ABSOLUTE))
    if runs in (RELATIVE, COUNTS):
        return SIIM if runs == RELATIVE else COCO
    return Dialect(order=str(code.get("order", "column")), base=int(code.get("base", 1)))
