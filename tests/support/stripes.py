"""Shared by the end-to-end tests of classifiers: pictures that are easy to tell apart, and what trains on them."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

ACROSS, ALONG = "across", "along"


def stripes(rng: np.random.Generator, name: str) -> npt.NDArray[np.uint8]:
    """A picture of stripes along or across, of any colour and phase."""
    wave = np.sin(np.arange(48) / rng.uniform(1.0, 2.0) + rng.uniform(0, 6)) * 80 + 128
    pixels = np.tile(wave, (48, 1)) if name == ALONG else np.tile(wave, (48, 1)).T
    noisy = pixels[..., None] * rng.uniform(0.6, 1.0, 3) + rng.normal(0, 10, (48, 48, 3))
    return noisy.clip(0, 255).astype(np.uint8)


def write_config(folder: Path, images: str, **further: Any) -> None:
    """Writes `stripes.yaml`: a classifier of some sixty of them."""
    config = {
        "name": "stripes",
        "task": "classification",
        "input": {"images": images},
        "split": {"train": 0.6, "eval": 0.2, "test": 0.2},
        "transform": {"size": [32, 32], "encoding": "png"},
        "trainer": {"epochs": 8, "batch_size": 8, "width": 8, "learning_rate": 0.003},
        "evaluator": {"min_accuracy": 0.75},
        **further,
    }
    (folder / "stripes.yaml").write_text(yaml.safe_dump(config))
