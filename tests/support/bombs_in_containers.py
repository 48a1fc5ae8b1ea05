"""Bombs: tar archives, TFRecords, Parquet files, and datasets of others."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from bombing import Input, bomb, example, images, in_file, picture, repeat
from PIL import Image

from shardwright.config import parse_config
from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.ingest import ingest
from shardwright.storage.checksum import checksum_of
from shardwright.storage.fingerprint import canonical_json, fingerprint
from shardwright.tfrecords.records import frame, unframe
from shardwright.tfrecords.wire import delimited

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
