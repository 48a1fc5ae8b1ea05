"""Which image a mask file belongs to, and the class in its name, detected from the names alone.

| layout | mask of `street/a.jpg` |
|---|---|
| same path | `street/a.png`, or with the whole name, `street/a.jpg.png` |
| suffix | `street/a_mask.png`, others of `SUFFIXES`, words of `MASK_WORDS`; for Cityscapes: `a_gtFine_labelIds.png` |
| suffix with a number | `street/a_mask.png` and `street/a_mask_1.png`, which are joined |
| parts that differ | of `image_1.png`, `image_2.png`: `mask_1.png`, `mask_2.png`; see `_by_varying_part` |
| folder per class | `car/street/a.png`, also with something behind the name: `car/street/a_CA.png` |
| class suffix, class prefix | `street/a_car.png`, `street/car_a.png` |
| class within the name | of `street/um_1.png`: `street/um_road_1.png` |
| folder of objects, folder per folder | see `mask_folders` |

The layout in which most masks find their image is taken; where two are even it is an error. Cityscapes has
several masks of an image: the first in the order of `_KINDS` is taken, and the others are left out. A bare name finds
its image in any folder where the layout has no classes. `input.labels.regex` overrides this: a regular expression,
searched in the mask's path without extension, with a group `image` and, where a file holds one class, a group `label`.
`input.labels.key_regex` finds the part of an image's path that the group `image` must be equal to.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from shardwright.config.limited_pattern import LimitedPattern
from shardwright.errors import Reading, UsageError
from shardwright.formats.class_folders import is_split_folder
from shardwright.formats.classes import as_integer
from shardwright.formats.export_record import RECORD_FILE, ExportRecord
from shardwright.formats.image_names import AMBIGUOUS, NameIndex, base_stem, index_keys, key_stem
from shardwright.formats.mask_folders import MASK_WORDS, OBJECT_FOLDERS, Place, common_start, parallel_folders

# The masks that Cityscapes has of each image: ids of classes come first.
_KINDS = ("labelIds", "labelTrainIds", "color", "instanceIds")
# Suffix of the mask -> what the image's name has in its place.
SUFFIXES = {
    **dict.fromkeys(("_mask", "-mask", "_masks", "_seg", "_segmentation", "_label", "_labels", "_gt", "_GT"), ""),
    **dict.fromkeys(("_Annotation", "_annotation", "_annotations", "_lab", "_manual1", "_target", "_L"), ""),
    **dict.fromkeys(("_labelIds", "_labelTrainIds", "_color", "_instanceIds", "_train_id"), ""),
    **{f"_gtFine_{kind}": "_leftImg8bit" for kind in _KINDS},
    **{f"_gtCoarse_{kind}": "_leftImg8bit" for kind in _KINDS},
}
_CITYSCAPES = "_leftImg8bit"
# Suffixes of images whose masks have another suffix in that place.
_IMAGE_SUFFIXES = ("_img", "_image", "_im", "_sat", "_rgb")
_SAME, _FOLDER, _CLASS_SUFFIX, CLASS_PREFIX = "same path", "folder per class", "class suffix", "class prefix"
_INNER_FOLDER, _ADDED = "folder per class in each folder", "with something behind the image's name"
_OBJECTS, ONE_CLASS = "a folder of objects for each image", "mask"
_PARALLEL = "a folder of masks for each folder of images"
# Ending of the second mask of an image, and of the next ones.
_NUMBER = re.compile(r"_[0-9]+$")
_MARK = re.compile(r"[_. -]+")
# An extension within a name, as programs leave it that cut images into parts.
_INNER_ENDING = re.compile(r"\.(?:jpe?g|png|tiff?|bmp|gif)(?=[^a-z]|patch|tile|crop|mask|$)")
_REGEX = "input.labels.regex"
_OVERRIDE = f"{_REGEX} overrides this"
_SET_REGEX = f"Set {_REGEX}, e.g. '(?P<image>.+)_mask' or '(?P<label>[^/]+)/(?P<image>.+)'."
# Kinds of masks of an image in one folder.
_MOST_AFFIXES = 3


def suffix_pairs(stems: Iterable[str], masks: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Returns suffixes of masks, each with what the name of the image has in its place.

    Args:
        stems: paths of images without extension; suffixes that no image has are left out.
        masks: paths of masks without extension; words for masks at their ends are suffixes, too, such as `_anno`.
    """
    seen = {suffix for stem in stems for suffix in _IMAGE_SUFFIXES if stem.endswith(suffix)}
    ends = {stem[max(stem.rfind("_"), stem.rfind("-")) :] for stem in masks}
    words = [end for end in sorted(ends - SUFFIXES.keys()) if end[1:].isalpha() and MASK_WORDS.fullmatch(end)]
    plain = [*(suffix for suffix, replacement in SUFFIXES.items() if not replacement), *words]
    further = [(word, "") for word in words] + [(suffix, image) for image in sorted(seen) for suffix in plain]
    return [*SUFFIXES.items(), *further]


