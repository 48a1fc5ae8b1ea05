"""Measures how well near duplicates are found: precision and recall of each hash at each distance, on altered copies.

    python -m benchmarks.likeness            on drawn pictures
    python -m benchmarks.likeness FOLDER     on the photographs in a folder

Every picture is altered in the ways of `ALTERATIONS`, and all pictures and copies are hashed as the probe does. Recall
is the share of pictures whose altered copy is within the distance, for each alteration. Precision is the share of pairs
of the same picture among all pairs within the distance. Flips are not duplicates by these hashes, so their recall
should be near 0; they are left out of the pairs.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from shardwright.duplicates.clusters import bit_counts
from shardwright.duplicates.hashes import ImageHashes, image_hashes
from shardwright.images.decode import apply_orientation, decode
from shardwright.images.header import ImageError
from shardwright.images.quality import thumbnail
from shardwright.images.read_header import read_header
from shardwright.sample.scene import draw_masks, draw_picture

DISTANCES = (0, 2, 4, 6, 8, 10, 12, 16)
_DRAWN = 150
_HEIGHT, _WIDTH = 280, 420
_QUALITY = 92
_FLIPPED = "flipped"
_MOST_PIXELS = 1 << 28

Picture = Image.Image


def _saved(picture: Picture, quality: int = _QUALITY) -> bytes:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return file.getvalue()


def _resized(share: float) -> Callable[[Picture], bytes]:
    return lambda picture: _saved(
        picture.resize(
            (max(1, round(picture.width * share)), max(1, round(picture.height * share))), Image.Resampling.BICUBIC
        )
    )


def _cropped(share: float) -> Callable[[Picture], bytes]:
    """Cuts the share off each side."""

    def crop(picture: Picture) -> bytes:
        across, down = round(picture.width * share), round(picture.height * share)
        return _saved(picture.crop((across, down, picture.width - across, picture.height - down)))

    return crop


def _png(picture: Picture) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()


ALTERATIONS: dict[str, Callable[[Picture], bytes]] = {
    "png": _png,
    "jpeg 70": lambda picture: _saved(picture, 70),
    "jpeg 40": lambda picture: _saved(picture, 40),
    "jpeg 15": lambda picture: _saved(picture, 15),
    "x 0.75": _resized(0.75),
    "x 0.5": _resized(0.5),
    "x 2": _resized(2.0),
    "crop 1%": _cropped(0.01),
    "crop 3%": _cropped(0.03),
    "crop 5%": _cropped(0.05),
    "crop 10%": _cropped(0.1),
    "brighter": lambda picture: _saved(picture.point(lambda level: min(255, int(level * 1.15)))),
    _FLIPPED: lambda picture: _saved(picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)),
}


class Likeness(NamedTuple):
    """Precision and recall of one hash at one distance.

    Attributes:
        name: the hash.
        distance: bits that may differ.
        precision: share of the pairs within the distance that are of one picture; 1 without pairs.
        recall: alteration -> share of the pictures whose altered copy is within the distance.
    """

    name: str
    distance: int
    precision: float
    recall: dict[str, float]


def drawn_pictures(count: int = _DRAWN) -> list[Picture]:
    """Returns small pictures of the sample dataset."""
    return [Image.fromarray(draw_picture(1, number, draw_masks(1, number, _HEIGHT, _WIDTH))) for number in range(count)]


def found_pictures(folder: Path) -> list[Picture]:
    """Returns the photographs in a folder that can be decoded, as they are displayed."""
    pictures = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = file.read_bytes()
        try:
            header = read_header(data, max_pixels=_MOST_PIXELS)
            pictures.append(apply_orientation(decode(data, header), header.orientation).convert("RGB"))
        except ImageError:
            continue
    return pictures


def measure_likeness(pictures: Sequence[Picture], confirm: str | None = None) -> list[Likeness]:
    """Alters and hashes pictures.

    Args:
        pictures: mode `RGB`, all different.
        confirm: a hash that has to be within the distance as well.

    Returns:
        A row for each hash and distance.
    """
    hashed = {"": np.array([_hashes(_saved(picture)) for picture in pictures], np.uint64)}
    for name, alter in ALTERATIONS.items():
        hashed[name] = np.array([_hashes(alter(picture)) for picture in pictures], np.uint64)
    rows = []
    for column, name in enumerate(ImageHashes._fields):
        if name == confirm:
            continue
        columns = [column] if confirm is None else [column, ImageHashes._fields.index(confirm)]
        within = _pairs_by_distance(
            [np.concatenate([h[:, c] for a, h in hashed.items() if a != _FLIPPED]) for c in columns]
        )
        same, all_of_them = (np.cumsum(counts) for counts in _counted(within, len(pictures)))
        apart = {
            alteration: np.max([bit_counts(hashed[""][:, c] ^ copies[:, c]) for c in columns], axis=0)
            for alteration, copies in hashed.items()
            if alteration
        }
        for distance in DISTANCES:
            found = int(all_of_them[distance])
            rows.append(
                Likeness(
                    name if confirm is None else f"{name} and {confirm}",
                    distance,
                    int(same[distance]) / found if found else 1.0,
                    {alteration: float((bits <= distance).mean()) for alteration, bits in apart.items()},
                )
            )
    return rows


def table(rows: Sequence[Likeness]) -> str:
    """Returns the rows as text, one a line."""
    names = list(ALTERATIONS)
    width = max(len(row.name) for row in rows)
    lines = [f"{'hash':{width}} bits precision  " + "  ".join(f"{name:>8}" for name in names)]
    for row in rows:
        recall = "  ".join(f"{row.recall[name]:8.3f}" for name in names)
        lines.append(f"{row.name:{width}} {row.distance:4d} {row.precision:9.4f}  {recall}")
    return "\n".join(lines)


def _hashes(data: bytes) -> ImageHashes:
    header = read_header(data, max_pixels=_MOST_PIXELS)
    return image_hashes(thumbnail(data, header).convert("L"))


def _pairs_by_distance(columns: Sequence[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint8]:
    """Returns the distance of each pair of images, uint8 (n, n): the largest of all hashes."""
    rows = [
        np.max([bit_counts(column ^ column[i]) for column in columns], axis=0).astype(np.uint8)
        for i in range(len(columns[0]))
    ]
    return np.array(rows)


def _counted(distances: npt.NDArray[np.uint8], pictures: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns the numbers of pairs of the same picture, and of all pairs, by distance."""
    one, other = np.triu_indices(len(distances), 1)
    apart = distances[one, other]
    same = one % pictures == other % pictures
    return np.bincount(apart[same], minlength=65), np.bincount(apart, minlength=65)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measures how well near duplicates are found.")
    parser.add_argument("folder", nargs="?", type=Path, help="photographs; by default pictures are drawn")
    folder = parser.parse_args().folder
    given = drawn_pictures() if folder is None else found_pictures(folder)
    if not given:
        parser.error(f"{folder}: contains no photographs. Name a folder of image files.")
    print(f"{len(given)} pictures, each with {len(ALTERATIONS)} altered copies")
    print(table(measure_likeness(given)))
    print(table(measure_likeness(given, confirm="difference")))
