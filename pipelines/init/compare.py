"""Scores hypotheses: each is read as an ingest reads it, and the one that explains most images is ahead.

Where several may be right, it is a question: of files that annotate the same images, of folders of images that fit
the same annotations. Files that annotate different images are joined.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shardwright.config.split import stated_split
from shardwright.errors import Reading, ShardwrightError, UsageError
from shardwright.formats.base import shorten
from shardwright.formats.detect import NUMBERS
from shardwright.formats.mask_folders import common_start
from shardwright.formats.rows import CsvFormat
from shardwright.pipelines.init.hypotheses import PHOTOGRAPHS, propose
from shardwright.pipelines.init.inventory import Inventory, folders_above, is_aside, is_in, is_kind_of_masks
from shardwright.pipelines.init.read_trial import (
    EXCLUDE,
    IMAGES,
    PATH,
    REGEX,
    UNLISTED_IMAGES,
    DetectedInput,
    absolute,
    read_input,
)
from shardwright.storage import is_folder
from shardwright.storage.listing import is_several

# Annotations of one image in so many are an example next to those of all others.
_NEXT_TO_NOTHING = 100
_PROBE = (UNLISTED_IMAGES, "reject")


@dataclass
class Trial:
    """Hypotheses with the same annotations that were read.

    Attributes:
        path: the annotations; of several files, all of their paths; `None` without annotations.
        read: those that could be read, the best first; images without annotations are rejects.
        error: of one that could not be read; one with readings is preferred.
    """

    path: str | None
    read: list[DetectedInput] = field(default_factory=list)
    error: ShardwrightError | None = None

    def add(self, given: Mapping[str, Any]) -> None:
        """Reads a hypothesis."""
        if PATH in given and UNLISTED_IMAGES not in given:
            given = {**given, **dict([_PROBE])}
        try:
            self.read.append(read_input(given))
        except ShardwrightError as error:
            if self.error is None or (error.readings and not self.error.readings):
                left = [
                    dict(one.options.items() - {_PROBE} if _PROBE in one.options.items() else one.options)
                    for one in error.readings
                ]
                pairs = zip(error.readings, left, strict=True)
                self.error = error.with_readings(*(Reading(one.meaning, rest or one.options) for one, rest in pairs))
        self.read.sort(key=lambda one: (-len(one.explained), one.missing))

    @property
    def best(self) -> DetectedInput | None:
        """Returns the hypothesis that explains most images."""
        return self.read[0] if self.read else None

    @property
    def is_whole(self) -> bool:
        """Returns whether every image of the best one is annotated, and every annotation is of an image."""
        best = self.best
        return best is not None and not best.missing and len(best.explained) == len(best.surveyed.listing.keys)

    @property
    def chosen(self) -> Mapping[str, Any]:
        """Returns the options that choose these annotations; of several files or folders, with their images."""
        if self.best is None or self.best.options.get(PATH) == self.path:
            return {PATH: self.path}
        return {path: self.best.options[path] for path in (IMAGES, PATH, EXCLUDE, REGEX) if path in self.best.options}

    @property
    def explained(self) -> frozenset[str]:
        """Returns the absolute paths of the images that the best hypothesis explains."""
        best = self.best
        return (
            frozenset(os.path.join(best.surveyed.listing.root, key) for key in best.explained) if best else frozenset()
        )

    @property
    def is_possible(self) -> bool:
        """Returns whether the annotations are of images of the folder, perhaps after an answer."""
        return bool(self.read) or (self.error is not None and bool(self.error.readings))


def try_all(folder: str, inventory: Inventory | None, labels: str | None, given: Mapping[str, Any]) -> list[Trial]:
    """Reads the hypotheses; of one file, further folders of images only where one cannot be read or has too few."""
    if inventory is None:
        alone = Trial(labels)
        alone.add({IMAGES: folder, **({PATH: labels} if labels else {}), **given})
        return [alone]
    trials: dict[str, Trial] = {}
    proposals = propose(inventory.keys, None if labels is None else inventory.below(labels))
    for images, below, exclude, shown, regex in dict.fromkeys(proposals):
        if inventory.spans and is_several(below):
            continue  # A path of spans is not a glob, too.
        path = labels if labels is not None or below is None else inventory.named(below)
        if path is None:
            return [read_alone(inventory.named(images), inventory, given)]
        name = inventory.named(shown) if shown else path
        trial = trials.setdefault(name, Trial(name))
        if trial.best is None or trial.best.missing or trial.error is not None:
            without: dict[str, Any] = {EXCLUDE: list(exclude)} if exclude else {}
            without |= {REGEX: regex} if regex else {}
            trial.add({IMAGES: inventory.named(images), PATH: path, **without, **given})
    return list(trials.values())


def read_alone(images: str, inventory: Inventory | None, given: Mapping[str, Any]) -> Trial:
    """Reads images without annotations; an error has the reading without folders of pictures about a set."""
    alone = Trial(None)
    alone.add({IMAGES: images, **given})
    if alone.error is None or inventory is None or inventory.spans or EXCLUDE in given:
        return alone
    base, readings = inventory.below(images), alone.error.readings
    folders = [folder[len(base) + bool(base) :] for folder in folders_above(inventory.images) if is_in(folder, [base])]
    asides = sorted(folder for folder in folders if folder and is_aside(folder))
    if asides and not any(EXCLUDE in reading.options for reading in readings):
        without = Reading(f"{shorten(asides)} is not part of the set", {EXCLUDE: asides})
        alone.error = alone.error.with_readings(without, *readings)
    return alone


def choose(folder: str, trials: Sequence[Trial], given: Mapping[str, Any]) -> Trial:
    """Returns the annotations that are ahead of all others; without any that can be read, the first.

    Args:
        folder: what was looked into, for messages.
        trials: of `try_all`.
        given: YAML path -> value of what the user gave.

    Raises:
        UsageError: several may be right; with a reading for each.
    """
    possible = _compare([trial for trial in trials if trial.is_possible], given)
    if len(possible) > 1:
        possible.sort(key=lambda trial: stated_split(str(trial.path)) == "test")
        paths = [str(trial.path) for trial in possible]
        problem = f"{folder}: several files may be its annotations: {shorten(paths, len(paths))}."
        raise UsageError(f"{problem} Name one of them after the folder.").with_readings(
            *_as_classes(possible),
            *(Reading(f"the annotations are {trial.path}", trial.chosen) for trial in possible),
        )
    return next(iter(possible), trials[0])


def best_scope(trial: Trial) -> DetectedInput:
    """Returns the hypothesis that is ahead of the others with the same annotations.

    Raises:
        UsageError: separate folders of images fit equally, as copies do.
    """
    # Colored copies have the names of the images, too.
    read = [one for one in trial.read if not is_aside(one.surveyed.listing.root)] or trial.read
    best, *others = read
    alike = [one for one in others if (len(one.explained), one.missing) == (len(best.explained), best.missing)]
    root, roots = f"{best.surveyed.listing.root}/", [f"{one.surveyed.listing.root}/" for one in alike]
    even = [
        one for one, other in zip(alike, roots, strict=True) if not (root.startswith(other) or other.startswith(root))
    ]
    split = stated_split(os.path.basename(str(trial.path)))
    of_split = [one for one in (best, *even) if stated_split(str(one.options[IMAGES])) == split is not None]
    if not even or len(of_split) == 1:
        return of_split[0] if even else best
    folders = [str(one.options[IMAGES]) for one in (best, *even)]
    folders.sort(key=lambda folder: not PHOTOGRAPHS.search(os.path.basename(folder)))
    raise UsageError(f"{trial.path}: fits the images of {' and '.join(folders)} alike. Choose one.").with_readings(
        *(Reading(f"the images are those of {images}", {IMAGES: images, PATH: trial.path}) for images in folders)
    )


def _compare(possible: list[Trial], given: Mapping[str, Any]) -> list[Trial]:
    """Returns those that may be right: without parts of others, and those that explain next to nothing."""
    globs = [str(trial.path) for trial in possible if is_several(trial.path)]
    covered = {trial.path for trial in possible if any(fnmatch.fnmatchcase(str(trial.path), glob) for glob in globs)}
    possible = [trial for trial in possible if trial.path in globs or trial.path not in covered]
    possible = [trial for trial in possible if not _is_referred_to(trial.path, possible)]
    if len(possible) > 1:
        possible = [trial for trial in possible if trial.best is None or trial.best.format != NUMBERS] or possible
    read = [trial for trial in possible if trial.best is not None]
    if len(read) == 1 and read[0].is_whole:
        return read
    if len(possible) == len(read) > 1:
        most = max(len(trial.explained) for trial in read)
        ahead = [trial for trial in read if len(trial.explained) * _NEXT_TO_NOTHING > most]
        joined, parts = _join(ahead, given)
        if joined is not None:
            return [joined, *(trial for trial in ahead if not any(trial is part for part in parts))]
        return ahead
    return possible


def _join(read: Sequence[Trial], given: Mapping[str, Any]) -> tuple[Trial | None, Sequence[Trial]]:
    """Returns one hypothesis of files of one format and header, each of which annotates other images; and these."""
    kinds: dict[tuple[str, ...], list[Trial]] = {}
    for trial in read:
        if trial.best is not None and trial.path is not None:
            source = trial.best.surveyed.source
            header = source.header if isinstance(source, CsvFormat) else ()
            kinds.setdefault((trial.best.format, *header), []).append(trial)
    read = max(kinds.values(), key=len)
    bests = [trial.best for trial in read if trial.best is not None]
    union = frozenset().union(*(trial.explained for trial in read))
    files = [trial.path for trial in read if trial.path is not None and not is_folder(absolute(trial.path))]
    disjoint = len(union) == sum(len(trial.explained) for trial in read)
    if len(files) < max(2, len(read)) or not disjoint:
        return None, ()
    roots = [f"{best.surveyed.listing.root}/" for best in bests]
    above = (best for best, root in zip(bests, roots, strict=True) if all(one.startswith(root) for one in roots))
    whole = next((str(best.options[IMAGES]) for best in above), None)
    images = whole if whole is not None else os.path.commonpath([str(best.options[IMAGES]) for best in bests])
    joined = Trial(None)
    joined.add({**given, IMAGES: images, PATH: files})
    best = joined.best
    if best is None or len(best.explained) != len(union):
        return None, ()
    joined.path = ", ".join(files)
    return joined, read


def _is_referred_to(folder: str | None, possible: Sequence[Trial]) -> bool:
    """Returns whether another file of annotations consists of the files of a folder, too, as COCO panoptic does."""
    if folder is None or not is_folder(absolute(folder)):
        return False
    inside = absolute(folder).rstrip("/") + "/"
    for trial in possible:
        if trial.path in (None, folder) or trial.best is None or is_folder(absolute(trial.path)):
            continue
        attached = trial.best.surveyed.source.attachments()
        if attached is not None and any(attached.path(i).startswith(inside) for i in range(len(attached.keys))):
            return True
    return False


def _as_classes(possible: Sequence[Trial]) -> list[Reading]:
    """Returns the reading of folders such as `mask_car` and `mask_road` as one class each; none of other paths."""
    places = [os.path.split(trial.path.rstrip("/")) for trial in possible if trial.path is not None]
    names = [name for _, name in places]
    start, end = common_start(names), common_start([name[::-1] for name in names])[::-1]
    labels = [name[len(start) : len(name) - len(end)] for name in names]
    together = len({above for above, _ in places}) == 1 and all(
        is_folder(absolute(os.path.join(*one))) for one in places
    )
    if not together or not all(labels) or any(map(is_kind_of_masks, names)):
        return []
    pattern = f"^{re.escape(start)}(?P<label>[^/]+){re.escape(end)}/(?P<image>.+)$"
    images = {str(trial.best.options[IMAGES]) for trial in possible if trial.best is not None}
    options = {IMAGES: images.pop(), PATH: places[0][0], REGEX: pattern} if len(images) == 1 else {}
    return [Reading(f"each folder is a class ({shorten(labels)})", options)] if options else []
