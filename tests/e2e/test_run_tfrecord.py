"""`shardwright run` on TFRecords that somebody else has written, compressed, with further features and boxes."""

import io
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from recording import record, write_records
from running import run
from stripes import ACROSS, ALONG, stripes, write_config

from shardwright.tfrecords.records import floats, ints

pytestmark = pytest.mark.slow


def picture(number: int, name: str) -> bytes:
    """A PNG file."""
    file = io.BytesIO()
    Image.fromarray(stripes(np.random.default_rng(number), name)).save(file, "png")
    return file.getvalue()


def damage(data: bytes) -> bytes:
    """A PNG with a sound header and spoiled pixels under a correct checksum: only a decoder can find out."""
    begin = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[begin - 4 : begin])
    body = b"IDAT" + bytes(255 - byte for byte in data[begin + 4 : begin + 4 + length])
    return data[:begin] + body + struct.pack(">I", zlib.crc32(body)) + data[begin + 4 + length + 4 :]


def test_a_classifier_learns_from_records_under_other_names(tmp_path: Path) -> None:
    payloads = []
    for i in range(60):
        name = (ALONG, ACROSS)[i // 2 % 2]
        encoded = picture(i, name) if i % 15 else damage(picture(i, name))
        boxes = np.linspace(0.1, 0.4, i % 3)
        payloads.append(
            record(
                0,
                **{
                    "image/encoded": encoded,
                    "label": int(name == ACROSS),
                    "class_name": name.encode(),
                    "filename": b"%03d.png" % i,
                    "depth": i / 7,
                    "image/object/bbox/xmin": floats(boxes),
                    "image/object/class/label": ints([1] * len(boxes)),
                    "site": b"A" if i % 2 else b"B",
                },
            )
        )
    write_records(tmp_path / "records/a.tfrecord.gz", payloads[0::2], "gzip")
    write_records(tmp_path / "records/b.tfrecord", payloads[1::2])
    shards = {"count": 2, "balance": "class", "pattern": "{split}{index:02d}-{count}.tfrec"}
    write_config(tmp_path, "records", shards=shards)
    done = run(tmp_path, "run", "stripes.yaml")
    assert done.code == 0, done.err
    assert re.search(r"^images +60 in, 60 written, 0 rejected$", done.out, re.MULTILINE)
    # The transform rejects what cannot be decoded; neither the training nor the evaluation ends because of it.
    assert re.search(r"^ +\d images cannot be decoded and were left out: \S+", done.out, re.MULTILINE)
    assert re.search(r"^classes +along, across$", done.out, re.MULTILINE)
    assert re.search(r"^f1/across +0\.\d{4}|^f1/across +1\.0000", done.out, re.MULTILINE)
    assert re.search(r"^model +BLESSED and pushed$", done.out, re.MULTILINE)
    files = list(tmp_path.glob("shardwright-runs/**/ImageExampleGen/examples/*/Split-train/*"))
    assert [re.fullmatch(r"train0\d-\d+\.tfrec", file.name) is not None for file in files] == [True, True]
