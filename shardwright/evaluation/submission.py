"""Tables of predicted masks: the layouts of published data sets, and the layout of a table by its header.

| name | columns | rows an image | codes |
|---|---|---|---|
| `clouds` | `Image_Label` = `file_Class`, `EncodedPixels` | one a class | from 1, column by column |
| `severstal` | `ImageId`, `ClassId`, `EncodedPixels` | one a class | the same |
| `severstal-first` | `ImageId_ClassId` = `file_id`, `EncodedPixels` | one a class | the same |
| `airbus` | `ImageId`, `EncodedPixels` | one a region, one without | the same |
| `dsb2018` | `ImageId` without extension, `EncodedPixels` | one a region, one without | the same |
| `tgs` | `id` without extension, `rle_mask` | one | the same |
| `carvana` | `img`, `rle_mask` | one | from 1, row by row |
| `siim` | `ImageId` without extension, `EncodedPixels` | one | relative; `-1`: no mask |
| `sartorius` | `id` without extension, `annotation` | one a region, one without | from 1, row by row |
| `uw-madison` | `id` without extension, `class`, `segmentation` | one a class | the same |
| `coco` | `ImageId`, `ClassId`, `EncodedPixels` | one a class | COCO's counts |

If a layout numbers its classes, a class whose name is a number keeps that number; others are counted from 1.
"""

from __future__ import annotations

import csv
import posixpath
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from shardwright.errors import ShardwrightError, UsageError
from shardwright.masks.dialects import COCO, COLUMN_PAIRS, ROW_PAIRS, SIIM, Dialect
from shardwright.masks.regions import find_regions
from shardwright.masks.rle import Runs, normalize
from shardwright.storage import open_table
from shardwright.storage.limits import bounded_lines

DEFAULT = "clouds"

# The ways in which a row names its image and class.
_JOINED, _JOINED_ID, _ID, _NAME, _ONE = "file_Class", "file_id", "id", "name", ""


class Layout(NamedTuple):
    """A layout of the table above.

    Attributes:
        header: its columns.
        dialect: how its codes are written.
        classes: how a row names the class; `_ONE`: it does not.
        extension: image names keep their extension.
        instances: every region has a separate row.
    """

    header: tuple[str, ...]
    dialect: Dialect
    classes: str = _ONE
    extension: bool = True
    instances: bool = False


LAYOUTS = {
    "clouds": Layout(("Image_Label", "EncodedPixels"), COLUMN_PAIRS, _JOINED),
    "severstal": Layout(("ImageId", "ClassId", "EncodedPixels"), COLUMN_PAIRS, _ID),
    "severstal-first": Layout(("ImageId_ClassId", "EncodedPixels"), COLUMN_PAIRS, _JOINED_ID),
    "airbus": Layout(("ImageId", "EncodedPixels"), COLUMN_PAIRS, instances=True),
    "dsb2018": Layout(("ImageId", "EncodedPixels"), COLUMN_PAIRS, extension=False, instances=True),
    "tgs": Layout(("id", "rle_mask"), COLUMN_PAIRS, extension=False),
    "carvana": Layout(("img", "rle_mask"), ROW_PAIRS),
    "siim": Layout(("ImageId", "EncodedPixels"), SIIM, extension=False),
    "sartorius": Layout(("id", "annotation"), ROW_PAIRS, extension=False, instances=True),
    "uw-madison": Layout(("id", "class", "segmentation"), ROW_PAIRS, _NAME, extension=False),
    "coco": Layout(("ImageId", "ClassId", "EncodedPixels"), COCO, _ID),
}


def choose_layout(name: str, classes: Sequence[str]) -> Layout:
    """Returns a layout by its name.

    Raises:
        UsageError: the name is unknown, or the layout has no column for several classes.
    """
    if name not in LAYOUTS:
        raise UsageError(f"--dialect {name!r} is not known. Use one of: {', '.join(LAYOUTS)}.")
    layout = LAYOUTS[name]
    if layout.classes == _ONE and len(classes) > 1:
        fitting = ", ".join(n for n, other in LAYOUTS.items() if other.classes != _ONE)
        raise UsageError(
            f"--dialect {name!r} has no column of classes, and the model has {len(classes)}: {', '.join(classes)}. "
            f"Use one of: {fitting}."
        )
    return layout


def layout_of_header(header: Sequence[str]) -> str | None:
    """Returns the layout of a header, compared by letters and digits; `airbus` for `ImageId,EncodedPixels`."""
    names = [_reduced(field) for field in header]
    for name, layout in LAYOUTS.items():
        if names == [_reduced(field) for field in layout.header]:
            return name
    return None


def layout_of_table(path: str) -> str | None:
    """Returns the layout of a table by its header; `None` if it is unknown or the table cannot be read."""
    try:
        with open_table(path) as file:
            header = next(csv.reader(bounded_lines(file)), [])
    except (ShardwrightError, OSError, ValueError, csv.Error):
        return None
    return layout_of_header(header)


def mask_rows(
    layout: Layout, key: str, masks: Sequence[Runs], classes: Sequence[str], size: tuple[int, int]
) -> Iterator[list[str]]:
    """Yields the rows of one image.

    Args:
        layout: the layout of the table.
        key: key of the image, its path below the folder of images.
        masks: runs of every class, in the image's size.
        classes: their names.
        size: height and width of the image.

    Yields:
        Fields in the order of the header.
    """
    height, width = size
    image = key if layout.extension else posixpath.splitext(key)[0]
    # If only some names were numbers, a number that is counted could be that of another class.
    named_so = layout.classes in (_JOINED, _NAME) or all(name.isdecimal() for name in classes)
    for number, (name, runs) in enumerate(zip(classes, masks, strict=True)):
        label = name if named_so else str(number + 1)
        named = {_JOINED: [f"{image}_{label}"], _JOINED_ID: [f"{image}_{label}"], _ONE: [image]}
        parts = _instances(runs, height) if layout.instances else [runs]
        for part in parts:
            code = layout.dialect.format(part, height=height, width=width)
            yield [*named.get(layout.classes, [image, label]), code]


def _instances(runs: Runs, height: int) -> list[Runs]:
    """Splits a mask into its regions; an empty mask gives one empty part."""
    found = find_regions(runs, height)
    starts, lengths = found.column * height + found.begin, found.end - found.begin
    pairs = np.stack([starts, lengths], axis=1)
    return [normalize(pairs[found.region == number]) for number in range(len(found.areas))] or [runs]


def _reduced(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())
