"""What an ingest did to pixels, told by its recipe; what serves repeats it, so what cannot be repeated is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardwright.config.images import ImagesConfig
from shardwright.errors import ConfigError

# Any of them may store other pixels than the file's.
_STEPS = ("orientation", "resize", "reencode", "convert")
_OPTIONS = (*_STEPS, "size", "quality", "optimize", "chroma")
_NOT_WRITTEN = 422


def ingested_options(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The options that tell what was done to pixels; empty where files are stored as they came.

    Args:
        recipe: of an ingested dataset, or a mapping with a section `images`.

    Raises:
        ConfigError: what serves cannot do the same.
    """
    given = recipe.get("images", {})
    plain = ImagesConfig()
    found = {name: given[name] for name in _OPTIONS if name in given and given[name] != getattr(plain, name)}
    if not set(_STEPS) & set(found):
        return {}
    # Without `reencode` a JPEG that is turned or resized becomes a JPEG again.
    moved = "orientation" in found or "resize" in found
    encoded = found.get("reencode") or ("jpeg" if moved else found.get("convert"))
    if found.get("chroma") == _NOT_WRITTEN and encoded == "jpeg":
        raise ConfigError(
            "images.chroma",
            f"{_NOT_WRITTEN}, and what serves does to images what the ingest did, but TensorFlow's encode_jpeg writes "
            "444 and 420 only",
            "Use one of these, or images.reencode: png; transform.chroma may be 422.",
        )
    return found
