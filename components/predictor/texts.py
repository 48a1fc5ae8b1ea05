"""What is said of the images that are predicted, for a model that reads texts: a table with a row or more an image."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

from shardwright.errors import UsageError
from shardwright.sources.tables import IMAGE, Table, choose_columns, shown_header

Texts = Mapping[str, list[bytes]]


def read_texts(path: str, columns: Iterable[str], keys: Iterable[str]) -> Texts:
    """Reads the texts of some images.

    Args:
        path: a CSV with a column that names images, by key or by file name, and a column for each of `columns`.
        columns: headers, in the order in which the model reads them.
        keys: of the images that are predicted; rows of others are passed over.

    Returns:
        Key -> a text for each column, those of several rows joined by a space; images without a row are missing.

    Raises:
        UsageError: the table cannot be read, or lacks a column.
    """
    wanted = list(columns)
    table = Table.open(path)
    missing = [name for name in wanted if name not in table.header]
    if missing:
        raise UsageError(
            f"--texts {path}: no column {missing[0]!r}, which the model reads. It has: {shown_header(table.header)}."
        )
    places = [table.header.index(name) for name in wanted]
    image = choose_columns(table, {}).get(IMAGE)
    if image is None:
        raise UsageError(
            f"--texts {path}: no column names the images. It has: {shown_header(table.header)}. Call one image."
        )
    by_name: dict[str, list[str]] = {}
    for key in keys:
        for name in {key, posixpath.basename(key)}:
            by_name.setdefault(name, []).append(key)
    found: dict[str, list[list[str]]] = {}
    for row in table.rows():
        fields = [*row.fields, *[""] * (len(table.header) - len(row.fields))]
        for key in by_name.get(fields[image].strip(), ()):
            parts = found.setdefault(key, [[] for _ in places])
            for part, place in zip(parts, places, strict=True):
                part.append(fields[place])
    return {key: [" ".join(part).encode() for part in parts] for key, parts in found.items()}
