"""`shardwright forget`: makes a dataset without some images, and deletes or lists other copies of them."""

from __future__ import annotations

import dataclasses
import os
from argparse import Namespace
from contextlib import ExitStack
from itertools import chain
from typing import Any

from shardwright.dataset.ledger import LedgerRow
from shardwright.dataset.reader import ImageDataset
from shardwright.display.html import plain
from shardwright.edit.delete import (
    Copies,
    contents_of,
    copies_in,
    copies_in_ledger,
    datasets_containing,
    delete_probe_rows,
    files_naming,
    shown_in,
    trained_on,
)
from shardwright.edit.derive import Derived
from shardwright.errors import UsageError
from shardwright.lineage.ancestry import Family, known_places, run_root_of
from shardwright.pipelines.commands.derived import check_keys, read_keys, write_derived
from shardwright.pipelines.runs.run_folder import STAGING, locked_run
from shardwright.staging.staged import clear
from shardwright.storage import is_folder, is_remote
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.own_names import staging_next_to

_IN_OUTPUT = "still in {}, under another key: delete that dataset, and call forget again with all keys"
_REMAINS = {
    "other_keys": "the same file is also {}: add it to the keys",
    "similar_keys": "an image that looks the same is {}: add it to the keys",
    "unknown_copies": "{} was left out as a duplicate, and the dataset does not name the image that it kept for it",
    "unreadable": "cannot be read, so it may contain them: {}",
    "held_by": "still in {}: delete that dataset",
    "models": "trained on them: {}",
    "shown_in": "may show them: {}",
    "named_in": "contains their names: {}",
}


def run(options: Namespace) -> int:
    """Makes a dataset without some images, and lists what still contains them."""
    for root in options.staging:
        # A bucket need not have anything staged. A wrong folder is reported now, not after the dataset is made.
        if not is_folder(root) and not is_remote(root):
            raise UsageError(f"--staging: {root} is not a folder. Name the one of run.staging.")
    for root in options.search:
        if not is_folder(root):
            raise UsageError(f"--search: {root} is not a folder. Name one that contains artifacts.")
    dataset = ImageDataset.open(options.dataset)
    keys = set(read_keys(options.keys))
    copies = copies_in_ledger(dataset, keys)
    how = _without(dataset, keys, options.keys)
    roots = [staging_next_to(dataset.root), *options.staging]
    with ExitStack() as stack:
        run_root = run_root_of(dataset.root)
        if run_root is not None:
            stack.enter_context(locked_run(run_root))
            roots.append(os.path.join(run_root, STAGING))
        contents = contents_of(dataset, keys | copies.same_bytes)

        def more_output() -> tuple[dict[str, Any], list[str]]:
            return _delete_copies(dataset, keys, copies, contents, roots, options)

        return write_derived([dataset], how, options, more_output)


def _without(dataset: ImageDataset, keys: set[str], file: str) -> Derived:
    written = (key for split in dataset.splits for key in dataset.keys(split))
    check_keys(file, keys, chain(written, (row.key for row in dataset.ledger())))
    # The new dataset must not reveal which they were, so its recipe has only a hash of the keys that are left.
    left = fingerprint(sorted(key for split in dataset.splits for key in dataset.keys(split) if key not in keys))

    def row(row: LedgerRow) -> LedgerRow | None:
        if row.key in keys:
            return None
        is_named = any(key in row.reason for key in keys)
        return dataclasses.replace(row, reason="concerns an image that was forgotten") if is_named else row

    return Derived("forget", {"left": left}, lambda key: key not in keys, row=row)


def _delete_copies(
    dataset: ImageDataset,
    keys: set[str],
    copies: Copies,
    contents: set[bytes],
    roots: list[str],
    options: Namespace,
) -> tuple[dict[str, Any], list[str]]:
    """Deletes staged copies and measurements of the images; returns these and what still contains the images."""
    staged = [name for root in roots for name in clear(root)]
    rows = sum(delete_probe_rows(root, contents) for root in roots)
    family = Family([dataset.root, *known_places(dataset.root, options.search)])
    others = datasets_containing(family, keys, contents)
    same = copies.same_bytes | set(copies_in(dataset, keys, contents) if contents else ())
    # The texts by which statistics may name the images: keys, checksums, names of files that no other image has.
    file_names = {key.rpartition("/")[2] for split in dataset.splits for key in dataset.keys(split) if key not in keys}
    files = {key.rpartition("/")[2] for key in keys} - file_names
    names = keys | files | {content.hex() for content in contents}
    named = [*(name.place for name in others.names), *files_naming(dataset, names, options.search)]
    remains: dict[str, Any] = {
        "held_by": [record.place for record in others.records],
        "named_in": named,
        "models": [record.place for record in trained_on(family, others.records)],
        "shown_in": shown_in(family, others.records),
        "probe_rows": rows,
        "staged": staged,
        "other_keys": sorted(same),
        "similar_keys": sorted(copies.alike),
        "unknown_copies": sorted(copies.unknown),
        "unreadable": others.damaged,
    }
    lines = [f"  {rows} rows of image measurements and {len(staged)} staged folders were deleted"]
    out = options.out if is_remote(options.out) else os.path.abspath(options.out)
    for name, text in _REMAINS.items():
        for place in remains[name]:
            shown = _IN_OUTPUT if name == "held_by" and place == out else text
            lines.append(plain(f"  {shown.format(place)}", 1000))
    return remains, lines