_Names = Callable[[str], tuple[str, str] | None]


class MaskName(NamedTuple):
    """The image of a mask: its position, and the class in the mask's name, or an empty text."""

    image: int
    label: str


class ImageStems:
    """Finds images by their path without extension, or by the end of it where only one image has it.

    Args:
        keys: sorted keys of the listing.
        skip: positions that are not images.
        pattern: `input.labels.key_regex`: images have the names that it finds, and no others.

    Attributes:
        keys: the same.
        skip: the same.
        suffixes: of the masks, once these are known; see `suffix_pairs`.
    """

    def __init__(self, keys: Sequence[str], skip: frozenset[int], pattern: str | None = None) -> None:
        self._by_pattern = None if pattern is None else NameIndex(keys, skip, pattern)
        self.keys = keys
        self.skip = skip
        self.suffixes: Sequence[tuple[str, str]] = ()
        self._by_stem = index_keys(keys, skip, key_stem)
        self._by_base = index_keys(keys, skip, base_stem)
        self._below: dict[str, str | None] | None = None
        self._same_base: dict[str, list[int]] | None = None

    def find(self, stem: str, *, bare: bool) -> int | None:
        """Returns the position of an image, -1 where several fit, `None` where none does."""
        if self._by_pattern is not None:
            return self._by_pattern.find(stem)
        found = self._by_stem.get(stem)
        # A whole name has an ending, or is the stem itself.
        whole = self.whole(stem) if found == AMBIGUOUS or "." in stem.rpartition("/")[2] else None
        if whole is not None and found != whole:
            return whole if found is None else AMBIGUOUS
        if found is not None or not bare:
            return found
        return self._by_end(stem) if "/" in stem else self._by_base.get(stem)

    def _by_end(self, stem: str) -> int | None:
        """Returns the only image whose path ends with some folders and a name; else as `find` does."""
        if self._same_base is None:
            self._same_base = {}
            for i, key in enumerate(self.keys):
                if i not in self.skip:
                    self._same_base.setdefault(base_stem(key), []).append(i)
        same = self._same_base.get(stem.rpartition("/")[2], ())
        fitting = [i for i in same if key_stem(self.keys[i]).endswith(f"/{stem}")]
        return fitting[0] if len(fitting) == 1 else AMBIGUOUS if fitting else None

    def only_below(self, folder: str) -> str | None:
        """Returns the path without extension of the only image below a folder; `None` where there are more or none."""
        if self._below is None:
            self._below = {}
            for i, key in enumerate(self.keys):
                above = key.split("/")[:-1] if i not in self.skip else []
                for depth in range(len(above)):
                    top = "/".join(above[: depth + 1])
                    self._below[top] = None if top in self._below else key_stem(key)
        return self._below.get(folder)

    def whole(self, key: str) -> int | None:
        """Returns the position of the image of a whole key, or `None`."""
        place = bisect_left(self.keys, key)
        return place if place < len(self.keys) and self.keys[place] == key and place not in self.skip else None

    def ambiguous(self, mask: str, stem: str) -> UsageError:
        """Returns the error for a mask whose name fits several images."""
        fitting = [key for key in self.keys if stem in (key, key_stem(key), base_stem(key))]
        return UsageError(
            f"The mask {mask!r} could be that of {fitting[0]} or {fitting[1]}. Give the images names that differ "
            "before the extension, or the mask its whole relative path."
        )


