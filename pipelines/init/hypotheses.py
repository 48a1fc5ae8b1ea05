"""Proposes hypotheses on a folder from its names: which files may be the images, and which their annotations.

| folder | images | annotations |
|---|---|---|
| `JPEGImages/1.jpg`, `SegmentationClass/1.png` | `JPEGImages` | the folder: Pascal VOC |
| `images/1.jpg`, `masks/1.png` | the folder without the masks' | the folder called after masks, if it is lossless |
| `train/images/1.jpg`, `train/masks/1.png`, `val/images/2.jpg`, … | the folder | the folder: masks of several splits |
| `train/rgb/1.jpg`, `train/gt/1.png`, `train/depth/1.png`, `val/…` | the folder | the folder, without each other kind |
| `1/images/1.png`, `1/masks/1.png`, `1/masks/2.png` | the folder | the folder: a mask for each object |
| `1.jpg`, `1_mask.png` or `1.png` | the folder | the folder: masks with a suffix, or of the same name |
| `VOC2007/JPEGImages/1.jpg`, `VOC2012/JPEGImages/2.jpg`, … | the folder | the folder: Pascal VOC of several years |
| `images/1.jpg`, `labels/1.txt`, `data.yaml` | the images' folder | `data.yaml`, or `labels`: an annotation tool's |
| `1.jpg`, `1.json` | the folder | the folder: an annotation tool's file for each image |
| `train/1.jpg`, `test/2.jpg`, `train.csv` | the folder, or one in it that the table names images of | the table |
| `daisy/1.jpg` | the folder | none: folders or names of files |

Nothing is read here: all tables are proposed, and who reads them sees which names images.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shardwright.config.split import split_word, stated_split
from shardwright.dataset.outputs import is_below
from shardwright.formats.export_record import FEATURES_FILE, IMAGES, RECORD_FILE
from shardwright.formats.mask_folders import MASK_WORDS, object_masks, parallel_folders
from shardwright.formats.mask_names import suffix_pairs
from shardwright.formats.pascal_voc import MASKS
from shardwright.images.header import has_image_ending
from shardwright.pipelines.init.inventory import (
    DERIVED,
    LOSSLESS,
    common_folder,
    folders_above,
    is_aside,
    is_kind_of_masks,
)

_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".jsonlines", ".xml", ".parquet")
# A tool writes one of these for each image.
_OF_IMAGES, _YAML = (".txt", ".json", ".xml"), (".yaml", ".yml")
# Tables of files to predict (Kaggle), and files that no one annotates with.
_NO_ANNOTATIONS = re.compile(
    r"submission|requirements|package|dataset_info|metadata\.json$|^classes\.json$|class-descriptions|licen[cs]e",
    re.IGNORECASE,
)
PHOTOGRAPHS = re.compile(r"im(?:a)?ge?s?|photo|picture|rgb|frame|original|tissue|left", re.I)
_VOC_IMAGES = "JPEGImages"
_YEAR = re.compile(r"VOC20(?:0[5-9]|1[0-2])")
_SPLIT_WORD = re.compile(r"[^\W_]+")
_MOST_TABLES = 20
# More folders than that are classes or patients, not parts of a data set.
_MOST_PARTS = 8


class Hypothesis(NamedTuple):
    """A possible input, as paths below the folder that was looked into; an empty one is that folder.

    Attributes:
        images: folder of the images.
        labels: table or folder of the annotations; `None` where folders or file names state classes.
        exclude: for `input.exclude`: other pictures of the same images.
        shown: what messages call the annotations, where that is not their path.
        regex: for `input.labels.regex`.
    """

    images: str
    labels: str | None
    exclude: tuple[str, ...] = ()
    shown: str = ""
    regex: str = ""


def propose(keys: Sequence[str], labels: str | None = None) -> list[Hypothesis]:
    """Proposes the possible inputs of a folder.

    Args:
        keys: paths of its files below it, sorted.
        labels: the annotations where they are known, below the folder; an absolute path if they are elsewhere.

    Returns:
        Hypotheses with annotations; where there are none, one without.
    """
    masks = sorted(_mask_folders(keys))
    images = [
        key for key in keys if has_image_ending(key) and not is_below(key, [*masks, *([labels] if labels else [])])
    ]
    if labels is not None and any(is_below(key, [_join(labels, _VOC_IMAGES)]) for key in keys):
        return [Hypothesis(_join(labels, _VOC_IMAGES), labels)]
    if labels is not None:
        # Images next to masks come first: the set may have parts, each with masks.
        folders = [
            *([_next_to(labels, images)] if labels in masks else []),
            *_image_folders(images if labels else keys),
        ]
        return [Hypothesis(folder, labels) for folder in dict.fromkeys(folders)]
    in_voc = [key for key in keys if f"/{MASKS}/" in f"/{key}" and key.lower().endswith(LOSSLESS)]
    voc = sorted({key.split(f"{MASKS}/")[0].rstrip("/") for key in in_voc})
    years = {os.path.dirname(folder) for folder in voc if _YEAR.fullmatch(os.path.basename(folder))}
    if len(voc) > 1 and len(years) == 1 and "voc" in os.path.basename(whole := years.pop()).lower():
        return [Hypothesis(whole, whole)]
    if voc:
        return [Hypothesis(_join(folder, _VOC_IMAGES), folder) for folder in voc]
    if not masks and (masks := _lossy_masks(keys)):
        images = [key for key in images if not is_below(key, masks)]
    inside = object_masks(keys) if len(masks) > 1 else frozenset()
    if inside:
        # Images elsewhere, such as those to predict, have no masks.
        whole = common_folder([f"{key.rsplit('/', 2)[0]}/" for key in inside])
        return [Hypothesis(whole, whole)]
    pictures = [key for key in keys if has_image_ending(key)]
    if in_parts := _in_parts(pictures):
        return in_parts
    parallel = parallel_folders(pictures)
    if parallel and all(is_below(folder, masks) for folder in parallel):
        paired = {*parallel, *(place.images for place in parallel.values())}
        whole = common_folder([key for key in pictures if key.rpartition("/")[0] in paired])
        found = [Hypothesis(whole, whole)]
        masks = [folder for folder in masks if not any(is_below(one, [folder]) for one in parallel)]
    else:
        found = []
    for folder in masks if images else ():
        found += [Hypothesis(place, folder) for place in (_next_to(folder, images), *_image_folders(images))]
    found += _with_suffixes(images) or [
        Hypothesis(folder, folder) for folder in [common_folder(images)] if _has_pairs(images)
    ]
    ending, of_tool = _of_tool(keys, images)
    found += [Hypothesis(common_folder(images), folder) for folder in of_tool]
    for table in with_joined(tables(key for key in keys if not ending or not key.lower().endswith(ending)), keys):
        found += [Hypothesis(folder, table) for folder in _image_folders(images)]
    return found or [Hypothesis(without_annotations(keys), None)]


def _in_parts(pictures: Sequence[str]) -> list[Hypothesis]:
    """Proposes each folder of masks with each of images, where the parts of a set have the same several folders."""
    inside: dict[str, set[str]] = {}
    for folder in {os.path.dirname(key) for key in pictures}:
        part, _, kind = folder.rpartition("/")
        inside.setdefault(part, set()).add(kind)
    several = Counter(frozenset(kinds) for part, kinds in inside.items() if part and len(kinds) > 2)
    kinds, count = max(several.items(), key=lambda entry: entry[1], default=(frozenset[str](), 0))
    parts = [part for part in inside if inside[part] == kinds]
    if count < 2 or any(map(stated_split, kinds)) or len({part.count("/") for part in parts}) > 1:
        return []
    whole = common_folder(f"{part}/" for part in parts)
    below = "*/" * (parts[0].count("/") + 1 - (whole.count("/") + 1 if whole else 0))
    # Images to predict have no masks.
    tests = [part for part in inside if stated_split(part) == "test" and not any(map(MASK_WORDS.search, inside[part]))]
    others = [part[len(whole) + bool(whole) :] for part in tests if not whole or is_below(part, [whole])]
    kinds = frozenset(kind for kind in kinds if not is_aside(kind))
    masks = {kind for kind in kinds if MASK_WORDS.search(kind)}
    pairs = [(image, mask) for image in kinds - masks for mask in masks]
    pairs.sort(key=lambda pair: (not PHOTOGRAPHS.search(pair[0]), DERIVED.search(pair[1]) is not None, pair))
    return [
        Hypothesis(
            whole,
            whole,
            (*(f"{below}{other}" for other in sorted(inside[parts[0]] - {image, mask})), *others),
            f"{_join(whole, below + mask)} of {_join(whole, below + image)}",
        )
        for image, mask in pairs
    ]


def _with_suffixes(images: Sequence[str]) -> list[Hypothesis]:
    """Proposes each kind of files without loss as masks, where the images of a folder have several files each."""
    kinds: dict[str, set[str]] = {}
    for key in images:
        stem = os.path.splitext(key)[0]
        start = max(stem.rfind("_"), stem.rfind("-"))
        kinds.setdefault(stem[start:] if start > stem.rfind("/") + 1 else "", set()).add(stem[: max(start, 0)])
    for photographs in [kind for kind in kinds if PHOTOGRAPHS.fullmatch(kind[1:])]:
        bases = kinds[photographs]
        others = [kind for kind, found in kinds.items() if kind != photographs and len(found & bases) > 1]
        lossless = {
            kind for kind in others if all(key.lower().endswith(LOSSLESS) for key in images if f"{kind}." in key)
        }
        if (
            lossless
            and sum(map(len, (kinds[kind] for kind in (photographs, *others)))) == len(images)
            and len(others) > 1
        ):
            folder = common_folder(images)
            return [
                Hypothesis(
                    folder,
                    folder,
                    tuple(f"**/*{other}.*" for other in sorted(others) if other != kind),
                    _join(folder, f"*{kind}"),
                    rf"(?:^|/)(?P<image>[^/]+){re.escape(kind)}$",
                )
                for kind in sorted(lossless)
            ]
    return []


def _next_to(masks: str, images: Sequence[str]) -> str:
    """Returns the folder of the images next to a folder of masks, without images elsewhere, or that of all images."""
    parent = os.path.dirname(masks)
    near = [key for key in images if parent and key.startswith(f"{parent}/")]
    return common_folder(near or images)


def without_annotations(keys: Sequence[str]) -> str:
    """Returns the folder of images without a file of annotations; that of an export has more files next to it."""
    exports = [os.path.dirname(key) for key in keys if os.path.basename(key) == RECORD_FILE]
    if exports:
        return _join(exports[0], IMAGES) if len(exports) == 1 else ""
    # The only folder in a folder is not a class: the folders in it may be.
    images = [key for key in keys if has_image_ending(key)]
    whole = common_folder(images)
    return "" if any(os.path.dirname(key) == whole for key in images) else whole


def tables(keys: Iterable[str]) -> list[str]:
    """Returns the files that may be tables of annotations."""
    found = [
        key
        for key in keys
        if key.lower().endswith(_TABLES)
        and os.path.basename(key) not in (RECORD_FILE, FEATURES_FILE)
        and not _NO_ANNOTATIONS.search(os.path.basename(key))
    ]
    found = [
        key for key in found if not is_aside(os.path.splitext(key)[0]) and not is_aside(os.path.dirname(key))
    ] or found
    # Many files of a kind are about an image or a folder each.
    kinds = Counter((os.path.splitext(key)[1].lower(), key.count("/")) for key in found)
    return [key for key in found if kinds[os.path.splitext(key)[1].lower(), key.count("/")] <= _MOST_TABLES]


def with_joined(found: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Adds a glob for tables whose paths differ only in the name of a split, one of them `train`; globs come first."""
    groups: dict[str, list[str]] = {}
    for table in found:
        groups.setdefault(_SPLIT_WORD.sub(lambda word: "*" if split_word(word[0]) else word[0], table), []).append(
            table
        )
    joined = []
    for pattern, group in groups.items():
        splits = {stated_split(table) for table in group}
        alone = [key for key in keys if fnmatch.fnmatchcase(key, pattern)] == group
        if len(splits) == len(group) > 1 and "train" in splits and alone:
            joined.append(pattern)
    return [*joined, *found]


