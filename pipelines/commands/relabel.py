"""`shardwright relabel`: gives stored images new annotations."""

from __future__ import annotations

import csv
import shlex
from argparse import Namespace
from contextlib import suppress

from shardwright.config.input import LabelsConfig, RleConfig
from shardwright.dataset.reader import ImageDataset
from shardwright.edit.diff_datasets import find_differences
from shardwright.edit.relabel_dataset import relabel
from shardwright.errors import ShardwrightError, UsageError
from shardwright.pipelines.commands.results import dataset_row, finish, rejected_lines
from shardwright.pipelines.reviewing import RANKING_HEADER
from shardwright.running.progress import counted, print_note
from shardwright.staging.commit import is_committed
from shardwright.storage import open_table
from shardwright.storage.limits import bounded_lines


def run(options: Namespace) -> int:
    """Writes a dataset of the same images with other annotations."""
    first: list[str] = []
    with suppress(OSError, ValueError, csv.Error, ShardwrightError), open_table(options.labels) as file:
        first = next(csv.reader(bounded_lines(file)), [])
    if tuple(first) == RANKING_HEADER:
        raise UsageError(
            f"{options.labels}: is the ranking of a review, which corrects nothing. Mark the images in its page, "
            "review.html, and give the corrections that the page saves."
        )
    columns = {}
    for text in options.column:
        role, equals, header = text.partition("=")
        if not (role and equals and header):
            raise UsageError(f"--column {text}: is not ROLE=HEADER. Write, for example, --column image=photo.")
        columns[role] = header
    # The section refuses options of other formats.
    read_as = LabelsConfig(
        format=options.format,
        path=options.labels,
        columns=columns,
        rle=RleConfig(options.encoding, options.order, options.start),
        key_regex=options.key_regex,
        confirmed=tuple(options.confirmed),
    )
    existed = is_committed(options.out)
    dataset = ImageDataset.open(options.dataset)
    manifest, notes = relabel(
        dataset,
        options.labels,
        options.out,
        read_as=read_as,
        unlisted=options.unlisted_images,
        quiet=options.json,
    )
    for note in notes:
        print_note(note)
    totals = manifest.totals
    again = "; it was there already" if existed else ""
    changed = find_differences(dataset, ImageDataset.open(options.out)).annotated
    return finish(
        options,
        {**dataset_row(options.out, manifest), "changed": changed, "existed": existed, "notes": list(notes)},
        f"{options.out}: {counted(totals['written'], 'image')} written, {changed:,} with other annotations than "
        f"before, {totals['rejected']:,} rejected{again}",
        *rejected_lines(options.out, manifest),
        following=shlex.join(["shardwright", "diff", options.dataset, options.out]),
    )