@dataclass(frozen=True)
class MaskLayout:
    """How masks are named.

    Attributes:
        name: for messages.
        reason: why it is taken, for the user.
        by_class: whether a file holds one class, which its name states.
        names: from a mask's path without extension to the image's and a class.
        exact: whether the image's path has its extension.
        pattern: the `input.labels.regex` that means the same, where there is one.
        objects: whether an image has a file for each object, which are joined.
        leaves_out: endings of masks of another kind, which are left out.
    """

    name: str
    reason: str
    by_class: bool
    names: _Names
    exact: bool = False
    pattern: str | None = None
    objects: bool = False
    leaves_out: tuple[str, ...] = ()

    def place(self, mask: str, images: ImageStems) -> MaskName | None:
        """Returns the image of a mask; `None` where there is none.

        Raises:
            UsageError: several images have the name.
        """
        named = self.names(key_stem(mask))
        if named is not None and self.exact:
            position = images.whole(named[0])
            return None if position is None else MaskName(position, named[1])
        found = None if named is None else images.find(named[0], bare=not self.by_class)
        if named is None or found is None:
            return None
        if found == AMBIGUOUS:
            raise images.ambiguous(mask, named[0])
        return MaskName(found, named[1])


def exported_layout(record: ExportRecord) -> MaskLayout:
    """Returns how `shardwright export` names masks: a folder for each class, and the whole key of the image."""

    def names(stem: str) -> tuple[str, str] | None:
        folder, _, image = stem.partition("/")
        return (image, record.folders[folder]) if folder in record.folders else None

    return MaskLayout(_FOLDER, f"{RECORD_FILE} states it", True, names, exact=True)


def detect_mask_layout(
    masks: Sequence[str], images: ImageStems, classes: Mapping[str, int | None] | None, pattern: str | None
) -> MaskLayout:
    """Detects the layout of a folder of masks.

    Args:
        masks: their paths below the folder.
        images: the images.
        classes: `input.classes`.
        pattern: `input.labels.regex`.

    Raises:
        UsageError: two layouts fit equally.
    """
    if pattern is not None:
        compiled = LimitedPattern(pattern, "input.labels.regex")
        by_pattern = pattern_names(compiled, images)
        return MaskLayout("pattern", "input.labels.regex is given", "label" in compiled.groupindex, by_pattern)
    fitting: list[tuple[int, MaskLayout]] = []
    stems, pairs = list(map(key_stem, masks)), parallel_folders([*masks, *images.keys])
    images.suffixes = suffix_pairs((key_stem(key) for i, key in enumerate(images.keys) if i not in images.skip), stems)

    def layouts() -> Iterator[MaskLayout]:
        yield from _layouts(masks, images, classes, pairs)
        if not any(count == len(masks) for count, _ in fitting):
            yield from _by_varying_part(masks, images, pairs)
            for name, folders in ((_FOLDER, _by_folder), (_INNER_FOLDER, _by_inner_folder)):
                yield MaskLayout(f"{name}, {_ADDED}", "", True, _without_added(folders(classes), images))
            yield MaskLayout("class within the name", "", True, _by_class_within_name(images, classes))

    for layout in layouts():
        found = [named for named in map(layout.names, stems) if named is not None]
        placed = [(images.find(stem, bare=not layout.by_class), label) for stem, label in found]
        hits = [label for position, label in placed if position is not None]
        if layout.objects and len({position for position, _ in placed}) == len(placed):
            continue  # A single file for an image may hold several classes.
        if hits and not (layout.by_class and classes is None and not _may_be_classes(layout, set(hits))):
            fitting.append((len(hits), layout))
    if not fitting:
        _check_affixes(masks, images)
        return MaskLayout(_SAME, "no other fits", False, _same)
    most = max(count for count, _ in fitting)
    best = _first_kind([layout for count, layout in fitting if count == most])
    if len(best) > 1:
        shown = " or ".join(layout.name for layout in best)
        raise UsageError(
            f"input.labels: the masks may be named by {shown}: as many ({most} of {len(masks)}) find an image either "
            f"way. {_SET_REGEX}"
        )
    reason = f"{most} of {len(masks)} find their image so; {_OVERRIDE}"
    return replace(best[0], reason=reason)


def _check_affixes(masks: Sequence[str], images: ImageStems) -> None:
    """Raises `UsageError` where masks have something before or behind the names of images; a reading for each kind."""
    stems = {base_stem(key) for i, key in enumerate(images.keys) if i not in images.skip}
    if found := affixes(list(map(base_stem, masks)), stems):
        shown = " or ".join(f"{before}*{behind}" for before, behind in found)
        patterns = map(affix_pattern, found)
        raise UsageError(f"input.labels: the masks are named {shown} for an image *. {_SET_REGEX}").with_readings(
            *(Reading(f"files that {called} are the masks", {_REGEX: pattern}) for called, pattern in patterns)
        )


