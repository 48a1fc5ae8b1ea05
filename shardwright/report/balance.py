"""The splits beside each other: how large they are, and how evenly the classes are dealt within each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shardwright.report.charts import split_class
from shardwright.report.collect import Collected
from shardwright.report.histograms import number, percent, size_text
from shardwright.report.markup import card, shown, table


def evenness(counts: Sequence[int]) -> float:
    """How evenly things are dealt among kinds (Pielou, 1966: entropy by the greatest there could be).

    Args:
        counts: things of each kind.

    Returns:
        0 where all are of one kind, 1 where each kind has as many; NaN where there are no things, or one kind only.
    """
    total = sum(counts)
    if len(counts) < 2 or not total:
        return math.nan
    shares = [count / total for count in counts if count]
    # Of one kind the entropy is -0.
    return abs(sum(share * math.log(share) for share in shares)) / math.log(len(counts))


def split_order(found: Collected) -> list[str]:
    """Names of the splits, that with the most images first."""
    return sorted(found.images, key=lambda split: (-found.images[split], split))


def split_table(found: Collected) -> str:
    """A table of the splits, each in the colour that its lines have in charts."""
    labels = range(len(found.dataset.manifest.classes))
    rows = []
    for split in split_order(found):
        images = found.images[split]
        counts = [found.class_count(label, split) for label in labels]
        shards = [shard for shard in found.shards if shard.split == split]
        cells = [
            f'<span class="{split_class(split)}">{shown(split, 40)}</span>',
            number(images),
            percent(images / max(1, found.total)),
            size_text(sum(shard.bytes for shard in shards)),
            number(len(shards)),
        ]
        if labels:
            rate = f"{sum(counts) / max(1, images):.2f}"
            cells += [rate, number(found.unlabelled[split]), number(round(evenness(counts), 3))]
        rows.append(cells)
    head = [
        "Split",
        "Images",
        "Share",
        "Size",
        "Shards",
        *(("Classes an image", "No class", "Balance") if labels else ()),
    ]
    note = "Balance: 1 where all classes are equally frequent, 0 where there is one only." if len(labels) > 1 else ""
    body = table(head, rows, caption="Images of each split", numbers=range(1, len(head)))
    return card("Splits", body, note=note, wide=True)
