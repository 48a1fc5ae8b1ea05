"""The photographs of the benchmark: drawn, of a camera's size, most of them copies that differ in their bytes only."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from PIL import Image

from shardwright.masks import rle
from shardwright.sample.cloud_outlines import KINDS
from shardwright.sample.scene import draw_masks, draw_picture

HEIGHT, WIDTH = 1400, 2100
COPIES = 20
# Photographs of this size have about 700 KB; drawn ones need a higher quality for it.
_QUALITY = 94
_COMMENT = b"\xff\xfe"
_DASH = "-"


@dataclass(frozen=True)
class Photographs:
    """A folder of photographs, each of one class, with masks as in "Understanding Clouds from Satellite Images".

    Attributes:
        images: the folder of images.
        labels: the table of classes: `image`, `label`.
        masks: the table of masks.
        names: file names, sorted.
        bytes: size of all images.
    """

    images: str
    labels: str
    masks: str
    names: tuple[str, ...]
    bytes: int

    @property
    def paths(self) -> list[str]:
        """Absolute paths of the images, by name."""
        return [os.path.join(self.images, name) for name in self.names]


def photographs(folder: Path, count: int, *, height: int = HEIGHT, width: int = WIDTH) -> Photographs:
    """Draws photographs, or takes those that an earlier call has drawn.

    Every drawn one has `COPIES` copies that differ in a JPEG comment, so that no two files have the same bytes and the
    drawing does not take an hour.

    Args:
        folder: where to; made when it is missing.
        count: how many images.
        height: rows of each.
        width: columns of each.
    """
    target = folder / f"photographs-{count}-{height}x{width}"
    masks = target / "train.csv"
    if not masks.exists():
        (target / "images").mkdir(parents=True, exist_ok=True)
        drawn = -(-count // COPIES)
        draw = partial(_draw, folder=str(target / "images"), count=count, height=height, width=width)
        with ProcessPoolExecutor(min(drawn, os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
            rows = [row for of_one in pool.map(draw, range(drawn)) for row in of_one]
        _write_table(masks, [("Image_Label", "EncodedPixels"), *rows])
    names = tuple(sorted(os.listdir(target / "images")))
    labels = target / "labels.csv"
    if not labels.exists():
        _write_table(labels, [("image", "label"), *((name, KINDS[_drawn(name) % len(KINDS)]) for name in names)])
    size = sum(entry.stat().st_size for entry in os.scandir(target / "images"))
    return Photographs(str(target / "images"), str(labels), str(masks), names, size)


def warm(paths: list[str]) -> None:
    """Reads files once, so that every method finds them in memory."""
    for path in paths:
        Path(path).read_bytes()


def _drawn(name: str) -> int:
    """Returns the number of the picture that a file is a copy of."""
    return int(name.partition(_DASH)[0])


def _write_table(target: Path, rows: Iterable[tuple[str, str]]) -> None:
    partial_file = target.with_name(f"{target.name}.partial")
    with partial_file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows(rows)
    partial_file.replace(target)


def _draw(number: int, *, folder: str, count: int, height: int, width: int) -> list[tuple[str, str]]:
    """Draws one picture and writes its copies; returns the rows of the table about them."""
    masks = draw_masks(0, number, height, width)
    encoded = io.BytesIO()
    Image.fromarray(draw_picture(0, number, masks)).save(encoded, "JPEG", quality=_QUALITY)
    data = encoded.getvalue()
    texts = [rle.to_pairs(rle.encode(mask)) for mask in masks]
    rows = []
    for copy in range(min(COPIES, count - number * COPIES)):
        name = f"{number:05d}{_DASH}{copy:02d}.jpg"
        comment = f"copy {copy}".encode()
        segment = _COMMENT + (len(comment) + 2).to_bytes(2, "big") + comment
        Path(folder, name).write_bytes(data[:2] + segment + data[2:])
        rows += [(f"{name}_{kind}", text) for kind, text in zip(KINDS, texts, strict=True)]
    return rows
