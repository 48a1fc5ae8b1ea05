"""The options of a transform: what the pipeline passes on, what the manifest records, what the writer needs."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from shardwright.config import Config
from shardwright.fingerprint import canonical_json

# Raised whenever the same options make other bytes than before, so that no cache serves the old ones.
CODE_VERSION = 1


@dataclass(frozen=True)
class Recipe:
    """Options that change the bytes of a transformed dataset.

    Attributes:
        size: height and width of the images.
        resize: a policy of `geometry.plan_geometry`.
        encoding: `jpeg` or `png`.
        quality: JPEG quality; `None` for PNG.
    """

    size: tuple[int, int]
    resize: str
    encoding: str
    quality: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the manifest records them."""
        return {"code": CODE_VERSION, **dataclasses.asdict(self), "size": list(self.size)}


def transform_recipe(config: Config) -> str:
    """The exec property `recipe` of ImageTransform: canonical JSON of all it needs to know of a configuration."""
    options = config.transform
    quality = options.quality if options.encoding == "jpeg" else None
    recipe = Recipe(options.size, options.resize, options.encoding, quality)
    return canonical_json({**recipe.to_dict(), "max_rejects": config.rejects.max})


def read_recipe(text: str) -> tuple[Recipe, float]:
    """Reads what `transform_recipe` wrote: the recipe, and the share of records that may be rejected.

    Raises:
        ValueError: another version of the code wrote it.
    """
    raw = json.loads(text)
    if raw["code"] != CODE_VERSION:
        raise ValueError(f"recipe of code version {raw['code']}, this is {CODE_VERSION}; compile the pipeline anew")
    height, width = raw["size"]
    return Recipe((height, width), raw["resize"], raw["encoding"], raw["quality"]), float(raw["max_rejects"])
