"""`shardwright export`: writes a dataset back as files."""

from __future__ import annotations

import argparse

from shardwright.label_formats import EXPORTS
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import counted


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    export = commands.add("export")
    export.add_argument("dataset", metavar="DIR", help="folder that `shardwright ingest` wrote, or its URL")
    export.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    export.add_argument(
        "--to",
        default="csv",
        choices=EXPORTS,
        help="format (default csv: images, labels.csv, features.jsonl)",
    )
    export.add_argument(
        "--layout",
        default="keys",
        choices=("keys", "classes"),
        help="paths: keys (default), or a folder for each class",
    )
    export.add_argument(
        "--masks",
        default="csv",
        choices=("csv", "png", "none", "polygons"),
        help="masks: run lengths (default), pictures or none; of coco and labelme: polygons",
    )
    export.add_argument(
        "--encoding",
        default="absolute",
        choices=("absolute", "relative", "counts", "compressed"),
        help="how run lengths are written (default absolute)",
    )
    export.add_argument(
        "--order", default="column", choices=("column", "row"), help="order of the pixels (default column)"
    )
    export.add_argument("--start", type=int, default=1, choices=(0, 1), help="number of the first pixel (default 1)")
    export.add_argument(
        "--table",
        default="image_label",
        choices=("image_label", "image_class", "image"),
        help="columns of the CSV of masks (default image_label)",
    )
    export.add_argument(
        "--raw", action="store_true", help="write names that begin like formulas into the CSV as they are"
    )
    export.add_argument("--splits", nargs="+", default=[], metavar="NAME", help="only of these splits")
    export.add_argument("--classes", nargs="+", default=[], metavar="NAME", help="only images that have one of these")
    export.add_argument("--json", action="store_true", help="print what was written as JSON")
    export.set_defaults(command=_export)


def _export(options: argparse.Namespace) -> int:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.edit.export_dataset import ExportOptions, export
    from shardwright.running.progress import progress

    how = ExportOptions(
        options.layout,
        options.masks,
        options.encoding,
        options.order,
        options.start,
        options.table,
        tuple(options.splits),
        tuple(options.classes),
        options.to,
        options.raw,
    )
    dataset = ImageDataset.open(options.dataset)
    total = sum(shard.records for shard in dataset.manifest.shards)
    with progress(total, "writing files", quiet=options.json) as shown:
        exported = export(dataset, options.out, how, shown)
    if options.json:
        print_json(exported)
    else:
        again = "; they were there already" if exported["existed"] else ""
        images = counted(exported["images"], "image")
        written = f"{images}, {counted(exported['rows'], 'row')}, {exported['masks']:,} masks as pictures"
        if options.to != "csv":
            written = f"{images}, {counted(exported['masks'], 'mask')}, {counted(exported['boxes'], 'box', 'boxes')}"
        print(f"{options.out}: {written}{again}")
        if exported.get("quoted"):
            rows = counted(exported["quoted"], "row")
            print(f"labels.csv: {rows} with a ' before a name that begins like a formula. A program needs --raw.")
        if exported["features"]:
            print(f"features.jsonl has captions, boxes or further features of {counted(exported['features'], 'image')}")
        if exported["left_out"] and options.to != "csv":
            print(f"not exported, since {options.to} cannot hold them: {', '.join(exported['left_out'])}")
        elif exported["left_out"]:
            print(f"not exported, since they are not text: {', '.join(exported['left_out'])}")
    return 0
