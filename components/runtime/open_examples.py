"""The examples of other components, opened as a dataset.

ImageExampleGen writes a manifest. TFX's own ExampleGens and Transform write TFRecords only, compressed ones. They are
read once for features and classes, and copied into a dataset in the component's temporary folder.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tfx.types import Artifact, artifact_utils

from shardwright.dataset.manifest import MANIFEST_FILE, MASKS, MULTI, NONE, SINGLE
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.staging.commit import DatasetPlan, commit
from shardwright.staging.shard_writer import planned_shards
from shardwright.staging.staging import RecordResult, Staging
from shardwright.storage import buckets, is_remote, list_names, open_file
from shardwright.storage.checksum import digest_of, new_checksum
from shardwright.tfrecords.records import decode_example
from shardwright.tfrecords.scan import scan_records

_KEY, _PIXELS, _LABEL, _TEXT = "image/key", "image/encoded", "image/class/label", "image/class/text"
_OF_MASKS, _RUNS = "image/segmentation/", "/rle"


def open_examples(examples: Artifact, temporary: Callable[[], str]) -> ImageDataset:
    """Opens examples as a dataset; those without a manifest are first copied into one.

    Args:
        examples: an artifact of ImageExampleGen or ImageTransform, or one with their features of another component.
        temporary: returns a folder for the copy; it may be on a bucket.

    Raises:
        DatasetError: the dataset is damaged, or the examples lack a feature that every dataset has.
    """
    if has_manifest(examples.uri):
        return ImageDataset.open(examples.uri)
    found = _read(examples)
    folder = os.path.join(temporary(), "examples", found.digest)
    plan = DatasetPlan(
        kind="ingest",
        task="segmentation" if found.labels == MASKS else "classification",
        classes=found.classes(),
        recipe={"copied": True},
        parent=found.digest,
        features=found.kinds,
        inputs=sum(found.records.values()),
        shards=planned_shards([found.splits[file] for file in found.records]),
        labels=found.labels,
    )
    staging = Staging.open(os.path.join(temporary(), "staging"), plan.fingerprint)
    with staging.locked():
        for shard, file in zip(plan.shards, found.records, strict=True):
            staging.write_shard(shard, (RecordResult(_key(payload, file), payload) for payload in payloads_of(file)))
        commit(staging, plan, folder, {})
    return ImageDataset.open(folder)


def payloads_of(file: str) -> Iterator[bytes]:
    """Yields the records of a file, which may be compressed and on a bucket.

    Raises:
        DatasetError: a record is damaged.
    """
    with open_file(file) as opened:
        for record in scan_records(opened):
            if record.payload is None:
                raise DatasetError(f"{file}: {record.where}: {record.reason}. Write the examples again.")
            yield record.payload


def has_manifest(folder: str) -> bool:
    """Returns whether a folder, local or on a bucket, is a dataset."""
    file = os.path.join(folder, MANIFEST_FILE)
    return buckets.stat(file) is not None if is_remote(file) else os.path.exists(file)


@dataclass
class _Found:
    """The facts of examples that a manifest would have.

    Attributes:
        records: file -> number of its records, in order; files without records are left out.
        splits: file -> its split.
        kinds: feature -> kind of its values.
        names: number of a class -> its name.
        masked: classes that have masks.
        several: whether an image has several classes, or none.
        digest: checksum of all records.
    """

    records: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    splits: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    masked: set[str] = field(default_factory=set)
    several: bool = False
    digest: str = ""

    @property
    def labels(self) -> str:
        """The kind of labels, as `Manifest.labels`."""
        if self.masked:
            return MASKS
        if _LABEL not in self.kinds:
            return NONE
        return MULTI if self.several else SINGLE

    def classes(self) -> tuple[str, ...]:
        """Returns the names of the classes by their numbers; a class that no image has takes a number that is left."""
        free = iter(sorted(self.masked - set(self.names.values())))
        count = max([*(number + 1 for number in self.names), len(self.masked)], default=0)
        return tuple(self.names.get(number) or next(free, f"class {number}") for number in range(count))


def _read(examples: Artifact) -> _Found:
    found, digest = _Found(), new_checksum()
    for split in sorted(artifact_utils.decode_split_names(examples.split_names)):
        folder = os.path.join(examples.uri, f"Split-{split}")
        for file in sorted(os.path.join(folder, name) for name in list_names(folder)):
            for payload in payloads_of(file):
                found.records[file] += 1
                found.splits[file] = split
                digest.update(digest_of(payload))
                _add(found, decode_example(payload), file)
    if not found.records:
        raise DatasetError(f"{examples.uri}: has no records. Check the component that wrote these examples.")
    found.digest = digest.hexdigest()
    return found


def _add(found: _Found, example: Mapping[str, Any], file: str) -> None:
    missing = [repr(name) for name in (_KEY, _PIXELS) if not isinstance(example.get(name), list)]
    if missing:
        what = "feature" if len(missing) == 1 else "features"
        raise DatasetError(
            f"{file}: a record has no {what} {' and '.join(missing)} of bytes, so this is not an example of "
            "Shardwright. Write the examples with ImageExampleGen."
        )
    for name, values in example.items():
        found.kinds[name] = "bytes" if isinstance(values, list) else values.dtype.name
        if name.startswith(_OF_MASKS) and name.endswith(_RUNS):
            found.masked.add(name.removeprefix(_OF_MASKS).removesuffix(_RUNS))
    numbers = list(example.get(_LABEL, ()))
    found.several |= _LABEL in example and len(numbers) != 1
    found.names.update(
        (int(number), text.decode("utf-8")) for number, text in zip(numbers, example.get(_TEXT, ()), strict=False)
    )


def _key(payload: bytes, file: str) -> str:
    key = decode_example(payload)[_KEY]
    try:
        return bytes(key[0]).decode("utf-8")
    except (IndexError, UnicodeDecodeError):
        raise DatasetError(f"{file}: a record has no valid {_KEY!r}. Write the examples again.") from None
