"""The recipe of a transform: the section `transform` as a parameter of ImageTransform and in the manifest."""

from __future__ import annotations

import json
from typing import Any

from shardwright.config import Config, TransformConfig
from shardwright.config.canonical import read_section, recipe_options
from shardwright.fingerprint import canonical_json

# Raised whenever the same options give other bytes, so that caches drop the old ones.
CODE_VERSION = 2


def manifest_recipe(options: TransformConfig) -> dict[str, Any]:
    """Returns the recipe of a manifest: the options of `TransformConfig.effective`, as plain values."""
    return {"code": CODE_VERSION, **recipe_options(options)}


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
    if code != CODE_VERSION:
        raise ValueError(f"recipe of code version {code}, this is {CODE_VERSION}; compile the pipeline again")
    read: TransformConfig = read_section(TransformConfig, options, TransformConfig.PATH)
    return read, float(max_rejects)
