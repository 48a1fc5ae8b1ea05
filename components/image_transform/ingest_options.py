"""The image options of an ingest that changed pixels, which transform and serving must know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardwright.config.images import ImagesConfig
from shardwright.errors import ConfigError

# Each of them may change pixels.
_STEPS = ("orientation", "resize", "encoding", "unsupported_formats")
_OPTIONS = (*_STEPS, "size", "quality", "optimize", "chroma")
_NOT_WRITTEN = 422


def ingest_image_options(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the image options that changed pixels; none if files are stored unchanged.

    Args:
        recipe: recipe of an ingested dataset, or a mapping with a section `images`.

    Raises:
        ConfigError: serving cannot repeat an option.
    """
    given = recipe.get("images", {})
    plain = ImagesConfig()
    found = {name: given[name] for name in _OPTIONS if name in given and given[name] != getattr(plain, name)}
    if not set(_STEPS) & set(found):
        return {}
    # Without `encoding` a JPEG that is turned or resized becomes a JPEG again.
    moved = "orientation" in found or "resize" in found
    encoded = found.get("encoding") or ("jpeg" if moved else found.get("unsupported_formats"))
    if found.get("chroma") == _NOT_WRITTEN and encoded == "jpeg":
        raise ConfigError(
            "images.chroma",
            f"{_NOT_WRITTEN} cannot be served: serving repeats the encoding of the ingest, and TensorFlow's "
            "encode_jpeg writes 444 and 420 only",
            "Use one of these, or images.encoding: png; transform.chroma may be 422.",
        )
    return found
