"""The file that a command writes where the user asks: it replaces another one only with `--force`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def add_force(parser: argparse.ArgumentParser) -> None:
    """Adds the option that permits to replace a file."""
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def check_free(option: str, file: str, *, force: bool) -> None:
    """Refuses a path that something has already; before the work, so that nobody waits for it.

    Args:
        option: the option that names the file, for the message.
        file: path of the file to write, or its URL.
        force: whether a file that exists may be replaced.

    Raises:
        UsageError: the path is a folder, or a file that may not be replaced.
    """
    from shardwright.errors import UsageError
    from shardwright.storage import buckets, is_remote

    if is_remote(file):
        exists = not force and buckets.stat(file) is not None
    else:
        if os.path.isdir(file):
            raise UsageError(f"{option}: {file} is a folder. Give the name of a file.")
        exists = os.path.lexists(file)
    if exists and not force:
        raise UsageError(f"{option}: {file} exists already. Name another file, or replace it with --force.")


def new_page(option: str, file: str, *datasets: str, force: bool) -> Path:
    """Returns the absolute path of a page to write, checked as `page_file` and `check_free` do."""
    from shardwright.report.page import page_file

    target = page_file(file, option, *datasets)
    check_free(option, file, force=force)
    return target
