"""TFRecord files of tf.train.Examples as an input, with any names of features: classes and annotations.

Masks inside records: runs as numbers, run lengths as text, images.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from shardwright.config.input import ALL, TFRECORD, LabelsConfig
from shardwright.dataset.manifest import IGNORED, MULTI, NONE, SINGLE
from shardwright.errors import ConfigError
from shardwright.formats.base import (
    IGNORE,
    NO_LABEL,
    NO_ROW,
    SHOWN_NAMES,
    Annotation,
    AnnotationFormat,
    Images,
    Request,
    Survey,
)
from shardwright.formats.classes import ClassMap, check_names, map_classes
from shardwright.formats.mask_evidence import detect_values
from shardwright.formats.mask_values import MaskFiles, ValueMap, pin_mask
from shardwright.formats.record_listing import RecordFiles, list_records
from shardwright.formats.record_roles import BY_LABEL, BY_NAME, BY_VALUE, IMAGES, OBJECTS, ROLES, RUNS, TEXTS
from shardwright.formats.record_scan import (
    BINARY,
    FILE_NAME,
    LABELED,
    Features,
    file_name_of,
    further_features,
    labels_of,
    masks_of,
    place_in,
    read_file,
)
from shardwright.formats.rows import CAPTION_FEATURE
from shardwright.masks.dialects import COCO, COUNTS, RELATIVE, SIIM, Dialect
from shardwright.masks.rle import Runs
from shardwright.storage import Listing, part_path
from shardwright.storage.paths import split_part
from shardwright.tfrecords.records import HEADER_BYTES

# A name for the class of masks whose class is not stated.
_ONE_CLASS = "mask"


class TFRecordFormat(AnnotationFormat):
    """Records with any names of features.

    Args:
        found: the files.
        task: `segmentation` or `classification`.
        options: `input.labels`.
        classes: `input.classes`.
        max_pixels: `images.max_pixels`.
        notes: what was detected so far, for the user.

    Attributes:
        listing: the images inside the files.

    Raises:
        UsageError: see `list_records`.
    """

    format, name = TFRECORD, "the records"

    def __init__(
        self,
        found: Listing,
        *,
        task: str,
        options: LabelsConfig,
        classes: Mapping[str, int | None] | None,
        max_pixels: int,
        notes: tuple[str, ...] = (),
    ) -> None:
        for role in options.columns:
            if role not in ROLES:
                raise ConfigError(
                    f"input.labels.columns.{role}", "no role in a record", f"Use one of: {', '.join(ROLES)}."
                )
        self._task = task
        self._max_pixels = max_pixels
        self._options = options
        self._found: RecordFiles = list_records(found, task=task, columns=options.columns)
        keys = self._found.listing.keys
        images = Images(keys, frozenset(), lambda position: None, max_pixels)
        stated = classes or dict.fromkeys(self._found.classes) or None
        super().__init__(Request(images=images, classes=stated, notes=(*notes, *self._found.notes)))
        self._map = ClassMap((), {})
        self._values = ValueMap((), {})
        self._kinds: dict[str, str] = {}
        form = self._found.roles.form
        if options.threshold and (
            form != IMAGES or self._found.roles.classed != BY_VALUE or ALL not in options.threshold
        ):
            raise ConfigError("input.labels.threshold", "is for images of masks of one class", "Remove it.")
        if form == IMAGES:
            self.dialect = self._images_of_masks
        elif form == RUNS:
            self.dialect = RunPairs()
        elif form == TEXTS:
            code = options.rle.given
            known = {RELATIVE: SIIM, COUNTS: COCO}.get(str(code.get("encoding")))
            self.dialect = known or Dialect(order=str(code.get("order", "column")), base=int(code.get("start", 1)))

    @property
    def listing(self) -> Listing:
        """The images, by key."""
        return self._found.listing

    @property
    def unpacked(self) -> str:
        """Folder of this machine where compressed files were unpacked, empty where none were."""
        return "" if self._found.scratch is None else self._found.scratch.name

    def survey(self) -> Survey:
        found, roles = self._found, self._found.roles
        masked = self._task == "segmentation"
        if masked and roles.classed == BY_VALUE:
            masks = [text for _, _, drawn in self._records() for _, text in drawn]
            self._values = detect_values(self._images_of_masks, masks, "", self._classes)
            self.dialect = self._images_of_masks
            names, notes = self._values.names, self._values.notes
        else:
            self._map = self._class_map(masked)
            names, notes = self._map.names, self._map.notes
        if masked and roles.form == TEXTS:
            notes = (*notes, f"run lengths: {self.dialect}; input.labels.rle.encoding, order and start override this")
        all_kinds = sorted(found.scan.kinds.items())
        self._kinds = {name: min(kinds) for name, kinds in all_kinds if len(kinds) == 1 and BINARY not in kinds}
        if self._kinds:
            notes = (*notes, f"tfrecord: carried through: {', '.join(self._kinds)}")
        if left_out := [name for name, _ in all_kinds if name not in self._kinds]:
            shown = ", ".join(left_out)
            notes = (*notes, f"tfrecord: not carried through, being no text or of several kinds: {shown}")
        labels = NONE if not roles.label else MULTI if found.scan.several else SINGLE
        # A list of no class is an annotation where lists have several; a single class that is missing is not.
        least = 0 if masked or labels == NONE else 1 if labels == MULTI else LABELED
        return Survey(
            classes=names,
            listed=bytearray(labeled >= least for labeled in found.labeled),
            refused=list(found.refused),
            names=list(self.listing.keys[:SHOWN_NAMES]),
            notes=(*self._notes, *notes),
            labels=labels,
            ignore=self._values.ignore or (masked and IGNORED in found.scan.mask_names and IGNORED not in names),
            features={
                **self._kinds,
                **({CAPTION_FEATURE: "bytes"} if roles.caption else {}),
                **({FILE_NAME: "bytes"} if found.scan.filed else {}),
            },
            # Classes of boxes are a set of classes to their image.
            ordered=labels == MULTI and not roles.label.startswith(OBJECTS),
            # Masks in records are drawn on the pixels as a decoder returns them.
            frame="stored",
        )

    def annotations(self) -> Iterator[Annotation]:
        for position, features, masks in self._records():
            if values := self._further(features, self.listing.keys[position]):
                yield Annotation(position, NO_LABEL, None, NO_ROW, values)
            for label, text in masks:
                yield Annotation(position, label, text, NO_ROW)
            if self._task != "segmentation":
                for text in labels_of(features, self._found.roles.label):
                    yield Annotation(position, self._map.index[text], None, NO_ROW)

    def attachments(self) -> Listing | None:
        return self._found.files

    def move_to(self, folder: Path) -> Listing:
        """Takes what was unpacked to where the writers are.

        Args:
            folder: where it may stay.

        Returns:
            The listing, with the places of the images there.
        """
        found = self._found
        moved: dict[str, str] = {}
        for number, place in enumerate(found.paths):
            if found.scratch is not None and place != found.files.names[number]:
                target = folder / os.path.relpath(place, found.scratch.name)
                target.parent.mkdir(parents=True, exist_ok=True)
                found.paths[number] = moved[place] = str(target)
                shutil.move(place, target)
        if moved:
            parts = [split_part(name) for name in found.listing.names]
            names = [part_path(moved.get(path, path), start, stop or start) for path, start, stop in parts]
            found.listing = replace(found.listing, names=names)
        return found.listing

    @property
    def _images_of_masks(self) -> MaskFiles:
        options, root = self._options, self._found.files.root
        least = {NO_LABEL: options.threshold[ALL]} if ALL in options.threshold else {}
        files = RecordMasks(
            root, {}, self._max_pixels, options.unlisted_values, values=options.values, thresholds=least
        )
        return files.meaning(self._values)

    def _records(self) -> Iterator[tuple[int, Features, Iterator[tuple[int, str]]]]:
        """Yields position, features, and labels and texts of the masks, of every record that can be used."""
        found = self._found
        for number, positions in enumerate(found.positions):
            with found.open(number) as file:
                for record, offset, payload, features in read_file(file, [position >= 0 for position in positions]):
                    masks = self._masks(features, payload, found.paths[number], offset + HEADER_BYTES)
                    yield positions[record], features, masks if self._task == "segmentation" else iter(())

    def _class_map(self, masked: bool) -> ClassMap:
        scan, roles = self._found.scan, self._found.roles
        values = dict(scan.classes)
        if masked and roles.classed == BY_NAME:
            values = dict(scan.mask_names)
            if IGNORED not in (self._classes or ()):
                values.pop(IGNORED, None)
        elif masked and not roles.label:
            name = next(iter(self._classes)) if self._classes else _ONE_CLASS
            return map_classes({name: f"feature {roles.mask!r}"}, self._classes or {name: None})
        elif not roles.label:
            return ClassMap((), {})
        check_names(values)
        return map_classes(values, self._classes or _by_number(values, scan.numbers))

    def _masks(self, features: Features, payload: bytes, file: str, begin: int) -> Iterator[tuple[int, str]]:
        """Yields label and text of each mask of a record, whose payload begins at a byte of a file."""
        roles = self._found.roles
        for name, values in masks_of(features, roles):
            # The classes of the masks, one by one or one for all.
            labels = [0]
            if roles.classed == BY_VALUE:
                labels = [NO_LABEL]
            elif name:
                labels = [self._map.index.get(name, IGNORE)]
            elif roles.classed == BY_LABEL and roles.label:
                labels = [self._map.index[text] for text in labels_of(features, roles.label)]
            if isinstance(values, np.ndarray):
                texts = [" ".join(map(str, values.tolist()))]
            elif roles.form == TEXTS:
                texts = [value.decode("utf-8") for value in values]
            else:
                places = [(begin + place_in(payload, value), value) for value in values]
                # The writers read them again.
                texts = [
                    pin_mask(part_path(file, start, start + len(value)), google_crc32c.value(bytes(value)))
                    for start, value in places
                ]
            for i, text in enumerate(texts if labels else ()):
                if text.strip():
                    yield labels[i if len(labels) > 1 else 0], text

    def _further(self, features: Features, key: str) -> dict[str, list[Any]]:
        """Returns the values of what is carried through, of captions, and the name of the file."""
        values: dict[str, list[Any]] = {}
        for name, kind, listed in further_features(features, self._found.roles):
            if kind == self._kinds.get(name):
                plain = listed if isinstance(listed, list) else listed.tolist()
                # JSON has no infinities: those are written as text, and read again as numbers.
                finite = kind != "float32" or np.isfinite(listed).all()
                if kind == "bytes" or not finite:
                    plain = [value.decode("utf-8") if isinstance(value, bytes) else str(value) for value in plain]
                values[name] = plain
        captions = features.get(self._found.roles.caption, [])
        if isinstance(captions, list) and captions:
            values[CAPTION_FEATURE] = [caption.decode("utf-8", "replace") for caption in captions]
        if file_name := file_name_of(features, self._found.roles, key):
            values[FILE_NAME] = [file_name]
        return values


class RecordMasks(MaskFiles):
    """Images of masks; a text is checksum and path of one, a part of its file."""

    def name(self, text: str) -> str:
        return text.partition("\0")[2] if text.count("\0") > 1 else text

    def shown(self, text: str) -> str:
        """Returns the name of a mask in messages; the path that its file was unpacked to is not shown."""
        part = split_part(self.name(text))
        return f"{os.path.basename(part.path)}, mask at byte {part.start}"


@dataclass(frozen=True)
class RunPairs:
    """A `MaskCode` of starts and lengths from 0, column by column: our own, and not the text of a source."""

    def size(self, text: str) -> None:
        """Returns `None`: runs do not contain the size of their image."""

    def masks(self, label: int, text: str, *, height: int, width: int) -> list[tuple[int, Runs]]:
        """Reads the numbers, written as text."""
        return Dialect(base=0).masks(label, text, height=height, width=width)


def _by_number(values: Mapping[str, str], numbers: Mapping[str, set[int]]) -> dict[str, int | None] | None:
    """Names in the order of the numbers next to them, if each has a different one.

    Names that no record has a number for fill the gaps, as classes without a mask do.
    """
    numbered = {name: found for name, found in numbers.items() if name in values}
    placed = {name: min(found) for name, found in numbered.items() if len(found) == 1}
    if not placed or len(placed) < len(numbered) or len(set(placed.values())) < len(placed):
        return None
    rest = sorted(set(values) - set(placed))
    gaps = [number for number in range(len(values)) if number not in placed.values()]
    if rest and len(gaps) != len(rest):
        return None
    placed |= dict(zip(rest, gaps, strict=False))
    return dict.fromkeys(sorted(placed, key=placed.__getitem__))
