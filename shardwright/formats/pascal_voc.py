"""Pascal VOC: masks in `SegmentationClass/`, boxes in XML files in `Annotations/`, lists of images in `ImageSets/`.

Masks are PNGs of palette indices, or of the colors that VOC's palette has for them; 255 (pale, around objects and over
unclear regions) is ignored. Without `input.classes` they are VOC's own twenty where the masks have VOC's palette, and
else the values themselves: without the palette, the values need not be VOC's classes.

A file `labelmap.txt`, as CVAT and datumaro write it, states the names in the order of the values, and their colors.
`class_names.txt` of LabelMe's labelme2voc and `classes.txt` of our export have the names alone.

Boxes become features in the layout of the TensorFlow Object Detection API (`shardwright.images.boxes`). An image is
annotated when it has a mask. The lists in `ImageSets/Segmentation` state the split of an image. Source: the VOC2012
development kit (see `voc_xml`).
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from shardwright.config.input import CLIP, LabelsConfig
from shardwright.dataset.ledger import MISSING_IMAGE
from shardwright.dataset.manifest import IGNORED
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.base import NO_LABEL, NO_ROW, SHOWN_NAMES, Annotation, AnnotationFormat, FormatInput, Survey
from shardwright.formats.classes import map_classes, names_by_line
from shardwright.formats.head import Head
from shardwright.formats.mask_evidence import detect_values
from shardwright.formats.mask_images import check_second, list_masks
from shardwright.formats.mask_names import ImageStems, MaskName
from shardwright.formats.mask_values import MaskFiles, ValueMap, have_ids, listed_ids, map_ids
from shardwright.formats.voc_xml import FLAGS, MOST_XML_BYTES, VocError, VocImage, find_base, from_zero, read_voc
from shardwright.images.boxes import AnnotationError, box_features, box_values
from shardwright.images.colors import COLOR
from shardwright.masks.mask_pixels import MaskFileError
from shardwright.masks.rle import RleError
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
from shardwright.storage.limits import MOST_LIST_BYTES, TooLarge

_VOC_CLASSES = 20
_BORDER = 255
MASKS, OBJECTS = "SegmentationClass", "SegmentationObject"
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
_WRITE_CLASSES = "Write the classes in the order of the masks' values: value 1 is the first."


def palette_color(value: int) -> int:
    """Returns the color of an index: its bits from the lowest on go round red, green and blue, from the highest on."""
    red = green = blue = 0
    for bit in range(8):
        red |= (value >> (3 * bit) & 1) << (7 - bit)
        green |= (value >> (3 * bit + 1) & 1) << (7 - bit)
        blue |= (value >> (3 * bit + 2) & 1) << (7 - bit)
    return COLOR + (red << 16 | green << 8 | blue)


_COLORS = {palette_color(value) for value in (*range(_VOC_CLASSES + 1), _BORDER)}


def without_palette(files: MaskFiles, names: Sequence[str]) -> tuple[list[str], int]:
    """Looks for the palette of VOC in masks: as a PNG's palette, or as the colors of all pixels.

    Args:
        files: reads the masks.
        names: the masks.

    Returns:
        The masks that have another palette or none, and how many masks could be read.
    """
    looked = list(map_threads(lambda name: _has_palette(files, name), names, readers(files.root)))
    known = [(name, found) for name, found in zip(names, looked, strict=True) if found is not None]
    return [name for name, found in known if not found], len(known)


def _has_palette(files: MaskFiles, name: str) -> bool | None:
    """Returns whether a mask has it; `None` where the mask cannot be read, which the ledger states."""
    try:
        mask = files.read(name)
    except MaskFileError:
        return None
    if mask.colored:
        return set(np.unique(mask.values).tolist()) <= _COLORS
    # It begins as VOC's does, with the background and one class at least.
    colors = mask.palette[: _VOC_CLASSES + 1]
    return len(colors) > 1 and all(found == palette_color(value) for value, found in enumerate(colors))


class PascalVoc(AnnotationFormat):
    """See `shardwright.formats.base.AnnotationFormat`.

    Args:
        given: see `FormatInput`; the images are those of `JPEGImages`.
        folder: what holds `SegmentationClass`.
        options: `input.labels`.
    """

    format = "pascal_voc"
    dialect: MaskFiles

    @staticmethod
    def sniff(head: Head) -> str:
        """See `AnnotationFormat.sniff`."""
        return MASKS if head.holds(MASKS) else ""

    def __init__(self, given: FormatInput, folder: str, options: LabelsConfig) -> None:
        super().__init__(given)
        self._clip = options.beyond_image == CLIP
        self.name = os.path.basename(folder.rstrip("/"))
        self.dialect = MaskFiles(folder, {}, given.images.max_pixels, options.unlisted_values, values=options.values)
        self._stems = ImageStems(given.images.keys, given.images.skip)
        self._masks = _within(folder, MASKS, list_masks(os.path.join(folder, MASKS)))
        self._xml = _within(folder, _BOXES, _list(folder, _BOXES, ".xml"))
        self._lists = _within(folder, _LISTS, _list(folder, _LISTS, ".txt"))
        self._annotations: list[Annotation] = []

    def survey(self) -> Survey:
        """See `AnnotationFormat.survey`."""
        survey = Survey(
            classes=(), listed=bytearray(len(self._images.keys)), names=list(self._masks.keys[:SHOWN_NAMES])
        )
        for listing in (self._masks, self._xml, self._lists):
            survey.refused += listing.refused
        masks = dict(self._placed(self._masks, survey))
        check_second({i: MaskName(position, "") for i, position in masks.items()}, self._masks, self._images, survey)
        for position in masks.values():
            survey.listed[position] = 1
        annotated = self._read_boxes(survey)
        used: dict[str, str] = {}
        for i, (_, image) in annotated.items():
            for thing in image.objects:
                used.setdefault(thing.name, self._xml.keys[i])
        mapped = self._map(used, [self._masks.names[i] for i, at in masks.items() if at not in survey.rejected])
        self.dialect = self.dialect.meaning(mapped)
        survey.classes = mapped.names
        survey.values = mapped.values()
        survey.ignore = mapped.ignore or self.dialect.others == IGNORED
        index = map_classes(used, dict.fromkeys(mapped.names)).index
        names = self._masks.names
        self._annotations = [Annotation(position, NO_LABEL, names[i], NO_ROW) for i, position in masks.items()]
        self._annotations += self._boxes(annotated, index, mapped.names, survey)
        survey.features = box_features(FLAGS) if self._xml.keys else {}
        survey.notes = (*self._notes, *mapped.notes, *survey.notes, *self._read_lists(survey))
        return survey

    def annotations(self) -> Iterator[Annotation]:
        """See `AnnotationFormat.annotations`."""
        yield from self._annotations

    def attachments(self) -> Listing:
        """See `AnnotationFormat.attachments`."""
        parts = (self._masks, self._xml, self._lists)
        return Listing.joined(self._masks.root, [(part, i) for part in parts for i in range(len(part.keys))])

    def _placed(self, listing: Listing, survey: Survey) -> Iterator[tuple[int, int]]:
        """Files and the positions of their images; files without an image are refused."""
        for i, key in enumerate(listing.keys):
            position = self._find(key)
            if position is None:
                survey.refused.append(Refusal(key, MISSING_IMAGE, "no image has this name"))
            else:
                yield i, position

    def _find(self, name: str) -> int | None:
        stem = os.path.splitext(name.rpartition("/")[2])[0]
        position = self._stems.find(stem, bare=True)
        if position is not None and position < 0:
            raise self._stems.ambiguous(name, stem)
        return position

    def _read_boxes(self, survey: Survey) -> dict[int, tuple[int, VocImage]]:
        """Returns, for each number of an XML file, the position of its image and its content."""
        found = {}
        placed = list(self._placed(self._xml, survey))
        images = map_threads(self._read_xml, [i for i, _ in placed], readers(self._xml.root))
        for (i, position), image in zip(placed, images, strict=True):
            if isinstance(image, AnnotationError):
                self._reject(position, i, image, survey)
            else:
                found[i] = (position, image)
        return found

    def _read_xml(self, number: int) -> VocImage | AnnotationError:
        try:
            return read_voc(read_bytes(self._xml.path(number), self._xml.pin(number), MOST_XML_BYTES))
        except AnnotationError as error:
            return error
        except TooLarge as error:
            return VocError(str(error.strerror))
        except OSError:
            return RleError("the file cannot be read; check its permissions")

    def _boxes(
        self,
        annotated: Mapping[int, tuple[int, VocImage]],
        index: Mapping[str, int],
        names: tuple[str, ...],
        survey: Survey,
    ) -> Iterator[Annotation]:
        zero, notes = find_base(thing.box for _, image in annotated.values() for thing in image.objects)
        survey.notes = (*survey.notes, *notes)
        for i, (position, image) in annotated.items():
            values: dict[str, list[Any]] = {name: [] for name in box_features(FLAGS)}
            size = image.size or (self._images.size_of(position) if image.objects else None)
            try:
                for thing in image.objects:
                    if size is None:
                        raise VocError("it states no size of the image, and the image cannot be read")
                    label = index[thing.name]
                    one = box_values(
                        from_zero(thing.box) if zero else thing.box,
                        height=size[0],
                        width=size[1],
                        label=label,
                        text=names[label],
                        flags=thing.flags,
                        clip=self._clip,
                    )
                    for name, column in one.items():
                        values[name] += column
            except AnnotationError as error:
                self._reject(position, i, error, survey)
                continue
            yield Annotation(position, NO_LABEL, None, NO_ROW, values, image.size)

    def _reject(self, position: int, number: int, error: AnnotationError, survey: Survey) -> None:
        reason = f"{self._xml.keys[number]}: {error}"
        survey.rejected.setdefault(position, Refusal(self._images.keys[position], error.code, reason))

    def _map(self, used: Mapping[str, str], masks: list[str]) -> ValueMap:
        """Returns the meaning of values. `used` are the names of boxes, each with its first file."""
        note = ""
        if self._classes is not None and have_ids(self._classes):
            mapped = self._checked(self._classes, masks)
        elif self._classes is not None:
            ids, note = listed_ids(tuple(self._classes))
            mapped = self._checked(ids, masks)
        elif labels := _label_map(self.dialect.root):
            table = {COLOR, *(color for _, color in labels.values())}
            looked = list(
                map_threads(lambda name: _in_colors(self.dialect, name, table), masks, readers(self.dialect.root))
            )
            colored = any(rgb for rgb, _ in looked) or (bool(looked) and all(known for _, known in looked))
            ids = {name: color if colored else value for name, (value, color) in labels.items()}
            return map_ids(ids)._replace(notes=(f"classes: those of {_LABEL_MAP}; input.classes names others",))
        elif named := _class_names(self.dialect.root):
            ids, note = listed_ids(named)
            ids.pop(named[0] if ids[named[0]] == 0 else "", None)
            mapped = self._checked(ids, masks)
            note = f"{note}; the names are those of {_names_file(self.dialect.root)}"
        else:
            others, read = without_palette(self.dialect, masks)
            if others:
                return self._plain_values(used, masks, others, read)
            other = next((name for name in used if name not in VOC_CLASSES), None)
            if other is not None:
                problem = f"missing, and {used[other]} names {other!r}, which is not one of Pascal VOC's twenty classes"
                raise ConfigError("input.classes", problem, _WRITE_CLASSES)
            mapped = map_ids({name: i + 1 for i, name in enumerate(VOC_CLASSES)})
            note = "classes: the twenty of Pascal VOC, since the masks have its palette; input.classes names others"
        # An exporter may write the palette's colors instead of its indices.
        colors = {palette_color(value): label for value, label in mapped.labels.items() if value < COLOR}
        return ValueMap(mapped.names, {**colors, **mapped.labels}, (note,) if note else ())

    def _checked(self, ids: Mapping[str, int | None], masks: list[str]) -> ValueMap:
        """Returns the meaning of stated values; masks without the palette of VOC are looked into.

        Raises:
            UsageError: they contradict it; with the readings.
        """
        others, _ = without_palette(self.dialect, masks)
        if not others or any(self.dialect.decode(name).colored for name in others[:1]):
            return map_ids(ids)
        border = {} if _BORDER in ids.values() else {IGNORED: _BORDER}
        return detect_values(self.dialect, masks, "", {**border, **ids})

    def _plain_values(self, used: Mapping[str, str], masks: list[str], others: list[str], read: int) -> ValueMap:
        """Returns values as their own names, where masks do not have VOC's palette."""
        if len(others) < read:
            count = f"{len(others)} of {read} masks"
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
            name = os.path.splitext(key.rpartition("/")[2])[0]
            if name == _UNION:
                continue
            try:
                text = read_bytes(self._lists.path(i), self._lists.pin(i), MOST_LIST_BYTES).decode("utf-8-sig")
            except UnicodeDecodeError:
                raise UsageError(f"{self._lists.path(i)}: is not UTF-8 text. Save it in UTF-8.") from None
            except OSError:
                raise UsageError(f"{self._lists.path(i)}: cannot be read. Check its permissions.") from None
            stems = [line.split()[0] for line in re.split("[\r\n]+", text) if line.strip()]
            for stem in stems:
                position = self._find(f"{stem}.")
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


