"""Measures planning, and computes when the first worker starts on ten million images of a bucket.

Planning is what one machine does before writers start: list, read the table, plan, write the task files. Images are not
read. The store is in memory and answers at once, in pages of a thousand as real ones do, so what is measured is our own
work; the time of the requests is added by arithmetic. Two sizes are measured: their difference leaves out what does not
grow with the input.
"""

from __future__ import annotations

import csv
import shutil
import time
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from PIL import Image

from benchmarks.figures import AT_MOST, Figure
from benchmarks.photographs import HEIGHT, WIDTH
from shardwright.config import Config, parse_config
from shardwright.errors import UsageError
from shardwright.images.encode_picture import encode_picture
from shardwright.ingest.plan import plan_ingest
from shardwright.ingest.recipe import IngestRecipe, locate
from shardwright.ingest.survey import survey_input
from shardwright.staging.staging import Staging
from shardwright.storage import buckets
from shardwright.storage.object_store import Missing, ObjectInfo

_SMALL, _LARGE = 20_000, 100_000
_MILLIONS = 10_000_000
_PAGE = 1000
# Seconds that a store takes to answer with a page; one page is requested while another one is worked with.
_REQUEST = 0.1
_IMAGE_BYTES = 673_000
_CLASSES = ("Fish", "Flower", "Gravel", "Sugar")
# A mask of the public table "Understanding Clouds" has so many runs in the median.
_RUNS = 150


class _Listing:
    """A bucket of images that exist in its listing only; any that is looked at is the same one."""

    def __init__(self, images: int) -> None:
        self._images = images
        self._data = encode_picture(Image.new("RGB", (WIDTH, HEIGHT)), "jpeg")

    def read(self, name: str, pin: str, start: int, stop: int | None) -> bytes:
        """Returns bytes of that image: detecting the form of masks takes the size of a few."""
        del name, pin
        return self._data[start:stop]

    def list_page(self, prefix: str, page: str | None, start: str = "") -> tuple[list[ObjectInfo], str | None]:
        """Returns a thousand objects; the token of a page is where it begins."""
        names = range(self._images)
        begin = int(page) if page else bisect_left(names, start, key=lambda i: f"{prefix}{i:08d}.jpg")
        numbers = range(begin, min(begin + _PAGE, self._images))
        infos = [ObjectInfo(f"{prefix}{i:08d}.jpg", _IMAGE_BYTES, "1", f"md5:{i:032x}") for i in numbers]
        return infos, str(numbers.stop) if numbers.stop < self._images else None

    def names_page(self, prefix: str, page: str | None) -> tuple[list[str], str | None]:
        """Returns a thousand names, none of which is a folder."""
        infos, token = self.list_page(prefix, page)
        return [info.name for info in infos], token

    def stat(self, name: str) -> ObjectInfo:
        """Refuses to answer: there is no object without a listing."""
        raise Missing(name)


def planning_figures(folder: Path, small: int = _SMALL, large: int = _LARGE) -> list[Figure]:
    """Measures planning with a class and with four masks an image.

    Args:
        folder: for tables and task files.
        small: images of the smaller input.
        large: images of the larger one.
    """
    return [
        _figure(folder, "one class an image", _labels, "classification", small, large),
        _figure(folder, "four masks an image", _masks, "segmentation", small // 10, large // 10),
    ]


def _figure(folder: Path, what: str, write: Callable[[Path, int], None], task: str, small: int, large: int) -> Figure:
    (one_processor, one_wall), (all_processor, all_wall) = (_planning(folder, write, task, n) for n in (small, large))
    more = large - small
    each = (all_wall - one_wall) / more
    requests = _MILLIONS / _PAGE * _REQUEST
    # The next page is requested while one is worked with, so the slower of both counts, at most their sum.
    hours = (each * _MILLIONS + requests) / 3600
    processor = (all_processor - one_processor) / more
    note = (
        f"{each * 1e6:.0f} us an image, {processor * 1e6:.0f} of processor, from {small:,} and {large:,} images: "
        f"{each * _MILLIONS / 3600:.2f} h, and {requests / 3600:.2f} h of {_MILLIONS // _PAGE:,} listing requests of "
        f"{_REQUEST * 1000:.0f} ms"
    )
    name = f"ten million images on a bucket, {what}: until the first worker starts"
    return Figure(name, hours, "h", AT_MOST, 1, note)


def _planning(folder: Path, write: Callable[[Path, int], None], task: str, images: int) -> tuple[float, float]:
    """Returns processor and wall seconds of planning."""
    place = folder / "planning"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    write(place / "table.csv", images)
    try:
        with mock.patch.object(buckets, "_store", return_value=_Listing(images)):
            processor, started = time.process_time(), time.perf_counter()
            _plan(_config(place, task), place)
            return time.process_time() - processor, time.perf_counter() - started
    finally:
        shutil.rmtree(place)


def _plan(config: Config, place: Path) -> None:
    recipe, location = IngestRecipe.of(config), locate(config)
    surveyed = survey_input(recipe, location)
    prepared = plan_ingest(recipe, location, surveyed=surveyed)
    prepared.stage(Staging.open(place / "staging", prepared.plan.dataset.fingerprint))
    if sum(prepared.plan.cut.sizes) != _IMAGE_BYTES * len(surveyed.listing.keys):
        raise UsageError("benchmarks: some images were left out of the plan.")


def _config(place: Path, task: str) -> Config:
    labels = {"path": str(place / "table.csv")}
    return parse_config({"input": {"images": "gs://bench/images", "labels": labels}, "task": task}, base="/")


def _labels(table: Path, images: int) -> None:
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("image", "label"))
        writer.writerows((f"{i:08d}.jpg", _CLASSES[i % len(_CLASSES)]) for i in range(images))


def _masks(table: Path, images: int) -> None:
    mask = " ".join(f"{1 + 1400 * run} 400" for run in range(_RUNS))
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("Image_Label", "EncodedPixels"))
        writer.writerows((f"{i:08d}.jpg_{kind}", mask) for i in range(images) for kind in _CLASSES)
