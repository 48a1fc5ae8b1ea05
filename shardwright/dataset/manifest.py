"""The manifest of a dataset, `manifest.json`, and the rows of its indexes.

Both are canonical: the same dataset has the same bytes here; machine, time and number of workers have no effect.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from shardwright.dataset.ledger import STATUSES
from shardwright.dataset.shard_names import LEDGER_FOLDER, facts_path, index_path
from shardwright.errors import DatasetError, OtherLayoutError
from shardwright.storage.checksum import BLAKE3, stored_algorithm
from shardwright.storage.fingerprint import canonical_json, fingerprint
from shardwright.untrusted.json_text import (
    MOST,
    anything,
    choice,
    class_name,
    count,
    digest,
    either,
    file_name,
    is_text,
    listed,
    mapped,
    optional,
    parse_untrusted_json,
    record,
    relative_path,
    text,
    truth,
)

FORMAT_VERSION = 1
MANIFEST_FILE = "manifest.json"
BUILD_FILE = "build.json"
# Key of `build.json`: name -> checksum of the files that may differ between equal datasets, as their manifests may not.
FILES = "files"
# Key of `build.json`: the folder that the images of an ingest were in.
IMAGE_FOLDER = "image_folder"
# Kinds of annotations of an image: masks, one class, any number of classes, none.
MASKS = "masks"
SINGLE = "single"
MULTI = "multi"
NONE = "none"
# In place of a class's name: the mask of the pixels that neither loss nor metric counts.
IGNORED = "ignore"
MASK_PREFIX = "image/segmentation/"
RLE, AREA = "rle", "area"
# Length and checksums of a record.
_LEAST_RECORD = 16
# A row of an index as it is written, but for keys with quotes or escapes: it is read in a quarter of the time.
_PLAIN_ROW = re.compile(rb'\{"key":"([^"\\\x00-\x1f]*)","length":([1-9][0-9]{0,14}),"offset":(0|[1-9][0-9]{0,14})\}\n?')
# Names of totals that are there only if they are not 0. The first counts images whose files contain a GPS position. The
# second counts images that Exif turns and whose masks or boxes were drawn on the turned picture.
LOCATED, DISPLAYED = "gps", "displayed_frame"
MARKS = (LOCATED, DISPLAYED)
# The options of a recipe that readers of a dataset use; a later version may have more.
_RECIPE = record(
    {},
    {
        "images": record(
            {},
            {
                **dict.fromkeys(
                    ("verify", "orientation", "resize", "encoding", "unsupported_formats", "strip_metadata"), text
                ),
                **dict.fromkeys(("max_pixels", "quality", "chroma"), count),
                "optimize": truth,
                "size": optional(either(count, listed(count, length=2))),
            },
            closed=False,
        ),
        "features": record({}, {"preset": text, "map": mapped(text)}, closed=False),
        "split": mapped(anything),
        "text": mapped(record({}, {"output": text, "vocabulary": count, "length": optional(count)}, closed=False)),
        **dict.fromkeys(("encoding", "resize", "masks", "labels"), text),
        "size": optional(listed(count, length=2)),
    },
    closed=False,
)
_MANIFEST = record(
    {
        "format_version": count,
        "kind": choice("ingest", "transform"),
        "task": choice("segmentation", "classification"),
        "classes": listed(class_name, unique=True),
        "labels": choice(MASKS, SINGLE, MULTI, NONE),
        "recipe": _RECIPE,
        "recipe_fingerprint": digest,
        "parent": optional(text),
        "fingerprint": digest,
        "features": mapped(choice("bytes", "int64", "float32")),
        "names": mapped(text),
        "totals": mapped(count, required=("inputs", *STATUSES)),
        "shards": listed(
            record(
                {
                    "split": file_name,
                    "path": relative_path,
                    "records": count,
                    "bytes": count,
                    "checksum": digest,
                    "first_key": optional(text),
                    "last_key": optional(text),
                }
            )
        ),
        "parts": mapped(digest, key=relative_path),
        "checksum": choice(BLAKE3),
        "digest": digest,
    },
    {"sizes": mapped(count, key=relative_path)},
)
# Records of the files that a dataset was made of, in a dataset as in staging.
ORIGINS_FOLDER = "origins"


def manifest_html(manifest: Manifest) -> str:
    """Returns a manifest as HTML: task, classes, splits, images that were not written."""
    from shardwright.display.histograms import number, number_of, size_text
    from shardwright.display.html import box, class_names, isolate, line, rows

    totals = manifest.totals
    left = [f"{number(totals[status])} {status}" for status in ("rejected", "duplicate") if totals.get(status)]
    body = []
    for split in manifest.splits:
        shards = [shard for shard in manifest.shards if shard.split == split]
        images, size = sum(shard.records for shard in shards), sum(shard.bytes for shard in shards)
        body.append((isolate(split), number(images), number(len(shards)), size_text(size)))
    return box(
        f"{number_of(manifest.records, 'image')} for {manifest.task}",
        line(class_names(range(len(manifest.classes)), manifest.classes)),
        rows(("split", "images", "shards", "size"), body),
        soft=", ".join([f"{manifest.kind}, fingerprint {manifest.fingerprint[:12]}", *left]),
    )


def mask_feature(name: str, what: str = RLE) -> str:
    """Returns the name of a feature of a mask.

    A slash in the name of a class is `%2F` there, and a percent sign `%25`; `mask_class` reverses this.

    Args:
        name: the class, or `IGNORED`.
        what: `RLE`, the runs, or `AREA`.
    """
    return f"{MASK_PREFIX}{name.replace('%', '%25').replace('/', '%2F')}/{what}"


def mask_class(encoded: str) -> str:
    """Returns the class whose name is a part of a feature's name; see `mask_feature`."""
    return encoded.replace("%2F", "/").replace("%25", "%")


