"""WebDataset's tar files as TFRecords: members of one name are a sample, and every sample becomes an Example.

The part of a member's name up to the first dot of its file names the sample, the rest is its role:

| role | content |
|---|---|
| `jpg`, `png`, …: an ending of images | the image |
| `cls` | its class: a number or a name |
| `txt` | a caption |
| `json` | further values; those of `shardwright export --to webdataset` have classes and boxes |
| `mask0.png`, `mask1.png`, … | the mask of a class, by its place in `classes.json` next to the tar files |
| `ignored.png` | pixels that do not count |
| `mask.png`, `seg.png` | a mask of all classes, by value |

Nothing is unpacked under the name of a member. Links, special files and damaged archives are refused as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from shardwright.dataset.manifest import IGNORED
from shardwright.errors import UsageError
from shardwright.formats.sample_features import (
    CLASS_TEXT,
    MASK_FOLDER,
    SampleError,
    are_boxes,
    are_texts,
    box_features,
    mask_name,
    texts,
    value_feature,
)
from shardwright.formats.tar_files import Member, TarError, begins_as_tar, read_members
from shardwright.images.header import IMAGE_ENDINGS
from shardwright.tfrecords.encode import FeatureValue, RecordError, encode_example
from shardwright.tfrecords.records import frame
from shardwright.untrusted.budget import OverBudget
from shardwright.untrusted.json_text import parse_untrusted_json

__all__ = ["CLASSES_FILE", "begins_as_tar", "read_classes", "write_records"]

CLASSES_FILE = "classes.json"

# Bytes of a sample: it is in memory as a whole, and so are others at the same time.
_LARGEST = 256 << 20
_LARGEST_TEXT = 16 << 20
_MASKS_BY_VALUE = ("mask.png", "seg.png")
# The keys of the JSON that `shardwright export` writes.
_EXPORTED = frozenset(("key", "labels", "classes", "boxes", "box_classes"))
# Features that members are.
_RESERVED = ("image/", MASK_FOLDER)


def write_records(file: IO[bytes], copy: IO[bytes], name: str, classes: Sequence[str]) -> None:
    """Writes the samples of a tar file as TFRecords, in their order.

    Args:
        file: the tar file, open for reading.
        copy: receives the records.
        name: what messages call the file.
        classes: names of the classes by number; empty where none are stated.

    Raises:
        UsageError: it is damaged, has a member that is neither a file nor a folder, or a sample cannot be understood.
    """
    for sample, members in _samples(file, name):
        try:
            copy.write(frame(encode_example(_features(sample, members, classes))))
        except (SampleError, RecordError) as error:
            raise UsageError(f"{name}, sample {sample!r}: {error}") from None


def read_classes(text: bytes, name: str) -> tuple[str, ...]:
    """Returns the names in `classes.json`.

    Raises:
        UsageError: it is not a list of different names.
    """
    names = _json(text)
    if not are_texts(names) or len({*names}) < len(names):
        raise UsageError(f"{name}: is not a JSON list of different names. Delete it, or list the classes in order.")
    return tuple(names)


def _samples(file: IO[bytes], name: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yields the name of every sample and its members by role."""
    current, members, size = "", dict[str, bytes](), 0
    for path, data in _members(file, name):
        folder, slash, base = path.rpartition("/")
        stem, _, role = base.partition(".")
        role = role.lower()
        sample = folder + slash + stem
        if sample != current and members:
            yield current, members
            members, size = {}, 0
        current = sample
        if role in members:
            raise UsageError(f"{name}: {path!r} is there twice. Give every sample a different name.")
        members[role] = data
        size += len(members[role])
        if size > _LARGEST:
            raise UsageError(
                f"{name}, sample {sample!r}: it has more than {_LARGEST} bytes. Leave its largest files out."
            )
    if members:
        yield current, members


def _members(file: IO[bytes], name: str) -> Iterator[tuple[str, bytes]]:
    """Yields path and content of the members that are part of a sample.

    Raises:
        UsageError: see `write_records`.
    """

    def wanted(member: Member) -> bool:
        if member.kind:
            problem = f"{member.path!r} is {member.kind}"
            raise UsageError(f"{name}: {problem}. Write the archive with plain files (tar --dereference).")
        if member.size > _LARGEST:
            problem = f"{member.path!r} has {member.size} bytes; at most {_LARGEST} are read"
            raise UsageError(f"{name}: {problem}. Leave the file out.")
        stem, dot, role = member.path.rpartition("/")[2].partition(".")
        role = role.lower()
        is_role = role in ("cls", "txt", "json") or f".{role.rpartition('.')[2]}" in IMAGE_ENDINGS
        return bool(stem and dot) and is_role

    try:
        yield from read_members(file, wanted)
    except TarError as error:
        raise UsageError(f"{name}: the tar file is damaged: {error}. Copy or write it again.") from None
    except OverBudget as error:
        raise UsageError(f"{name}: {error}. Write a tar file of samples alone, or several smaller ones.") from None


def _features(sample: str, members: Mapping[str, bytes], classes: Sequence[str]) -> dict[str, FeatureValue]:
    """Returns the features of a sample."""
    found: dict[str, FeatureValue] = {"image/key": sample.encode("utf-8", "surrogateescape")}
    images = []
    for role, data in members.items():
        if role == "cls":
            text = _text(role, data)
            is_number = text.isascii() and text.isdigit() and len(text) < 19
            found["class"] = int(text) if is_number else text.encode()
        elif role == "txt":
            found["caption"] = _text(role, data).encode()
        elif role in _MASKS_BY_VALUE:
            found["mask"] = data
        elif role == "ignored.png":
            found[mask_name(IGNORED)] = data
        elif match := re.fullmatch(r"mask([0-9]{1,6})\.png", role):
            number = int(match[1])
            if classes and number >= len(classes):
                problem = f"mask{number}.png: {CLASSES_FILE} has {len(classes)} classes, from 0"
                raise SampleError(f"{problem}. Add the missing names.")
            found[mask_name(classes[number] if classes else str(number))] = data
        elif role != "json":
            images.append(role)
    if len(images) > 1:
        problem = f"there are several images: {', '.join(images)}"
        raise SampleError(f"{problem}. Name masks mask.png, or mask0.png, mask1.png, … by class.")
    if images:
        found["image/encoded"] = members[images[0]]
    row = _json(members.get("json", b"{}"))
    if not isinstance(row, dict):
        raise SampleError("json is not a JSON object. Write one, or leave the file out.")
    if row.keys() == _EXPORTED:
        # `shardwright export` wrote it; edges of boxes are in pixels there.
        key, labels, boxes, names = row["key"], row["classes"], row["boxes"], row["box_classes"]
        if not (isinstance(key, str) and are_texts(labels) and are_texts(names) and are_boxes(boxes)):
            raise SampleError("json has values of another kind than the export writes. Export the dataset again.")
        found["image/key"] = key.encode("utf-8", "replace")
        if labels or not names:
            found[CLASS_TEXT] = texts(labels)
        image = members[images[0]] if images else b""
        return found | box_features(image, boxes, names, classes, f"{CLASSES_FILE} next to the tar files")
    values = {name: value for name, listed in row.items() if (value := value_feature(listed)) is not None}
    return {name: value for name, value in values.items() if not name.startswith(_RESERVED)} | found


def _json(text: bytes) -> Any:
    try:
        return parse_untrusted_json(text) if len(text) <= _LARGEST_TEXT else None
    except ValueError:
        return None


def _text(role: str, data: bytes) -> str:
    try:
        return data.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise SampleError(f"{role} is not UTF-8. Write it as UTF-8.") from None
