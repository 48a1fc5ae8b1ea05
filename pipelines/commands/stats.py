"""`shardwright stats`: prints the figures of a dataset."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import counted

if TYPE_CHECKING:
    from shardwright.report.page import PageInput

_SIZES = 10


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    stats = commands.add("stats")
    stats.add_argument("dataset", metavar="DIR", help="folder that `shardwright ingest` wrote, or its URL")
    stats.add_argument("--json", action="store_true", help="print the figures as JSON")
    stats.set_defaults(command=_stats)


def _stats(options: argparse.Namespace) -> int:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.report.page import collect_page
    from shardwright.running.progress import progress

    dataset = ImageDataset.open(options.dataset)
    total = sum(shard.records for shard in dataset.manifest.shards)
    with progress(total, "reading records", quiet=options.json) as shown:
        figures = figures_of(collect_page(dataset, progress=shown))
    if options.json:
        print_json(figures)
    else:
        print("\n".join(_lines(figures)))
    return 0


def figures_of(seen: PageInput) -> dict[str, Any]:
    """Returns the figures of a dataset as plain values."""
    found, duplicates = seen
    manifest = found.dataset.manifest
    measures = {
        name: {
            "count": data.total,
            "mean": round(data.mean(), 6),
            "min": data.least,
            "max": data.most,
            "quartiles": [round(data.quantile(part), 6) for part in (0.25, 0.5, 0.75)],
        }
        for name, data in found.histograms.items()
        if data.total and not name.startswith("coverage/")
    }
    classes: dict[str, dict[str, float]] = {}
    for label, name in enumerate(manifest.classes):
        classes[name] = {split: found.class_count(label, split) for split in sorted(found.images)}
        cover = found.histograms.get(f"coverage/{label}")
        if cover is not None and cover.total:
            # Six digits, not six places: a mask of a few pixels is a very small part.
            classes[name]["mask_part"] = float(f"{cover.mean():.6g}")
    sizes = sorted((-count, size) for size, count in found.sizes.items() if size is not None)
    listed = {f"{height}x{width}": -count for count, (height, width) in sizes[:_SIZES]}
    others = {"sizes": len(sizes) - len(listed), "images": sum(found.sizes.values()) - sum(listed.values())}
    return {
        "task": manifest.task,
        "fingerprint": manifest.fingerprint,
        "totals": dict(manifest.totals),
        "images": dict(sorted(found.images.items())),
        "unlabeled": sum(found.unlabeled.values()),
        "classes": classes,
        "sizes": listed,
        "further_sizes": others,
        "formats": dict(sorted(found.formats.items())),
        "measures": measures,
        # Of how many of the images the measures of pixels are; fewer than all were chosen by a hash of their keys.
        "measured": {"images": found.measured, "of": found.total},
        "duplicates": {
            "exact_groups": duplicates.exact,
            "near_groups": duplicates.near,
            "across_splits": duplicates.leaks,
            "conflicting": duplicates.conflicts,
        },
        "bytes": sum(shard.bytes for shard in manifest.shards),
        "shards": len(manifest.shards),
    }


def of_images(measure: dict[str, Any], figures: dict[str, Any]) -> str:
    """Returns of which images a measure is."""
    of, count = sum(figures["images"].values()), measure["count"]
    return f"of {counted(of, 'image')}" if count == of else f"of {count:,} of {of:,} images, chosen by hash"


def _lines(figures: dict[str, Any]) -> list[str]:
    from shardwright.display.histograms import plain_number
    from shardwright.display.html import plain
    from shardwright.pipelines.cards import sizes_text

    splits = ", ".join(f"{plain(split)} {count}" for split, count in figures["images"].items())
    rows = [
        ("images", f"{sum(figures['images'].values())} ({splits})"),
        ("shards", f"{figures['shards']}, {figures['bytes'] / 1e6:.1f} MB"),
        ("sizes", sizes_text(figures)),
        ("formats", ", ".join(f"{plain(name)} {count}" for name, count in figures["formats"].items())),
    ]
    for name, counts in figures["classes"].items():
        images = ", ".join(f"{plain(key)} {value}" for key, value in counts.items() if key != "mask_part")
        part = f"; masks cover {100 * counts['mask_part']:.2g} % of these images" if "mask_part" in counts else ""
        rows.append((f"class {plain(name, 40)}", f"{images}{part}"))
    for name, measure in figures["measures"].items():
        low, middle, high = measure["quartiles"]
        if not math.isnan(middle):
            mean, least, most = map(plain_number, (measure["mean"], low, high))
            rows.append((name, f"mean {mean}, middle half {least} to {most}; {of_images(measure, figures)}"))
    groups = ", ".join(
        f"{name.replace('_', ' ')} {'not searched for' if value is None else value}"
        for name, value in figures["duplicates"].items()
    )
    rows.append(("duplicates", groups))
    width = max(len(label) for label, _ in rows) + 2
    return [f"{label:<{width}}{value}" for label, value in rows]
