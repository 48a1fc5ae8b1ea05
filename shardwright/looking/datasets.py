"""A dataset, or its manifest, at a glance."""

from __future__ import annotations

from shardwright.dataset import Dataset
from shardwright.errors import ShardwrightError
from shardwright.looking.examples import examples_of
from shardwright.looking.html import box, class_names, gallery, line, rows
from shardwright.manifest import Manifest
from shardwright.report.histograms import number, size_text
from shardwright.report.markup import shown

_PICTURES = 4


def manifest_html(manifest: Manifest) -> str:
    """What a dataset says of itself: task, classes, splits, what was not written."""
    totals = manifest.totals
    written = sum(shard.records for shard in manifest.shards)
    left = [f"{number(totals[status])} {status}" for status in ("rejected", "duplicate") if totals.get(status)]
    body = []
    for split in manifest.splits:
        shards = [shard for shard in manifest.shards if shard.split == split]
        images, size = sum(shard.records for shard in shards), sum(shard.bytes for shard in shards)
        body.append((shown(split), number(images), number(len(shards)), size_text(size)))
    return box(
        f"{number(written)} images for {manifest.task}",
        line(class_names(range(len(manifest.classes)), manifest.classes)),
        rows(("split", "images", "shards", "size"), body),
        soft=", ".join([f"{manifest.kind}, fingerprint {manifest.fingerprint[:12]}", *left]),
    )


def dataset_html(dataset: Dataset) -> str:
    """The same with the first images of its largest split; the order in a split is that of a hash."""
    try:
        pictures = gallery(example.small_html() for example in examples_of(dataset, None, _PICTURES))
    except ShardwrightError as error:
        pictures = line(f"<b>Its images cannot be shown:</b> {shown(str(error), 400)}")
    return manifest_html(dataset.manifest) + pictures