def _names_file(folder: str) -> str:
    there = list_names(folder)
    return next((name for name in _NAMES_FILES if name in there), "")


def _class_names(folder: str) -> tuple[str, ...]:
    """Returns the classes in the order of the values, from a file in the folder; nothing where there is none."""
    name = _names_file(folder)
    if not name:
        return ()
    path = os.path.join(folder, name)
    with open_table(path, MOST_LIST_BYTES) as file:
        return names_by_line(file.read(), path)


def _in_colors(files: MaskFiles, name: str, table: set[int]) -> tuple[bool, bool]:
    """Returns whether a mask has colors of its own, and whether all colors of its palette are in a table."""
    try:
        mask = files.decode(name)
    except MaskFileError:
        return False, True  # The ledger states why, when the image is due.
    if mask.colored or not mask.palette:
        return mask.colored, False
    return False, set(np.unique(mask.as_colors().values).tolist()) <= table


def _list(folder: str, part: str, ending: str) -> Listing:
    """Returns the files of a part of the tree, which may be missing."""
    path = os.path.join(folder, part)
    try:
        listing = list_inputs(path)
    except EmptyListing:
        return Listing(path, [], [], [], [])
    kept = [i for i, key in enumerate(listing.keys) if key.lower().endswith(ending)]
    return dataclasses.replace(listing.part(kept), refused=listing.refused)


def _within(folder: str, part: str, listing: Listing) -> Listing:
    """Returns the same files, named from the folder."""
    return dataclasses.replace(
        listing,
        root=folder,
        keys=[f"{part}/{key}" for key in listing.keys],
        names=[f"{part}/{name}" for name in listing.names],
        refused=[Refusal(f"{part}/{key}", code, reason) for key, code, reason in listing.refused],
    )
