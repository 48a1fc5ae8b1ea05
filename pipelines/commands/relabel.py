"""`shardwright relabel`: gives stored images new annotations."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from shardwright.label_formats import AUTO, FORMATS
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import dataset_row, print_json, print_rejects
from shardwright.running.progress import counted, print_note

if TYPE_CHECKING:
    from shardwright.config.input import LabelsConfig

_READ = (AUTO, *(row.name for row in FORMATS if row.relabels))


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    relabel = commands.add("relabel")
    relabel.add_argument("dataset", metavar="DIR", help="a dataset")
    relabel.add_argument("labels", metavar="FILE", help="a table or COCO JSON, or its URL; as input.labels.path")
    relabel.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    relabel.add_argument(
        "--unlisted-images", default="auto", choices=("auto", "empty", "reject", "fail"), help="images without a row"
    )
    relabel.add_argument("--format", default="auto", choices=_READ, help="as input.labels.format (default: detected)")
    relabel.add_argument(
        "--encoding",
        default="auto",
        choices=("auto", "absolute", "relative", "counts"),
        help="as input.labels.rle.encoding",
    )
    relabel.add_argument("--order", default="auto", choices=("auto", "column", "row"), help="as input.labels.rle.order")
    relabel.add_argument("--start", type=int, choices=(0, 1), help="as input.labels.rle.start (default: detected)")
    relabel.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ROLE=HEADER",
        help="as input.labels.columns, for example image=photo; may be repeated",
    )
    relabel.add_argument("--key-regex", metavar="REGEX", help="as input.labels.key_regex")
    relabel.add_argument("--json", action="store_true", help="print what was made as JSON")
    relabel.set_defaults(command=_relabel)


def _relabel(options: argparse.Namespace) -> int:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.edit.relabel_dataset import relabel
    from shardwright.staging.commit import is_committed

    existed = is_committed(options.out)
    dataset = ImageDataset.open(options.dataset)
    manifest, notes = relabel(
        dataset,
        options.labels,
        options.out,
        read_as=_label_options(options),
        unlisted=options.unlisted_images,
        quiet=options.json,
    )
    if options.json:
        print_json({**dataset_row(options.out, manifest), "existed": existed, "notes": list(notes)})
        return 0
    for note in notes:
        print_note(note)
    totals = manifest.totals
    again = "; it was there already" if existed else ""
    print(f"{options.out}: {counted(totals['written'], 'image')} relabeled, {totals['rejected']} rejected{again}")
    print_rejects(options.out, manifest)
    return 0


def _label_options(options: argparse.Namespace) -> LabelsConfig:
    """Returns the call's options of the file's format as a section `input.labels`."""
    from shardwright.config.input import LabelsConfig, RleConfig
    from shardwright.errors import UsageError

    columns = {}
    for text in options.column:
        role, equals, header = text.partition("=")
        if not (role and equals and header):
            raise UsageError(f"--column {text}: is not ROLE=HEADER. Write, for example, --column image=photo.")
        columns[role] = header
    # The section refuses these options without a path.
    return LabelsConfig(
        format=options.format,
        path=options.labels,
        columns=columns,
        rle=RleConfig(options.encoding, options.order, options.start),
        key_regex=options.key_regex,
    )
