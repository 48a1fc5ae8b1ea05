"""Pascal VOC: masks in `SegmentationClass/`, boxes in XML files in `Annotations/`, lists of images in `ImageSets/`.

Masks are PNGs of palette indices, or of the colors that VOC's palette has for them; 255 (pale, around objects and over
unclear regions) is ignored. Without `input.classes` they are VOC's own twenty where the masks have VOC's palette, and
else the values themselves: without the palette, the values need not be VOC's classes.

A file `labelmap.txt`, as CVAT and datumaro write it, states the names in the order of the values, and their colors.
`class_names.txt` of LabelMe's labelme2voc and `classes.txt` of our export have the names alone.

The trees of several years next to each other, as in `VOCdevkit/VOC2007` and `VOCdevkit/VOC2012`, are one set.

Boxes become features in the layout of the TensorFlow Object Detection API (`shardwright.images.boxes`). An image is
annotated when it has a mask. The lists in `ImageSets/Segmentation` state the split of an image. Source: the VOC2012
development kit (see `voc_xml`).
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from shardwright.dataset.ledger import MISSING_IMAGE
from shardwright.dataset.manifest import IGNORED
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.base import (
    CLASSIFICATION,
    NO_LABEL,
    NO_ROW,
    SHOWN_NAMES,
    Annotation,
    AnnotationFormat,
    Request,
    Survey,
)
from shardwright.formats.classes import ClassMap, map_classes, names_by_line
from shardwright.formats.image_names import base_stem
from shardwright.formats.mask_evidence import check_some_class, detect_values
from shardwright.formats.mask_images import check_second, list_masks
from shardwright.formats.mask_names import ImageStems, MaskName
from shardwright.formats.mask_values import MaskFiles, ValueMap, have_ids, listed_ids, map_ids
from shardwright.formats.object_content import Entry
from shardwright.formats.objects import ending_with
from shardwright.formats.signs import VOC_MASKS, VOC_OBJECTS, voc_trees
from shardwright.formats.voc_xml import VocBoxes
from shardwright.images.colors import COLOR
from shardwright.masks.mask_pixels import MaskFileError, MaskImage
from shardwright.running.progress import counted
from shardwright.storage import (
    EmptyListing,
    Listing,
    Refusal,
    list_inputs,
    list_names,
    map_threads,
    open_table,
    read_bytes,
    readers,
)
from shardwright.storage.limits import MOST_LIST_BYTES

_BORDER = 255
MASKS, OBJECTS = VOC_MASKS, VOC_OBJECTS
_BOXES, _LISTS = "Annotations", "ImageSets/Segmentation"
# A union of two others.
_UNION = "trainval"
VOC_CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)
_PLAIN = "classes: the values of the masks, which do not have Pascal VOC's palette; input.classes names them"
_LABEL_MAP = "labelmap.txt"
_NAMES_FILES = ("class_names.txt", "classes.txt")
_LABEL_LINE = re.compile(r"([^:#]+):(?:(\d{1,3}),(\d{1,3}),(\d{1,3}))?:[^:]*:[^:]*")
_BACKGROUND = "background"
# How a mask has colors.
_OTHER, _IN_TABLE, _OWN = range(3)
_WRITE_CLASSES = "Write the classes in the order of the masks' values: value 1 is the first."


class PascalVoc(AnnotationFormat):
    """The whole tree.

    Args:
        given: what is asked; the images are those of `JPEGImages`, and the path has `SegmentationClass`.
    """

    format = "pascal_voc"
    dialect: MaskFiles

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self._given = dataclasses.replace(given, task=CLASSIFICATION, notes=())
        folder, options, self.name = given.path, given.options, given.name
        self.dialect = MaskFiles(folder, {}, given.images.max_pixels, options.unlisted_values, values=options.values)
        self._stems = ImageStems(given.images.keys, given.images.skip)
        self._masks = _part(folder, MASKS, list_masks)
        self._xml = _part(folder, _BOXES, lambda path: _list(path, ".xml"))
        self._lists = _part(folder, _LISTS, lambda path: _list(path, ".txt"))
        self._annotations: list[Annotation] = []

    def survey(self) -> Survey:
        names = list(self._masks.keys[:SHOWN_NAMES])
        survey = Survey(classes=(), listed=bytearray(len(self._images.keys)), names=names)
        for listing in (self._masks, self._xml, self._lists):
            survey.refused += listing.refused
        masks: dict[int, int] = {}
        for i, key in enumerate(self._masks.keys):
            position = self._find(key)
            if position is None:
                survey.refused.append(Refusal(key, MISSING_IMAGE, "no image has this name"))
            else:
                masks[i] = position
                survey.listed[position] = 1
        check_second({i: MaskName(position, "") for i, position in masks.items()}, self._masks, self._images, survey)
        readable = [self._masks.names[i] for i, position in masks.items() if position not in survey.rejected]
        boxes = _Boxes(self._given, self._xml, self._find, lambda used: self._read_classes(used, readable, survey))
        found = boxes.survey()
        survey.rejected = {**found.rejected, **survey.rejected}
        survey.refused += found.refused
        survey.features = found.features if self._xml.keys else {}
        survey.notes = (*survey.notes, *found.notes, *self._read_lists(survey))
        files = self._masks.names
        self._annotations = [Annotation(position, NO_LABEL, files[i], NO_ROW) for i, position in masks.items()]
        self._annotations += [one._replace(label=NO_LABEL, row=NO_ROW) for one in boxes.annotations()]
        return survey

    def _read_classes(self, used: Mapping[str, str], masks: list[str], survey: Survey) -> ClassMap:
        """Decides on the classes.

        Args:
            used: the names of boxes, each with its first file.
            masks: the masks that are read.
            survey: gets the classes.
        """
        mapped = self._map(used, masks)
        self.dialect = self.dialect.meaning(mapped)
        check_some_class(self.dialect, masks, "", mapped.values())
        survey.classes, survey.values = mapped.names, mapped.values()
        survey.ignore = mapped.ignore or self.dialect.others == IGNORED
        survey.notes = (*self._notes, *mapped.notes, *survey.notes)
        return map_classes(used, dict.fromkeys(mapped.names))

    def annotations(self) -> Iterator[Annotation]:
        return iter(self._annotations)

    def attachments(self) -> Listing:
        parts = (self._masks, self._xml, self._lists)
        return Listing.joined(self._masks.root, [(part, i) for part in parts for i in range(len(part.keys))])

    def _find(self, name: str) -> int | None:
        stem = base_stem(name)
        position = self._stems.find(stem, bare=True)
        if position is not None and position < 0:
            raise self._stems.ambiguous(name, stem)
        return position

    def _map(self, used: Mapping[str, str], masks: list[str]) -> ValueMap:
        """Returns the meaning of values. `used` are the names of boxes, each with its first file."""
        root, note = self.dialect.root, ""
        if self._classes is not None and have_ids(self._classes):
            mapped = self._checked(self._classes, masks)
        elif self._classes is not None:
            ids, note = listed_ids(tuple(self._classes))
            mapped = self._checked(ids, masks)
        elif labels := _label_map(root):
            table = {COLOR, *(color for _, color in labels.values())}
            kinds = self._look(masks, lambda name: _color_kind(self.dialect.decode(name), table)).values()
            by_color = _OWN in kinds or (bool(kinds) and _OTHER not in kinds)
            values = {name: color if by_color else value for name, (value, color) in labels.items()}
            return map_ids(values)._replace(notes=(f"classes: those of {_LABEL_MAP}; input.classes names others",))
        elif file := next((name for name in _NAMES_FILES if name in list_names(root)), ""):
            path = os.path.join(root, file)
            with open_table(path, MOST_LIST_BYTES) as opened:
                ids, note = listed_ids(named := names_by_line(opened.read(), path))
            ids.pop(named[0] if ids[named[0]] == 0 else "", None)
            mapped = self._checked(ids, masks)
            note = f"{note}; the names are those of {file}"
        else:
            looked = self._look(masks, lambda name: _has_palette(self.dialect.read(name)))
            if not all(looked.values()):
                return self._plain_values(used, masks, looked)
            other = next((name for name in used if name not in VOC_CLASSES), None)
            if other is not None:
                problem = f"missing, and {used[other]} names {other!r}, which is not one of Pascal VOC's twenty classes"
                raise ConfigError("input.classes", problem, _WRITE_CLASSES)
            mapped = map_ids({name: i + 1 for i, name in enumerate(VOC_CLASSES)})
            note = "classes: the twenty of Pascal VOC, since the masks have its palette; input.classes names others"
        # An exporter may write the palette's colors instead of its indices.
        colors = {palette_color(value): label for value, label in mapped.labels.items() if value < COLOR}
        return ValueMap(mapped.names, {**colors, **mapped.labels}, (note,) if note else ())

    def _look(self, masks: Sequence[str], look: Callable[[str], int]) -> dict[str, int]:
        """Returns what a function says of each mask, without those that cannot be read, which the ledger states."""

        def try_to(name: str) -> int | None:
            try:
                return look(name)
            except MaskFileError:
                return None

        looked = zip(masks, map_threads(try_to, masks, readers(self.dialect.root)), strict=True)
        return {name: known for name, known in looked if known is not None}

    def _checked(self, ids: Mapping[str, int | None], masks: list[str]) -> ValueMap:
        """Returns the meaning of stated values; masks without the palette of VOC are looked into.

        Raises:
            UsageError: they contradict it; with the readings.
        """
        looked = self._look(masks, lambda name: _has_palette(self.dialect.read(name)))
        other = next((name for name, has in looked.items() if not has), None)
        if other is None or self.dialect.decode(other).colored:
            return map_ids(ids)
        border = {} if _BORDER in ids.values() else {IGNORED: _BORDER}
        return detect_values(self.dialect, masks, "", {**border, **ids})

    def _plain_values(self, used: Mapping[str, str], masks: list[str], looked: Mapping[str, int]) -> ValueMap:
        """Returns values as their own names, where masks do not have VOC's palette."""
        others = [name for name, has in looked.items() if not has]
        if len(others) < len(looked):
            count = f"{len(others)} of {len(looked)} masks"
            problem = f"missing, and {count} do not have Pascal VOC's palette, e.g. {others[0]}"
            raise ConfigError("input.classes", problem, _WRITE_CLASSES)
        if used:
            name, where = next(iter(used.items()))
            problem = f"missing; {where} names {name!r}, and the masks hold values without Pascal VOC's palette"
            raise ConfigError("input.classes", problem, _WRITE_CLASSES)
        mapped = detect_values(self.dialect, masks, "", None)
        known = sorted(value for value, label in mapped.labels.items() if label is not None and label >= 0)
        ids: dict[str, int | None] = {str(value): value for value in known}
        return map_ids(ids)._replace(displayed=mapped.displayed, notes=(_PLAIN,))

    def _read_lists(self, survey: Survey) -> list[str]:
        """Splits by list; returns notes."""
        several: dict[int, tuple[str, str]] = {}
        for i, key in enumerate(self._lists.keys):
            name = base_stem(key)
            if name == _UNION:
                continue
            try:
                text = read_bytes(self._lists.path(i), self._lists.pin(i), MOST_LIST_BYTES).decode("utf-8-sig")
            except UnicodeDecodeError:
                raise UsageError(f"{self._lists.path(i)}: is not UTF-8 text. Save it in UTF-8.") from None
            except OSError:
                raise UsageError(f"{self._lists.path(i)}: cannot be read. Check its permissions.") from None
            for line in filter(str.strip, re.split("[\r\n]+", text)):
                position = self._find(f"{line.split()[0]}.")
                if position is not None and survey.splits.setdefault(position, name) != name:
                    several.setdefault(position, (survey.splits[position], name))
        for position in several:
            del survey.splits[position]
        notes = []
        if survey.splits:
            named = ", ".join(sorted(set(survey.splits.values())))
            notes.append(f"splits: {_LISTS} lists {named}")
        if several:
            position, (one, two) = next(iter(several.items()))
            found = counted(len(several), "image is", "images are")
            notes.append(f"splits: {found} in two lists: {self._images.keys[position]}, {one}, {two}")
        return notes


