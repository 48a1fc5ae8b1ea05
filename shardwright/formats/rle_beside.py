"""The box and the area that a row of a table states beside its run lengths, compared with the mask."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from shardwright.formats.object_agreement import ObjectAgreement, box_around
from shardwright.formats.object_content import corner_box
from shardwright.images.boxes import Box
from shardwright.masks.dialects import COUNTS, Dialect
from shardwright.masks.rle import RleError, area, read_numbers

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
# So many masks are drawn; of further ones, only the pixels are counted.
_DRAWN = 256


@dataclass
class RowAgreement(ObjectAgreement):
    """The descriptions of the objects of a table.

    Attributes:
        box: the column of boxes, corners or corner and sizes, or `None`.
        area: that of areas, or `None`.
    """

    box: int | None = None
    area: int | None = None

    def compare(self, text: str, fields: Sequence[str], dialect: Dialect, size: tuple[int, int] | None) -> None:
        """Compares a code, not empty, with what its row states.

        Args:
            text: the code.
            fields: the row.
            dialect: how the code is written.
            size: height and width of the image; `None` where it cannot be read.
        """
        box, stated = (None if column is None else fields[column] for column in (self.box, self.area))
        edges = read_numbers(" ".join(_NUMBER.findall(box or "")).replace(".0", ""))
        drawn = beside = None
        with suppress(RleError, ValueError):  # Reported when its image is written.
            numbers = None if dialect.runs == COUNTS else read_numbers(text)
            pixels = float("nan") if numbers is None else float(numbers[1::2].sum())
            if edges is not None and len(edges) == len(Box._fields) and self.seen < _DRAWN:
                height, width = size or (0, 0)
                runs = dialect.parse(text, height=height, width=width)
                drawn, pixels = box_around(runs, height), float(area(runs))
                both = [Box(*map(float, edges)), corner_box(*map(float, edges))]
                beside = min(both, key=lambda one: sum(abs(a - b) for a, b in zip(one, drawn, strict=True)))
            self.seen += 1
            self.add(drawn, pixels, beside, float(stated or "nan"))
