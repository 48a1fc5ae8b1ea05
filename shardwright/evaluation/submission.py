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
import io
import os
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.errors import ShardwrightError, UsageError
from shardwright.images.geometry import POLICIES
from shardwright.masks.coordinate_frame import to_image_size
from shardwright.masks.dialects import COCO, COLUMN_PAIRS, ROW_PAIRS, SIIM, Dialect
from shardwright.masks.regions import find_regions
from shardwright.masks.rle import Runs, encode, normalize
from shardwright.storage import is_remote, open_table
from shardwright.storage.limits import bounded_lines
from shardwright.storage.whole_files import WholeFile

DEFAULT = "clouds"
# Stands for what a sequence that is too short does not have.
_END = object()

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


def write_submission(
    keys: Iterable[str],
    masks: Iterable[Any],
    path: str | os.PathLike[str],
    *,
    layout: str = DEFAULT,
    classes: Sequence[str] = (),
    sizes: Iterable[tuple[int, int]] | None = None,
    resize: str = "stretch",
) -> int:
    """Writes a table of masks, one image after the other, as published competitions and `shardwright predict` have it.

    Example:
        ```python
        probabilities = model.predict(images)  # [N, H, W, classes]
        write_submission(keys, probabilities > 0.5, "submission.csv", layout="severstal", classes=["1", "2", "3", "4"])
        ```

    Args:
        keys: file name of each image, as the table has to name it, with its extension.
        masks: mask of each image, [H, W] or [H, W, classes], of 0 and 1 (bool or numbers).
        path: the CSV to write; an existing one is replaced.
        layout: a name of `LAYOUTS`, which states columns and run lengths.
        classes: names in the order of the last dimension; needed where the layout names classes.
        sizes: height and width of each image file, where the masks have another size; they are resized to it, nearest
            pixel, half-pixel centers.
        resize: how images were brought to the size of the masks: `stretch`, `fill_crop` or `letterbox`.

    Returns:
        The number of rows.

    Raises:
        UsageError: the layout is unknown or cannot name the classes; a mask has other numbers than 0 and 1 or another
            shape; two images would have the same name; there are more keys than masks, or fewer. Nothing is written.
    """
    chosen = choose_layout(layout, classes, "layout")
    if chosen.classes != _ONE and not classes:
        raise UsageError(f"classes: missing, and the layout {layout!r} names the class of each row. Give their names.")
    if resize not in POLICIES:
        raise UsageError(f"resize: {resize!r} is not known. Use one of: {', '.join(POLICIES)}.")
    if is_remote(os.fspath(path)):
        raise UsageError(f"{os.fspath(path)}: a submission is written to this machine only. Name a file.")
    given = zip_longest(keys, masks, *([] if sizes is None else [sizes]), fillvalue=_END)
    count = 0
    with WholeFile(Path(path)) as file:
        file.write(_csv_lines([chosen.header]))
        for key, layers, size in _checked_images(given, layout, max(len(classes), 1)):
            fitting = size == layers[0].shape
            runs = [encode(layer) if fitting else to_image_size(layer, resize, *size) for layer in layers]
            rows = list(mask_rows(chosen, key, runs, classes or ("",), size))
            file.write(_csv_lines(rows))
            count += len(rows)
    return count


def _csv_lines(rows: Iterable[Sequence[str]]) -> bytes:
    lines = io.StringIO(newline="")
    csv.writer(lines, lineterminator="\n").writerows(rows)
    return lines.getvalue().encode("utf-8")


def _checked_images(
    given: Iterable[tuple[Any, ...]], layout: str, classes: int
) -> Iterator[tuple[str, list[npt.NDArray[Any]], tuple[int, int]]]:
    """Yields the key, the mask of each class and the size of each image.

    Args:
        given: key, mask, and the image's size where it is given; `_END` where one of them has come to its end.
        layout: name of the layout.
        classes: number of the classes.

    Raises:
        UsageError: see `write_submission`.
    """
    seen: set[str] = set()
    for number, image in enumerate(given):
        for name, value in zip(("keys", "masks", "sizes"), image, strict=False):
            if value is _END:
                raise UsageError(f"{name}: end after {number}, but there are more images. Give one for each image.")
        key = str(image[0])
        shown = key if LAYOUTS[layout].extension else posixpath.splitext(key)[0]
        if shown in seen:
            raise UsageError(f"keys: {shown!r} is the name of two images in the layout {layout!r}. Rename one.")
        seen.add(shown)
        mask = _checked_mask(key, image[1], classes)
        size = image[2] if len(image) == 3 else mask.shape
        yield key, [mask[..., c] for c in range(classes)], (int(size[0]), int(size[1]))


def _checked_mask(key: Any, mask: Any, classes: int) -> npt.NDArray[Any]:
    """Returns a mask as [H, W, classes].

    Raises:
        UsageError: it is none; the message says what it is.
    """
    values = np.asarray(mask)
    shape = values.shape
    if values.ndim == 2:
        values = values[..., np.newaxis]
    if values.ndim != 3 or values.shape[2] != classes or not values.size:
        wanted = "[H, W] or [H, W, 1]" if classes == 1 else f"[H, W, {classes}]"
        raise UsageError(f"masks: that of {key!r} has the shape {list(shape)}. Give {wanted}, a layer for each class.")
    if values.dtype != np.bool_ and not np.isin(values, (0, 1)).all():
        odd = values[~np.isin(values, (0, 1))].flat[0]
        raise UsageError(
            f"masks: that of {key!r} has {odd!s}, which is neither 0 nor 1. Compare probabilities with their "
            "threshold, and numbers of classes with each number."
        )
    return values


def choose_layout(name: str, classes: Sequence[str], option: str = "--dialect") -> Layout:
    """Returns a layout by its name.

    Args:
        name: its name.
        classes: the names of the classes.
        option: what named it, for messages.

    Raises:
        UsageError: the name is unknown, or the layout has no column for several classes.
    """
    if name not in LAYOUTS:
        raise UsageError(f"{option} {name!r} is not known. Use one of: {', '.join(LAYOUTS)}.")
    layout = LAYOUTS[name]
    if layout.classes == _ONE and len(classes) > 1:
        fitting = ", ".join(n for n, other in LAYOUTS.items() if other.classes != _ONE)
        raise UsageError(
            f"{option} {name!r} has no column of classes, and there are {len(classes)}: {', '.join(classes)}. "
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
