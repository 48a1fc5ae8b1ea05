"""The files of a folder that are neither images of the set nor its annotations: what they may be, and who says so.

Some hold the annotations in a form that is not read, which is the true cause of "the images have no classes".
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from shardwright.config.input import TFRECORD
from shardwright.errors import Reading, ShardwrightError, UsageError
from shardwright.formats.base import counted_endings, shorten
from shardwright.formats.class_folders import BY_FOLDER
from shardwright.formats.image_names import NameIndex
from shardwright.formats.tables import Table
from shardwright.images.header import has_image_ending
from shardwright.ingest.split_lists import listed_image
from shardwright.ingest.survey import IGNORED_FILES
from shardwright.pipelines.init.class_tree import is_in_one_place
from shardwright.pipelines.init.hypotheses import with_joined
from shardwright.pipelines.init.inventory import Inventory
from shardwright.pipelines.init.read_trial import EXCLUDE, PATH, DetectedInput
from shardwright.running.progress import counted
from shardwright.storage import is_remote, read_start
from shardwright.storage.listing import is_several, name_lines

_SHOWN = 3
_MOST_TEXTS, _TEXT_BYTES = 20, 1 << 16
_RECORDS = re.compile(r"\.tf_?rec(?:ord)?s?(?:$|[-.])", re.IGNORECASE)
# Files that no ingest reads and nobody misses: descriptions, code, settings.
_NO_DATA = (".md", ".py", ".ipynb", ".sh", ".yaml", ".yml", ".toml", ".cfg", ".html", ".pdf", ".rst")
_ABOUT = re.compile(
    r"readme|licen[cs]e|requirements|attribution|copying|notes?|classes|names|labels?_?(?:map|names)", re.I
)
_NUMBERS = re.compile(r"[-+\d\s.,;]+")


def check_records(inventory: Inventory) -> None:
    """Checks that images are not a few beside TFRecord files, which hold the images.

    Raises:
        UsageError: they are; with the readings without one or the other.
    """
    records = [key for key in inventory.keys if _RECORDS.search(key)]
    if records and inventory.images:
        others = sorted({os.path.dirname(key) or key for key in inventory.keys if key not in records})
        problem = f"{inventory.folder}: {shorten(records)} may hold the images, next to {shorten(inventory.images)}."
        raise UsageError(problem).with_readings(
            Reading(f"the set is {shorten(records)}", {EXCLUDE: others}),
            Reading(f"{shorten(records)} is not part of the set", {EXCLUDE: records}),
        )


def check_texts(inventory: Inventory, found: DetectedInput | None) -> None:
    """Checks that no text file states something for each image.

    Args:
        inventory: the folder.
        found: the images with the classes of their folders or names, if there are any: a text may say the same.

    Raises:
        UsageError: one names images, with more behind each name or in lines between; with a reading for each text that
            can be read as a table, and that of the folders.
    """
    texts = [key for key in inventory.keys if key.lower().endswith((".txt", ".lst"))]
    images = inventory.images if texts else []
    names, classes = NameIndex(images), _classes(found, inventory) if texts else {}
    tables, problem = [], ""
    for key in texts[:_MOST_TEXTS]:
        path = os.path.join(inventory.root, key)
        try:
            lines = name_lines(read_start(path, _TEXT_BYTES).decode("utf-8-sig"))[:-1]
        except (OSError, UnicodeDecodeError, ShardwrightError):
            continue
        stated = [line for line in lines if names.find(line) is None and listed_image(line, names) is not None]
        named = [line for line in lines if names.find(line) is not None]
        between = sum(bool(_NUMBERS.fullmatch(line)) for line in lines if names.find(line) is None)
        if 2 * len(stated) > len(lines) and not _says_the_same(stated, names, images, classes):
            shown, how = stated[0], "with more behind each name"
            with suppress(ShardwrightError):
                tables += [key] if Table.open(path).delimiter == " " else []
        elif len(named) > 1 and between >= len(named):
            shown, how = lines[0], "with numbers in the lines between"
        else:
            continue
        problem = problem or f"{path}: names images, {how} ({shown[:80]!r})"
    if not problem:
        return
    folders = [] if found is None or is_in_one_place(found) else [BY_FOLDER]
    if not tables:
        problem = f"{problem}, and is no table that is read. Write it as a CSV with a header such as image,label."
        raise UsageError(problem).with_readings(*folders)
    paths = [inventory.named(table) for table in with_joined(tables, inventory.keys)]
    raise UsageError(f"{problem}, and may be the annotations. Give the file after the folder.").with_readings(
        *(Reading(f"the annotations are {path}", {PATH: path}) for path in paths), *folders
    )


def _says_the_same(stated: Sequence[str], names: NameIndex, images: Sequence[str], classes: Mapping[str, str]) -> bool:
    """Returns whether what is behind each name is another word for the class of the image."""
    places = [listed_image(line, names) for line in stated]
    pairs = {
        (tuple(line.split()[1:]), classes.get(images[place], "") if place is not None and place >= 0 else "")
        for line, place in zip(stated, places, strict=True)
    }
    words, labels = ({pair[at] for pair in pairs} for at in (0, 1))
    return "" not in labels and len(pairs) == len(words) == len(labels)


def _classes(found: DetectedInput | None, inventory: Inventory) -> dict[str, str]:
    """Returns the class of each image that folders or names state, by its path below the inventory's folder."""
    if found is None or found.format == TFRECORD or not found.surveyed.survey.classes:
        return {}
    keys, names = found.surveyed.listing.keys, found.surveyed.survey.classes
    base = inventory.below(found.surveyed.listing.root)
    return {os.path.join(base, keys[one.image]): names[one.label] for one in found.surveyed.source.annotations()}


