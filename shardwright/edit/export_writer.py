"""The parts that the writers of all export formats share, and the image that they get; see `WRITERS`."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from shardwright.dataset.example_view import ExampleView
from shardwright.dataset.feature_presets import COMMON_FEATURES, ONE_HOT, SIZE
from shardwright.dataset.manifest import IGNORED, Manifest
from shardwright.errors import UsageError
from shardwright.formats.export_record import UNLABELED
from shardwright.images.boxes import PREFIX, TEXT, XMAX, XMIN, YMAX, YMIN
from shardwright.images.orientation import UPRIGHT, displayed_size, orient_boxes
from shardwright.masks.coordinate_frame import orient_runs
from shardwright.masks.rle import Runs, column_pieces, draw
from shardwright.tfrecords.records import DecodedFeature

BOXES, IGNORED_PIXELS, FURTHER = "boxes", "ignored pixels", "captions and further features"
IMAGES = "images"
NewFile = Callable[[str], Path]
FILE_NAME = "image/filename"
# Features of masks, which are exported as masks, and of pixels, which a later ingest measures again.
_MADE_AGAIN = ("image/segmentation/", "segmentation_mask/", "image/quality/", "image/hash/")
_SEPARATORS = ("|", ";", ",", "\t", "~", "^", "#", "&", "+", "=", "@", "%", "$", "!")


class ExportedBox(NamedTuple):
    """A box: edges in pixels of the frame of its image, and the name of its class."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float
    name: str


@dataclass(frozen=True)
class ExportedImage:
    """An image to write; its annotations are in the stored or in the displayed frame, see `masks.coordinate_frame`.

    Attributes:
        key: its key, a path.
        split: its split.
        data: the stored file.
        format: `jpeg` or `png`.
        height: rows of the frame.
        width: columns of the frame.
        labels: numbers of its classes.
        masks: number of a class -> its mask, of those that are not empty.
        ignored: the pixels that are not counted.
        boxes: its boxes.
        payload: the record.
    """

    key: str
    split: str
    data: bytes
    format: str
    height: int
    width: int
    labels: tuple[int, ...]
    masks: Mapping[int, Runs]
    ignored: Runs
    boxes: Sequence[ExportedBox]
    payload: bytes


class Writer(ABC):
    """Writes one export.

    Args:
        new_file: returns the path of a new file by its name below the folder of the export.
        manifest: of the dataset.
        polygons: whether masks are written as polygons, by a format with `POLYGONS`.
    """

    HOLDS: ClassVar[frozenset[str]]
    # True where masks are polygons on request; those of YOLO always are.
    POLYGONS: ClassVar[bool] = False
    # False where readers take a box for a mask, so that boxes are left out of an export of masks.
    BOXES_WITH_MASKS: ClassVar[bool] = True
    # True where readers turn an image by its Exif orientation before they draw its annotations.
    DISPLAYED: ClassVar[bool] = False

    def __init__(self, new_file: NewFile, manifest: Manifest, *, polygons: bool = False) -> None:
        self._new_file = new_file
        self._manifest = manifest
        self._polygons = polygons
        self._classes = manifest.classes

    @abstractmethod
    def add(self, image: ExportedImage) -> None:
        """Writes an image."""

    def finish(self) -> None:
        """Writes all that follows the last image."""
        return

    def _split_name(self, split: str, validation: str = "validation") -> str:
        """Returns the name of a split for Hugging Face, which takes files named `eval` for a part of `test`."""
        return validation if split == "eval" and validation not in self._manifest.splits else split

    def _write(self, name: str, data: bytes | str) -> None:
        self._new_file(name).write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


def extent(runs: Runs, height: int) -> tuple[int, int, int, int]:
    """Returns left, top, width and height of the smallest box around a mask, which is not empty."""
    column, begin, end = column_pieces(runs, height)
    left, top = int(column.min()), int(begin.min())
    return left, top, int(column.max()) + 1 - left, int(end.max()) - top


def mask_png(runs: Runs, height: int, width: int, value: int = 255) -> bytes:
    """Returns a mask as a PNG of 0 and `value`."""
    return png(np.ascontiguousarray(draw(runs, height, width)) * np.uint8(value))


def png(pixels: npt.NDArray[np.uint8], palette: Sequence[int] = ()) -> bytes:
    """Returns pixels as a PNG; with a palette, of indices."""
    image = Image.fromarray(pixels)
    if palette:
        image.putpalette(bytes(palette))
    file = io.BytesIO()
    image.save(file, "png")
    return file.getvalue()


def stem(key: str) -> str:
    """Returns a key without its extension."""
    path = PurePosixPath(key)
    return str(path.with_suffix("")) if path.suffix else key


def extension(image: ExportedImage) -> str:
    """Returns the extension of an image's file."""
    return "jpg" if image.format == "jpeg" else image.format


def has_boxes(manifest: Manifest) -> bool:
    """Returns whether examples have boxes with the names of their classes."""
    return all(manifest.stored(name) in manifest.features for name in (XMIN, YMIN, XMAX, YMAX, TEXT))


