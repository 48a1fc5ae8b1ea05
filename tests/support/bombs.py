"""Files of a few megabytes, or fewer, whose reading took gigabytes or minutes: at least one for every format.

A bomb is a folder with `c.yaml` and the folder `set`. `size` is the size of the attack, in the unit of the bomb: the
full one takes far more than `guarded_call.py` allows where nothing limits it, the small one still more than a budget.
"""

from __future__ import annotations

import base64
import functools
import gzip
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from PIL import Image

from shardwright.config import parse_config
from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.ingest import ingest
from shardwright.storage.checksum import checksum_of
from shardwright.storage.fingerprint import canonical_json, fingerprint
from shardwright.tfrecords.encode import encode_example
from shardwright.tfrecords.records import frame, unframe
from shardwright.tfrecords.wire import delimited

Input = dict[str, Any]


class Bomb(NamedTuple):
    """A way to make reading cost more than the file is worth.

    Attributes:
        format: which format it attacks: a key of `formats_of_the_code` (`test_bombs.py`).
        make: writes the folder `set`, and returns `input` of the configuration.
        small: a size for every run of the tests.
        full: a size for the slow tests.
        task: of the configuration.
        said: what the message must contain, or empty where the input is harmless.
        calls: further commands; `{}` is the folder.
    """

    format: str
    make: Callable[[Path, int], Input]
    small: int
    full: int
    task: str = "classification"
    said: str = ""
    calls: tuple[tuple[str, ...], ...] = ()


BOMBS: dict[str, Bomb] = {}


def bomb(attacked: str, small: int, full: int, **more: Any) -> Callable[[Callable[..., Input]], Callable[..., Input]]:
    def add(make: Callable[..., Input]) -> Callable[..., Input]:
        BOMBS[make.__name__] = Bomb(attacked, make, small, full, **more)
        return make

    return add


def write(name: str, folder: Path, size: int) -> Bomb:
    """Writes a bomb, with its configuration."""
    found = BOMBS[name]
    (folder / "set").mkdir(parents=True)
    given = found.make(folder / "set", size)
    if given is None:
        return found
    converted = {"unsupported_formats": "png"}
    raw = {"task": found.task, "input": {"images": "set", **given}, "images": converted, "shards": {"count": 1}}
    (folder / "c.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    return found


def picture(value: int = 0, side: int = 8, form: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((side, side, 3), value, np.uint8)).save(out, form, **options)
    return out.getvalue()


def images(folder: Path, count: int = 2) -> None:
    for i in range(count):
        (folder / f"{i}.png").write_bytes(picture(i))


def repeat(file: Path, start: bytes, body: bytes, times: int, end: bytes) -> None:
    with file.open("wb") as out:
        out.write(start)
        for left in range(times, 0, -100_000):
            out.write(body * min(left, 100_000))
        out.write(end)


def example(**features: Any) -> bytes:
    return encode_example({"image/encoded": picture(), "image/class/text": b"a", **features})


# --- tar ------------------------------------------------------------------------------------------------------------


def header(name: str, size: int, kind: bytes = b"0") -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.USTAR_FORMAT)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def tar(folder: Path, pieces: Iterator[bytes] | list[bytes], *, packed: bool = True) -> Input:
    path = folder / ("a.tar.gz" if packed else "a.tar")
    with gzip.open(path, "wb", 6) if packed else path.open("wb") as out:
        for piece in pieces:
            out.write(piece)
        for i in range(2):
            for name, data in ((f"{i}.png", picture(i)), (f"{i}.cls", b"a")):
                out.write(header(name, len(data)) + padded(data))
        out.write(bytes(1024))
    return {"images": "set/*.tar*", "labels": {"format": "tfrecord"}}


