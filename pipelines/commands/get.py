"""`shardwright get`: finds a record of a dataset by its key."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from pathlib import Path

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.pipelines.commands.files import check_free, write
from shardwright.pipelines.commands.inspect import finish_record
from shardwright.tfrecords.records import find_feature
from shardwright.verify.describe import view_record


def run(options: Namespace) -> int:
    """Shows a record, and writes its image where the call asks for it."""
    record = ImageDataset.open(options.dataset).fetch(options.key)
    view = view_record(record.payload, f"{record.shard}, record {record.record}, split {record.split}")
    if options.out is not None:
        image = find_feature(record.payload, view.image) if view.image else None
        if not image:
            raise DatasetError(f"{options.out}: not written: the record has no encoded image. Read it with `load`.")
        check_free("--out", options.out, force=options.force)
        folder = Path(options.out).absolute().parent
        if not folder.is_dir():
            problem = f"{options.out} cannot be written (there is no folder {folder})"
            raise UsageError(f"--out: {problem}. Check the path.")
        write(options.out, bytes(image[0]))
    place = {"key": record.key, "split": record.split, "shard": record.shard, "record": record.record}
    return finish_record(options, {**place, **dataclasses.asdict(view)}, view, record.payload)