def exported_image(view: ExampleView, split: str, payload: bytes, *, displayed: bool = False) -> ExportedImage:
    """Returns a record as an image to write.

    Args:
        view: the record.
        split: its split.
        payload: the record, serialized.
        displayed: whether its annotations are to be in the displayed frame, not in the stored one.
    """
    # The file decides, as it does for the reader of the export.
    turn = view.header.orientation if displayed and view.header is not None else UPRIGHT
    height, width = displayed_size(*view.size, turn)
    stored = view.reader.manifest.stored
    names = view.example.texts(stored(TEXT)) if has_boxes(view.reader.manifest) else []
    edges = {name: view.example.get(stored(name)) for name in (XMIN, YMIN, XMAX, YMAX)} if names else {}
    if edges and turn != UPRIGHT:
        edges = orient_boxes(edges, turn)
    sides = zip(*(np.asarray(edge, np.float64).tolist() for edge in edges.values()), strict=True)
    masks = {label: view.runs(label) for label in range(len(view.reader.classes))}
    return ExportedImage(
        key=view.key,
        split=split,
        data=view.encoded,
        format=view.format,
        height=height,
        width=width,
        labels=view.labels,
        masks={label: orient_runs(runs, *view.size, turn) for label, runs in masks.items() if len(runs)},
        ignored=orient_runs(view.ignored, *view.size, turn),
        boxes=[
            ExportedBox(left * width, top * height, right * width, bottom * height, name)
            for (left, top, right, bottom), name in zip(sides, names, strict=True)
        ],
        payload=payload,
    )


class FurtherFeatures:
    """The features of a dataset that are exported to `features.jsonl`, by our own names.

    Args:
        manifest: of the dataset.

    Attributes:
        kinds: name -> kind of those that some record has.
        left_out: names of those that are not text and are not exported.
    """

    def __init__(self, manifest: Manifest) -> None:
        ours = {theirs: name for name, theirs in manifest.names.items()}
        self._stored = {ours.get(name, name): name for name in manifest.features}
        known = {*COMMON_FEATURES, SIZE, ONE_HOT}
        self._names = [name for name in self._stored if name not in known and not name.startswith(_MADE_AGAIN)]
        self._file_name = self._stored.get(FILE_NAME)
        self.kinds: dict[str, str] = {}
        self.left_out: set[str] = set()

    @property
    def some(self) -> bool:
        """True if the dataset has captions or further features, boxes aside."""
        return any(not name.startswith(PREFIX) for name in self._names)

    def read(self, view: ExampleView, image: str) -> dict[str, list[Any]]:
        """Returns the values of a record.

        Args:
            view: the record.
            image: path of the image in the export.
        """
        found = {}
        for name in self._names:
            values = view.example.get(self._stored[name])
            if values is not None and len(values):
                plain = _plain(values)
                if plain is None:
                    self.left_out.add(name)
                else:
                    found[name] = plain
                    self.kinds[name] = "bytes" if isinstance(values, list) else values.dtype.name
        file_name = view.example.texts(self._file_name) if self._file_name else []
        if file_name and file_name != [image.rpartition("/")[2]]:
            found[FILE_NAME] = file_name
            self.kinds[FILE_NAME] = "bytes"
        return found


def class_folders(classes: Sequence[str], ignored: bool) -> dict[str, str]:
    """Returns class -> name of its folder; no two classes share one."""
    folders: dict[str, str] = {}
    for name in (*classes, *([IGNORED] if ignored else [])):
        folder, number = safe_folder(name), 1
        while folder in folders.values() or folder == UNLABELED:
            number += 1
            folder = f"{safe_folder(name)}~{number}"
        folders[name] = folder
    return folders


def safe_folder(name: str) -> str:
    """Returns a class's name as the name of a folder."""
    safe = "".join(c if c not in "/\\" and c.isprintable() else "_" for c in name)
    return "_" if safe in ("", ".", "..") else safe


def class_separator(classes: Sequence[str]) -> str:
    """Returns the separator of the classes of an image: one that is in no class's name.

    Raises:
        UsageError: every one is in a name.
    """
    free = next((separator for separator in _SEPARATORS if not any(separator in name for name in classes)), None)
    if free is None:
        raise UsageError(
            f"the names of the classes contain all of {' '.join(_SEPARATORS)}. Rename a class by `relabel`."
        )
    return free


def exported_folders(folders: Mapping[str, str], unlabeled: bool) -> dict[str, str]:
    """Returns folder -> class, as `export.json` has it."""
    return {**{folder: name for name, folder in folders.items()}, **({UNLABELED: ""} if unlabeled else {})}


def _plain(values: DecodedFeature) -> list[Any] | None:
    """Returns values for JSON, `None` where they are not text; infinities become texts."""
    if isinstance(values, list):
        try:
            return [value.decode("utf-8") for value in values]
        except UnicodeDecodeError:
            return None
    if values.dtype == np.int64 or np.isfinite(values).all():
        return list(values.tolist())
    return [str(value) for value in values.tolist()]