def blocks(start: bytes, unit: bytes, size: int, end: bytes = b"") -> Iterator[bytes]:
    """A header's data of so many bytes."""
    left = size - len(start)
    yield start
    for _ in range(left >> 20):
        yield unit * ((1 << 20) // len(unit))
    yield unit * ((left & 0xFFFFF) // len(unit))
    yield end + bytes(-(size + len(end)) % 512)


@bomb("tar", 8 << 20, 3 << 30, said="header")
def tar_pax_value(folder: Path, size: int) -> Input:
    """One value of gigabytes."""
    record = f"{size} comment=".encode()
    return tar(folder, iter([header("p", size, b"x"), *blocks(record, b"a", size - 1, b"\n")]))


@bomb("tar", 8 << 20, 3 << 30, said="header")
def tar_pax_global(folder: Path, size: int) -> Input:
    return tar(folder, iter([header("p", size, b"g"), *blocks(b"", b"\0", size)]))


@bomb("tar", 8 << 20, 3 << 30, said="header")
def tar_gnu_name(folder: Path, size: int) -> Input:
    return tar(folder, iter([header("././@LongLink", size, b"L"), *blocks(b"", b"a", size)]))


@bomb("tar", 200_000, 2_000_000, said="header")
def tar_pax_digits(folder: Path, size: int) -> Input:
    """CVE-2024-6232: the length of a record, looked for from each digit on."""
    data = b"1" * size
    return tar(folder, [header("p", size, b"x"), padded(data)])


@bomb("tar", 20_000, 2_000_000, said="header")
def tar_pax_many(folder: Path, size: int) -> Input:
    """Headers that follow headers: each is a level of recursion, or a step of a loop."""
    one = header("p", 10, b"x") + padded(b"10 a=bcde\n")
    return tar(folder, (one * 1000 for _ in range(size // 1000)))


@bomb("tar", 1_000, 100_000, said="is not a plain file")
def tar_sparse(folder: Path, size: int) -> Input:
    """GNU's sparse file, with a map of so many blocks."""
    info = bytearray(header("s.png", 512, b"S"))
    info[482] = 1
    info[148:156] = b"%06o\0 " % (sum(info) - sum(info[148:156]) + 8 * 32)
    more = bytearray(512)
    more[504] = 1
    return tar(folder, iter([bytes(info), bytes(more) * size]))


@bomb("tar", 32 << 20, 4 << 30, said="unpack")
def tar_unpacked(folder: Path, size: int) -> Input:
    """Files of zeros that are never used, in a compressed archive."""
    return tar(folder, (header(f"a{i}.bin", 16 << 20) + bytes(16 << 20) for i in range(size >> 24)))


@bomb("tar", 25_000, 4_000_000)
def tar_members(folder: Path, size: int) -> Input:
    """Empty files, one header each."""
    one = header("x.bin", 0)
    return tar(folder, (one * 1000 for _ in range(size // 1000)))


@bomb("tar", 32 << 20, 4 << 30, said="unpack")
def tar_end(folder: Path, size: int) -> Input:
    """Zeros behind the end."""
    given = tar(folder, [])
    with gzip.open(folder / "a.tar.gz", "ab", 6) as out:
        for _ in range(size >> 20):
            out.write(bytes(1 << 20))
    return given


# --- TFRecords ------------------------------------------------------------------------------------------------------


def records(folder: Path, payloads: Iterator[bytes], name: str = "a.tfrecord.gz") -> Input:
    with (gzip.open if name.endswith("gz") else open)(folder / name, "wb") as out:
        for payload in (example(), *payloads, example()):
            out.write(frame(payload))
    return {"images": "set/*.tfrecord*", "labels": {"format": "tfrecord"}}


INSPECT = (("inspect", "{}/set/a.tfrecord.gz"),)


@bomb("TFRecord", 4 << 20, 64 << 20, said="a.tfrecord", calls=INSPECT)
def records_fields(folder: Path, size: int) -> Input:
    """Empty fields of an Example."""
    return records(folder, iter([b"\x0a\x00" * (size // 2)]))


@bomb("TFRecord", 4 << 20, 64 << 20, said="a.tfrecord", calls=INSPECT)
def records_unknown_fields(folder: Path, size: int) -> Input:
    return records(folder, iter([b"\x18\x00" * (size // 2)]))


@bomb("TFRecord", 4 << 20, 64 << 20, said="a.tfrecord", calls=INSPECT)
def records_features(folder: Path, size: int) -> Input:
    """Features without a name."""
    return records(folder, iter([delimited(1, b"\x0a\x00" * (size // 2))]))


@bomb("TFRecord", 4 << 20, 64 << 20, said="a.tfrecord", calls=INSPECT)
def records_names(folder: Path, size: int) -> Input:
    """Features with different names."""
    entries = (delimited(1, delimited(1, b"%x" % i) + b"\x12\x00") for i in range(size // 12))
    return records(folder, iter([delimited(1, b"".join(entries))]))


@bomb("TFRecord", 4 << 20, 64 << 20, said="a.tfrecord", calls=INSPECT)
def records_values(folder: Path, size: int) -> Input:
    """Empty byte strings in one feature."""
    value = delimited(1, b"\x0a\x00" * (size // 2))
    return records(folder, iter([delimited(1, delimited(1, delimited(1, b"image/x") + delimited(2, value)))]))


@bomb("TFRecord", 4 << 20, 64 << 20, said="a.tfrecord", calls=INSPECT)
def records_numbers(folder: Path, size: int) -> Input:
    """Numbers that are not packed."""
    value = delimited(3, b"\x08\x01" * (size // 2))
    return records(folder, iter([delimited(1, delimited(1, delimited(1, b"x") + delimited(2, value)))]))


@bomb("TFRecord", 4 << 20, 64 << 20, said="a.tfrecord", calls=INSPECT)
def records_lists(folder: Path, size: int) -> Input:
    """Empty lists in one feature."""
    value = b"\x1a\x00" * (size // 2)
    return records(folder, iter([delimited(1, delimited(1, delimited(1, b"x") + delimited(2, value)))]))


@bomb("TFRecord", 4 << 20, 64 << 20, said="a.tfrecord", calls=INSPECT)
def records_sequence(folder: Path, size: int) -> Input:
    """Feature lists of a SequenceExample."""
    return records(folder, iter([delimited(2, b"\x0a\x02\x0a\x00" * (size // 4))]))


@bomb("TFRecord", 4 << 20, 64 << 20, said="a.tfrecord", calls=INSPECT)
def records_tensor(folder: Path, size: int) -> Input:
    """The dimensions of a tensor."""
    return records(folder, iter([b"\x08\x01" + delimited(2, b"\x12\x00" * (size // 2))]))


@bomb("TFRecord", 64 << 20, 4 << 30, said="unpack", calls=INSPECT)
def records_unpacked(folder: Path, size: int) -> Input:
    """Records of zeros."""
    one = frame(bytes(16 << 20))
    path = folder / "a.tfrecord.gz"
    with gzip.open(path, "wb") as out:
        out.write(frame(example()))
        for _ in range(size >> 24):
            out.write(one)
    return {"images": "set/*.tfrecord*", "labels": {"format": "tfrecord"}}


@bomb("TFRecord", 64 << 20, 900 << 20, said="a.tfrecord", calls=INSPECT)
def records_large(folder: Path, size: int) -> Input:
    """One record of nearly a gigabyte of numbers: eight bytes each of them."""
    value = delimited(3, delimited(1, b"\x01" * size))
    return records(folder, iter([delimited(1, delimited(1, delimited(1, b"x") + delimited(2, value)))]))


@bomb("TFRecord", 100_000, 4_000_000, said="a.tfrecord", calls=INSPECT)
def records_empty(folder: Path, size: int) -> Input:
    """Records without content."""
    one = frame(b"") * 1000
    path = folder / "a.tfrecord.gz"
    with gzip.open(path, "wb") as out:
        out.write(frame(example()))
        for _ in range(size // 1000):
            out.write(one)
    return {"images": "set/*.tfrecord*", "labels": {"format": "tfrecord"}}


# --- JSON -----------------------------------------------------------------------------------------------------------


def in_file(folder: Path, name: str, form: str, **more: Any) -> Input:
    images(folder)
    return {"images": "set/*.png", "labels": {"path": f"set/{name}", "format": form, **more}}


COCO = b'{"images":[{"id":1,"file_name":"0.png"}],"categories":[{"id":1,"name":"a"}],"annotations":['
ANNOTATION = b'{"image_id":1,"category_id":1,"segmentation":[[1,1,5,1,5,5]],"x":'
SEGMENTATION = {"task": "segmentation"}


@bomb("coco_json", 1 << 20, 96 << 20, **SEGMENTATION)
def coco_lists(folder: Path, size: int) -> Input:
    repeat(folder / "a.json", COCO + ANNOTATION + b"[", b"[],", size // 3, b"0]}]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("coco_json", 1 << 20, 96 << 20, **SEGMENTATION)
def coco_objects(folder: Path, size: int) -> Input:
    repeat(folder / "a.json", COCO + ANNOTATION + b"[", b'{"a":{}},', size // 9, b"0]}]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("coco_json", 1 << 20, 24 << 20, **SEGMENTATION)
def coco_keys(folder: Path, size: int) -> Input:
    """As many different keys as the budget allows: Python takes 18 bytes of memory for each byte."""
    keys = b",".join(b'"%x":1' % i for i in range(size // 10))
    (folder / "a.json").write_bytes(COCO + ANNOTATION + b"{" + keys + b"}}]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("coco_json", 100_000, 10_000_000, **SEGMENTATION)
def coco_depth(folder: Path, size: int) -> Input:
    (folder / "a.json").write_bytes(COCO + ANNOTATION + b"[" * size + b"]" * size + b"}]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("coco_json", 200, 20_000, **SEGMENTATION)
def coco_slopes(folder: Path, size: int) -> Input:
    """Triangles across an image of 200,000 columns: a run for each column, for 40 bytes."""
    out = io.BytesIO()
    Image.fromarray(np.zeros((100, 200_000), np.uint8)).save(out, "PNG")
    (folder / "0.png").write_bytes(out.getvalue())
    one = b'{"image_id":1,"category_id":1,"segmentation":[[%d,0,200000,100,0,%d]]}'
    text = b",".join(one % (i % 90, i % 89) for i in range(size))
    (folder / "a.json").write_bytes(COCO + text + b"]}")
    return {"images": "set/*.png", "labels": {"path": "set/a.json", "format": "coco_json"}}


@bomb("coco_json", 20, 320, **SEGMENTATION)
def coco_zigzag(folder: Path, size: int) -> Input:
    """One outline that goes from side to side."""
    given = coco_slopes(folder, 1)
    corners = ",".join(f"{i % 2 * 200_000},{i % 97}" for i in range(size)).encode()
    one = b'{"image_id":1,"category_id":1,"segmentation":[[%s]]}' % corners
    (folder / "a.json").write_bytes(COCO + one + b"]}")
    return given


@bomb("coco_json", 100_000, 20_000_000, **SEGMENTATION)
def coco_counts(folder: Path, size: int) -> Input:
    counts = b"1" * size
    one = b'{"image_id":1,"category_id":1,"segmentation":{"size":[8,8],"counts":"%s"}}' % counts
    (folder / "a.json").write_bytes(COCO + one + b"]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("coco_json", 20_000, 1_000_000, **SEGMENTATION)
def coco_big_counts(folder: Path, size: int) -> Input:
    """Counts that no image has, as a list."""
    counts = b",".join([b"9" * 18] * size)
    one = b'{"image_id":1,"category_id":1,"segmentation":{"size":[8,8],"counts":[%s]}}' % counts
    (folder / "a.json").write_bytes(COCO + one + b"]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("captions", 1 << 20, 96 << 20)
def captions_lists(folder: Path, size: int) -> Input:
    start = b'{"images":[{"id":1,"file_name":"0.png"}],"annotations":[{"image_id":1,"caption":"x"},'
    repeat(folder / "a.json", start, b"[],", size // 3, b"0]}")
    return in_file(folder, "a.json", "captions")


def in_line(folder: Path, start: bytes, size: int, form: str) -> Input:
    """A line of JSON that ends in many objects."""
    repeat(folder / "a.jsonl", start, b'{"a":{}},', size // 9, b"0]}\n")
    return in_file(folder, "a.jsonl", form)


@bomb("captions", 1 << 20, 64 << 20)
def captions_line(folder: Path, size: int) -> Input:
    start = b'{"file_name":"0.png","caption":"x"}\n{"file_name":"1.png","caption":"x","y":['
    return in_line(folder, start, size, "captions")


@bomb("numbers", 1 << 20, 60 << 20)
def numbers_line(folder: Path, size: int) -> Input:
    start = b'{"file_name":"0.png","n":1}\n{"file_name":"1.png","n":2,"y":['
    return in_line(folder, start, size, "numbers")


@bomb("label_jsonl", 1 << 20, 60 << 20)
def label_line(folder: Path, size: int) -> Input:
    start = b'{"file_name":"0.png","label":"a"}\n{"file_name":"1.png","label":"a","y":['
    return in_line(folder, start, size, "label_jsonl")


@bomb("vertex_jsonl", 1 << 20, 60 << 20)
def vertex_line(folder: Path, size: int) -> Input:
    start = b'{"imageGcsUri":"gs://b/0.png","classificationAnnotation":{"displayName":"cat"},"y":['
    return in_line(folder, start, size, "vertex_jsonl")


@bomb("labelbox", 1 << 20, 60 << 20)
def labelbox_line(folder: Path, size: int) -> Input:
    start = b'{"data_row":{"external_id":"0.png"},"projects":{"p":{"labels":[]}},"y":['
    return in_line(folder, start, size, "labelbox")


@bomb("via_json", 1 << 20, 60 << 20, **SEGMENTATION)
def via_objects(folder: Path, size: int) -> Input:
    repeat(folder / "a.json", b'{"0.png1":{"filename":"0.png","regions":[', b'{"a":{}},', size // 9, b"0]}}")
    return in_file(folder, "a.json", "via_json")


@bomb("datumaro", 1 << 20, 60 << 20, **SEGMENTATION)
def datumaro_objects(folder: Path, size: int) -> Input:
    start = b'{"categories":{"label":{"labels":[{"name":"a"}]}},"items":[{"id":"0","annotations":['
    repeat(folder / "a.json", start, b'{"a":{}},', size // 9, b"0]}]}")
    return in_file(folder, "a.json", "datumaro")


@bomb("label_studio", 1 << 20, 60 << 20, **SEGMENTATION)
def label_studio_objects(folder: Path, size: int) -> Input:
    start = b'[{"data":{"image":"0.png"},"annotations":[{"result":['
    repeat(folder / "a.json", start, b'{"a":{}},', size // 9, b"0]}]}]")
    return in_file(folder, "a.json", "label_studio")


@bomb("panoptic", 1 << 20, 60 << 20, **SEGMENTATION)
def panoptic_objects(folder: Path, size: int) -> Input:
    (folder / "masks").mkdir()
    start = b'{"images":[{"id":1,"file_name":"0.png"}],"categories":[{"id":1,"name":"a"}],"annotations":['
    start += b'{"image_id":1,"file_name":"0.png","segments_info":['
    repeat(folder / "a.json", start, b'{"a":{}},', size // 9, b"0]}]}")
    return in_file(folder, "a.json", "panoptic")


@bomb("labelme", 1 << 20, 60 << 20, **SEGMENTATION)
def labelme_objects(folder: Path, size: int) -> Input:
    (folder / "l").mkdir()
    start = b'{"imagePath":"0.png","imageHeight":8,"imageWidth":8,"shapes":['
    repeat(folder / "l/0.json", start, b'{"a":{}},', size // 9, b"0]}")
    return in_file(folder, "l", "labelme")


@bomb("labelme", 2, 12, **SEGMENTATION)
def labelme_files(folder: Path, size: int) -> Input:
    """Several files at a time, as many as threads read."""
    (folder / "l").mkdir()
    start = b'{"imagePath":"0.png","imageHeight":8,"imageWidth":8,"shapes":['
    for i in range(size):
        repeat(folder / f"l/{i}.json", start, b'{"a":{}},', 6 << 20 if size > 2 else 1000, b"0]}")
    return in_file(folder, "l", "labelme")


@bomb("labelme", 1 << 20, 60 << 20, **SEGMENTATION)
def labelme_image(folder: Path, size: int) -> Input:
    """A picture in base64."""
    (folder / "l").mkdir()
    start = b'{"imagePath":"0.png","imageHeight":8,"imageWidth":8,"shapes":[],"imageData":"'
    repeat(folder / "l/0.json", start, b"A" * 64, size // 64, b'"}')
    return in_file(folder, "l", "labelme")


@bomb("supervisely", 16 << 20, 4 << 30, **SEGMENTATION)
def supervisely_bitmap(folder: Path, size: int) -> Input:
    """A mask that unpacks to gigabytes."""
    (folder / "ann").mkdir()
    (folder / "meta.json").write_text('{"classes":[{"title":"a"}]}')
    packer, parts = zlib.compressobj(9), []
    for _ in range(size >> 20):
        parts.append(packer.compress(bytes(1 << 20)))
    data = base64.b64encode(b"".join(parts) + packer.flush()).decode()
    thing = {"classTitle": "a", "geometryType": "bitmap", "bitmap": {"data": data, "origin": [0, 0]}}
    for i in range(2):
        found = {"size": {"height": 8, "width": 8}, "objects": [thing] * 10}
        (folder / f"ann/{i}.png.json").write_text(json.dumps(found))
    images(folder)
    return {"images": "set/*.png", "labels": {"path": "set", "format": "supervisely"}}


# --- XML ------------------------------------------------------------------------------------------------------------

CVAT = b'<?xml version="1.0"?><annotations><meta><task><labels><label><name>a</name></label></labels></task></meta>'
CVAT += b'<image id="0" name="0.png" width="8" height="8">'
CVAT_END = b"</image></annotations>"


@bomb("cvat_xml", 1 << 20, 64 << 20, **SEGMENTATION)
def cvat_elements(folder: Path, size: int) -> Input:
    repeat(folder / "a.xml", CVAT, b"<b/>", size // 4, CVAT_END)
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("cvat_xml", 1 << 20, 64 << 20, **SEGMENTATION)
def cvat_attributes(folder: Path, size: int) -> Input:
    attributes = b" ".join(b'a%x=""' % i for i in range(size // 10))
    (folder / "a.xml").write_bytes(CVAT + b"<box " + attributes + b"/>" + CVAT_END)
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("cvat_xml", 1 << 20, 256 << 20, **SEGMENTATION)
def cvat_attribute(folder: Path, size: int) -> Input:
    """One token, which a parser may begin anew for each piece of the file."""
    repeat(folder / "a.xml", CVAT + b'<polygon label="a" points="', b"1,2;", size // 4, b'1,2"/>' + CVAT_END)
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("cvat_xml", 1 << 20, 64 << 20, **SEGMENTATION)
def cvat_names(folder: Path, size: int) -> Input:
    names = b"".join(b"<b%x/>" % i for i in range(size // 10))
    (folder / "a.xml").write_bytes(CVAT + names + CVAT_END)
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("cvat_xml", 10, 30, **SEGMENTATION)
def cvat_entities(folder: Path, size: int) -> Input:
    entities = b"".join(b'<!ENTITY e%d "%s">' % (i + 1, b"&e%d;" % i * 10) for i in range(size))
    (folder / "a.xml").write_bytes(
        b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "ha">' + entities + b"]><annotations>&e%d;</annotations>" % size
    )
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("cvat_xml", 100_000, 10_000_000, **SEGMENTATION)
def cvat_depth(folder: Path, size: int) -> Input:
    repeat(folder / "a.xml", CVAT, b"<b>", size, CVAT_END)
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("voc_boxes", 1 << 20, 4_000_000)
def voc_objects(folder: Path, size: int) -> Input:
    (folder / "l").mkdir()
    start = b"<annotation><size><width>8</width><height>8</height></size>"
    repeat(folder / "l/0.xml", start, b"<object/>", size // 9, b"</annotation>")
    return in_file(folder, "l", "voc_boxes", boxes=True)


@bomb("pascal_voc", 1 << 20, 4_000_000, **SEGMENTATION)
def voc_tree(folder: Path, size: int) -> Input:
    for name in ("Annotations", "JPEGImages", "SegmentationClass"):
        (folder / name).mkdir()
    (folder / "JPEGImages/0.jpg").write_bytes(picture(form="JPEG"))
    (folder / "SegmentationClass/0.png").write_bytes(picture())
    start = b"<annotation><size><width>8</width><height>8</height></size>"
    repeat(folder / "Annotations/0.xml", start, b"<object/>", size // 9, b"</annotation>")
    return {"images": "set/JPEGImages", "labels": {"path": "set", "format": "pascal_voc"}}


# --- tables ---------------------------------------------------------------------------------------------------------


@bomb("label_csv", 1 << 20, 60 << 20)
def csv_columns(folder: Path, size: int) -> Input:
    repeat(folder / "a.csv", b"image,label", b",a", size // 2, b"\n0.png,a\n1.png,a\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 20 << 20)
def csv_different_columns(folder: Path, size: int) -> Input:
    names = b"".join(b",x%x" % i for i in range(size // 6))
    (folder / "a.csv").write_bytes(b"image,label" + names + b"\n0.png,a\n1.png,a\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 60 << 20)
def csv_fields(folder: Path, size: int) -> Input:
    """A row with more fields than columns."""
    repeat(folder / "a.csv", b"image,label\n0.png,a\n1.png,a", b",b", size // 2, b"\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 100 << 20)
def csv_quoted_row(folder: Path, size: int) -> Input:
    """A row that goes on over all lines."""
    repeat(folder / "a.csv", b"image,label\n0.png,a\n1.png,a", b',"\n"', size // 4, b"\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 200 << 20)
def csv_open_quote(folder: Path, size: int) -> Input:
    repeat(folder / "a.csv", b'image,label\n0.png,a\n1.png,"', b"x,y\n", size // 4, b"")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 60 << 20)
def csv_nulls(folder: Path, size: int) -> Input:
    repeat(folder / "a.csv", b"image,label\n0.png,a\n1.png,", b"\0", size, b"\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 60 << 20)
def csv_returns(folder: Path, size: int) -> Input:
    """Lines that end with a carriage return alone."""
    repeat(folder / "a.csv", b"image,label\r0.png,a\r1.png,a\r", b"\r", size, b"")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 60 << 20)
def csv_labels(folder: Path, size: int) -> Input:
    """A cell of many labels."""
    repeat(folder / "a.csv", b"image,label\n0.png,a\n1.png,a", b"|b", size // 2, b"\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("rle_csv", 1 << 20, 60 << 20, **SEGMENTATION)
def rle_runs(folder: Path, size: int) -> Input:
    repeat(folder / "a.csv", b"image,encodedpixels\n0.png,1 1\n1.png,", b"1 1 ", size // 4, b"1 1\n")
    return in_file(folder, "a.csv", "rle_csv")


@bomb("rle_csv", 1 << 20, 60 << 20, **SEGMENTATION)
def rle_huge_runs(folder: Path, size: int) -> Input:
    repeat(folder / "a.csv", b"image,encodedpixels\n0.png,1 1\n1.png,", b"1 9000000000000000000 ", size // 22, b"\n")
    return in_file(folder, "a.csv", "rle_csv")


@bomb("rle_csv", 20_000, 1_000_000, **SEGMENTATION)
def rle_rows(folder: Path, size: int) -> Input:
    """Masks of one image."""
    repeat(folder / "a.csv", b"image,encodedpixels\n1.png,1 1\n", b"0.png,1 1\n", size, b"")
    return in_file(folder, "a.csv", "rle_csv")


@bomb("box_csv", 1 << 20, 60 << 20)
def box_columns(folder: Path, size: int) -> Input:
    start = b"image,label,xmin,ymin,xmax,ymax"
    repeat(folder / "a.csv", start, b",a", size // 2, b"\n0.png,a,1,1,2,2\n1.png,a,1,1,2,2\n")
    return in_file(folder, "a.csv", "box_csv", boxes=True)


@bomb("open_images", 1 << 20, 60 << 20)
def open_images_columns(folder: Path, size: int) -> Input:
    (folder / "l").mkdir()
    start = b"ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax"
    end = b"\n0,x,/m/a,1,0.1,0.2,0.1,0.2\n1,x,/m/a,1,0.1,0.2,0.1,0.2\n"
    repeat(folder / "l/train-annotations-bbox.csv", start, b",a", size // 2, end)
    return in_file(folder, "l", "open_images", boxes=True)


@bomb("yolo", 1 << 20, 60 << 20)
def yolo_rows(folder: Path, size: int) -> Input:
    for name in ("images", "labels"):
        (folder / name).mkdir()
    images(folder / "images")
    (folder / "data.yaml").write_text("names: [a]\ntrain: images\n")
    repeat(folder / "labels/0.txt", b"", b"0 .5 .5 .1 .1\n", size // 14, b"")
    (folder / "labels/1.txt").write_text("0 .5 .5 .1 .1\n")
    return {"images": "set/images", "labels": {"path": "set/data.yaml", "format": "yolo", "boxes": True}}


@bomb("yolo", 1 << 20, 60 << 20, **SEGMENTATION)
def yolo_points(folder: Path, size: int) -> Input:
    given = yolo_rows(folder, 14)
    repeat(folder / "labels/0.txt", b"0", b" 0 1", size // 4, b"\n")
    del given["labels"]["boxes"]
    return given


# --- Parquet --------------------------------------------------------------------------------------------------------


def parquet_file(folder: Path, columns: dict[str, Any], **options: Any) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), folder / "a.parquet", **options)


@bomb("Parquet", 1 << 20, 120 << 20)
def parquet_text(folder: Path, size: int) -> Input:
    """A value of megabytes in a page of kilobytes."""
    parquet_file(folder, {"image": ["0.png", "1.png"], "label": ["a", "a" * size]}, compression="zstd")
    return in_file(folder, "a.parquet", "label_csv")


@bomb("Parquet", 1 << 10, 60 << 10)
def parquet_repeated(folder: Path, size: int) -> Input:
    """A long value in a dictionary, in each of many rows."""
    import pyarrow

    rows = 2_000
    label = pyarrow.array(["a" * size * 16] * rows).dictionary_encode()
    columns = {"image": [f"{i}.png" for i in range(rows)], "label": label}
    parquet_file(folder, columns, compression="zstd", use_dictionary=["label"], dictionary_pagesize_limit=1 << 30)
    return in_file(folder, "a.parquet", "label_csv")


@bomb("Parquet", 1_000, 30_000)
def parquet_images(folder: Path, size: int) -> Input:
    """One image in a dictionary, which is that of all rows: the records are more than the file by far."""
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).save(out, "PNG")
    parquet_file(folder, {"image": [out.getvalue()] * size, "label": ["a"] * size}, dictionary_pagesize_limit=1 << 30)
    return {"images": "set/*.parquet", "labels": {"format": "tfrecord"}}


@bomb("Parquet", 1_000, 20_000)
def parquet_columns(folder: Path, size: int) -> Input:
    columns = {"image": ["0.png", "1.png"], "label": ["a", "a"]}
    parquet_file(folder, {**columns, **{f"c{i}": [1, 2] for i in range(size)}})
    return in_file(folder, "a.parquet", "label_csv")


@bomb("Parquet", 100_000, 20_000_000)
def parquet_lists(folder: Path, size: int) -> Input:
    """A list of empty lists."""
    columns = {"image": ["0.png", "1.png"], "label": ["a", "a"], "x": [[[]] * size, [[]]]}
    parquet_file(folder, columns, compression="zstd")
    return in_file(folder, "a.parquet", "label_jsonl")


# --- YAML -----------------------------------------------------------------------------------------------------------


def configured(folder: Path, text: bytes) -> None:
    """The configuration itself is the bomb."""
    images(folder)
    (folder.parent / "c.yaml").write_bytes(
        b"task: classification\ninput: {images: set, labels: {format: none}}\nx:\n " + text
    )


@bomb("YAML", 9, 30)
def yaml_aliases(folder: Path, size: int) -> None:
    lines = [b"a0: &a0 [x]"] + [b"a%d: &a%d [%s]" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, size)]
    configured(folder, b"\n ".join(lines))


@bomb("YAML", 100_000, 4_100_000)
def yaml_depth(folder: Path, size: int) -> None:
    configured(folder, b"[" * size)


@bomb("YAML", 100_000, 4_100_000)
def yaml_scalar(folder: Path, size: int) -> None:
    configured(folder, b"a: " + b"1_" * (size // 2))


@bomb("YAML", 100_000, 4_100_000)
def yaml_keys(folder: Path, size: int) -> None:
    configured(folder, b"? " * (size // 2))


@bomb("YAML", 100_000, 4_100_000)
def yaml_anchors(folder: Path, size: int) -> None:
    configured(folder, b"a: " + b"&x " * (size // 3))


# --- images ---------------------------------------------------------------------------------------------------------


def one_image(folder: Path, name: str, data: bytes) -> Input:
    (folder / "a").mkdir()
    images(folder / "a")
    (folder / "a" / name).write_bytes(data)
    return {"images": "set", "labels": {"format": "class_folders"}}


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_with(*chunks: bytes) -> bytes:
    data = picture()
    return data[:33] + b"".join(chunks) + data[33:]


@functools.cache
def packed_zeros(size: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


@bomb("PNG", 32 << 20, 2 << 30)
def png_profile(folder: Path, size: int) -> Input:
    return one_image(folder, "x.png", png_with(chunk(b"iCCP", b"p\0\0" + packed_zeros(size))))


@bomb("PNG", 32 << 20, 2 << 30)
def png_texts(folder: Path, size: int) -> Input:
    packed = packed_zeros(size)
    texts = chunk(b"zTXt", b"p\0\0" + packed) * 50 + chunk(b"iTXt", b"p\0\1\0\0\0" + packed) * 50
    return one_image(folder, "x.png", png_with(texts))


@bomb("PNG", 100_000, 4_000_000)
def png_chunks(folder: Path, size: int) -> Input:
    """Empty chunks."""
    return one_image(folder, "x.png", png_with(chunk(b"teXt", b"") * size))


@bomb("PNG", 100_000, 2_000_000)
def png_exif(folder: Path, size: int) -> Input:
    """Blocks of Exif with a full directory each."""
    entry = struct.pack(">HHII", 0x9000, 4, 1, 0)
    exif = b"MM\0*\0\0\0\x08" + struct.pack(">H", 5000) + entry * 5000
    return one_image(folder, "x.png", png_with(chunk(b"eXIf", exif) * (size // 5000)))


@bomb("PNG", 1000, 14_000)
def png_pixels(folder: Path, size: int) -> Input:
    out = io.BytesIO()
    Image.new("1", (size, size)).save(out, "PNG", optimize=True)
    return one_image(folder, "x.png", out.getvalue())


@bomb("JPEG", 100, 10_000)
def jpeg_segments(folder: Path, size: int) -> Input:
    data = picture(form="JPEG")
    profile = b"\xff\xe2" + struct.pack(">H", 65535) + b"ICC_PROFILE\0\1\1".ljust(65533, b"x")
    segments = profile * 8
    return one_image(folder, "x.jpg", data[:2] + segments + b"\xff\xfe\0\2" * (size * 100) + data[2:])


@bomb("JPEG", 100, 490)
def jpeg_scans(folder: Path, size: int) -> Input:
    """Scans of a progressive picture, each decoded at full size."""
    out = io.BytesIO()
    Image.new("L", (14_000, 14_000)).save(out, "JPEG", progressive=True)
    data = out.getvalue()
    start = data.rindex(b"\xff\xda")
    return one_image(folder, "x.jpg", data[:start] + data[start:-2] * size + b"\xff\xd9")


@bomb("GIF", 100, 200_000)
def gif_frames(folder: Path, size: int) -> Input:
    data = picture(form="GIF")
    frame_ = data[data.index(b"\x2c") : -1]
    return one_image(folder, "x.gif", data[:-1] + frame_ * size + b";")


@bomb("GIF", 1 << 20, 64 << 20)
def gif_comments(folder: Path, size: int) -> Input:
    data = picture(form="GIF")
    at = data.index(b"\x2c")
    return one_image(folder, "x.gif", data[:at] + b"\x21\xfe" + b"\x01a" * (size // 2) + b"\0" + data[at:])


@bomb("TIFF", 1000, 300_000)
def tiff_directories(folder: Path, size: int) -> Input:
    data = bytearray(picture(form="TIFF"))
    (at,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    directory = bytes(data[at : at + 2 + 12 * count])
    struct.pack_into("<I", data, at + 2 + 12 * count, len(data))
    parts = [bytes(data)]
    place = len(data)
    for _ in range(size):
        place += len(directory) + 4
        parts.append(directory + struct.pack("<I", place))
    return one_image(folder, "x.tif", b"".join(parts))


@bomb("TIFF", 1000, 60_000)
def tiff_tags(folder: Path, size: int) -> Input:
    """Values that all are the same megabytes."""
    entries = [(256, 4, 1, 8), (257, 4, 1, 8), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 8)]
    entries += [(277, 3, 1, 1), (278, 4, 1, 8), (279, 4, 1, 64)]
    big = 1 << 20
    place = 8 + 2 + 12 * (len(entries) + size) + 4
    entries += [(1000 + i, 3, big // 2, place) for i in range(size)]
    body = b"".join(struct.pack("<HHII", *one) for one in sorted(entries))
    data = b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(entries)) + body + bytes(4) + bytes(big)
    return one_image(folder, "x.tif", data)


@bomb("TIFF", 1000, 14_000)
def tiff_packed(folder: Path, size: int) -> Input:
    out = io.BytesIO()
    Image.new("L", (size, size)).save(out, "TIFF", compression="tiff_deflate")
    return one_image(folder, "x.tif", out.getvalue())


@bomb("WebP", 32 << 20, 1 << 30)
def webp_profile(folder: Path, size: int) -> Input:
    return one_image(folder, "x.webp", picture(form="WEBP", icc_profile=b"x" * (size >> 6)))


@bomb("WebP", 10, 200)
def webp_frames(folder: Path, size: int) -> Input:
    out = io.BytesIO()
    frames = [Image.new("RGB", (4000, 4000), (i % 256, 0, 0)) for i in range(min(size, 10))]
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    return one_image(folder, "x.webp", out.getvalue())


@bomb("BMP", 1000, 14_000)
def bmp_runs(folder: Path, size: int) -> Input:
    """Run lengths: a picture of any size in a few bytes."""
    head = struct.pack("<IiiHHIIiiII", 40, size, size, 1, 8, 1, 0, 0, 0, 256, 0)
    body = head + bytes(1024) + b"\xff\0" * 100 + b"\0\1"
    return one_image(folder, "x.bmp", b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, 14 + 40 + 1024) + body)


@bomb("PPM", 1 << 20, 64 << 20)
def ppm_comment(folder: Path, size: int) -> Input:
    return one_image(folder, "x.ppm", b"P6\n#" + b"a" * size + b"\n8 8\n255\n" + bytes(192))


@bomb("PPM", 1000, 14_000)
def ppm_digits(folder: Path, size: int) -> Input:
    return one_image(folder, "x.ppm", b"P2\n%d %d\n255\n" % (size, size) + b"1 " * 1000)


@bomb("Photoshop", 100_000, 10_000_000)
def psd_layers(folder: Path, size: int) -> Input:
    head = b"8BPS" + struct.pack(">H6xHIIHH", 1, 3, 8, 8, 8, 3) + bytes(4)
    resources = (b"8BIM" + struct.pack(">HHI", 1005, 0, 0)) * (size // 12)
    data = head + struct.pack(">I", len(resources)) + resources + struct.pack(">I", 0) + struct.pack(">H", 0)
    return one_image(folder, "x.psd", data + bytes(192))


@bomb("JPEG 2000", 1000, 14_000)
def jp2_size(folder: Path, size: int) -> Input:
    out = io.BytesIO()
    Image.new("L", (size, size)).save(out, "JPEG2000")
    return one_image(folder, "x.jp2", out.getvalue())


@bomb("AVIF", 1000, 8_000)
def avif_size(folder: Path, size: int) -> Input:
    out = io.BytesIO()
    Image.new("RGB", (size, size)).save(out, "AVIF", speed=10)
    return one_image(folder, "x.avif", out.getvalue())


@bomb("mask_images", 1000, 8_000, **SEGMENTATION)
def mask_size(folder: Path, size: int) -> Input:
    """A mask of another size than its image."""
    for name in ("images", "masks"):
        (folder / name).mkdir()
        images(folder / name)
    out = io.BytesIO()
    Image.new("L", (size, size)).save(out, "PNG", optimize=True)
    (folder / "masks/1.png").write_bytes(out.getvalue())
    return {"images": "set/images", "labels": {"path": "set/masks", "format": "mask_images"}}


@bomb("class_folders", 100_000, 1 << 24)
def name_list(folder: Path, size: int) -> Input:
    """A list of classes that is longer than the classes."""
    given = one_image(folder, "x.png", picture(9))
    (folder / "classes.txt").write_bytes(b"a\n" * (size // 2))
    return {**given, "classes": "set/classes.txt"}


# --- datasets of others ---------------------------------------------------------------------------------------------

READS = (
    *(("verify", "{}/ds"), ("verify", "{}/ds", "--deep"), ("inspect", "{}/ds"), ("stats", "{}/ds")),
    *(("get", "{}/ds", "a/0.png", "--out", "{}/got"), ("card", "{}/ds"), ("report", "{}/ds", "--out", "{}/page.html")),
)


def forged(folder: Path, change: Callable[[Path, dict[str, Any]], None]) -> None:
    """Makes a dataset, and another one of it whose manifest fits."""
    (folder / "a").mkdir()
    images(folder / "a", 4)
    raw = {
        "task": "classification",
        "input": {"images": "set"},
        "shards": {"count": 1},
        "split": {"ratios": {"train": 1}},
    }
    (folder.parent / "c.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    out = folder.parent / "ds"
    ingest(parse_config(raw, base=str(folder.parent)), str(out), quiet=True)
    manifest = json.loads((out / MANIFEST_FILE).read_text(encoding="utf-8"))
    change(out, manifest)
    manifest["parts"] = {name: checksum_of((out / name).read_bytes()) for name in manifest["parts"]}
    manifest["digest"] = fingerprint({name: value for name, value in manifest.items() if name != "digest"})
    (out / MANIFEST_FILE).write_text(canonical_json(manifest) + "\n", encoding="utf-8")


@bomb("dataset", 2 << 20, 64 << 20, calls=READS)
def dataset_fields(folder: Path, size: int) -> None:
    """A record of empty fields; its checksums are right."""

    def change(out: Path, manifest: dict[str, Any]) -> None:
        (shard,) = (shard for shard in manifest["shards"] if shard["records"] == 4)
        index = out / "index" / Path(shard["path"]).with_suffix(".jsonl")
        rows = [json.loads(line) for line in index.read_text(encoding="utf-8").splitlines()]
        data = (out / shard["path"]).read_bytes()
        first = unframe(data[: rows[0]["length"]])
        framed = frame(first + b"\x18\x00" * (size // 2))
        data = framed + data[rows[0]["length"] :]
        for row in rows[1:]:
            row["offset"] += len(framed) - rows[0]["length"]
        rows[0]["length"] = len(framed)
        (out / shard["path"]).write_bytes(data)
        index.write_text("".join(canonical_json(row) + "\n" for row in rows), encoding="utf-8")
        shard.update(bytes=len(data), checksum=checksum_of(data))

    forged(folder, change)


@bomb("dataset", 1 << 20, 64 << 20, calls=READS)
def dataset_manifest(folder: Path, size: int) -> None:
    """A manifest of values without a meaning."""
    forged(folder, lambda out, manifest: None)
    text = (folder.parent / "ds" / MANIFEST_FILE).read_bytes()
    repeat(folder.parent / "ds" / MANIFEST_FILE, b'{"x":[', b'{"a":{}},', size // 9, b"0]," + text[1:])


@bomb("dataset", 1 << 20, 32 << 20, calls=READS)
def dataset_facts(folder: Path, size: int) -> None:
    def change(out: Path, manifest: dict[str, Any]) -> None:
        name = next(name for name in manifest["parts"] if name.startswith("facts/"))
        repeat(out / name, b'{"x":[', b'{"a":{}},', size // 9, b"0]}")

    forged(folder, change)


@bomb("dataset", 1 << 20, 32 << 20, calls=READS)
def dataset_index(folder: Path, size: int) -> None:
    def change(out: Path, manifest: dict[str, Any]) -> None:
        name = next(name for name in manifest["parts"] if name.startswith("index/"))
        repeat(out / name, b"", b'{"key":"a","length":20,"offset":0}\n', size // 35, b"")

    forged(folder, change)
