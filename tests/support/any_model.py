"""Conditions under which any model is blessed: tests of what comes after train for seconds, on a few images."""

from typing import Any

BLESSES_ANY: dict[str, Any] = {
    "min_dice": 0.0,
    "min_accuracy": 0.0,
    "min_f1": 0.0,
    "min_improvement": -1.0,
    "min_images": 1,
    "min_per_class": 0,
    "allow_missing_classes": True,
    "beat_trivial": False,
}
