"""`shardwright forget`: makes a dataset without some images, and deletes or lists other copies of them."""

from __future__ import annotations

import argparse
import dataclasses
import os
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardwright.pipelines.commands.derived import add_output_options, check_keys, read_keys, write_derived
from shardwright.pipelines.commands.parsers import Commands

if TYPE_CHECKING:
    from shardwright.dataset.ledger import LedgerRow
    from shardwright.dataset.reader import ImageDataset
    from shardwright.edit.derive import Derived


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    forget = commands.add("forget")
    forget.add_argument("dataset", metavar="DIR", help="a dataset")
    forget.add_argument("--keys", metavar="FILE", required=True, help="the keys to forget, one per line")
    forget.add_argument(
        "--staging", action="append", default=[], metavar="DIR", help="a staging folder to clear (run.staging)"
    )
    forget.add_argument(
        "--search", action="append", default=[], metavar="DIR", help="also look for what contains the images below this"
    )
    add_output_options(forget)
    forget.set_defaults(command=_forget)


def _forget(options: argparse.Namespace) -> int:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.edit.delete import contents_of
    from shardwright.errors import UsageError
    from shardwright.lineage.places import run_root_of
    from shardwright.storage import is_folder, is_remote
    from shardwright.storage.locks import run_lock
    from shardwright.storage.paths import staging_next_to

    for root in options.staging:
        # A bucket need not have anything staged. A wrong folder is reported now, not after the dataset is made.
        if not is_folder(root) and not is_remote(root):
            raise UsageError(f"--staging: {root} is not a folder. Name the one of run.staging.")
    for root in options.search:
        if not is_folder(root):
            raise UsageError(f"--search: {root} is not a folder. Name one that contains artifacts.")
    dataset = ImageDataset.open(options.dataset)
    keys = set(read_keys(options.keys))
    how = _without(dataset, keys, options.keys)
    roots = [staging_next_to(dataset.root), *options.staging]
    with ExitStack() as stack:
        run_root = run_root_of(dataset.root)
        if run_root is not None:
            stack.enter_context(run_lock(Path(run_root)))
            roots.append(os.path.join(run_root, "staging"))
        contents = contents_of(dataset, keys)

        def more_output() -> tuple[dict[str, Any], list[str]]:
            return _delete_copies(dataset, keys, contents, roots, options)

        return write_derived([dataset], how, options, more_output)


def _without(dataset: ImageDataset, keys: set[str], file: str) -> Derived:
    from shardwright.edit.derive import Derived
    from shardwright.fingerprint import fingerprint

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
    dataset: ImageDataset, keys: set[str], contents: set[bytes], roots: list[str], options: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """Deletes staged copies and measurements of the images; returns these and what still contains the images."""
    from shardwright.display.html import plain
    from shardwright.edit.delete import copies_in, datasets_containing, delete_probe_rows, shown_in, trained_on
    from shardwright.lineage.ancestry import Family
    from shardwright.lineage.places import known_places
    from shardwright.staging.staged import clear

    staged = [name for root in roots for name in clear(root)]
    rows = sum(delete_probe_rows(root, contents) for root in roots)
    family = Family([dataset.root, *known_places(dataset.root, options.search)])
    found, damaged = datasets_containing(family, keys, contents)
    copies = list(copies_in(dataset, keys, contents)) if contents else []
    held, models = [one.place for one in found], [one.place for one in trained_on(family, found)]
    shown = shown_in(family, found)
    remains = {"held_by": held, "models": models, "shown_in": shown, "probe_rows": rows, "staged": staged}
    remains |= {"other_keys": copies, "unreadable": damaged}
    lines = [f"  {rows} rows of image measurements and {len(staged)} staged folders were deleted"]
    lines += [plain(f"  the same file is also {key}: add it to the keys", 1000) for key in copies]
    lines += [plain(f"  cannot be read, so it may contain them: {place}", 1000) for place in damaged]
    lines += [plain(f"  still in {place}: delete that dataset", 1000) for place in held]
    lines += [plain(f"  trained on them: {place}", 1000) for place in models]
    lines += [plain(f"  may show them: {place}", 1000) for place in shown]
    return remains, lines
