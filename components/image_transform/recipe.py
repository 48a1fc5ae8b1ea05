"""The options of a transform, for the pipeline, the manifest and the writer."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shardwright.config import Config
from shardwright.config.dataset import TF_VISION
from shardwright.config.transform import INDEX, RLE, TextConfig
from shardwright.fingerprint import canonical_json

# Raised whenever the same options give other bytes, so that caches drop the old ones.
CODE_VERSION = 2


@dataclass(frozen=True)
class TransformRecipe:
    """Options that change the bytes of a transformed dataset.

    Attributes:
        size: height and width of the images; `None` keeps theirs.
        resize: a policy of `geometry.plan_geometry`, or `keep`.
        encoding: encoding of the pixels, see `shardwright.dataset.image_encoding`.
        quality: JPEG quality; `None` for other encodings.
        optimize: smaller JPEG and PNG files, encoded more slowly.
        chroma: chroma samples of a JPEG.
        masks: `rle` or `png`.
        labels: `index`, `one_hot` or `multi_hot`.
        preset: names and forms of the stored features, see `shardwright.dataset.features`.
        text: column -> its text options.
    """

    size: tuple[int, int] | None
    resize: str
    encoding: str
    quality: int | None = None
    optimize: bool = False
    chroma: int = 420
    masks: str = RLE
    labels: str = INDEX
    preset: str = TF_VISION
    text: Mapping[str, TextConfig] = field(default_factory=dict)

    @staticmethod
    def of(config: Config) -> TransformRecipe:
        """Returns the recipe of a configuration; options without effect have their default."""
        given = config.transform
        jpeg = given.encoding == "jpeg"
        return TransformRecipe(
            size=given.size,
            resize=given.resize,
            encoding=given.encoding,
            quality=given.quality if jpeg else None,
            optimize=given.optimize and given.encoding in ("jpeg", "png"),
            chroma=given.chroma if jpeg else 420,
            masks=given.masks if config.task == "segmentation" else RLE,
            labels=given.labels,
            preset=given.preset,
            text=given.text,
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for the manifest, without later options that have their default."""
        plain: dict[str, Any] = {
            "code": CODE_VERSION,
            "size": None if self.size is None else list(self.size),
            "resize": self.resize,
            "encoding": self.encoding,
            "quality": self.quality,
        }
        for option in dataclasses.fields(self):
            value = getattr(self, option.name)
            if option.name not in plain and option.name not in ("preset", "text") and value != option.default:
                plain[option.name] = value
        if self.preset != TF_VISION:
            # In the same place as in an ingested dataset.
            plain["features"] = {"preset": self.preset}
        if self.text:
            plain["text"] = {column: dataclasses.asdict(text) for column, text in self.text.items()}
        return plain

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> TransformRecipe:
        """Reads the form of `to_dict`.

        Raises:
            ValueError: another version of the code wrote it.
        """
        values = dict(plain)
        code = values.pop("code")
        if code != CODE_VERSION:
            raise ValueError(f"recipe of code version {code}, this is {CODE_VERSION}; compile the pipeline again")
        size = values.pop("size")
        preset = values.pop("features", {"preset": TF_VISION})["preset"]
        text = {column: TextConfig(**options) for column, options in values.pop("text", {}).items()}
        return TransformRecipe(**values, size=None if size is None else (size[0], size[1]), preset=preset, text=text)


def transform_recipe(config: Config) -> str:
    """Returns the exec property `recipe` of ImageTransform: canonical JSON of its options."""
    return canonical_json({**TransformRecipe.of(config).to_dict(), "max_rejects": config.rejects.max})


def read_recipe(text: str) -> tuple[TransformRecipe, float]:
    """Reads the result of `transform_recipe`: the recipe, and the share of records that may be rejected.

    Raises:
        ValueError: another version of the code wrote it.
    """
    raw = json.loads(text)
    return TransformRecipe.from_dict({name: value for name, value in raw.items() if name != "max_rejects"}), float(
        raw["max_rejects"]
    )
