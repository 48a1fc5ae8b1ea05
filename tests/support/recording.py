"""Shared by the tests of TFRecord input: made-up records and files of them."""

import gzip
import zlib

import build
import numpy as np

from shardwright.tfrecords.encode import encode_example
from shardwright.tfrecords.records import frame

PACKINGS = {"plain": bytes, "gzip": lambda data: gzip.compress(data, mtime=0), "zlib": zlib.compress}


def picture(number, kind="jpeg", size=(12, 10)):
    """An encoded image, another one for every number."""
    return build.encoded(build.noise(number, size), kind)


def mask_png(pixels):
    """A gray PNG of whole numbers."""
    return build.encoded(np.asarray(pixels, np.uint8))


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