def _of_tool(keys: Sequence[str], images: Sequence[str]) -> tuple[str, list[str]]:
    """Looks for the files of a tool that writes one for each image.

    Returns:
        How they end, and their folder, or the YAML file that describes them, or several folders that have all of them;
        an empty text and none where there are none.
    """
    # Supervisely adds its ending to the whole name of the image.
    bases = [os.path.basename(key).lower() for key in images]
    pictured = {name for base in bases for name in (base, os.path.splitext(base)[0])}
    for ending in _OF_IMAGES:
        files = [key for key in keys if key.lower().endswith(ending)]
        named = [key for key in files if os.path.splitext(os.path.basename(key).lower())[0] in pictured]
        # Other texts may lie anywhere else.
        folders = {os.path.dirname(key) for key in named}
        files = [key for key in files if os.path.dirname(key) in folders]
        if len(named) > 1 and 2 * len(named) >= len(files):
            described = [key for key in keys if ending == ".txt" and key.lower().endswith(_YAML)]
            whole = common_folder(named)
            inside: dict[str, list[str]] = {}
            for key in named:
                top, _, rest = key[len(whole) + bool(whole) :].partition("/")
                inside.setdefault(_join(whole, top), []).append(rest)
            if len(inside) > 1 and all(
                rests == next(iter(inside.values())) and all(rests) for rests in inside.values()
            ):
                return ending, list(inside)
            return ending, described if len(described) == 1 else [whole]
    return "", []


