"""The images of a sample as tiles of a page: records of a dataset, or files of a folder."""

from __future__ import annotations

from shardwright.drift.sample import MOST_PIXELS, Sample
from shardwright.drift.show import Tile
from shardwright.image_files.image_header import ImageError
from shardwright.image_files.images import read_header
from shardwright.report.contacts import BUDGET, LEFT_OUT, Sheets, figure, framed
from shardwright.report.pictures import Picture, file_picture
from shardwright.storage import read_bytes


def record_tiles(sheets: Sheets) -> Tile:
    """Tiles of the dataset that the sheets are of."""
    return lambda sample, row, note: sheets.tile(sample.places[row], note=note)


def file_tiles(budget: int = BUDGET) -> Tile:
    """Tiles of files.

    Args:
        budget: bytes that all pictures may take; further ones are left out, and their tiles say so.
    """
    left = budget

    def tile(sample: Sample, row: int, note: str) -> str:
        nonlocal left
        picture = _picture(sample.files[row])
        if picture.bytes > left:
            return figure(LEFT_OUT, sample.keys[row], note)
        left -= picture.bytes
        return figure(framed(picture, sample.keys[row]), sample.keys[row], note)

    return tile


def _picture(path: str) -> Picture:
    """Of a file that was measured; one that has gone or changed since is shown by its name alone."""
    try:
        data = read_bytes(path)
        return file_picture(data, read_header(data, max_pixels=MOST_PIXELS))
    except (ImageError, OSError):
        return Picture("", "", 0, 0)