class IndexRow(NamedTuple):
    """One line of an index: where a record is in its shard.

    Attributes:
        key: key of the record.
        offset: of its frame.
        length: of its frame.
    """

    key: str
    offset: int
    length: int

    @staticmethod
    def from_json(line: str | bytes) -> IndexRow:
        """Reads one line; `ValueError`, `KeyError` or `TypeError` when it is not a row."""
        if isinstance(line, bytes) and (plain := _PLAIN_ROW.fullmatch(line)) and int(plain[2]) >= _LEAST_RECORD:
            with suppress(UnicodeDecodeError):
                return IndexRow(plain[1].decode("utf-8"), int(plain[3]), int(plain[2]))
        row = parse_untrusted_json(line)
        key, offset, length = row["key"], row["offset"], row["length"]
        if not is_text(key) or type(offset) is not int or type(length) is not int:
            raise ValueError(f"{line[:80]!a} is not a row of an index")
        if not 0 <= offset <= MOST or not _LEAST_RECORD <= length <= MOST:
            raise ValueError(f"{line[:80]!a}: offset or length are impossible")
        return IndexRow(key, offset, length)


@dataclass(frozen=True)
class ShardInfo:
    """One shard as the manifest records it.

    Attributes:
        split: split it belongs to.
        path: file, relative to the dataset's folder, with forward slashes.
        records: number of records.
        bytes: size of the file.
        checksum: of the file, 64 hex digits.
        first_key: key of the first record, `None` in a shard without records.
        last_key: key of the last record, likewise.
    """

    split: str
    path: str
    records: int
    bytes: int
    checksum: str
    first_key: str | None
    last_key: str | None