def _image_folders(images: Sequence[str]) -> list[str]:
    """Folders that may be that of the images a table names: the one with all of them, and the parts of it."""
    whole = common_folder(images)
    depth = len(whole) + 1 if whole else 0
    parts = sorted({key[depth:].split("/")[0] for key in images if "/" in key[depth:]})
    # A table may name images with the folder that all of them are in. Otherwise that folder comes first: other images,
    # which arrive next to it later, are not part of the data set.
    around = [""] if whole else []
    several = len(parts) > 1 or any("/" not in key[depth:] for key in images)
    return [whole, *around, *(_join(whole, part) for part in parts if several and len(parts) <= _MOST_PARTS)]


def _mask_folders(keys: Sequence[str]) -> set[str]:
    """Returns the highest folders that are called after masks and have lossless images alone, next to other images."""
    endings: dict[str, set[str]] = {}
    for key in keys:
        if has_image_ending(key):
            endings.setdefault(os.path.dirname(key), set()).add(os.path.splitext(key)[1].lower())
    lossy = folders_above(f"{folder}/" for folder, found in endings.items() if not found <= set(LOSSLESS))
    lossless = folders_above(f"{folder}/" for folder in endings) - lossy
    named = {folder for folder in lossless if MASK_WORDS.search(folder.split("/")[-1])}
    whole = folders_above(endings)  # What holds all of them says nothing.
    whole = {folder for folder in whole if all(is_below(other, [folder]) for other in endings)}
    named = {folder for folder in named - whole if not is_aside(folder)} or named - whole
    if all(is_below(folder, named) for folder in endings):  # `frames-with-annotations` next to `annotations`.
        named = {folder for folder in named if not PHOTOGRAPHS.search(folder.split("/")[-1])}
    highest = {folder for folder in named if not named & folders_above([folder])}
    others = [key for key in keys if has_image_ending(key) and not is_below(key, highest)]
    found = set()
    for folder in highest if others else ():
        # The folder that has them all, if it is no class: called after masks, too, or as images are, such as `480p`.
        inside = [key for key in keys if has_image_ending(key) and is_below(key, [folder])]
        deepest = common_folder(inside)
        further = deepest.split("/")[folder.count("/") + 1 :]
        alike = bool(further) and f"/{common_folder(others)}".endswith("/" + "/".join(further))
        place = deepest if alike or all(map(MASK_WORDS.search, further)) else folder
        # Folders in it that are called after kinds of masks are no classes.
        below = [key[len(place) + 1 :] for key in inside]
        kinds = {key.partition("/")[0] for key in below}
        several = len(kinds) > 1 and all("/" in key for key in below) and all(map(is_kind_of_masks, kinds))
        found |= {f"{place}/{kind}" for kind in kinds} if several else {place}
    return found