class _Boxes(VocBoxes):
    """The boxes beside masks, of the same classes; their images are found as those of masks are."""

    def __init__(
        self,
        given: Request,
        files: Listing,
        find: Callable[[str], int | None],
        classes: Callable[[Mapping[str, str]], ClassMap],
    ) -> None:
        super().__init__(given, files)
        self._find = find
        self._classes_of = classes
        self._boxes = True

    def _map_classes(self, used: Mapping[str, str]) -> ClassMap:
        return self._classes_of(used)

    def _position(self, entry: Entry) -> int | None:
        return self._find(f"{entry.names[0]}.")

    def _other_name(self, number: int, data: bytes) -> str:
        return ""

    def _check_any(self, survey: Survey) -> None:
        """Images without boxes have masks."""


def _label_map(folder: str) -> dict[str, tuple[int, int]]:
    """Returns name -> its value and its color, from a file in the folder; nothing where there is none.

    A line is `name:r,g,b:parts:actions`. Without a color it has that of VOC's palette.

    Raises:
        UsageError: a line is something else.
    """
    if _LABEL_MAP not in list_names(folder):
        return {}
    path = os.path.join(folder, _LABEL_MAP)
    with open_table(path, MOST_LIST_BYTES) as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    found = {}
    for value, line in enumerate(lines):
        match = _LABEL_LINE.fullmatch(line)
        if match is None:
            raise UsageError(
                f"{path}: {line[:80]!r} is not name:r,g,b:parts:actions. Fix the line, or remove the file."
            )
        parts = [int(part) for part in match.groups()[1:] if part is not None]
        color = COLOR + (parts[0] << 16 | parts[1] << 8 | parts[2]) if parts else palette_color(value)
        if match[1] != _BACKGROUND:
            found[IGNORED if color == palette_color(_BORDER) else match[1]] = (value, color)
    return found


