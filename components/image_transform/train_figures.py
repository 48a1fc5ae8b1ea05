"""The figures of the train split, `statistics.json`, from the exact sums of its shards."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from shardwright.components.image_transform.shard_figures import PIXELS, RECORDS, one_size, read_sums, sums_file
from shardwright.components.image_transform.text import Text
from shardwright.components.image_transform.transform_plan import TRAIN, TransformPlan
from shardwright.components.image_transform.transform_recipe import ingest_image_options
from shardwright.config import TransformConfig
from shardwright.dataset.ledger import REJECTED
from shardwright.dataset.manifest import MASKS
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed
from shardwright.staging.commit import completed_shards
from shardwright.staging.staging import Staging

_EXAMPLES = 3


@dataclass(frozen=True)
class GraphPlan:
    """The content of a TransformGraph.

    Attributes:
        recipe: size, policy and further options.
        classes: names in the order of their indices.
        labels: kind of labels, see `Manifest.labels`.
        size: height and width of all stored images; `None` if they differ.
        texts: feature -> transformation of its texts.
        ingested: the ingest's image options, which the graph repeats; see `as_ingested`.
    """

    recipe: TransformConfig
    classes: tuple[str, ...]
    labels: str
    size: tuple[int, int] | None
    texts: Mapping[str, Text] = field(default_factory=dict)
    ingested: Mapping[str, Any] = field(default_factory=dict)

    @property
    def widths(self) -> dict[str, int]:
        """Name -> length of each sum."""
        sums = {"channel_sum": 3, "channel_square_sum": 3, PIXELS: 1, RECORDS: 1}
        return {**sums, "present": len(self.classes), "area": len(self.classes)} if self.classes else sums


def graph_plan_of(source: ImageDataset, plan: TransformPlan, staging: Staging, texts: Mapping[str, Text]) -> GraphPlan:
    """Returns what the TransformGraph of written shards contains."""
    dataset, size = plan.dataset, plan.recipe.size
    if size is None:
        size = one_size([staging.location(sums_file(planned)) for planned in dataset.shards])
    ingested = ingest_image_options(source.manifest.recipe)
    return GraphPlan(plan.recipe, dataset.classes, str(dataset.labels), size, texts, ingested)


def exact_sums(plan: TransformPlan, staging: Staging, widths: Mapping[str, int]) -> dict[str, list[int]]:
    """Returns the sums over the train split."""
    total = {name: [0] * width for name, width in widths.items()}
    for shard in read_sums([staging.location(sums_file(planned)) for planned in plan.train]):
        for name, before in total.items():
            if name in shard.sums:  # A shard without images has none.
                total[name] = [one + other for one, other in zip(before, shard.sums[name], strict=True)]
    return total


def statistics_text(sums: Mapping[str, Sequence[int]], plan: TransformPlan, graph_plan: GraphPlan) -> str:
    """Returns the text of `statistics.json`."""
    figures = statistics(sums, graph_plan, masks=plan.dataset.labels == MASKS)
    return json.dumps(figures, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def statistics(sums: Mapping[str, Sequence[int]], plan: GraphPlan, *, masks: bool) -> dict[str, Any]:
    """Returns figures of the train split from exact sums.

    Args:
        sums: `channel_sum`, `channel_square_sum`, `pixels`, `present`, `area`, `records`.
        plan: content of the TransformGraph.
        masks: whether images have masks.

    Returns:
        `mean` and `std` per channel (RGB, 0..255 scale, over pixels), `class_frequency` (share of the images that show
        the class), `pixel_frequency` (share of the pixels its mask covers; empty without masks), `images` (their
        number), `size` [height, width] (`None` if images of any split differ in it), `policy`; `ingested`, if the
        ingest changed pixels: the image options responsible.
    """
    pixel_count, images = sums[PIXELS][0], sums[RECORDS][0]
    means = [Fraction(total, pixel_count) for total in sums["channel_sum"]]
    variances = [
        Fraction(squares, pixel_count) - mean**2
        for squares, mean in zip(sums["channel_square_sum"], means, strict=True)
    ]
    present, area = sums.get("present", ()), sums.get("area", ())
    areas = dict(zip(plan.classes, area, strict=True)) if masks else {}
    return {
        "mean": [float(mean) for mean in means],
        "std": [math.sqrt(variance) for variance in variances],
        "class_frequency": {name: n / images for name, n in zip(plan.classes, present, strict=True)},
        "pixel_frequency": {name: pixels / pixel_count for name, pixels in areas.items()},
        "images": images,
        "size": None if plan.size is None else list(plan.size),
        "policy": plan.recipe.resize,
        **({"ingested": dict(plan.ingested)} if plan.ingested else {}),
    }


def check_train(staging: Staging, plan: TransformPlan) -> None:
    """Refuses a dataset whose images of the train split were all rejected.

    Raises:
        CheckFailed: they were.
    """
    results = completed_shards(staging, plan.dataset.shards)
    if any(result.info.records for result in results if result.split == TRAIN):
        return
    rejected = [row for row in map(json.loads, staging.ledger_lines(plan.train)) if row["status"] == REJECTED]
    shown = "".join(f"\n  {row['key']}: {row['code']}: {row['reason']}" for row in rejected[:_EXAMPLES])
    raise CheckFailed(
        f"The split {TRAIN!r} has no image left to train on: {len(rejected)} were rejected. Fix the input or change "
        f"the split.{' The first:' if shown else ''}{shown}"
    )
