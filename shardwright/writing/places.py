"""Where an output lies: beside what it is staged, and in what it must not lie."""

from __future__ import annotations

import os

from shardwright.errors import UsageError
from shardwright.storage import is_remote


def real_place(path: str | os.PathLike[str]) -> str:
    """A path without links, or a URL without slashes at its end."""
    return str(path).rstrip("/") if is_remote(str(path)) else os.path.realpath(path)


def staging_beside(out: str | os.PathLike[str]) -> str:
    """The staging folder of an output where the configuration names none."""
    folder, name = os.path.split(real_place(out))
    return f"{folder}/.{name}.staging"


def refuse_within(out: str | os.PathLike[str], dataset: str) -> None:
    """Refuses an output inside of a dataset that it is made of.

    Raises:
        UsageError: it lies there.
    """
    if lies_within(out, dataset):
        raise UsageError(f"{out}: lies inside {dataset}, whose files are all its own. Name another folder.")


def lies_within(out: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether an output would be written somewhere below a folder."""
    return real_place(out).startswith(os.path.join(real_place(folder), ""))
