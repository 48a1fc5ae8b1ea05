"""Names a pipeline after a folder, and writes a TFX project: the files in `project/`, with their gaps filled."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from string import Template

from shardwright.errors import UsageError, unwritable
from shardwright.storage import is_remote
from shardwright.storage.durable import write_file
from shardwright.storage.listing import has_wildcard

_PROJECT = Path(__file__).parent / "project"
_ENDING = ".txt"
_LONGEST = 60


def pipeline_name(folder: str) -> str:
    """Returns a name of lower-case letters, digits and hyphens, from the last part of a path that is not a wildcard."""
    plain = [part for part in folder.split("/") if part not in ("", ".", "..") and not has_wildcard(part)]
    last = plain[-1] if plain else os.path.basename(os.getcwd())
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in last.lower()).strip("-")
    return (name if name[:1].isalpha() else f"data-{name}")[:_LONGEST].strip("-")


def write_project(folder: str, name: str, images: str, classes: Sequence[str] | None) -> list[str]:
    """Writes the project.

    Args:
        folder: new or empty folder.
        name: the pipeline's name.
        images: folder of the images: a URL, or a path relative to the project.
        classes: names of the classes, where they are known.

    Returns:
        Paths of the files, below the folder.

    Raises:
        UsageError: the folder has no name, is not empty, or cannot be written.
    """
    if not folder:
        raise UsageError("DIR: is empty. Name a new folder.")
    root = Path(folder)
    if os.path.lexists(root) and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{folder}: exists and is not an empty folder. Name a new folder.")
    # In code, every text is a literal.
    literal = json.dumps(images)
    expression = literal if is_remote(images) else f"str(PROJECT / {literal})"
    values = {"name": name, "images": images, "images_expression": expression}
    values["below_literal"] = json.dumps(os.path.basename(images.rstrip("/")))
    values["classes"] = "None" if classes is None else json.dumps(list(classes), ensure_ascii=False)
    written = []
    for file in sorted(_PROJECT.rglob(f"*{_ENDING}")):
        path = file.relative_to(_PROJECT).as_posix().removesuffix(_ENDING)
        target = root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_file(target, Template(file.read_text(encoding="utf-8")).substitute(values))
        except OSError as error:
            raise unwritable(f"{target}:", error, "Check the path.") from None
        written.append(path)
    return written
