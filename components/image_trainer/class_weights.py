"""Weights of classes in the loss, from how often the transform saw them in the train split."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

# A class that a split hardly shows must not outweigh all others.
_MOST = 10.0


def balanced_weights(task: str, statistics: Mapping[str, Any], classes: Sequence[str]) -> tuple[float, ...]:
    """Weights that fall with the frequency of a class; their mean is 1.

    Labels count by the images that show them, masks by the square root of the pixels they cover: a class of a
    hundredth of the pixels then weighs ten times, not a hundred times, as much as one of all of them.

    Args:
        task: `segmentation` or `classification`.
        statistics: `loader.dataset_statistics`: `class_frequency` and `pixel_frequency` by class name, 0 to 1.
        classes: names in the order of the model's outputs.

    Returns:
        A weight per class; none is more than ten times the smallest. A class that was never seen weighs as much as the
        rarest one.
    """
    masks = task == "segmentation"
    shares = [float(statistics["pixel_frequency" if masks else "class_frequency"].get(name, 0.0)) for name in classes]
    raw = [1 / (math.sqrt(share) if masks else share) if share > 0 else math.inf for share in shares]
    finite = [w for w in raw if math.isfinite(w)] or [1.0]
    weights = [min(w, max(finite), _MOST * min(finite)) for w in raw]
    mean = sum(weights) / len(weights)
    return tuple(w / mean for w in weights)
