"""Mask images in a separate folder: one file for all classes of an image, or one per class.

The names of the files state the image of a mask (`mask_names`). The meaning of values is in `input.classes`. If that
gives no ids, the meaning is detected from the values that occur in all masks, and what contradicts it is a question
(`mask_evidence`). Every mask is decoded twice: to find the values, and when its image is written. A mask must have the
size of its image.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import suppress

from shardwright.config.input import ALL, DISPLAYED, LabelsConfig
from shardwright.dataset.ledger import MISSING_IMAGE
from shardwright.dataset.manifest import IGNORED
from shardwright.dataset.outputs import without_outputs
from shardwright.errors import ConfigError, UsageError
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
    counted_endings,
)
from shardwright.formats.classes import map_classes
from shardwright.formats.image_names import key_stem
from shardwright.formats.mask_evidence import check_some_class, detect_values
from shardwright.formats.mask_names import ImageStems, MaskLayout, MaskName, detect_mask_layout, exported_layout
from shardwright.formats.mask_values import MaskFiles, ValueMap
from shardwright.running.progress import counted
from shardwright.storage import Listing, Refusal, list_inputs

_LOSSLESS = (".png", ".gif", ".bmp", ".tif", ".tiff")
LOSSY = (".jpg", ".jpeg")


class MaskImages(AnnotationFormat):
    """A folder of masks."""

    format = "mask_images"
    dialect: MaskFiles

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self.name = given.name
        self._options = options = given.options
        self._record = given.record if options.regex is None else None
        self._listing, self._lossy = _list_both(given.path, given.images.paths)
        self.dialect = MaskFiles(
            self._listing.root, {}, given.images.max_pixels, options.unlisted_values, values=options.values
        )
        self._annotations: list[Annotation] = []
        self._layout_pattern: str | None = None

    def survey(self) -> Survey:
        stems = ImageStems(self._images.keys, self._images.skip, self._options.key_regex)
        if self._record is None:
            layout = detect_mask_layout(self._listing.keys, stems, self._classes, self._options.regex)
        else:
            layout = exported_layout(self._record)
        self._layout_pattern = layout.pattern
        masks = self._listing = self._with_lossy(layout, stems)
        survey = Survey(classes=(), listed=bytearray(len(self._images.keys)), names=list(masks.keys[:SHOWN_NAMES]))
        survey.refused = [Refusal(f"{self.name}/{key}", code, reason) for key, code, reason in masks.refused]
        placed: dict[int, MaskName] = {}
        left_out = 0
        for i, key in enumerate(masks.keys):
            place = layout.place(key, stems)
            if place is not None and layout.by_class and not place.label:
                survey.refused.append(Refusal(f"{self.name}/{key}", "bad_row", "its name contains no class"))
            elif place is not None:
                placed[i] = place
                survey.listed[place.image] = 1
            elif layout.leaves_out and key_stem(key).endswith(layout.leaves_out):
                left_out += 1
            elif self._options.regex is None:
                reason = f"no image belongs to this mask, by {layout.name}"
                survey.refused.append(Refusal(f"{self.name}/{key}", MISSING_IMAGE, reason))
        if not layout.objects:
            check_second(placed, masks, self._images, survey, f"{self.name}: ")
        mapped = self._map(placed, by_class=layout.by_class)
        survey.classes = mapped.names
        survey.values = mapped.values()
        survey.ignore = mapped.ignore or (self.dialect.others == IGNORED and not layout.by_class)
        notes = [*self._notes, f"masks: named by {layout.name}, since {layout.reason}", *mapped.notes]
        if left_out:
            kinds = ", ".join(layout.leaves_out)
            notes.append(f"masks: {counted(left_out, 'file')} of another kind ({kinds}) left out")
        if self._options.regex is not None and len(placed) < len(masks.keys):
            others = counted(len(masks.keys) - len(placed), "file belongs", "files belong")
            notes.append(f"masks: {others} to no image")
        survey.notes = tuple(notes)
        return survey

    def annotations(self) -> Iterator[Annotation]:
        return iter(self._annotations)

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        pattern = self._layout_pattern if self._record is None else None
        values = DISPLAYED if self.dialect.values == DISPLAYED else options.values
        return dataclasses.replace(super().resolved(options), regex=options.regex or pattern, values=values)

    def attachments(self) -> Listing:
        return self._listing

    def _with_lossy(self, layout: MaskLayout, stems: ImageStems) -> Listing:
        """Adds the JPEGs of images that have no other mask of that kind, which would seem to have none."""
        if self._lossy is None:
            return self._listing
        known = {layout.place(key, stems) for key in self._listing.keys}
        further = []
        for i, key in enumerate(self._lossy.keys):
            with suppress(UsageError):  # What may be of several images is not called after one.
                if layout.place(key, stems) not in (None, *known):
                    further.append((self._lossy, i))
        own = [(self._listing, i) for i in range(len(self._listing.keys))]
        both = sorted([*own, *further], key=lambda part: part[0].keys[part[1]])
        return dataclasses.replace(Listing.joined(self._listing.root, both), refused=self._listing.refused)

    def _map(self, placed: Mapping[int, MaskName], *, by_class: bool) -> ValueMap:
        names = self._listing.names
        if by_class:
            used: dict[str, str] = {}
            for i, place in placed.items():
                used.setdefault(place.label, f"{self.name}/{self._listing.keys[i]}")
            counts = self._record is not None and not self._record.ignored
            ignore = None if counts else used.pop(IGNORED, None)
            by_name = map_classes(used, self._classes)
            index = {**by_name.index, **({} if ignore is None else {IGNORED: IGNORE})}
            self._annotations = [Annotation(p.image, index[p.label], names[i], NO_ROW) for i, p in placed.items()]
            self._set_thresholds(index)
            for label, threshold in self.dialect.thresholds.items():
                above = dataclasses.replace(self.dialect, thresholds={NO_LABEL: threshold})
                own = [names[i] for i, place in placed.items() if index[place.label] == label]
                check_some_class(above, own, self.name, {by_name.names[label]: None})
            keeps = ignore is not None or (self._record is not None and self._record.ignored)
            return ValueMap(by_name.names, {0: IGNORE} if keeps else {}, by_name.notes)
        self._annotations = [Annotation(place.image, NO_LABEL, names[i], NO_ROW) for i, place in placed.items()]
        if not placed:
            return ValueMap(tuple(self._classes or ()), {})
        if self._options.threshold:
            self._set_thresholds({ALL: NO_LABEL})
        files = [names[i] for i in placed]
        mapped = detect_values(self.dialect, files, self.name, self._classes)
        self.dialect = self.dialect.meaning(mapped)
        return mapped

    def _set_thresholds(self, index: Mapping[str, int]) -> None:
        """Sets `input.labels.threshold` by the labels of the classes.

        Raises:
            ConfigError: it names another class, or classes where a file holds all of them.
        """
        for name in self._options.threshold:
            if name != ALL and name not in index:
                known = f"the classes are {', '.join(index)}" if ALL not in index else "a file holds all classes"
                raise ConfigError(f"input.labels.threshold.{name}", f"unknown: {known}", "Write one number for all.")
        every = self._options.threshold.get(ALL, 0)
        least = {label: self._options.threshold.get(name, every) for name, label in index.items()}
        thresholds = {label: threshold for label, threshold in least.items() if threshold}
        self.dialect = dataclasses.replace(self.dialect, thresholds=thresholds)


def check_second(
    placed: Mapping[int, MaskName], masks: Listing, images: Images, survey: Survey, where: str = ""
) -> None:
    """Rejects images that two files give a mask of one kind.

    Args:
        placed: number of a mask in its listing -> where it belongs.
        masks: the listing.
        images: the images.
        survey: gets the rejects.
        where: what their reasons begin with.
    """
    first: dict[MaskName, int] = {}
    for i, place in placed.items():
        other = first.setdefault(place, i)
        if other != i:
            reason = f"{where}{masks.keys[other]} and {masks.keys[i]} are both its mask; remove one"
            survey.rejected.setdefault(place.image, Refusal(images.keys[place.image], "two_masks", reason))


def list_masks(folder: str, images: frozenset[str] = frozenset()) -> Listing:
    """Lists the mask images of a folder; JPEGs only where there is nothing else.

    Args:
        folder: the folder.
        images: paths of the files that are images, not masks.

    Raises:
        UsageError: there is no such folder, or no image in it.
    """
    return _list_both(folder, images)[0]


def _list_both(folder: str, images: frozenset[str]) -> tuple[Listing, Listing | None]:
    """Lists masks, and JPEGs next to others."""
    try:
        listing, _ = without_outputs(list_inputs(folder))
    except UsageError as error:
        raise UsageError(str(error).replace("input.images:", "input.labels.path:", 1)) from None
    found = []
    for endings in (_LOSSLESS, LOSSY):
        chosen = [i for i, key in enumerate(listing.keys) if key.lower().endswith(endings)]
        if chosen:
            kept = [i for i in chosen if listing.path(i) not in images]
            found.append(dataclasses.replace(listing.part(kept), refused=listing.refused))
    if found:
        return found[0], (found[1] if len(found) > 1 and found[1].keys else None)
    held = counted_endings(listing.keys)
    raise UsageError(
        f"input.labels.path: {folder} contains no PNG, GIF, BMP or TIFF of masks, but {held}, which no known tool "
        "writes. Give the folder of the masks, or a file of annotations."
    )
