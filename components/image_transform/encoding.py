"""`transform.encoding: auto`: raw pixel values where all of them stay in memory, and JPEG otherwise.

An image that is stored as pixel values needs no decoding, but several times the bytes. It gives more images a second
only if its bytes arrive faster than a JPEG is decoded. A core decodes `DECODED` bytes of pixels a second of images of
any size, and no bucket and few disks deliver so much for every core. The memory of a machine does: after the
first epoch a dataset of at most `IN_MEMORY` bytes is read from there.

The choice depends on the images and their size only, never on the machine, so equal inputs give equal datasets.
`shardwright bench loader` measures the same on a machine of yours.
"""

from __future__ import annotations

from dataclasses import replace

from shardwright.config import TransformConfig
from shardwright.config.transform import AUTO, DECODED_PRESETS
from shardwright.dataset.manifest import Manifest

IN_MEMORY = 4_000_000_000
# `python -m benchmarks loader`: 2,418 images of 350x525 a second on two cores.
DECODED = 670_000_000
_CHANNELS = 3


def choose_encoding(recipe: TransformConfig, images: int) -> tuple[str, str]:
    """Chooses an encoding for `auto`.

    Args:
        recipe: the options of the transform.
        images: the number of images of all splits.

    Returns:
        The encoding, and the reason for the log.
    """
    if recipe.size is None:
        return "jpeg", f"transform.resize: {recipe.resize} leaves images of several sizes"
    if recipe.preset in DECODED_PRESETS:
        return "jpeg", f"readers of transform.preset: {recipe.preset} decode it"
    height, width = recipe.size
    size = images * height * width * _CHANNELS
    counted = f"{images:,} images of {height}x{width} take {_gigabytes(size)} as pixel values"
    if size <= IN_MEMORY:
        return "raw", f"{counted}, at most {_gigabytes(IN_MEMORY)}: they stay in memory, and none is decoded"
    rate = f"more images a second only from {_gigabytes(DECODED)}/s of reading for each core"
    return "jpeg", f"{counted}, more than {_gigabytes(IN_MEMORY)}, and these give {rate}"


def resolve_encoding(recipe: TransformConfig, manifest: Manifest) -> tuple[TransformConfig, str]:
    """Returns a recipe with the encoding that `auto` means for a dataset, and a note with the reason.

    A recipe that states the encoding is returned as it is, without a note.
    """
    if recipe.encoding != AUTO:
        return recipe, ""
    images = manifest.records
    encoding, reason = choose_encoding(recipe, images)
    stored = sum(shard.bytes for shard in manifest.shards) / max(1, images)
    note = f"transform.encoding: {encoding}, since {reason} (now {stored / 1e3:,.1f} KB an image on the disk)"
    return replace(recipe, encoding=encoding).effective(manifest.task), note


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