def affixes(masks: Sequence[str], stems: Collection[str]) -> list[tuple[str, str]]:
    """Returns what file names of masks have before and behind that of an image, such as `_mask`, the most common first.

    Args:
        masks: file names without extension.
        stems: those of images, and of masks perhaps.
    """
    found: Counter[tuple[str, str]] = Counter()
    for mask in masks:
        cuts = [
            (i, k)
            for i in range(len(mask))
            for k in range(len(mask), i, -1)
            if mask[i:k] in stems and k - i < len(mask)
        ]
        if cuts:
            begin, end = max(cuts, key=lambda cut: cut[1] - cut[0])
            found[mask[:begin], mask[end:]] += 1
    return [affix for affix, count in found.most_common(_MOST_AFFIXES) if count > len(masks) // (2 * _MOST_AFFIXES)]


def affix_pattern(affix: tuple[str, str]) -> tuple[str, str]:
    """Returns what names of masks do, for messages, and `input.labels.regex` for it."""
    before, behind = affix
    called = f"begin with {before}" if not behind else f"end with {behind}" if not before else f"are {before}*{behind}"
    return called, rf"(?:^|/){re.escape(before)}(?P<image>[^/]+){re.escape(behind)}$"


def beside_photographs(masks: Sequence[str], photographs: ImageStems) -> Iterator[MaskLayout]:
    """Yields the layouts of files without loss that may be masks of JPEGs next to them, as `a.png` of `a.jpg`."""
    yield MaskLayout(_SAME, "", False, _same)
    yield from _by_varying_part(masks, photographs, {})
    yield MaskLayout(_CLASS_SUFFIX, "", True, _by_class_in_name(photographs, None, prefix=False))
    yield MaskLayout(CLASS_PREFIX, "", True, _by_class_in_name(photographs, None, prefix=True))


def _first_kind(best: Sequence[MaskLayout]) -> Sequence[MaskLayout]:
    """Returns the first of several kinds of masks of Cityscapes; other layouts that are even stay as they are."""
    kinds = {layout: [kind for kind in _KINDS if layout.name.endswith(f"_{kind}")] for layout in best}
    if len(best) < 2 or not all(kinds.values()):
        return best
    first, *others = sorted(best, key=lambda layout: _KINDS.index(kinds[layout][0]))
    return [replace(first, leaves_out=tuple(f"_{kinds[layout][0]}" for layout in others))]


def _layouts(
    masks: Sequence[str], images: ImageStems, classes: Mapping[str, int | None] | None, pairs: Mapping[str, Place]
) -> Iterator[MaskLayout]:
    yield MaskLayout(_SAME, "", False, _same)
    ends = "".join(f"{key_stem(mask)}\n" for mask in masks)
    numbered = {numbered_suffix(key_stem(mask)) for mask in masks}
    if pairs:
        by_class = any(place.label for place in pairs.values())
        yield MaskLayout(_PARALLEL, "", by_class, _by_parallel_folder(pairs, images))
    for suffix, replacement in images.suffixes:
        if suffix not in numbered and f"{suffix}\n" not in ends:
            continue
        pattern = f"^(?P<image>.+){re.escape(suffix)}$"
        instead = f" in place of {replacement}" if replacement and SUFFIXES.get(suffix) != replacement else ""
        yield MaskLayout(f"the suffix {suffix}{instead}", "", False, _by_suffix(suffix, replacement), pattern=pattern)
        if suffix in numbered:
            name = f"the suffix {suffix}{instead}, further masks with a number"
            yield MaskLayout(name, "", False, _by_suffix(suffix, replacement, numbered=True), objects=True)
    yield MaskLayout(_FOLDER, "", True, _by_folder(classes), pattern="^(?P<label>[^/]+)/(?P<image>.+)$")
    yield MaskLayout(_INNER_FOLDER, "", True, _by_inner_folder(classes))
    yield MaskLayout(_CLASS_SUFFIX, "", True, _by_class_in_name(images, classes, prefix=False))
    yield MaskLayout(CLASS_PREFIX, "", True, _by_class_in_name(images, classes, prefix=True))
    if classes is None or len(classes) == 1:
        label = next(iter(classes or ()), ONE_CLASS)
        yield MaskLayout(_OBJECTS, "", True, _by_object_folder(images, label), objects=True)


def _by_varying_part(masks: Sequence[str], images: ImageStems, pairs: Mapping[str, Place]) -> Iterator[MaskLayout]:
    """Yields the layout in which every mask has one image, and every image one mask at most, by what differs.

    The names of all masks begin alike and end alike, and so do those of all images; what lies between, and the folder,
    is equal. Names may differ in upper and lower case, and in an extension within them (`1.jpg_0`, `1.png_0`).
    """
    keys = [key for i, key in enumerate(images.keys) if i not in images.skip]
    if len(masks) < 2 or not keys:
        return
    for simplify, channel, how in (
        (str, False, ""),
        (str, True, ""),
        (_simple, False, ", in lower case and without extensions"),
    ):
        of_masks, shown = _varying(masks, simplify, pairs)
        of_images, instead = _varying(keys, simplify, {place.images: place for place in pairs.values()}, channel)
        by_part = dict(zip(of_images, map(key_stem, keys), strict=True))
        if len(by_part) < len(keys) or len(set(of_masks)) < len(masks) or not by_part.keys() >= set(of_masks):
            continue
        by_mask = {key_stem(mask): (by_part[part], "") for mask, part in zip(masks, of_masks, strict=True)}
        if all(image == mask for mask, (image, _) in by_mask.items()):
            continue
        yield MaskLayout(f"{shown} in place of {instead}{how}", "", False, by_mask.get)
        return


def _varying(
    keys: Sequence[str], simplify: Callable[[str], str], pairs: Mapping[str, Place], channel: bool = False
) -> tuple[list[str], str]:
    """Returns the folder and the part of each name that is not common to all, and how the names look.

    Of pairs of folders, that is what is not common to all of the folder: `1_training.tif`, and `2_test.tif` in another.
    """
    folders = [key.rpartition("/")[0] for key in keys]
    folders = [simplify(pairs[folder].images if folder in pairs else folder) for folder in folders]
    names = [simplify(base_stem(key)) for key in keys]
    together: dict[str, list[str]] = {}
    for folder, name in zip(folders, names, strict=True):
        together.setdefault(folder if pairs else "", []).append(name)
    ends = {folder: _common_ends(group, channel) for folder, group in together.items()}
    varying = []
    for folder, name in zip(folders, names, strict=True):
        begin, end = ends[folder if pairs else ""]
        varying.append(f"{folder}/{name[len(begin) : len(name) - len(end)]}")
    return varying, "*".join(next(iter(ends.values())))


def _common_ends(names: Sequence[str], channel: bool) -> tuple[str, str]:
    """Returns what all names begin with and what they end with, up to a mark.

    A number at the end of all is a part of what differs, unless it is nnU-Net's number of a channel.
    """
    begin = common_start(names).rstrip("0123456789")
    marks = list(_MARK.finditer(begin))
    numbers = all(name[len(begin) : len(begin) + 1].isdigit() for name in names)
    begin = begin[: marks[-1].end()] if marks and not numbers else begin
    rest = [name[len(begin) :] for name in names]
    end = common_start([name[::-1] for name in rest])[::-1]
    mark = _MARK.search(end)
    if mark is None and not all(name[: len(name) - len(end)][-1:].isdigit() for name in rest):
        end = ""  # Without a mark, a suffix follows numbers.
    end = end[mark.start() if mark else 0 :]
    return begin, "" if end.strip("_. -").isdigit() and not (channel and len(names) > 1) else end


def _simple(stem: str) -> str:
    """Returns a name in lower case, and without extensions of images within it."""
    return _INNER_ENDING.sub("", stem.lower())


def _may_be_classes(layout: MaskLayout, labels: set[str]) -> bool:
    """Returns whether folders or suffixes can be classes where `input.classes` names none."""
    if layout.objects:
        return True
    if layout.name.startswith(_FOLDER):
        no_class = MASK_WORDS.fullmatch if layout.name.endswith(_ADDED) else is_split_folder
        return not all(map(no_class, labels))
    return len(labels) > 1 and not any(f"_{label}" in SUFFIXES or numbered_suffix(f"_{label}") for label in labels)


def _same(stem: str) -> tuple[str, str]:
    return stem, ""


def numbered_suffix(stem: str) -> str:
    """Returns the suffix of `a_mask_1`, the second mask of `a`; empty where there is none."""
    cut = _NUMBER.sub("", stem)
    return next((suffix for suffix in SUFFIXES if cut != stem and cut.endswith(suffix)), "")


def _by_suffix(suffix: str, replacement: str, *, numbered: bool = False) -> _Names:
    def names(stem: str) -> tuple[str, str] | None:
        stem = _NUMBER.sub("", stem) if numbered and numbered_suffix(stem) == suffix else stem
        return (stem[: -len(suffix)] + replacement, "") if stem.endswith(suffix) else None

    return names


def _by_parallel_folder(pairs: Mapping[str, Place], images: ImageStems) -> _Names:
    def names(stem: str) -> tuple[str, str] | None:
        folder, _, name = stem.rpartition("/")
        if folder not in pairs:
            return None
        ends = [(suffix, instead) for suffix, instead in images.suffixes if name.endswith(suffix)]
        cut = [name, *(name[: -len(suffix)] + instead for suffix, instead in ends)]
        found = [f"{pairs[folder].images}/{one}".lstrip("/") for one in cut]
        best = next((one for one in found if images.find(one, bare=False) is not None), found[0])
        return best, pairs[folder].label

    return names


def _by_folder(classes: Mapping[str, int | None] | None) -> _Names:
    def names(stem: str) -> tuple[str, str] | None:
        label, _, rest = stem.partition("/")
        return (rest, label) if rest and _may_be(label, classes) else None

    return names


def _by_inner_folder(classes: Mapping[str, int | None] | None) -> _Names:
    def names(stem: str) -> tuple[str, str] | None:
        above, _, name = stem.rpartition("/")
        above, _, label = above.rpartition("/")
        return (f"{above}/{name}", label) if above and _may_be(label, classes) else None

    return names


def _without_added(layout: _Names, images: ImageStems) -> _Names:
    """Returns the same layout for masks with something behind the name of their image, such as that of the class."""

    def names(stem: str) -> tuple[str, str] | None:
        if (named := layout(stem)) is None:
            return None
        cuts = [mark.start() for mark in _MARK.finditer(named[0]) if mark.start() > named[0].rfind("/") + 1]
        found = (named[0][:cut] for cut in reversed(cuts))
        return next(((image, named[1]) for image in found if images.find(image, bare=False) is not None), None)

    return names


def _by_object_folder(images: ImageStems, label: str) -> _Names:
    def names(stem: str) -> tuple[str, str] | None:
        top, _, folder = stem.rpartition("/")[0].rpartition("/")
        image = images.only_below(top) if top and folder.lower() in OBJECT_FOLDERS else None
        return None if image is None else (image, label)

    return names


def _by_class_in_name(images: ImageStems, classes: Mapping[str, int | None] | None, *, prefix: bool) -> _Names:
    def names(stem: str) -> tuple[str, str] | None:
        folder, slash, name = stem.rpartition("/")
        # Image and class may hold underscores: the shortest class whose image exists.
        cuts = [i for i, letter in enumerate(name) if letter == "_" and 0 < i < len(name) - 1]
        halves = ((name[:i], name[i + 1 :]) for i in (cuts if prefix else reversed(cuts)))
        pairs = ((folder + slash + half[prefix], half[not prefix]) for half in halves)
        return next((p for p in pairs if _may_be(p[1], classes) and images.find(p[0], bare=False) is not None), None)

    return names


def _by_class_within_name(images: ImageStems, classes: Mapping[str, int | None] | None) -> _Names:
    def names(stem: str) -> tuple[str, str] | None:
        marks = [mark for mark in _MARK.finditer(stem) if mark.start() > stem.rfind("/")]
        for one, other in pairwise(marks):
            image, label = stem[: one.start()] + stem[other.start() :], stem[one.end() : other.start()]
            if label.isalpha() and _may_be(label, classes) and images.find(image, bare=False) is not None:
                return image, label
        return None

    return names


def pattern_names(pattern: LimitedPattern, images: ImageStems) -> _Names:
    """Returns a function from a mask's path without extension to the path of its image and a class, by a pattern."""

    def names(stem: str) -> tuple[str, str] | None:
        match = pattern.search(stem)
        groups = match.groupdict() if match else {}
        if not groups.get("image"):
            return None
        image = groups["image"]
        named = (f"{image}{suffix}" for suffix in ("", *_IMAGE_SUFFIXES))
        found = next((name for name in named if images.find(name, bare=True) is not None), image + _CITYSCAPES)
        return found, groups.get("label") or ""

    return names


def _may_be(label: str, classes: Mapping[str, int | None] | None) -> bool:
    return classes is None or label in classes or as_integer(label) is not None
