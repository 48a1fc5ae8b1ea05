"""Whether datasets can be made into one: readers take what a manifest states for all records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shardwright.config.images import ImagesConfig
from shardwright.config.shards import TF_VISION
from shardwright.config.transform import TransformConfig
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError

# Readers use these options of the recipe for all records.
_READ_OF_IMAGES = ("encoding", "orientation", "resize", "size")
_READ_OF_TRANSFORM = ("encoding", "resize", "size", "masks", "labels", "text")
_SHOWN = 3


def check_same(sources: Sequence[ImageDataset]) -> None:
    """Checks that datasets go together by their manifests.

    Raises:
        UsageError: they do not; the message names what differs.
    """
    first = sources[0]
    for source in sources[1:]:
        for name in ("kind", "task", "classes", "labels", "features", "names"):
            one, other = getattr(first.manifest, name), getattr(source.manifest, name)
            if one != other:
                difference = f"{other!r}, not {one!r}"
                if isinstance(one, Mapping):
                    names = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
                    difference = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
                differ = "are not those" if name.endswith("s") else "is not that"
                raise UsageError(
                    f"{source.root}: its {name} {differ} of {first.root}: {difference}. "
                    "Ingest both with the same configuration."
                )

        before = _read_options(first.manifest)
        for path, value in _read_options(source.manifest).items():
            if value != before[path]:
                raise UsageError(
                    f"{source.root}: its {path} is {value!r}, and that of {first.root} is {before[path]!r}. Make both "
                    "with the same configuration."
                )
        if source.manifest.recipe.get("text") and source.manifest.parent != first.manifest.parent:
            raise UsageError(
                f"{source.root}: its texts have another vocabulary than those of {first.root}. Merge the ingested "
                "datasets, then transform the result."
            )


def largest_limit(sources: Sequence[ImageDataset]) -> dict[str, Any]:
    """Returns the recipe's `images`, where another dataset than the first may have images of more pixels."""
    each = [source.manifest.recipe.get("images", {}) for source in sources]
    limits = [images.get("max_pixels", ImagesConfig.max_pixels) for images in each]
    return {} if limits[0] == max(limits) else {"images": {**each[0], "max_pixels": max(limits)}}


def _read_options(manifest: Manifest) -> dict[str, Any]:
    """Returns the options of a recipe that readers use, also those with their defaults, by their paths."""
    images, own = manifest.recipe.get("images", {}), manifest.recipe if manifest.kind == "transform" else {}
    preset = manifest.recipe.get("features", {}).get("preset", TF_VISION)
    return {
        **{f"images.{name}": images.get(name, getattr(ImagesConfig, name)) for name in _READ_OF_IMAGES},
        **{f"transform.{name}": own.get(name, getattr(TransformConfig, name, {})) for name in _READ_OF_TRANSFORM},
        "features.preset": preset,
    }
