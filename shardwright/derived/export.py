"""A dataset back as files: the stored images under their keys or in class folders, masks as a CSV or as pictures.

What was stored as it came is written byte for byte as it came. Run lengths are those of the stored pixels, before any
turning by Exif, in whatever dialect is asked for. Nothing is written outside of the folder, whatever a key says, and
the folder appears whole or not at all.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from shardwright.console import SILENT, Progress
from shardwright.dataset import Dataset
from shardwright.errors import CheckFailed, DatasetError, UsageError
from shardwright.fingerprint import fingerprint
from shardwright.foreign_json import foreign_json
from shardwright.image_facts import FactsReader, ImageFacts
from shardwright.manifest import MASKS
from shardwright.masks.rle import Runs, draw
from shardwright.masks.rle_dialects import ABSOLUTE, COLUMN, COUNTS, RELATIVE, ROW, Dialect, compress_counts
from shardwright.storage import is_remote
from shardwright.storage.durable import rename_folder
from shardwright.writing.assembly import assembling
from shardwright.writing.places import refuse_within

RECORD_FILE = "export.json"
IMAGES, MASK_FOLDER, LABELS = "images", "masks", "labels.csv"
BY_KEY, BY_CLASS = "keys", "classes"
TABLE, PICTURES, NEITHER = "csv", "png", "none"
COMPRESSED = "compressed"
_UNLABELLED = "_none"
# Headers of the CSV of masks: that of Understanding Clouds, with a row for every image and class; of Severstal, with
# one for every mask; of Airbus and others of one class, with one for every image.
IMAGE_LABEL, IMAGE_CLASS, IMAGE = "image_label", "image_class", "image"
_MASK_HEADS = {
    IMAGE_LABEL: ("Image_Label", "EncodedPixels"),
    IMAGE_CLASS: ("ImageId", "ClassId", "EncodedPixels"),
    IMAGE: ("ImageId", "EncodedPixels"),
}
_LABEL_HEAD = ("image", "label")
_LONGEST_NAME = 255


@dataclass(frozen=True)
class ExportOptions:
    """How a dataset is exported.

    Attributes:
        layout: `keys`: images under their keys; `classes`: in a folder for their first class.
        masks: `csv`, `png` (0 and 255, a folder for each class) or `none`.
        runs: of the CSV, `absolute`, `relative`, `counts` or `compressed` (COCO's counts as a string).
        order: of the CSV, `column` or `row`.
        base: number of the first pixel where starts are absolute.
        table: columns of the CSV of masks, of `image_label`, `image_class`, `image`.
        splits: only images of these; empty for all.
        classes: only images that have one of these; empty for all.
    """

    layout: str = BY_KEY
    masks: str = TABLE
    runs: str = ABSOLUTE
    order: str = COLUMN
    base: int = 1
    table: str = IMAGE_LABEL
    splits: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value, known in (
            ("--layout", self.layout, (BY_KEY, BY_CLASS)),
            ("--masks", self.masks, (TABLE, PICTURES, NEITHER)),
            ("--runs", self.runs, (ABSOLUTE, RELATIVE, COUNTS, COMPRESSED)),
            ("--order", self.order, (COLUMN, ROW)),
            ("--base", self.base, (0, 1)),
            ("--table", self.table, tuple(_MASK_HEADS)),
        ):
            if value not in known:
                raise UsageError(f"{name}: {value!r} is not known. Use one of: {', '.join(map(str, known))}.")

    @property
    def dialect(self) -> Dialect:
        """How the CSV's run lengths are written."""
        base = self.base if self.runs == ABSOLUTE else 0
        runs = COUNTS if self.runs == COMPRESSED else self.runs
        empty = {RELATIVE: ("", "-1"), COUNTS: ("", "[]")}.get(runs, ("",))
        return Dialect(runs, self.order, base, empty)

    def text(self, runs: Runs, *, height: int, width: int) -> str:
        """A mask as the CSV has it."""
        text = self.dialect.format(runs, height=height, width=width)
        return compress_counts(json.loads(text)) if self.runs == COMPRESSED and len(runs) else text


def export(dataset: Dataset, out: str, options: ExportOptions, shown: Progress = SILENT) -> dict[str, Any]:
    """Writes a dataset as files.

    Args:
        dataset: the dataset.
        out: folder to make, on this machine.
        options: how.
        shown: told of every record.

    Returns:
        What was written: `images`, `rows` of the CSV, `masks` as pictures, `folder`; and whether it `existed` already.

    Raises:
        UsageError: `out` lies inside of the dataset, or is there and holds something else, another call is writing it,
            or the dataset has no such split, class or masks.
        CheckFailed: two images would be one file, or a stored size is wrong.
        DatasetError: a key is no path within a folder, or the dataset is damaged.
    """
    if is_remote(out):
        raise UsageError(f"--out: {out} is on a bucket; files are exported to this machine. Name a folder here.")
    refuse_within(out, dataset.root)
    target = Path(out).absolute()
    given = {name: value for name, value in asdict(options).items() if (name, value) != ("table", IMAGE_LABEL)}
    known = fingerprint({"digest": dataset.manifest.digest, "options": given})
    found = _done(target, known)
    if found is not None:
        return {**found, "existed": True}
    _refuse(dataset, options)
    # Not by what is written alone: the same may be exported to another folder at the same time.
    with assembling(target, fingerprint([known, target.name])) as partial:
        # Another call may have written it between our looking and our lock.
        found = _done(target, known)
        if found is not None:
            return {**found, "existed": True}
        counts = _write(dataset, partial, options, shown)
        told = {**counts, "folder": target.name, "fingerprint": known, "dataset": dataset.manifest.digest}
        (partial / RECORD_FILE).write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        if target.exists():
            target.rmdir()  # Empty, as `_done` has seen.
        rename_folder(partial, target)
    return {**told, "existed": False}


def _done(target: Path, known: str) -> dict[str, Any] | None:
    """What an earlier call wrote; `None` where there is nothing yet."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return None
    try:
        told = foreign_json((target / RECORD_FILE).read_text(encoding="utf-8"))
        if told["fingerprint"] == known:
            return dict(told)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise UsageError(f"{target}: is there already and is not this export. Name another folder, or delete that one.")


def _refuse(dataset: Dataset, options: ExportOptions) -> None:
    manifest = dataset.manifest
    for what, wanted, known in (
        ("split", options.splits, manifest.splits),
        ("class", options.classes, manifest.classes),
    ):
        for name in wanted:
            if name not in known:
                raise UsageError(f"{dataset.root}: no {what} {name!r}. It has: {', '.join(known)}.")
    reader = FactsReader(manifest)
    if reader.encoding in ("raw", "tensor"):
        raise UsageError(f"{dataset.root}: stores {reader.encoding} values, no files. Only JPEG and PNG are exported.")
    if manifest.labels == MASKS and options.masks != NEITHER and reader.runs is None:
        raise UsageError(f"{dataset.root}: its masks are not stored as runs (features.preset). Use --masks none.")
    if manifest.labels == MASKS and options.table == IMAGE and len(manifest.classes) > 1:
        raise UsageError(f"--table: {IMAGE} is for one class, and {dataset.root} has {len(manifest.classes)}.")


def _write(dataset: Dataset, folder: Path, options: ExportOptions, shown: Progress) -> dict[str, int]:
    reader = FactsReader(dataset.manifest)
    counts = {"images": 0, "rows": 0, "masks": 0}
    masked = dataset.manifest.labels == MASKS
    with ExitStack() as stack:
        table = None
        if options.masks == TABLE or not masked:
            file = stack.enter_context(open(folder / LABELS, "w", encoding="utf-8", newline=""))
            table = csv.writer(file, lineterminator="\n")
            table.writerow(_MASK_HEADS[options.table] if masked else _LABEL_HEAD)
        for split in options.splits or dataset.splits:
            for key, payload in dataset.records(split, proven=True):
                shown.advance()
                facts = reader.read(key, payload)
                names = [reader.classes[label] for label in facts.labels]
                if options.classes and not set(options.classes) & set(names):
                    continue
                _check(facts)
                name = key if options.layout == BY_KEY else _in_class(key, names)
                _place(folder / IMAGES, name).write_bytes(facts.encoded)
                counts["images"] += 1
                if table is not None:
                    rows = list(_rows(name, facts, names, options, masked))
                    table.writerows(rows)
                    counts["rows"] += len(rows)
                if masked and options.masks == PICTURES:
                    counts["masks"] += _pictures(folder / MASK_FOLDER, name, facts)
    return counts


def _check(facts: ImageFacts) -> None:
    header = facts.header
    if header is None:
        raise DatasetError(f"{facts.key}: what is stored is no JPEG or PNG. Write the dataset anew.")
    if (header.height, header.width) != facts.size:
        raise CheckFailed(
            f"{facts.key}: the picture is {header.height}x{header.width}, its record says "
            f"{facts.size[0]}x{facts.size[1]}. Write the dataset anew."
        )


def _rows(
    name: str, facts: ImageFacts, names: list[str], options: ExportOptions, masked: bool
) -> Iterator[tuple[str, ...]]:
    if not masked:
        yield name, " ".join(names)
        return
    height, width = facts.size
    for label, class_name in enumerate(facts.reader.classes):
        runs = facts.runs(label)
        text = options.text(runs, height=height, width=width)
        if options.table == IMAGE_LABEL:
            yield f"{name}_{class_name}", text
        elif options.table == IMAGE:
            yield name, text
        elif len(runs):
            yield name, class_name, text


def _pictures(folder: Path, name: str, facts: ImageFacts) -> int:
    written = 0
    for label, class_name in enumerate(facts.reader.classes):
        runs = facts.runs(label)
        if len(runs):
            mask = np.ascontiguousarray(draw(runs, *facts.size)) * np.uint8(255)
            Image.fromarray(mask).save(_place(folder, f"{_folder(class_name)}/{name}.png"), "png")
            written += 1
    return written


def _in_class(key: str, names: list[str]) -> str:
    """A key below the folder of its class; a folder of that name in the key itself is not repeated."""
    folder = _folder(names[0]) if names else _UNLABELLED
    return key if key.startswith(f"{folder}/") else f"{folder}/{key}"


def _folder(name: str) -> str:
    """A class's name as a folder's."""
    safe = "".join(c if c not in "/\\" and c.isprintable() else "_" for c in name)
    return "_" if safe in ("", ".", "..") else safe


def _place(root: Path, name: str) -> Path:
    """Where a file goes; its folder is made.

    Raises:
        DatasetError: the name leads out of the folder, or cannot be that of a file.
        CheckFailed: there is such a file already.
    """
    parts = PurePosixPath(name).parts
    whole = bool(parts) and name == "/".join(parts) and not any(part in ("..", ".", "/") for part in parts)
    if not whole or "\0" in name or any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts):
        raise DatasetError(
            f"the key {name!a} is no path of a file within a folder. Leave it out by --classes or --splits."
        )
    path = root.joinpath(*parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise CheckFailed(f"the key {name!a} lies below another image. Use another --layout.") from None
    if path.exists():
        raise CheckFailed(f"two images would be the file {name!a}. Use another --layout.")
    return path
