"""Shared by the tests of `previous`: an input that grows by a month, and what was said about what was copied."""

import io

import numpy as np
from ingesting import config
from PIL import Image

from shardwright.ingest import ingest

OLD, CHANGED, NEW, GONE = 24, 2, 3, 1
COPIED, READ = OLD - CHANGED - GONE, CHANGED + NEW


def picture(number, kind="jpeg", orientation=1):
    """A small picture that no other one looks like."""
    random = np.random.default_rng(number)
    pixels = random.integers(0, 256, (4, 5, 3), np.uint8).repeat(20, 0).repeat(20, 1)
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(file, kind, exif=exif)
    return file.getvalue()


def write_months(folder, kind="jpeg"):
    """Two folders of images by class: in `second`, two of those in `first` are changed, one is gone, three are new."""
    for month in ("first", "second"):
        for label in ("cat", "dog"):
            (folder / month / label).mkdir(parents=True)
        for number in range(OLD + NEW):
            if (month == "first" and number >= OLD) or (month == "second" and number == OLD - 1):
                continue
            changed = month == "second" and number < CHANGED
            data = picture(number + 1000 * changed, kind, orientation=number % 8 + 1)
            name = f"{number:02d}.{'jpg' if kind == 'jpeg' else kind}"
            (folder / month / ("cat", "dog")[number % 2] / name).write_bytes(data)


def raw_of(folder, **options):
    """The configuration of one of the folders; several shards."""
    options = {"shards": {"records": 5}, **options}
    return {"task": "classification", "input": {"images": str(folder)}, **options}


def run_telling(raw, out, **options):
    """Ingests; returns the messages."""
    messages = []
    ingest(config(raw), out, quiet=True, log=messages.append, **options)
    return messages


def copied_of(messages):
    """How many images were copied, and read."""
    (note,) = (note for note in messages if " images copied from " in note)
    return int(note.split()[0].replace(",", "")), int(note.split()[-2].replace(",", ""))
