"""The files that a command writes where the user asks: without `--force`, it replaces only its earlier output."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from shardwright.errors import UsageError, unwritable
from shardwright.storage import buckets, is_remote, read_start
from shardwright.storage.whole_files import write_bytes

# The first lines of a page, up to its title.
_HEAD = r"""<!DOCTYPE html>
<html lang="en">
<head>
(?:<meta [^\n]*>\n)+<title>{}</title>
<style>
"""
_HEAD_BYTES = 2000
# The command of a task, and the name of the pipeline, in a compiled document.
_OUR_COMMAND = "shardwright.components.runtime.container"
_PIPELINE = re.compile(r"""["']?pipelineInfo["']?:\s*\{?\s*["']?name["']?:\s*["']?([^"'\n]+)""")
_DOCUMENT_BYTES = 16 << 20
_PNG = ".png"


def picture_file(file: str | None, images: str, *, force: bool = False) -> str | None:
    """Returns the PNG that `--show` writes: one in the folder for temporary files unless it is named.

    Args:
        file: the value of the option; `None` without it.
        images: folder of the images, which must not contain it.
        force: whether a file that exists may be replaced.

    Returns:
        The file; empty where the terminal shows the pictures, `None` without the option.

    Raises:
        UsageError: the file is among the images, or exists.
    """
    if not file:
        shown = file is None or sys.stdout.isatty()
        return file if shown else tempfile.mkstemp(suffix=_PNG, prefix="shardwright-readings-")[1]
    if f"{os.path.abspath(file)}".startswith(f"{os.path.abspath(images)}/"):
        raise UsageError(f"--show: {file} is below {images}, and would be one of the images. Name another place.")
    check_free("--show", file, force=force)
    return file


def check_free(option: str, file: str, *, force: bool) -> None:
    """Refuses a path that something has already; before the work, so that nobody waits for it.

    Args:
        option: the option that names the file, for the message.
        file: path of the file to write, or its URL.
        force: whether a file that exists may be replaced.

    Raises:
        UsageError: the path is a folder, or a file that may not be replaced.
    """
    if is_remote(file):
        exists = not force and buckets.stat(file) is not None
    else:
        if os.path.isdir(file):
            raise UsageError(f"{option}: {file} is a folder. Give the name of a file.")
        exists = os.path.lexists(file)
    if exists and not force:
        raise UsageError(f"{option}: {file} exists already. Name another file, or replace it with --force.")


def new_page(option: str, file: str, *datasets: str, force: bool, title: str | None = None) -> Path:
    """Returns the absolute path of a page to write, checked as `page_file` and `check_free` do.

    Args:
        option: the option that names the file, for messages.
        file: path of the page.
        datasets: datasets that must not contain it.
        force: whether any file may be replaced.
        title: a pattern for the titles of the command's pages; a page with such a title is replaced without `force`.
    """
    # Pictures and charts, which commands without a page do not need.
    from shardwright.report.page import page_file

    target = page_file(file, option, *datasets)
    own = title is not None and re.match(_HEAD.format(title), _start_of(target, _HEAD_BYTES)) is not None
    check_free(option, file, force=force or own)
    return target


def compiled_pipeline(file: str) -> str | None:
    """Returns the name of the pipeline in a file that `shardwright compile` wrote; `None` for any other file."""
    text = _start_of(Path(file), _DOCUMENT_BYTES)
    match = _PIPELINE.search(text) if _OUR_COMMAND in text else None
    return match[1].strip() if match else None


def _start_of(file: Path, size: int) -> str:
    """Returns the beginning of a file as text; an empty text for a link, and if it cannot be read."""
    try:
        return "" if file.is_symlink() else read_start(str(file), size).decode("utf-8", "replace")
    except OSError:
        return ""


def write(file: str, data: bytes, option: str = "--out") -> None:
    """Writes the file that an option names.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        write_bytes(Path(file), data)
    except OSError as error:
        raise unwritable(f"{option}: {file}", error, "Check the path.") from None
