"""Annotations in several files, such as one for each split.

`input.labels.path` is a list, a glob, or a mapping of splits to files. The files have one format. Classes are those of
all files. The split of a file's images is its key in the mapping, or a word of its path: `train/labels.csv`,
`instances_val2017.json`. A name of an image is first sought in the folder of the split. An image may be annotated in
one file only: in two, it is rejected.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from shardwright.config.input import OTHER_CLASSES, LabelsConfig
from shardwright.config.split import split_word, stated_split
from shardwright.dataset.manifest import MULTI
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import Annotation, AnnotationFormat, Request, Survey, shorten
from shardwright.formats.classes import check_spellings
from shardwright.storage import Listing, Refusal, list_inputs
from shardwright.storage.listing import is_several


class SplitFile(NamedTuple):
    """A file of annotations.

    Attributes:
        path: absolute path.
        key: its key in `input.labels.files`, or its path below `input.labels.path`.
        split: the split that it states, or empty.
    """

    path: str
    key: str
    split: str


def find_files(folder: str, files: Mapping[str, str]) -> list[SplitFile]:
    """Returns the files that the configuration names, by key.

    Args:
        folder: absolute path of `input.labels.path`.
        files: `input.labels.files`.

    Raises:
        UsageError: a glob matches nothing.
    """
    found = []
    for key, name in sorted(files.items()):
        path = os.path.join(folder, name)
        if not is_several(name):
            found.append(SplitFile(path, name, split_word(key) or stated_split(name) or ""))
            continue
        try:
            listing = list_inputs(path)
        except UsageError as error:
            raise UsageError(str(error).replace("input.images:", "input.labels.path:", 1)) from None
        base = os.path.relpath(listing.root, folder) if listing.root != folder.rstrip("/") else ""
        below = [os.path.join(base, one) for one in listing.names]
        states = {one: split_word(key) or stated_split(one) or "" for one in below}
        found += [SplitFile(os.path.join(folder, one), one, states[one]) for one in below]
    return found


class SplitFiles(AnnotationFormat):
    """Annotations in several files.

    Args:
        given: what is asked.
        files: the files.
        open_file: opens one of them.
    """

    def __init__(
        self, given: Request, files: Sequence[SplitFile], open_file: Callable[[Request], AnnotationFormat]
    ) -> None:
        super().__init__(given)
        self._given = given
        self._files = files
        self._open = open_file
        self._sources = [self._opened(file, given.classes) for file in files]
        first = self._sources[0]
        other = next((i for i, source in enumerate(self._sources) if source.format != first.format), None)
        if other is not None:
            raise UsageError(
                f"input.labels.path: {files[0].key} is {first.format}, and {files[other].key} is "
                f"{self._sources[other].format}. Give files of one format."
            )
        roots = [None if attached is None else attached.root for attached in self._attached()]
        if len(set(roots)) > 1:
            far = next(file for file, root in zip(files, roots, strict=True) if root is not None)
            raise UsageError(
                f"input.labels.path: {far.key} ({first.format}) refers to files in another folder than "
                f"{files[0].key if far != files[0] else files[1].key} does. Put the annotations into one folder."
            )
        self.format, self.unlisted, self.mask_column = first.format, first.unlisted, first.mask_column
        self.name = ", ".join(file.key for file in files)

    def survey(self) -> Survey:
        surveys = [source.survey() for source in self._sources]
        classes = tuple(dict.fromkeys(name for one in surveys for name in one.classes))
        if self._classes is None:
            self._check_classes(surveys)
        if self._classes is None and any(one.classes != classes for one in surveys):
            self._sources = [self._opened(file, dict.fromkeys(classes)) for file in self._files]
            surveys = [source.survey() for source in self._sources]
        self.dialect = self._sources[0].dialect
        for file, source in zip(self._files, self._sources, strict=True):
            if source.dialect != self.dialect:
                raise UsageError(
                    f"input.labels.path: masks in {self._files[0].key} and in {file.key} are written in different "
                    "ways. Set input.labels.rle, or write one way."
                )
        joined = surveys[0]
        for number, one in enumerate(surveys[1:], 1):
            self._join(joined, one, surveys[:number])
        for one, file in zip(surveys, self._files, strict=True):
            for position in (i for i, listed in enumerate(one.listed) if listed and file.split):
                joined.splits.setdefault(position, file.split)
        shown = [f"{file.key} ({file.split})" if file.split else file.key for file in self._files]
        joined.notes = (*self._notes, f"labels: {len(shown)} files: {', '.join(shown)}", *joined.notes)
        listed = bytearray(map(max, *(one.listed for one in surveys))) if len(surveys) > 1 else joined.listed
        return dataclasses.replace(joined, listed=listed)

    def _check_classes(self, surveys: Sequence[Survey]) -> None:
        """Checks that no model is tested on classes of which the files of `train` have none.

        Raises:
            UsageError: one would be.
        """
        of_split: dict[str, dict[str, str]] = {}
        for one, file in zip(surveys, self._files, strict=True):
            of_split.setdefault(file.split, {}).update(dict.fromkeys(one.classes, file.key))
        learned = of_split.pop("train", {})
        others = {name: file for split, names in of_split.items() if split for name, file in names.items()}
        further = [name for name in others if name not in learned]
        if not learned or not further or OTHER_CLASSES in self._given.options.confirmed:
            return
        check_spellings([*learned, *further], f"input.labels.path: {self.name}")
        every = Reading("train has no image of these classes", {"input.classes": sorted({*learned, *further})})
        raise UsageError(
            f"input.labels.path: {others[further[0]]} has the classes {shorten(further)}, and the files of train have "
            f"{shorten(list(learned))}. Do both state classes in the same way? If train has none of these, list all "
            "in input.classes."
        ).with_readings(*([every] if others.keys() & learned.keys() else []))

    def annotations(self) -> Iterator[Annotation]:
        for source in self._sources:
            yield from source.annotations()

    def attachments(self) -> Listing | None:
        attached = [one for one in self._attached() if one is not None]
        if not attached:
            return None
        # Two files of annotations may refer to all files of one folder.
        places = {key: (one, i) for one in attached for i, key in enumerate(one.keys)}
        chosen = [places[key] for key in sorted(places)]
        return Listing.joined(attached[0].root, chosen, [refusal for one in attached for refusal in one.refused])

    def _attached(self) -> list[Listing | None]:
        return [source.attachments() for source in self._sources]

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        return self._sources[0].resolved(options)

    def _opened(self, file: SplitFile, classes: Mapping[str, int | None] | None) -> AnnotationFormat:
        images = self._images
        near = os.path.dirname(file.path)
        tops = {key.partition("/")[0] for key in images.keys if "/" in key}
        first = [folder for folder in sorted(tops) if file.split and split_word(folder) == file.split]
        if near.startswith(images.root.rstrip("/") + "/"):
            first.insert(0, near.removeprefix(images.root.rstrip("/") + "/"))
        images = dataclasses.replace(images, first=tuple(first))
        return self._open(dataclasses.replace(self._given, path=file.path, classes=classes, images=images))

    def _join(self, joined: Survey, one: Survey, before: Sequence[Survey]) -> None:
        """Adds the result of reading a further file."""
        for position, listed in enumerate(one.listed):
            earlier = next((i for i, other in enumerate(before) if listed and other.listed[position]), None)
            if earlier is not None:
                reason = f"{self._files[earlier].key} and {self._files[len(before)].key} both annotate it"
                key = self._images.keys[position]
                joined.rejected.setdefault(position, Refusal(key, "annotated_twice", reason))
        joined.rejected |= {position: why for position, why in one.rejected.items() if position not in joined.rejected}
        joined.refused += one.refused
        joined.names += one.names
        joined.notes = (*joined.notes, *(note for note in one.notes if note not in joined.notes))
        joined.labels = MULTI if MULTI in (joined.labels, one.labels) else joined.labels
        joined.ignore |= one.ignore
        joined.empty &= one.empty
        joined.states_empty |= one.states_empty
        joined.ordered |= one.ordered
        joined.features = {**joined.features, **one.features}
        joined.splits |= one.splits
        joined.hint = joined.hint or one.hint
        joined.frame = joined.frame if joined.frame == one.frame else "auto"