def _color_kind(mask: MaskImage, table: set[int]) -> int:
    """Returns whether a mask has colors of its own, a palette of colors that are all in a table, or neither."""
    if mask.colored:
        return _OWN
    return _IN_TABLE if mask.palette and set(np.unique(mask.as_colors().values).tolist()) <= table else _OTHER


def _has_palette(mask: MaskImage) -> bool:
    """Returns whether a mask has the palette of VOC: as a PNG's palette, or as the colors of all pixels."""
    if mask.colored:
        known = {palette_color(value) for value in (*range(len(VOC_CLASSES) + 1), _BORDER)}
        return set(np.unique(mask.values).tolist()) <= known
    # It begins as VOC's does, with the background and one class at least.
    colors = mask.palette[: len(VOC_CLASSES) + 1]
    return len(colors) > 1 and all(found == palette_color(value) for value, found in enumerate(colors))


def palette_color(value: int) -> int:
    """Returns the color of an index: its bits from the lowest on go round red, green and blue, from the highest on."""
    red = green = blue = 0
    for bit in range(8):
        red |= (value >> (3 * bit) & 1) << (7 - bit)
        green |= (value >> (3 * bit + 1) & 1) << (7 - bit)
        blue |= (value >> (3 * bit + 2) & 1) << (7 - bit)
    return COLOR + (red << 16 | green << 8 | blue)


def _list(path: str, ending: str) -> Listing:
    """Returns the files of a part of the tree, which may be missing."""
    try:
        listing = list_inputs(path)
    except EmptyListing:
        return Listing(path, [], [], [], [])
    return dataclasses.replace(ending_with(listing, ending), refused=listing.refused)


def _part(folder: str, part: str, list_files: Callable[[str], Listing]) -> Listing:
    """Returns the files of a part of the tree, or of all years' trees, named from the folder."""
    parts = [_below(folder, f"{tree}{part}", list_files) for tree in voc_trees(folder) or ("",)]
    files = [(one, i) for one in parts for i in range(len(one.keys))]
    return Listing.joined(folder, files, [refusal for one in parts for refusal in one.refused])


def _below(folder: str, part: str, list_files: Callable[[str], Listing]) -> Listing:
    """Returns the files of a folder in another one, named from that."""
    listing = list_files(os.path.join(folder, part))
    return dataclasses.replace(
        listing,
        root=folder,
        keys=[f"{part}/{key}" for key in listing.keys],
        names=[f"{part}/{name}" for name in listing.names],
        refused=[Refusal(f"{part}/{key}", code, reason) for key, code, reason in listing.refused],
    )
