"""Whether folders or file names say the classes, where there is no file of labels and the configuration says neither.

Folders come first: files called `IMG_0001.jpg` fit `label_number` as well as `cat_1.jpg` does. Names are taken where no
image lies in a folder, or where `input.classes` knows them and not the folders. Where both may be meant it is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardwright.config.split import split_word
from shardwright.errors import UsageError
from shardwright.sources.file_names import name_label
from shardwright.sources.folders import FolderLevel, class_folder, fit, refuse_either

CLASS_FOLDERS, FILE_NAME = "class_folders", "file_name"
_EITHER = "Set input.labels.format: class_folders or file_name."


def tell_key_format(
    keys: Sequence[str], skip: frozenset[int], classes: Mapping[str, int | None] | None, found: FolderLevel
) -> tuple[str, str]:
    """Tells the format of an input without a file of labels.

    Args:
        keys: sorted keys of the listing.
        skip: positions that are no images.
        classes: `input.classes`.
        found: which folder may be the class.

    Returns:
        `class_folders` or `file_name`, and why, for the user.

    Raises:
        UsageError: folders and names say different classes, and either may be meant.
    """
    no_path = "input.labels.path is not given"
    both = [(class_folder(key, found.level), name_label(key), key) for i, key in enumerate(keys) if i not in skip]
    folders = {folder for folder, _, _ in both if folder}
    labels = {label for _, label, _ in both if label}
    named = sum(bool(label) for _, label, _ in both)
    if both and not folders and not named:
        raise UsageError(
            f"input.labels: no folder and no file name says a class, e.g. {both[0][2]}. Give a file of labels by "
            "input.labels.path, or set input.labels.format: none for images alone."
        )
    # One label alone is a camera's prefix, unless it is known to be a class.
    if 2 * named <= len(both) or (len(labels) < 2 and fit(labels, classes) < 2):
        refuse_either(found)
        return CLASS_FOLDERS, no_path
    if not folders:
        return FILE_NAME, f"{no_path}, no image lies in a folder, and {named} of {len(both)} names hold a label"
    if found.problem and not all(is_split_folder(folder) for folder in folders):
        refuse_either(found)
    contrary = next((said for said in both if all(said[:2]) and said[0] != said[1]), None)
    if contrary is None:
        return CLASS_FOLDERS, f"{no_path}; the file names say the same"
    folder, label, key = contrary
    differ = f"{key} is {folder!r} by its folder and {label!r} by its name"
    by_folder, by_name = fit(folders, classes), fit(labels, classes)
    if by_name > by_folder:
        return FILE_NAME, f"{no_path}, and input.classes knows the labels in the names, not the folders: {differ}"
    if classes is None and (len(folders) == 1 or all(map(is_split_folder, folders))):
        raise UsageError(f"input.labels: {differ}, and the folders ({_shown(folders)}) may be no classes. {_EITHER}")
    if by_name == by_folder and by_name > 0:
        raise UsageError(f"input.labels: {differ}, and input.classes knows both. {_EITHER}")
    return CLASS_FOLDERS, f"{no_path} ({differ}; input.labels.format: file_name takes the names)"


def is_split_folder(name: str) -> bool:
    """Whether a folder says what images are for, not what is on them."""
    return split_word(name) is not None or name.lower() == "images"


def _shown(folders: set[str]) -> str:
    return ", ".join(sorted(folders)[:3]) + (", …" if len(folders) > 3 else "")
