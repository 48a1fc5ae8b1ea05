"""`shardwright export`: writes a dataset back as files."""

from __future__ import annotations

import argparse
import json
from typing import TypeAlias

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add(commands: _Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    export = commands.add_parser("export", help="write a dataset back as images, masks and a CSV")
    export.add_argument("dataset", metavar="DIR", help="folder that `shardwright ingest` wrote, or its URL")
    export.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    export.add_argument("--layout", default="keys", metavar="WAY", help="keys (default) or classes: a folder for each")
    export.add_argument("--masks", default="csv", metavar="WAY", help="csv (default), png or none")
    export.add_argument(
        "--runs", default="absolute", metavar="FORM", help="absolute (default), relative, counts, compressed"
    )
    export.add_argument("--order", default="column", metavar="ORDER", help="column (default) or row")
    export.add_argument("--base", type=int, default=1, metavar="N", help="number of the first pixel, 1 (default) or 0")
    export.add_argument(
        "--table",
        default="image_label",
        metavar="COLUMNS",
        help="columns of the CSV of masks: image_label (default), image_class or image",
    )
    export.add_argument("--splits", nargs="+", default=[], metavar="NAME", help="only of these splits")
    export.add_argument("--classes", nargs="+", default=[], metavar="NAME", help="only images that have one of these")
    export.add_argument("--json", action="store_true", help="print what was written as JSON")
    export.set_defaults(command=_export)


def _export(options: argparse.Namespace) -> int:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.edit.export import ExportOptions, export
    from shardwright.progress import progress

    how = ExportOptions(
        options.layout,
        options.masks,
        options.runs,
        options.order,
        options.base,
        options.table,
        tuple(options.splits),
        tuple(options.classes),
    )
    dataset = ImageDataset.open(options.dataset)
    total = sum(shard.records for shard in dataset.manifest.shards)
    with progress(total, "writing files", quiet=options.json) as shown:
        exported = export(dataset, options.out, how, shown)
    if options.json:
        print(json.dumps(exported, indent=1, sort_keys=True, ensure_ascii=False))
    else:
        again = "; they were there already" if exported["existed"] else ""
        written = f"{exported['images']} images, {exported['rows']} rows, {exported['masks']} masks as pictures"
        print(f"{options.out}: {written}{again}")
        if exported["features"]:
            print(f"{exported['features']} images have captions, boxes or further features: they are in features.jsonl")
        if exported["left_out"]:
            print(f"not exported, since they are not text: {', '.join(exported['left_out'])}")
    return 0
