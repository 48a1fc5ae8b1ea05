"""Exports a dataset as files: the stored images under their keys or in class folders, masks as a CSV or as pictures.

Images that were stored unchanged are written byte for byte. Captions, boxes and further features are in
`features.jsonl`; `export.json` describes all formats, so that the ingest reads the folder back without an option. Run
lengths are those of the stored pixels, before any turning by Exif, in a dialect of the user's choice. No key can lead
outside of the folder, and the folder appears whole or not at all.

`WRITERS` are the formats of other tools and trainers that `shardwright export --to FORMAT` writes. Each is a class that
gets the images one by one. `HOLDS` states the parts of a dataset that it can hold. The export is refused if it cannot
hold the annotations themselves. Other parts are left out, and the result names them.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from shardwright.config.check_arguments import check_list
from shardwright.dataset.example_view import ExampleReader, ExampleView
from shardwright.dataset.manifest import IGNORED, MASKS, MULTI, NONE, SINGLE, Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.edit.export_containers import ArrayRecord, Parquet, WebDataset
from shardwright.edit.export_tools import Coco, Cvat, ImageFolder, LabelMe, LabelStudio, Voc, Yolo
from shardwright.edit.export_writer import (
    BOXES,
    FURTHER,
    IGNORED_PIXELS,
    ExportedImage,
    FurtherFeatures,
    Writer,
    class_folders,
    class_separator,
    exported_folders,
    exported_image,
    has_boxes,
    mask_png,
)
from shardwright.errors import CheckFailed, DatasetError, UsageError
from shardwright.formats.export_record import (
    BY_CLASS,
    BY_KEY,
    FEATURES_FILE,
    IMAGES,
    LABELS,
    MASK_FOLDER,
    RECORD_FILE,
    UNLABELED,
    ExportRecord,
)
from shardwright.formats.exported import features_line
from shardwright.masks.dialects import (
    ABSOLUTE,
    COLUMN,
    COUNTS,
    RELATIVE,
    ROW,
    Dialect,
    compress_counts,
    dialect_header,
    dialect_of,
)
from shardwright.masks.rle import Runs
from shardwright.running.progress import SILENT, Progress
from shardwright.storage import is_remote, read_bytes
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.paths import check_not_inside, check_replaceable, check_utf8
from shardwright.storage.whole_files import appear, assembling
from shardwright.text.escaping import spreadsheet_cell
from shardwright.untrusted.json_text import parse_untrusted_json

TABLE, PICTURES, NEITHER, POLYGONS = "csv", "png", "none", "polygons"
COMPRESSED = "compressed"
# Headers of the CSV of masks: that of Understanding Clouds, with a row for every image and class; that of Severstal,
# with a row for every mask; that of Airbus and other sets of one class, with a row for every image.
IMAGE_LABEL, IMAGE_CLASS, IMAGE = "image_label", "image_class", "image"
_MASK_HEADS = {IMAGE_LABEL: ("Image_Label",), IMAGE_CLASS: ("ImageId", "ClassId"), IMAGE: ("ImageId",)}
_ENCODED = "EncodedPixels"
_LABEL_HEAD = ("image", "label")
# Python deletes folders by recursion, and needs an open file for each.
_DEEPEST = 200
_LONGEST_NAME = 255
WRITERS: dict[str, type[Writer]] = {
    "arrayrecord": ArrayRecord,
    "coco": Coco,
    "cvat": Cvat,
    "imagefolder": ImageFolder,
    "label_studio": LabelStudio,
    "labelme": LabelMe,
    "parquet": Parquet,
    "voc": Voc,
    "webdataset": WebDataset,
    "yolo": Yolo,
}
_WORDS = {MASKS: "masks", SINGLE: "one class an image", MULTI: "several classes an image", NONE: "images alone"}


@dataclass(frozen=True)
class ExportOptions:
    """How a dataset is exported.

    Attributes:
        layout: `keys`: images under their keys; `classes`: in a folder for their first class.
        masks: `csv`, `png` (0 and 255, a folder for each class) or `none`; for some formats of `to`, `polygons`.
        runs: of the CSV, `absolute`, `relative`, `counts` or `compressed` (COCO's counts as a string).
        order: of the CSV, `column` or `row`.
        base: number of the first pixel where starts are absolute.
        table: columns of the CSV of masks, of `image_label`, `image_class`, `image`.
        splits: only images of these; empty for all.
        classes: only images that have one of these; empty for all.
        to: `csv`, for which the options above are, or another format: `arrayrecord`, `coco`, `cvat`,
            `imagefolder`, `label_studio`, `labelme`, `parquet`, `voc`, `webdataset` or `yolo`.
        raw: write names into the CSV as they are; by default one that a spreadsheet takes for a formula gets a `'`.

    Raises:
        UsageError: an option has an unknown value, or two options contradict each other.
    """

    layout: str = BY_KEY
    masks: str = TABLE
    runs: str = ABSOLUTE
    order: str = COLUMN
    base: int = 1
    table: str = IMAGE_LABEL
    splits: Sequence[str] = ()
    classes: Sequence[str] = ()
    to: str = TABLE
    raw: bool = False

    def __post_init__(self) -> None:
        for name in ("splits", "classes"):
            check_list(name, getattr(self, name))
            object.__setattr__(self, name, tuple(getattr(self, name)))
        able = [name for name, writer in WRITERS.items() if writer.POLYGONS]
        if self.masks == POLYGONS and self.to not in able:
            raise UsageError(f"--masks: polygons are for --to {' and --to '.join(able)}; yolo always has them.")
        if self.to != TABLE:
            masks = TABLE if self.masks == POLYGONS else self.masks
            if replace(self, to=TABLE, masks=masks) != ExportOptions(splits=self.splits, classes=self.classes):
                raise UsageError(f"--to: {self.to} takes no options of the CSV, such as --table. Omit them.")
        if self.to == TABLE and self.masks != TABLE:
            _check_no_table(self, f"{self.masks} writes no run lengths. Omit their options")
        for name, value, known in (
            ("--layout", self.layout, (BY_KEY, BY_CLASS)),
            ("--masks", self.masks, (TABLE, PICTURES, NEITHER, POLYGONS)),
            ("--encoding", self.runs, (ABSOLUTE, RELATIVE, COUNTS, COMPRESSED)),
            ("--order", self.order, (COLUMN, ROW)),
            ("--start", self.base, (0, 1)),
            ("--table", self.table, tuple(_MASK_HEADS)),
            ("--to", self.to, (TABLE, *WRITERS)),
        ):
            if value not in known:
                raise UsageError(f"{name}: {value!r} is not known. Use one of: {', '.join(map(str, known))}.")

    @property
    def dialect(self) -> Dialect:
        """The dialect of the CSV's run lengths."""
        return dialect_of(COUNTS if self.runs == COMPRESSED else self.runs, self.order, self.base)

    @property
    def head(self) -> tuple[str, ...]:
        """Header of the CSV of masks; that of a published set only where the runs are written as there."""
        usual = self.dialect == dialect_of(ABSOLUTE, COLUMN, 1)
        return (*_MASK_HEADS[self.table], _ENCODED if usual else dialect_header(self.dialect))

    def text(self, runs: Runs, *, height: int, width: int) -> str:
        """Returns a mask as the CSV has it."""
        text = self.dialect.format(runs, height=height, width=width)
        return compress_counts(json.loads(text)) if self.runs == COMPRESSED and len(runs) else text


def export(
    dataset: ImageDataset,
    out: str | os.PathLike[str],
    options: ExportOptions | None = None,
    shown: Progress = SILENT,
) -> dict[str, Any]:
    """Writes a dataset as files.

    Args:
        dataset: the dataset, opened by `ImageDataset.open`.
        out: folder to make, on this machine.
        options: how; by default the images under their keys, and masks in a CSV.
        shown: counts the records.

    Returns:
        The counts `images`, `rows` of the CSV, rows `quoted` in it, `masks` as pictures, `features` (images that have
        some); `folder`; `left_out`, features that are not text; `annotations`, their format; and whether it `existed`.

    Raises:
        UsageError: `out` is inside the dataset, or exists and contains something else, another call is writing it,
            or the dataset has no such split, class or masks.
        CheckFailed: two images would be one file, or a stored size is wrong.
        DatasetError: a key is not a path within a folder, or the dataset is damaged.
    """
    if not isinstance(dataset, ImageDataset):
        raise UsageError(f"dataset: {dataset!r} is not an ImageDataset. Give ImageDataset.open({dataset!r}).")
    options = options or ExportOptions()
    if not isinstance(options, ExportOptions):
        raise UsageError(
            f"options: {options!r} is not an ExportOptions. Leave options out, or give ExportOptions(...)."
        )
    out = os.fspath(out)
    if is_remote(out):
        raise UsageError(f"--out: {out} is on a bucket; files are exported to this machine. Name a folder here.")
    check_utf8(out, "--out")
    check_not_inside(out, dataset.root)
    target = Path(os.path.realpath(out))
    usual = {("table", IMAGE_LABEL), ("to", TABLE), ("raw", False)}
    given = {name: value for name, value in asdict(options).items() if (name, value) not in usual}
    known = fingerprint({"digest": dataset.manifest.digest, "options": given})
    found = _done(target, known)
    if found is not None:
        return {**found, "existed": True}
    _check_options(dataset, options)
    # With the folder's name, since the same export may be written to another folder concurrently.
    with assembling(target, fingerprint([known, target.name])) as partial:
        # Another call may have written it between our check and our lock.
        found = _done(target, known)
        if found is not None:
            return {**found, "existed": True}
        if options.to == TABLE:
            written = _Writer(dataset, partial, options).write(shown)
        else:
            written = _write_format(dataset, partial, options, shown)
        row = {**written, "folder": target.name, "fingerprint": known, "dataset": dataset.manifest.digest}
        (partial / RECORD_FILE).write_text(json.dumps(row, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        appear(partial, target)
    return {**row, "existed": False}


def _done(target: Path, known: str) -> dict[str, Any] | None:
    """Returns the result of an earlier call; `None` where there is nothing yet."""
    if not target.exists():
        return None
    if target.is_dir() and not any(target.iterdir()):
        check_replaceable(target)
        return None
    try:
        row = parse_untrusted_json(read_bytes(str(target / RECORD_FILE)).decode("utf-8"))
        if row["fingerprint"] == known:
            return dict(row)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise UsageError(f"{target}: exists already and is not this export. Name another folder, or delete that one.")


def _check_options(dataset: ImageDataset, options: ExportOptions) -> None:
    manifest = dataset.manifest
    for kind, wanted, known in (
        ("split", options.splits, manifest.splits),
        ("class", options.classes, manifest.classes),
    ):
        for name in wanted:
            if name not in known:
                raise UsageError(f"{dataset.root}: has no {kind} {name!r}. It has: {', '.join(known)}.")
    if manifest.labels != MASKS:
        if options.masks != TABLE:
            raise UsageError(f"--masks: {dataset.root} has no masks. Omit --masks.")
        _check_no_table(options, f"{dataset.root} has no masks. Omit the options of their run lengths")
    reader = ExampleReader(manifest)
    if reader.encoding in ("raw", "tensor"):
        raise UsageError(
            f"{dataset.root}: stores {reader.encoding} values, not image files. Only JPEG and PNG are exported."
        )
    if manifest.labels == MASKS and options.masks != NEITHER and reader.runs is None:
        raise UsageError(f"{dataset.root}: its masks are not stored as runs (features.preset). Use --masks none.")
    if manifest.labels == MASKS and options.table == IMAGE and len(manifest.classes) > 1:
        raise UsageError(f"--table: {IMAGE} is for one class, and {dataset.root} has {len(manifest.classes)}.")
    if manifest.ignores and options.table == IMAGE and options.masks == TABLE:
        raise UsageError(f"--table: {IMAGE} has no column for the ignored pixels of {dataset.root}. Use {IMAGE_CLASS}.")


def _check_no_table(options: ExportOptions, problem: str) -> None:
    """Refuses options of the CSV of masks where none is written."""
    if (options.runs, options.order, options.base, options.table) != (ABSOLUTE, COLUMN, 1, IMAGE_LABEL):
        raise UsageError(f"--masks: {problem}, such as --table or --order.")


class _Writer:
    """Writes one export."""

    def __init__(self, dataset: ImageDataset, folder: Path, options: ExportOptions) -> None:
        manifest = dataset.manifest
        self._dataset, self._folder, self._options = dataset, folder, options
        self._reader = ExampleReader(manifest)
        self._labels = manifest.labels
        self._masked = manifest.labels == MASKS
        self._further = FurtherFeatures(manifest)
        self._folders = class_folders(manifest.classes, manifest.ignores)
        self._separator = class_separator(manifest.classes) if manifest.labels == MULTI else "|"
        self._blank = False
        # With `--masks none`, the export has no annotations to read back.
        pictures = self._masked and options.masks != TABLE
        self._file = LABELS if not pictures else MASK_FOLDER if options.masks == PICTURES else ""

    def write(self, shown: Progress) -> dict[str, Any]:
        """Writes all; returns the values for `export.json`."""
        counts = {"images": 0, "rows": 0, "masks": 0, "features": 0, "quoted": 0}
        options = self._options
        with ExitStack() as stack:
            table = None
            if self._file == LABELS:
                file = stack.enter_context(open(self._folder / LABELS, "w", encoding="utf-8", newline=""))
                table = csv.writer(file, lineterminator="\n")
                table.writerow(options.head if self._masked else _LABEL_HEAD[: 1 if self._labels == NONE else 2])
            features = stack.enter_context(open(self._folder / FEATURES_FILE, "w", encoding="utf-8"))
            for _, view, _ in _chosen(self._dataset, options, shown):
                names = [view.reader.classes[label] for label in view.labels]
                name = view.key
                if options.layout == BY_CLASS:
                    # A folder of that name in the key itself is not repeated.
                    folder = self._folders[names[0]] if names else UNLABELED
                    name = name if name.startswith(f"{folder}/") else f"{folder}/{name}"
                _new_file(self._folder / IMAGES, name).write_bytes(view.encoded)
                counts["images"] += 1
                rows = [self._quoted(row, counts) for row in self._rows(name, view, names)] if table is not None else []
                drawn = 0
                for class_name, runs in self._masks(view) if self._file == MASK_FOLDER else ():
                    if len(runs):
                        file_name = f"{self._folders[class_name]}/{name}.png"
                        _new_file(self._folder / MASK_FOLDER, file_name).write_bytes(mask_png(runs, *view.size))
                        drawn += 1
                if table is not None:
                    table.writerows(rows)
                self._blank = self._blank or not (rows or drawn)
                further = self._further.read(view, name)
                if further:
                    features.write(features_line(name, further))
                for what, count in (("rows", len(rows)), ("masks", drawn), ("features", int(bool(further)))):
                    counts[what] += count
        if not counts["features"]:
            (self._folder / FEATURES_FILE).unlink()
        return {**counts, "left_out": sorted(self._further.left_out), **self._record().to_dict()}

    def _record(self) -> ExportRecord:
        manifest, options = self._dataset.manifest, self._options
        blank = "empty" if self._masked or self._labels == MULTI else "unlabeled"
        return ExportRecord(
            task=manifest.task,
            labels=manifest.labels,
            file=self._file,
            layout=options.layout,
            classes=manifest.classes,
            folders=exported_folders(self._folders, options.layout == BY_CLASS and not self._masked),
            runs=options.dialect.runs,
            order=options.dialect.order,
            base=options.dialect.base,
            separator=self._separator,
            ignored=manifest.ignores,
            unlisted=blank if self._blank else "fail",
            features=dict(sorted(self._further.kinds.items())),
        )

    def _masks(self, view: ExampleView) -> Iterator[tuple[str, Runs]]:
        """Yields name and runs of every class, and of the ignored pixels."""
        for label, name in enumerate(view.reader.classes):
            yield name, view.runs(label)
        if view.reader.ignored is not None:
            yield IGNORED, view.ignored

    def _rows(self, name: str, view: ExampleView, names: list[str]) -> Iterator[tuple[str, ...]]:
        options = self._options
        if self._labels == NONE:
            yield (name,)
        elif not self._masked:
            if names or self._labels == MULTI:
                yield name, self._separator.join(names)
        else:
            height, width = view.size
            for class_name, runs in self._masks(view):
                text = options.text(runs, height=height, width=width)
                if options.table == IMAGE_LABEL:
                    yield f"{name}_{class_name}", text
                elif options.table == IMAGE:
                    yield name, text
                elif len(runs):
                    yield name, class_name, text

    def _quoted(self, row: tuple[str, ...], counts: dict[str, int]) -> tuple[str, ...]:
        """Returns a row whose names no spreadsheet takes for formulas; run lengths, which are ours, stay."""
        names = row[:-1] if self._masked else row
        plain = tuple(map(spreadsheet_cell, names))
        if self._options.raw or plain == names:
            return row
        counts["quoted"] += 1
        return (*plain, *row[len(names) :])


def _chosen(dataset: ImageDataset, options: ExportOptions, shown: Progress) -> Iterator[tuple[str, ExampleView, bytes]]:
    """Yields the records to export: split, view and payload."""
    reader = ExampleReader(dataset.manifest)
    for split in options.splits or dataset.splits:
        for key, payload in dataset.records(split, proven=True):
            shown.advance()
            view = reader.read(key, payload)
            if not options.classes or set(options.classes) & {reader.classes[label] for label in view.labels}:
                _check(view)
                yield split, view, payload


def _write_format(dataset: ImageDataset, folder: Path, options: ExportOptions, shown: Progress) -> dict[str, Any]:
    """Writes another format than the CSV; returns the values for `export.json`."""
    counts = {"images": 0, "rows": 0, "masks": 0, "boxes": 0, "features": 0}
    further = FurtherFeatures(dataset.manifest)
    lost = left_out(dataset.manifest, options.to, further.some)
    writer = WRITERS[options.to](
        lambda name: _new_file(folder, name), dataset.manifest, polygons=options.masks == POLYGONS
    )
    for split, view, payload in _chosen(dataset, options, shown):
        image = exported_image(view, split, payload, displayed=writer.DISPLAYED)
        check_labels(image, dataset.manifest, options.to)
        writer.add(image)
        for name, count in (("images", 1), ("masks", len(image.masks)), ("boxes", len(image.boxes))):
            counts[name] += count
    writer.finish()
    return {**counts, "format": options.to, "left_out": lost}


def _check(view: ExampleView) -> None:
    header = view.header
    if header is None:
        raise DatasetError(f"{view.key}: the stored bytes are not a JPEG or PNG. Re-create the dataset.")
    if (header.height, header.width) != view.size:
        raise CheckFailed(
            f"{view.key}: the picture is {header.height}x{header.width}, but its record has "
            f"{view.size[0]}x{view.size[1]}. Re-create the dataset."
        )


def _new_file(root: Path, name: str) -> Path:
    """Returns the path of a new file, and makes its folder.

    Raises:
        DatasetError: the name leads out of the folder, or cannot be that of a file.
        CheckFailed: there is such a file already.
    """
    parts = PurePosixPath(name).parts
    whole = bool(parts) and name == "/".join(parts) and not any(part in ("..", ".", "/") for part in parts)
    if not whole or "\0" in name or any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts):
        raise DatasetError(
            f"the key {name!a} is not a path of a file within a folder. Leave it out by --classes or --splits."
        )
    if len(parts) > _DEEPEST:
        raise DatasetError(
            f"the key {name!a} is in {len(parts) - 1} folders, and export makes at most {_DEEPEST - 1}. "
            "Leave it out by --classes or --splits."
        )
    path = root.joinpath(*parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise CheckFailed(f"the key {name!a} is below another image. Use another --layout.") from None
    if path.exists():
        raise CheckFailed(f"two images would be the file {name!a}. Use another --layout.")
    return path


def left_out(manifest: Manifest, name: str, further: bool) -> list[str]:
    """Returns the parts of a dataset that a format cannot hold.

    Args:
        manifest: of the dataset.
        name: the format, of `WRITERS`.
        further: whether it has captions or further features.

    Raises:
        UsageError: it cannot hold the annotations.
    """
    holds, boxes = WRITERS[name].HOLDS, has_boxes(manifest)
    by_boxes = boxes and BOXES in holds and manifest.labels in (MULTI, NONE)
    if manifest.labels not in holds and not by_boxes:
        others = [other for other, writer in WRITERS.items() if manifest.labels in writer.HOLDS]
        raise UsageError(
            f"--to: {name} cannot hold {_WORDS[manifest.labels]}, and the dataset has "
            f"{'no boxes' if BOXES in holds else 'nothing else'}. Use one of: {', '.join(['csv', *others])}."
        )
    if manifest.labels == MASKS and not WRITERS[name].BOXES_WITH_MASKS:
        holds = holds - {BOXES}
    parts = {BOXES: boxes, IGNORED_PIXELS: manifest.ignores, FURTHER: further}
    return [part for part, there in parts.items() if there and part not in holds]


def check_labels(image: ExportedImage, manifest: Manifest, name: str) -> None:
    """Checks that no class of an image is lost in a format that has classes of boxes alone.

    Raises:
        CheckFailed: one has no box.
    """
    if manifest.labels != MULTI or MULTI in WRITERS[name].HOLDS:
        return
    missing = [
        manifest.classes[label]
        for label in image.labels
        if manifest.classes[label] not in {box.name for box in image.boxes}
    ]
    if missing:
        raise CheckFailed(f"{image.key}: its class {missing[0]!r} has no box, and {name} holds boxes. Use --to csv.")