def with_unread(error: UsageError, inventory: Inventory | None) -> UsageError:
    """Returns an error of images without annotations, with the files that may hold these and are not read."""
    keys = inventory.keys if inventory is not None and not inventory.spans else ()
    rest = [key for key in keys if not (has_image_ending(key) or key.lower().endswith(_NO_DATA))]
    rest = [key for key in rest if not _ABOUT.match(os.path.basename(key)) and key not in str(error)]
    if not rest:
        return error
    what = f"Not read: {_listed(rest)}. If the annotations are there, write them as a CSV such as image,label."
    return UsageError(f"{error} {what}").with_readings(*error.readings)


def other_notes(
    found: DetectedInput, inventory: Inventory | None, given: Mapping[str, Any], failed: Mapping[str, ShardwrightError]
) -> tuple[str, ...]:
    """Returns the notes of an input, and those on files that are not used.

    Args:
        found: the input.
        inventory: the folder, where one was looked into.
        given: YAML path -> value of what the user gave.
        failed: path -> error of files that could not be read as annotations.
    """
    kinds: dict[str, list[str]] = {}
    for path, error in failed.items():
        if not is_several(path):  # The files of a glob are read one by one, too.
            kinds.setdefault(re.sub(r"\S*[/.]\S*", "", str(error)), []).append(str(error))
    notes = [
        f"not read as annotations: {same[0]}"
        + (f" Likewise {counted(len(same) - 1, 'more file')}." if same[1:] else "")
        for same in kinds.values()
    ]
    if inventory is not None and not inventory.spans and not is_remote(inventory.root) and found.format != TFRECORD:
        surveyed = found.surveyed
        used = inventory.files_of(surveyed.listing) | inventory.files_of(surveyed.source.attachments())
        used |= {inventory.below(path) for path in (surveyed.labels or "", *surveyed.further)}
        rest = [key for key in inventory.keys if not (key in used or has_image_ending(key))]
        rest = [key for key in rest if not key.lower().endswith(_NO_DATA)]
        rest = [
            key for key in rest if not any(note.endswith(os.path.join(inventory.root, key)) for note in found.notes)
        ]
        notes += [f"not used: {_listed(rest)}"] if rest else []
    # What follows on files that are left out says more.
    known = [note for note in found.notes if not (inventory is not None and note.startswith(IGNORED_FILES))]
    if EXCLUDE not in given:
        known = [note for note in known if not note.startswith("images: left out by input.exclude")]
    return (*known, *notes)


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys) if len(keys) <= _SHOWN else f"{counted(len(keys), 'file')}: {counted_endings(keys)}"
