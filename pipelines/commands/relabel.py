"""`shardwright relabel`: gives stored images new annotations."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, TypeAlias

from shardwright.progress import print_note

if TYPE_CHECKING:
    from shardwright.config.input import LabelsConfig

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add(commands: _Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    relabel = commands.add_parser("relabel", help="give images new annotations, without reading the images again")
    relabel.add_argument("dataset", metavar="DIR", help="a dataset")
    relabel.add_argument("labels", metavar="FILE", help="a table or COCO JSON, or its URL; as input.labels.path")
    relabel.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    relabel.add_argument("--unlisted", default="auto", metavar="WAY", help="auto (default), empty, reject or fail")
    relabel.add_argument("--format", default="auto", metavar="NAME", help="as input.labels.format (default: detected)")
    relabel.add_argument("--runs", default="auto", metavar="FORM", help="as input.labels.runs (default: detected)")
    relabel.add_argument("--order", default="auto", metavar="ORDER", help="as input.labels.order (default: detected)")
    relabel.add_argument("--base", type=int, metavar="N", help="as input.labels.base (default: detected)")
    relabel.add_argument(
        "--columns", nargs="+", default=[], metavar="ROLE=HEADER", help="as input.labels.columns, e.g. image=photo"
    )
    relabel.add_argument("--key-pattern", metavar="REGEX", help="as input.labels.key_pattern")
    relabel.add_argument("--json", action="store_true", help="print what was made as JSON")
    relabel.set_defaults(command=_relabel)


def _relabel(options: argparse.Namespace) -> int:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.edit.relabel import relabel
    from shardwright.staging.commit import is_committed

    existed = is_committed(options.out)
    dataset = ImageDataset.open(options.dataset)
    manifest, notes = relabel(
        dataset,
        options.labels,
        options.out,
        read_as=_label_options(options),
        unlisted=options.unlisted,
        quiet=options.json,
    )
    if options.json:
        row = {"dataset": options.out, "existed": existed, "fingerprint": manifest.fingerprint}
        row |= {"totals": dict(manifest.totals), "notes": list(notes)}
        print(json.dumps(row, indent=1, sort_keys=True, ensure_ascii=False))
        return 0
    for note in notes:
        print_note(note)
    totals = manifest.totals
    again = "; it was there already" if existed else ""
    print(f"{options.out}: {totals['written']} images relabelled, {totals['rejected']} rejected{again}")
    return 0


def _label_options(options: argparse.Namespace) -> LabelsConfig:
    """Returns the call's options of the file's format as a section `input.labels`."""
    from shardwright.config.input import LabelsConfig
    from shardwright.errors import UsageError

    columns = {}
    for text in options.columns:
        role, equals, header = text.partition("=")
        if not (role and equals and header):
            raise UsageError(f"--columns: {text!r} is not ROLE=HEADER. Write e.g. image=photo mask=rle.")
        columns[role] = header
    # The section refuses these options without a path.
    return LabelsConfig(
        format=options.format,
        path=options.labels,
        columns=columns,
        runs=options.runs,
        order=options.order,
        base=options.base,
        key_pattern=options.key_pattern,
    )
