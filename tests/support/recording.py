"""Shared by the tests of TFRecord input: made-up records and files of them."""

import gzip
import io
import zlib

import numpy as np
from PIL import Image

from shardwright.tfrecords.encode import encode_example
from shardwright.tfrecords.records import frame

PACKINGS = {"plain": bytes, "gzip": lambda data: gzip.compress(data, mtime=0), "zlib": zlib.compress}


def picture(number, kind="jpeg", size=(12, 10)):
    """An encoded image, another one for every number."""
    pixels = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def mask_png(pixels):
    """A gray PNG of whole numbers."""
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(file, "png")
    return file.getvalue()


def record(number, **features):
    """A record with an image, and what else is given; names with a slash by `**{...}`."""
    return encode_example({"image/encoded": picture(number), **features})


def write_records(path, payloads, packing="plain"):
    """Writes a TFRecord file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(PACKINGS[packing](b"".join(map(frame, payloads))))
    return path


def labeled(count, start=0):
    """Payloads of images of two classes, with keys."""
    return [
        record(
            i, **{"image/key": b"%03d.jpg" % i, "image/class/label": i % 2, "image/class/text": [b"cat", b"dog"][i % 2]}
        )
        for i in range(start, start + count)
    ]


def reading(folder, task="classification", **options):
    """A configuration that reads records."""
    raw = {"task": task, "input": {"images": str(folder)}, "shards": {"records": 5}}
    raw["input"].update(options)
    return raw
