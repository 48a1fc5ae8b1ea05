"""Writes the sample data set, images and `train.csv`, atomically."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path

from shardwright.errors import UsageError
from shardwright.masks import rle
from shardwright.running.processes import map_processes, usable_cores
from shardwright.running.progress import progress
from shardwright.sample.cloud_outlines import KINDS
from shardwright.sample.scene import draw_masks, draw_picture, encode_jpeg
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.whole_files import appear, assembling

IMAGE_FOLDER = "train_images"
LABEL_FILE = "train.csv"
TEST_FOLDER = "test_images"
SUBMISSION_FILE = "sample_submission.csv"
HEADER = ("Image_Label", "EncodedPixels")
SMALLEST, LARGEST = 64, 65_535
"""Sides of a picture, in pixels. Smaller pictures show no pattern; JPEG cannot store larger sizes."""

_WORKER_PAYS_PIXELS = 8_000_000
"""With fewer pixels per process, which take seconds to draw, starting another process does not pay."""

# What that file of the competition has in each row.
_PLACEHOLDER = "1 1"
_LOST = "A process that was drawing images has died; out of memory? Ask for fewer pixels or workers."


@dataclass(frozen=True)
class SampleReport:
    """The written data set.

    Attributes:
        images: absolute path of the folder with the images.
        labels: absolute path of the CSV.
        count: number of images.
        height: rows of each image.
        width: columns of each image.
        present: for each kind, the number of images it is in.
        image_bytes: size of all images together.
        test_images: absolute path of the folder with the test images; empty if none were asked for.
        submission: absolute path of the sample submission; likewise.
    """

    images: str
    labels: str
    count: int
    height: int
    width: int
    present: dict[str, int]
    image_bytes: int
    test_images: str = ""
    submission: str = ""


@dataclass(frozen=True)
class _Drawn:
    name: str
    masks: tuple[str, ...]
    size: int


def image_name(seed: int, index: int) -> str:
    """Returns a file name of eight hex digits, scattered, different for every index below 2**32 of one seed."""
    value = (index + (seed + 1) * 0x9E3779B9) & 0xFFFFFFFF
    # Each step can be undone, so two indices never meet (the finalizer of MurmurHash3, public domain).
    for factor, shift in ((0x85EBCA6B, 16), (0xC2B2AE35, 13), (1, 16)):
        value = ((value ^ (value >> shift)) * factor) & 0xFFFFFFFF
    return f"{value:08x}.jpg"


def _draw_one(index: int, *, folders: Sequence[str], images: int, height: int, width: int, seed: int) -> _Drawn:
    masks = draw_masks(seed, index, height, width)
    data = encode_jpeg(draw_picture(seed, index, masks))
    name = image_name(seed, index)
    Path(folders[int(index >= images)], name).write_bytes(data)
    return _Drawn(name, tuple(rle.to_pairs(rle.encode(mask)) for mask in masks), len(data))


@contextmanager
def _appears_whole(out: Path) -> Iterator[Path]:
    """Yields a folder next to `out`, which is renamed to `out` if the block succeeds and is deleted otherwise."""
    with ExitStack() as stack:
        try:
            whole = stack.enter_context(assembling(out, fingerprint(out.name)))
        except OSError as error:
            raise UsageError(f"{out}: the folder cannot be created ({error.strerror}). Choose another path.") from error
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            what = "a folder that is not empty" if out.is_dir() else "a file"
            raise UsageError(f"{out}: the path is {what}. Give a new or an empty folder.")
        yield whole
        appear(whole, out)


def _check_arguments(images: int, height: int, width: int, seed: int, workers: int | None, test: int) -> None:
    counts = {"images": images, "height": height, "width": width, "seed": seed, "workers": workers or 1, "test": test}
    for name, value in counts.items():
        if not isinstance(value, Integral):
            raise UsageError(f"{name}: {value!r} is not a whole number. Write a number such as {name}=100.")
    if images < 1:
        raise UsageError(f"images: {images} is too few. Ask for 1 or more.")
    for name, value in (("height", height), ("width", width)):
        if not SMALLEST <= value <= LARGEST:
            raise UsageError(f"{name}: {value} is out of range. Ask for {SMALLEST} to {LARGEST} pixels.")
    for name, value in (("seed", seed), ("test", test)):
        if value < 0:
            raise UsageError(f"{name}: {value} is negative. Use 0 or more.")
    if workers is not None and workers < 1:
        raise UsageError(f"workers: {workers} is too few. Use 1 or more, or leave it out.")


def write_sample(
    out: str | os.PathLike[str],
    *,
    images: int = 20,
    height: int = 1400,
    width: int = 2100,
    seed: int = 0,
    workers: int | None = None,
    quiet: bool = False,
    test: int = 0,
) -> SampleReport:
    """Draws a data set in the layout of Kaggle's "Understanding Clouds from Satellite Images".

    `OUT/train_images/*.jpg` and `OUT/train.csv` (columns `Image_Label`, `EncodedPixels`; four rows an image, the second
    field empty where a kind is absent; run lengths column by column from 1). The same seed gives the same bytes
    with any number of workers. An image does not depend on their number. The CSV is the same on every stack.

    Args:
        out: folder to create; it must be new or empty.
        images: number of images.
        height: rows of each, 64 to 65535.
        width: columns of each, 64 to 65535.
        seed: seed of the data set, 0 or more.
        workers: number of processes; None uses one per core if that pays.
        quiet: show no progress.
        test: number of images without masks, in `OUT/test_images`; `OUT/sample_submission.csv` has their rows.

    Returns:
        The written data set.

    Raises:
        UsageError: a number is out of range, or `out` is not empty.
    """
    target = Path(os.path.abspath(out))
    _check_arguments(images, height, width, seed, workers, test)
    drawn, total = [], images + test
    with _appears_whole(target) as staging, progress(total, "drawing images", quiet=quiet) as shown:
        folders = [str(staging / name) for name in (IMAGE_FOLDER, TEST_FOLDER)]
        for folder in folders[: 1 + (test > 0)]:
            os.mkdir(folder)
        draw = partial(_draw_one, folders=folders, images=images, height=height, width=width, seed=seed)
        wanted = workers or max(1, min(usable_cores(), total * height * width // _WORKER_PAYS_PIXELS))
        for image in map_processes(draw, range(total), min(wanted, total), _LOST):
            drawn.append(image)
            shown.advance()
        asked = [replace(image, masks=(_PLACEHOLDER,) * len(KINDS)) for image in drawn[images:]]
        _write_table(staging / LABEL_FILE, drawn := drawn[:images])
        if test:
            _write_table(staging / SUBMISSION_FILE, asked)
    return SampleReport(
        images=str(target / IMAGE_FOLDER),
        labels=str(target / LABEL_FILE),
        count=images,
        height=height,
        width=width,
        present={kind: sum(1 for image in drawn if image.masks[k]) for k, kind in enumerate(KINDS)},
        image_bytes=sum(image.size for image in drawn),
        test_images=str(target / TEST_FOLDER) if test else "",
        submission=str(target / SUBMISSION_FILE) if test else "",
    )


def _write_table(path: Path, images: Iterable[_Drawn]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEADER)
        for image in sorted(images, key=lambda image: image.name):
            table.writerows((f"{image.name}_{kind}", mask) for kind, mask in zip(KINDS, image.masks, strict=True))