def _lossy_masks(keys: Sequence[str]) -> list[str]:
    """Returns a folder `masks` of JPEGs next to images of the same names, so that its files are refused by name."""
    stems: dict[str, set[str]] = {}
    for key in keys:
        if has_image_ending(key):
            folder, _, name = key.rpartition("/")
            stems.setdefault(folder, set()).add(os.path.splitext(name)[0])
    named = [folder for folder in stems if re.search("masks?$", folder, re.IGNORECASE)]
    return [
        one
        for one in named
        if any(other != one and (stems[one] <= names or len(stems) == 2) for other, names in stems.items())
    ]


def _has_pairs(images: Sequence[str]) -> bool:
    """Returns whether files with a mask's suffix, or lossless ones of the same name, are next to half of the images."""
    stems = {os.path.splitext(key)[0] for key in images}
    lossless = [os.path.splitext(key)[0] for key in images if key.lower().endswith(LOSSLESS)]
    if lossless and len(lossless) == len(set(lossless)) == len(images) - len(stems):
        return 2 * len(lossless) >= len(stems)
    found, folders = Counter[str](), set[str]()
    pairs = suffix_pairs(stems, lossless)
    for stem in lossless:
        for suffix, image in pairs:
            if stem.endswith(suffix) and stem[: -len(suffix)] + image in stems:
                found[suffix] += 1
                folders.add(os.path.dirname(stem))
    most = max(found.values(), default=0)
    # Images to predict, in other folders, have no masks.
    near = sum(os.path.dirname(stem) in folders for stem in stems)
    return most > 0 and 2 * most >= near - sum(found.values())


def _join(*parts: str) -> str:
    return "/".join(filter(None, parts))
