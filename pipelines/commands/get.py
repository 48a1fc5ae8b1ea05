"""`shardwright get`: finds a record of a dataset by its key."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from shardwright.pipelines.commands.files import add_force, check_free
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    get = commands.add("get")
    get.add_argument("dataset", metavar="DIR", help="a dataset's folder")
    get.add_argument("key", metavar="KEY", help="the image's path below the folder of images, as the ledger names it")
    get.add_argument("--out", metavar="FILE", help="write the stored image here, byte for byte")
    add_force(get)
    get.add_argument("--json", action="store_true", help="print the record as JSON")
    get.set_defaults(command=_get)


def _get(options: argparse.Namespace) -> int:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.pipelines.commands.inspect import print_record
    from shardwright.verify.describe import view_record

    found = ImageDataset.open(options.dataset).fetch(options.key)
    view = view_record(found.payload, f"{found.shard}, record {found.record}, split {found.split}")
    if options.out is not None:
        _write(options.out, found.payload, view.image, force=options.force)
    if options.json:
        place = {"key": found.key, "split": found.split, "shard": found.shard, "record": found.record}
        print_json({**place, **dataclasses.asdict(view)})
    else:
        print_record(view, found.payload)
    return 0


def _write(target: str, payload: bytes, name: str, *, force: bool) -> None:
    from shardwright.errors import DatasetError, UsageError, unwritable
    from shardwright.storage.whole_files import write_bytes
    from shardwright.tfrecords.records import find_feature

    values = find_feature(payload, name) if name else None
    if not values:
        raise DatasetError(f"{target}: not written: the record has no encoded image. Read it with `load`.")
    check_free("--out", target, force=force)
    folder = Path(target).absolute().parent
    if not folder.is_dir():
        raise UsageError(f"--out: {target} cannot be written (there is no folder {folder}). Check the path.")
    try:
        write_bytes(Path(target), bytes(values[0]))
    except OSError as error:
        raise unwritable(f"--out: {target}", error, "Check the path.") from None
