"""The recipe of a transform, from the section `transform`, and what of an ingest's recipe has changed pixels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from shardwright.config import Config, TransformConfig
from shardwright.config.canonical import read_section, recipe_options
from shardwright.config.images import ImagesConfig
from shardwright.config.transform import AUTO
from shardwright.errors import ConfigError
from shardwright.storage.fingerprint import canonical_json

# Raised whenever the same options give other bytes, so that caches drop the old ones.
CODE_VERSION = 2
# Each of them may change pixels.
_STEPS = ("orientation", "resize", "encoding", "unsupported_formats")
_OPTIONS = (*_STEPS, "size", "quality", "optimize", "chroma")
_LIMIT = "max_pixels"
_NOT_WRITTEN = 422


def manifest_recipe(options: TransformConfig) -> dict[str, Any]:
    """Returns the recipe of a manifest: the options of `TransformConfig.effective`, as plain values."""
    recipe = {"code": CODE_VERSION, **recipe_options(options)}
    if options.encoding not in ("jpeg", AUTO):
        recipe["quality"] = None
    return recipe


def transform_recipe(config: Config) -> str:
    """Returns the exec property `recipe` of ImageTransform: canonical JSON of its options."""
    options = manifest_recipe(config.transform.effective(config.task))
    return canonical_json({**options, "max_rejects": config.rejects.max_fraction})


def read_recipe(text: str) -> tuple[TransformConfig, float]:
    """Reads the result of `transform_recipe`: the options, and the share of records that may be rejected.

    Raises:
        ValueError: another version of the code wrote it.
    """
    options = json.loads(text)
    code, max_rejects = options.pop("code"), options.pop("max_rejects")
    if options.get("quality", 0) is None:
        del options["quality"]
    if code != CODE_VERSION:
        raise ValueError(f"recipe of code version {code}, this is {CODE_VERSION}; compile the pipeline again")
    read: TransformConfig = read_section(TransformConfig, options, TransformConfig.PATH)
    return read, float(max_rejects)


def changes_pixels(options: Mapping[str, Any]) -> bool:
    """Returns whether image options make other pixels of a file; they may also be a limit alone."""
    return bool(set(_STEPS) & set(options))


def same_pixels(options: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Returns whether two results of `ingest_image_options` make the same pixels of a file."""
    one, two = ({name: value for name, value in each.items() if name != _LIMIT} for each in (options, other))
    return one == two


def ingest_image_options(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the image options that changed pixels, none if files are stored unchanged; and a limit of pixels.

    Args:
        recipe: recipe of an ingested dataset, or a mapping with a section `images`.

    Raises:
        ConfigError: serving cannot repeat an option.
    """
    given = recipe.get("images", {})
    plain = ImagesConfig()
    limit = {_LIMIT: given[_LIMIT]} if given.get(_LIMIT, plain.max_pixels) != plain.max_pixels else {}
    found = {name: given[name] for name in _OPTIONS if name in given and given[name] != getattr(plain, name)}
    if not changes_pixels(found):
        return limit
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
    return {**found, **limit}
