"""`transform`: the images, masks, labels and texts that a model is trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.dataset import KAGGLE_FLOWERS, PRESETS, TF_VISION, TFDS
from shardwright.config.parsing import at_least, between, one_of
from shardwright.errors import ConfigError

KEEP = "keep"
RESIZE_POLICIES = ("stretch", "fill_crop", "letterbox", KEEP)
ENCODINGS = ("jpeg", "png", "tensor", "raw")
CHROMAS = (444, 422, 420)
RLE, PNG = "rle", "png"
INDEX, ONE_HOT, MULTI_HOT = "index", "one_hot", "multi_hot"
COUNTS, IDS, DENSE = "counts", "ids", "dense"
DEFAULT_SIZE = (352, 544)
# No vocabulary needs more words, and a dense vector of more is better stored sparsely.
_MOST_WORDS = 1_000_000


@dataclass(frozen=True)
class TextConfig:
    """How a column of texts is stored: as words, in lower case, divided by all but letters, digits and apostrophes.

    `vocabulary` is the number of the most frequent words of the split train. `output: counts` stores them sparsely,
    `dense` as one number for each of them, `ids` the words in their order: 0 pads up to `length`, 1 is any other word,
    2 the most frequent one.
    """

    PATH: ClassVar[str] = "transform.text"

    vocabulary: int = 1000
    output: str = COUNTS
    length: int | None = None

    def __post_init__(self) -> None:
        between("transform.text.vocabulary", self.vocabulary, 1, _MOST_WORDS)
        one_of("transform.text.output", self.output, (COUNTS, IDS, DENSE))
        if self.length is None:
            return
        at_least("transform.text.length", self.length, 1)
        if self.output != IDS:
            raise ConfigError(
                "transform.text.length",
                f"{self.length}, but output: {self.output} has no length",
                f"Remove transform.text.length, or use output: {IDS}.",
            )


@dataclass(frozen=True)
class TransformConfig:
    """The pixels that are trained on. `size` is [height, width]; with `resize: keep` images keep theirs.

    `quality`, `optimize` and `chroma` are of JPEG (`optimize` of PNG too); `masks` stores run lengths or a PNG of 0 and
    1 a class; `labels: one_hot` or `multi_hot` adds a number for each class; `preset` selects names and forms of
    features (`shardwright.dataset.features`); `text` has the options of columns of texts, by their names.
    """

    PATH: ClassVar[str] = "transform"

    size: tuple[int, int] | None = None
    resize: str = "stretch"
    encoding: str = "jpeg"
    quality: int = 90
    optimize: bool = False
    chroma: int = 420
    masks: str = RLE
    labels: str = INDEX
    preset: str = TF_VISION
    text: Mapping[str, TextConfig] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of("transform.resize", self.resize, RESIZE_POLICIES)
        if self.resize != KEEP and self.size is None:
            object.__setattr__(self, "size", DEFAULT_SIZE)
        elif self.resize == KEEP and self.size is not None:
            raise ConfigError(
                "transform.size", f"{list(self.size)}, but transform.resize is {KEEP}", "Remove size or resize."
            )
        for side in self.size or ():
            between("transform.size", side, 8, 16384)
        one_of("transform.encoding", self.encoding, ENCODINGS)
        between("transform.quality", self.quality, 1, 100)
        if self.chroma not in CHROMAS:
            raise ConfigError("transform.chroma", f"{self.chroma!r} is not known", "Use 444, 422 or 420.")
        one_of("transform.masks", self.masks, (RLE, PNG))
        one_of("transform.labels", self.labels, (INDEX, ONE_HOT, MULTI_HOT))
        one_of("transform.preset", self.preset, PRESETS)
        if self.masks == PNG and self.preset != TF_VISION:
            raise ConfigError(
                "transform.masks",
                f"{PNG}, but transform.preset: {self.preset} has its own form",
                "Remove masks or preset.",
            )
        if self.preset in (TFDS, KAGGLE_FLOWERS) and self.encoding not in ("jpeg", "png"):
            raise ConfigError(
                "transform.preset",
                f"readers of {self.preset} decode JPEG and PNG, and transform.encoding is {self.encoding}",
                "Use another preset, or encoding: jpeg or png.",
            )
