"""`shardwright export`: writes a dataset back as files."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from shardwright.dataset.reader import ImageDataset
from shardwright.edit.export_dataset import ExportOptions, export
from shardwright.pipelines.commands.results import finish, reading
from shardwright.running.progress import counted


def run(options: Namespace) -> int:
    """Writes images, annotations and features."""
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
    with reading(dataset, "writing files") as shown:
        exported = export(dataset, options.out, how, shown)
    return finish(options, exported, *_lines(exported, options.out, options.to))


def _lines(exported: Mapping[str, Any], out: str, to: str) -> Iterator[str]:
    images, again = counted(exported["images"], "image"), "; they were there already" if exported["existed"] else ""
    written = f"{images}, {counted(exported['rows'], 'row')}, {exported['masks']:,} masks as pictures"
    if to != "csv":
        written = f"{images}, {counted(exported['masks'], 'mask')}, {counted(exported['boxes'], 'box', 'boxes')}"
    yield f"{out}: {written}{again}"
    if exported.get("quoted"):
        rows = counted(exported["quoted"], "row")
        yield f"labels.csv: {rows} with a ' before a name that begins like a formula. A program needs --raw."
    if exported["features"]:
        yield f"features.jsonl has captions, boxes or further features of {counted(exported['features'], 'image')}"
    if exported["left_out"]:
        why = "they are not text" if to == "csv" else f"{to} cannot hold them"
        yield f"not exported, since {why}: {', '.join(exported['left_out'])}"
