"""`shardwright run` for a classifier: pictures in class folders, made here, so easy that one can tell it learned."""

import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from running import run
from stripes import ACROSS, ALONG, stripes, write_config

pytestmark = pytest.mark.slow


def write_pictures(folder: Path) -> None:
    """30 of each kind."""
    rng = np.random.default_rng(5)
    for name in (ACROSS, ALONG):
        (folder / name).mkdir(parents=True)
        for i in range(30):
            Image.fromarray(stripes(rng, name)).save(folder / name / f"{i:02}.png")


def damage(file: Path) -> None:
    """Spoils a PNG's compressed pixels and mends the checksum over them: only who decodes it can know."""
    data = file.read_bytes()
    begin = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[begin - 4 : begin])
    body = b"IDAT" + bytes(255 - byte for byte in data[begin + 4 : begin + 4 + length])
    file.write_bytes(data[:begin] + body + struct.pack(">I", zlib.crc32(body)) + data[begin + 4 + length + 4 :])


@pytest.mark.two_stacks
def test_a_classifier_learns_and_is_blessed(tmp_path: Path) -> None:
    write_pictures(tmp_path / "pictures")
    for i in range(5):
        damage(tmp_path / f"pictures/along/{i:02}.png")
    write_config(tmp_path, "pictures")
    done = run(tmp_path, "run", "stripes.yaml")
    assert done.code == 0, done.err
    assert re.search(r"^images +60 in, 60 written, 0 rejected$", done.out, re.MULTILINE)
    # Sound headers and no pixels: what the transform rejects must not end the evaluation either.
    assert re.search(r"^ +\d images cannot be decoded and were left out: along/0\d\.png", done.out, re.MULTILINE)
    assert re.search(r"^classes +across, along$", done.out, re.MULTILINE)
    assert re.search(r"^f1/across +0\.\d{4}|^f1/across +1\.0000", done.out, re.MULTILINE)
    assert re.search(r"^model +BLESSED and pushed$", done.out, re.MULTILINE)
