"""`transform`: the images, masks, labels and texts that a model is trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from shardwright.config.dataset import KAGGLE_FLOWERS, PRESETS, TF_VISION, TFDS
from shardwright.config.parsing import at_least, between, one_of
from shardwright.errors import ConfigError

KEEP = "keep"
RESIZE_POLICIES = ("stretch", "fill_crop", "letterbox", KEEP)
ENCODINGS = ("jpeg", "png", "tensor", "raw")
AUTO = "auto"
# Presets whose readers decode JPEG and PNG only.
DECODED_PRESETS = (TFDS, KAGGLE_FLOWERS)
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

    Attributes:
        vocabulary: Number of the most frequent words of the split train.
        output: `counts` stores words sparsely, `dense` as one number for each of them, `ids` in their order: 0 pads up
            to `length`, 1 is any other word, 2 the most frequent one.
        length: Number of words of `output: ids`.
    """

    PATH: ClassVar[str] = "transform.text"

    vocabulary: int = field(default=1000, metadata={"always": True})
    output: str = field(default=COUNTS, metadata={"always": True})
    length: int | None = field(default=None, metadata={"always": True})

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
    """The pixels, masks, labels and texts that a model is trained on.

    Attributes:
        size: `[height, width]` of all images; by default [352, 544].
        resize: How images are brought to `size`; with `keep` they keep theirs.
        encoding: Encoding of the stored pixels; `auto` means `raw` where all images together take at most 4 GB so, and
            `jpeg` otherwise. The log has the reason.
        quality: JPEG quality.
        optimize: Makes JPEG and PNG files smaller, which takes longer to encode.
        chroma: Chroma samples of JPEG files.
        masks: Masks as run lengths (`rle`), or as a PNG of 0 and 1 for each class.
        labels: `one_hot` or `multi_hot` adds a number for each class to the index.
        preset: Names and forms of features that other readers expect.
        text: Column of texts -> its options.
    """

    PATH: ClassVar[str] = "transform"

    size: tuple[int, int] | None = field(default=None, metadata={"always": True})
    resize: str = field(default="stretch", metadata={"always": True})
    encoding: str = field(default="jpeg", metadata={"always": True})
    quality: int = field(default=90, metadata={"always": True})
    optimize: bool = False
    chroma: int = 420
    masks: str = RLE
    labels: str = INDEX
    preset: str = field(default=TF_VISION, metadata={"written_as": "features.preset"})
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
        one_of("transform.encoding", self.encoding, (*ENCODINGS, AUTO))
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
                "Remove transform.masks or transform.preset.",
            )
        if self.preset in DECODED_PRESETS and self.encoding not in ("jpeg", "png", AUTO):
            raise ConfigError(
                "transform.preset",
                f"readers of {self.preset} decode JPEG and PNG, and transform.encoding is {self.encoding}",
                "Use another preset, or encoding: jpeg or png.",
            )

    def effective(self, task: str) -> TransformConfig:
        """Returns the section with its options without effect reset, such as the quality of a PNG.

        Args:
            task: `segmentation` or `classification`.
        """
        jpeg = self.encoding in ("jpeg", AUTO)
        return replace(
            self,
            quality=self.quality if jpeg else TransformConfig.quality,
            optimize=self.optimize and (jpeg or self.encoding == "png"),
            chroma=self.chroma if jpeg else TransformConfig.chroma,
            masks=self.masks if task == "segmentation" else TransformConfig.masks,
        )