@dataclass(frozen=True)
class Manifest:
    """A whole dataset in figures. A folder without a manifest is not a dataset.

    Attributes:
        format_version: version of this layout.
        kind: `ingest` or `transform`.
        task: `segmentation` or `classification`.
        classes: names in the order of their indices.
        labels: the annotations of an image: `masks`, a `single` class, any number of them (`multi`) or `none`.
        recipe: the options that change bytes, as plain values; no paths, workers or runners.
        recipe_fingerprint: hash of the recipe.
        parent: its source: fingerprint of the input (`ingest`), digest of the parent dataset (`transform`).
        fingerprint: hash of kind, recipe and parent: known before any work, equal for equal results.
        features: name -> `bytes`, `int64` or `float32`, of every feature of its examples.
        names: name of a feature under `features.preset: tf_vision` -> its name here, of those that have another one.
        totals: `inputs`, `written`, `duplicate`, `rejected`; `records/<split>`; `rejected/<code>`; `MARKS`.
        shards: all shards, by split and number.
        parts: checksum of every other file, by relative path, without those of `build.json`'s `files`.
        sizes: bytes of each of `parts`; empty where an older version wrote the dataset.
        checksum: name of the algorithm of all checksums of files, and of fingerprints and digests.
        digest: hash of everything above.
    """

    kind: str
    task: str
    classes: tuple[str, ...]
    labels: str
    recipe: Mapping[str, Any]
    recipe_fingerprint: str
    parent: str | None
    fingerprint: str
    features: Mapping[str, str]
    totals: Mapping[str, int]
    shards: tuple[ShardInfo, ...]
    parts: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    checksum: str = BLAKE3
    format_version: int = FORMAT_VERSION
    digest: str = ""

    def _repr_html_(self) -> str:
        return manifest_html(self)

    def with_digest(self) -> Manifest:
        """Returns the same manifest with its digest set."""
        return dataclasses.replace(self, digest=self._computed_digest())

    def to_json(self) -> str:
        """Returns the text of `manifest.json`: canonical JSON and a line end."""
        return canonical_json(self._plain()) + "\n"

    @staticmethod
    def from_json(text: str, where: str = MANIFEST_FILE) -> Manifest:
        """Reads and verifies the text of a `manifest.json`.

        Args:
            text: the file's content.
            where: file name for messages.

        Raises:
            OtherLayoutError: another version of Shardwright wrote it, with another layout.
            DatasetError: no manifest, or the digest does not fit.
        """
        try:
            raw = parse_untrusted_json(text)
            version = raw["format_version"]
            if version != FORMAT_VERSION:
                known = f"this one reads {FORMAT_VERSION}"
                raise OtherLayoutError(f"{where}: layout version {version!a:.20}, {known}. Use a newer shardwright.")
            _check_age(raw, where)
            _MANIFEST(raw, "")
            shards = tuple(ShardInfo(**row) for row in raw.pop("shards"))
            for shard in shards:
                if str(PurePosixPath(shard.path).parent) != f"Split-{shard.split}":
                    raise ValueError(f"shard {shard.path!a} is not in the folder of its split, Split-{shard.split}")
                if shard.records * _LEAST_RECORD > shard.bytes:
                    raise ValueError(f"shard {shard.path!a}: {shard.records} records are not in {shard.bytes} bytes")
            if len({shard.path for shard in shards}) < len(shards):
                raise ValueError("two shards have the same path")
            _check_parts(raw["parts"], shards)
            if raw.get("sizes") and raw["sizes"].keys() != raw["parts"].keys():
                raise ValueError("sizes are not those of parts")
            manifest = Manifest(**{**raw, "classes": tuple(raw["classes"]), "shards": shards})
            computed = manifest._computed_digest()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DatasetError(f"{where}: not a readable manifest ({error}). Re-create the dataset.") from None
        if manifest.digest != computed:
            raise DatasetError(f"{where}: damaged, its digest does not match its content. Re-create the dataset.")
        return manifest

    @property
    def ignores(self) -> bool:
        """True if examples have a mask of pixels that neither loss nor metric counts."""
        # A table may have a class of this name; the mask is then that of the class.
        return IGNORED not in self.classes and self.stored(mask_feature(IGNORED)) in self.features

    @property
    def mask_features(self) -> list[str]:
        """Our names of the features of all masks: one for each class, and that of the ignored pixels if it is there."""
        return [mask_feature(name) for name in (*self.classes, *([IGNORED] if self.ignores else ()))]

    @property
    def encoding(self) -> str | None:
        """How the recipe stores pixels: `jpeg`, `png`, `raw` or `tensor`; none or `keep`: as the files have them."""
        encoding: str | None = self.recipe.get("encoding") or self.recipe.get("images", {}).get("encoding")
        return encoding

    def stored(self, name: str) -> str:
        """Returns the stored name of one of our features; see `names`."""
        return self.names.get(name, name)

    @property
    def image_checksum(self) -> str:
        """The algorithm of the checksums of images in the examples; the default one if they contain none."""
        return stored_algorithm(self.features, self.names)

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, sorted."""
        return tuple(sorted({shard.split for shard in self.shards}))

    @property
    def records(self) -> int:
        """Number of records of all splits."""
        return sum(shard.records for shard in self.shards)

    def _plain(self) -> dict[str, Any]:
        plain = {**dataclasses.asdict(self), "classes": list(self.classes)}
        if not self.sizes:
            del plain["sizes"]
        return plain

    def _computed_digest(self) -> str:
        plain = self._plain()
        del plain["digest"]
        return fingerprint(plain)


def _check_age(raw: Any, where: str) -> None:
    """Refuses the layout up to code format 3, whose checksums and digests are SHA-256 and which names no algorithm.

    Raises:
        OtherLayoutError: it has that layout.
    """
    shards, recipe = raw.get("shards"), raw.get("recipe")
    if "checksum" in raw or not isinstance(shards, list) or not shards or not isinstance(recipe, dict):
        return
    if all(isinstance(shard, dict) and "sha256" in shard and "checksum" not in shard for shard in shards):
        raise OtherLayoutError(
            f"{where}: an older version wrote it (code format {recipe.get('code_format')!a:.20}), whose layout this "
            "one does not read. Ingest the images again with the same configuration."
        )


def _check_parts(parts: Mapping[str, str], shards: Sequence[ShardInfo]) -> None:
    indexes = {index_path(shard.path) for shard in shards}
    facts = {facts_path(shard.path) for shard in shards}
    known = indexes | facts
    if not any(name.startswith(LEDGER_FOLDER) for name in parts):
        raise ValueError(f"parts lacks a file of {LEDGER_FOLDER}")
    if missing := sorted(indexes - parts.keys()):
        raise ValueError(f"parts lacks {missing[0]!a}")
    if facts & parts.keys() and not facts <= parts.keys():
        raise ValueError(f"parts lacks {min(facts - parts.keys())!a}")
    # Files next to the manifest describe the dataset as a whole.
    foreign = sorted(name for name in parts.keys() - known if "/" in name and not name.startswith(LEDGER_FOLDER))
    if foreign:
        raise ValueError(f"parts: {foreign[0]!a} is neither index nor facts of a shard, nor a part of the ledger")
    if own := sorted(parts.keys() & {MANIFEST_FILE, BUILD_FILE}):
        raise ValueError(f"parts: {own[0]} is there")


def dataset_fingerprint(kind: str, recipe: Mapping[str, Any], parent: str | None) -> str:
    """Returns the fingerprint of the dataset that `recipe` makes from `parent`; also the name of its staging folder."""
    return fingerprint({"format": FORMAT_VERSION, "kind": kind, "parent": parent, "recipe": dict(recipe)})


def origins_path(shard: str) -> str:
    """Returns the path of the origins of a shard; both paths are relative to staging, or to a dataset."""
    return f"{ORIGINS_FOLDER}/{PurePosixPath(shard).with_suffix('.jsonl')}"
