"""Damage: to one place of a dataset, with what `verify` must find there, and to the pixels of images."""

import dataclasses
import json
import zlib
from bisect import bisect_right
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from shardwright.dataset.manifest import BUILD_FILE, MANIFEST_FILE
from shardwright.dataset.reader import ImageDataset
from shardwright.storage.checksum import checksum_file
from shardwright.storage.fingerprint import checksummed_json
from shardwright.tfrecords.records import frame, read_records
from shardwright.verify import findings as what


class Damage(NamedTuple):
    """One flipped bit (`bit` is counted in the file) or a file cut to `bit // 8` bytes."""

    path: str
    cut: bool
    bit: int


def files(root):
    return sorted(p.relative_to(root).as_posix() for p in Path(root).rglob("*") if p.is_file())


def drawn(root, random):
    """A damage drawn at random; every kind of file is as probable as any other."""
    kinds = {}
    for path in files(root):
        if Path(root, path).stat().st_size:
            kinds.setdefault(path.split("/")[0].split("-")[0], []).append(path)
    path = random.choice(kinds[random.choice(sorted(kinds))])
    return Damage(path, random.random() < 0.25, random.randrange(Path(root, path).stat().st_size * 8))


def settle(root, place):
    """Takes the path of this run out of a dataset, so that a damage drawn with a seed is the same in each run."""
    file = Path(root, BUILD_FILE)
    row = json.loads(file.read_text(encoding="utf-8").replace(str(place), "/place"))
    del row["digest"]
    file.write_text(checksummed_json(row), encoding="utf-8")


@contextmanager
def done(root, damage):
    file = Path(root, damage.path)
    before = file.read_bytes()
    after = bytearray(before)
    if damage.cut:
        del after[damage.bit // 8 :]
    else:
        after[damage.bit // 8] ^= 1 << damage.bit % 8
    file.write_bytes(after)
    try:
        yield
    finally:
        file.write_bytes(before)


def must_be_found(root, damage):
    """A predicate on the findings of a dataset, made before the damage is done."""
    kind = damage.path.split("/")[0].split("-")[0]
    position = damage.bit // 8
    if kind == "Split":
        return _in_shard(root, damage, position)
    if kind in ("index", "ledger"):
        return _in_lines(root, damage, position, kind)
    code = what.MANIFEST if kind == "manifest.json" else what.HASH
    return lambda found: [(f.file, f.code) for f in found] == [(damage.path, code)]


def _in_shard(root, damage, position):
    index = Path(root, "index", damage.path).with_suffix(".jsonl")
    rows = [json.loads(line) for line in index.read_text(encoding="utf-8").split("\n")[:-1]]
    number = bisect_right([row["offset"] for row in rows], position) - 1
    row, within = rows[number], position - rows[number]["offset"]
    if damage.cut:
        code = what.TRUNCATED
    elif within < 8:
        code = what.LENGTH
    elif within < 12:
        code = what.LENGTH_CHECKSUM
    else:
        code = what.PAYLOAD if within < row["length"] - 4 else what.PAYLOAD_CHECKSUM
    expected = (damage.path, code, number, row["key"], row["offset"])
    return lambda found: [(f.file, f.code, f.record, f.key, f.offset) for f in found] == [expected]


def _in_lines(root, damage, position, kind):
    data = Path(root, damage.path).read_bytes()
    number = data[:position].count(b"\n") + 1
    row = json.loads(data.split(b"\n")[number - 1])
    written = row.get("status", "written") == "written"

    def found_there(found):
        if {f.file for f in found} != {damage.path}:
            return False
        if not written:
            # Nothing but the hash of the part knows such a row; a cut may have taken the line itself.
            gone = damage.cut or {f.line for f in found} == {number}
            return gone or ([f.code for f in found] == [what.HASH] and str(number) in found[0].problem)
        # A cut between two lines leaves no damaged one to count.
        lines = (number, None) if damage.cut else (number,)
        return any(f.key == row["key"] and f.line in lines for f in found)

    return found_there


def swap_records(shard: Path) -> int:
    """Swaps the first two records of equal length: the file keeps its size, each record its checksum. How many went."""
    frames = [frame(payload) for _, payload in read_records(shard)]
    pairs = [(i, j) for j in range(len(frames)) for i in range(j) if len(frames[i]) == len(frames[j])]
    for i, j in pairs[:1]:
        frames[i], frames[j] = frames[j], frames[i]
    shard.write_bytes(b"".join(frames))
    return 2 * len(pairs[:1])


def name_indexes(root: Path) -> None:
    """Gives the manifest the hashes of the indexes that are there, as whoever makes a dataset up may."""
    manifest = ImageDataset.open(root).manifest
    indexes = (path for path in manifest.parts if path.startswith("index/"))
    parts = {**manifest.parts, **{path: checksum_file(root / path) for path in indexes}}
    (root / MANIFEST_FILE).write_text(dataclasses.replace(manifest, parts=parts).with_digest().to_json())


def without_pixels(numbers):
    """A change of examples by their number: PNGs lose their pixels behind headers and checksums that are right."""

    def change(number, example):
        if number not in numbers:
            return example
        data = bytearray(example["image/encoded"])
        kind = data.index(b"IDAT")
        end = kind + 4 + int.from_bytes(data[kind - 4 : kind], "big")
        data[kind + 4 : end] = bytes(end - kind - 4)
        data[end : end + 4] = zlib.crc32(data[kind:end]).to_bytes(4, "big")
        return {**example, "image/encoded": bytes(data)}

    return change
