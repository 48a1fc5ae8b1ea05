"""Splits that the input itself names: by a folder, in a column, in a list."""

from __future__ import annotations

from collections.abc import Collection

from shardwright.config.split import split_word


def split_named(text: str, names: Collection[str]) -> str | None:
    """The split that a folder, a field or a file's name means, or `None`.

    Args:
        text: `val`, `Training`, `train2017`, …; upper and lower case are the same.
        names: splits of the configuration. Their own names come first, then the usual synonyms of theirs.
    """
    folded = text.strip().lower()
    if folded in names:
        return folded
    canonical = split_word(folded)
    return canonical if canonical in names else None


def folder_split(key: str, names: Collection[str]) -> tuple[str, str] | None:
    """The first folder of a key that means a split, and that split; `None` where no folder does."""
    for folder in key.split("/")[:-1]:
        split = split_named(folder, names)
        if split is not None:
            return folder, split
    return None
