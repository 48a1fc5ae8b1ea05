"""`statistics.json`: figures of the train split, from exact sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from shardwright.components.image_transform.analyze import GraphPlan
from shardwright.components.image_transform.figures import PIXELS, RECORDS


def statistics(sums: Mapping[str, Sequence[int]], plan: GraphPlan, *, masks: bool) -> dict[str, Any]:
    """Figures of the train split from exact sums.

    Args:
        sums: `channel_sum`, `channel_square_sum`, `pixels`, `present`, `area`, `records`.
        plan: what was done.
        masks: whether images have masks.

    Returns:
        `mean` and `std` per channel (RGB, 0..255 scale, over pixels), `class_frequency` (share of the images that show
        the class), `pixel_frequency` (share of the pixels its mask covers; empty without masks), `images` (their
        number), `size` [height, width] (`None` where images of all splits differ in it), `policy`; `ingested` where the
        ingest stored other pixels than the files': by which of the options `images`.
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
