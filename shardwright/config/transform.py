"""`transform`: the images, masks, labels and texts that a model is trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from shardwright.config.options import Section, option
from shardwright.config.shards import KAGGLE_FLOWERS, PRESETS, TF_VISION, TFDS

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
# Of sizes chosen from the images: a U-Net halves its sides up to five times, and more pixels cost more than they give.
_STEP, _LARGEST, _LARGEST_OF_CLASSES = 32, 512, 224
# No vocabulary needs more words, and a dense vector of more is better stored sparsely.
_MOST_WORDS = 1_000_000


@dataclass(frozen=True)
class TextConfig(Section):
    """How a column of texts is stored: as words, in lower case, divided by all but letters, digits and apostrophes."""

    PATH: ClassVar[str] = "transform.text"

    vocabulary: int = option(
        1000, least=1, most=_MOST_WORDS, always=True, help="Number of the most frequent words of the split train."
    )
    output: str = option(
        COUNTS,
        choices=(COUNTS, IDS, DENSE),
        always=True,
        help="`counts` stores words sparsely, `dense` as one number for each of them, `ids` in their order: 0 pads up "
        "to `length`, 1 is any other word, 2 the most frequent one.",
    )
    length: int | None = option(None, least=1, always=True, help="Number of words of `output: ids`.")

    def check(self, path: str) -> None:
        """Refuses a length of words that are not stored in their order."""
        super().check(path)
        if self.length is not None and self.output != IDS:
            raise self.error(
                "length",
                f"{self.length}, but output: {self.output} has no length",
                f"Remove transform.text.length, or use output: {IDS}.",
            )


@dataclass(frozen=True)
class TransformConfig(Section):
    """The pixels, masks, labels and texts that a model is trained on."""

    PATH: ClassVar[str] = "transform"

    size: tuple[int, int] | None = option(
        None, least=8, most=16384, always=True, help="`[height, width]` of all images; by default [352, 544]."
    )
    resize: str = option(
        "stretch",
        choices=RESIZE_POLICIES,
        always=True,
        help="How images are brought to `size`; with `keep` they keep theirs.",
    )
    encoding: str = option(
        "jpeg",
        choices=(*ENCODINGS, AUTO),
        always=True,
        help="Encoding of the stored pixels; `auto` means `raw` where all images together take at most 4 GB so, and "
        "`jpeg` otherwise. The log has the reason.",
    )
    quality: int = option(90, least=1, most=100, always=True, help="JPEG quality.")
    optimize: bool = option(False, help="Makes JPEG and PNG files smaller, which takes longer to encode.")
    chroma: int = option(420, choices=CHROMAS, help="Chroma samples of JPEG files.")
    masks: str = option(
        RLE, choices=(RLE, PNG), help="Masks as run lengths (`rle`), or as a PNG of 0 and 1 for each class."
    )
    labels: str = option(
        INDEX,
        choices=(INDEX, ONE_HOT, MULTI_HOT),
        help="`one_hot` or `multi_hot` adds a number for each class to the index.",
    )
    preset: str = option(
        TF_VISION,
        choices=PRESETS,
        written_as="features.preset",
        help="Names and forms of features that other readers expect.",
    )
    text: Mapping[str, TextConfig] = option(factory=dict, help="Column of texts -> its options.")

    def check(self, path: str) -> None:
        """Refuses a size that has no effect, and what readers of a preset cannot decode; sets the default size."""
        super().check(path)
        if self.resize != KEEP and self.size is None:
            object.__setattr__(self, "size", DEFAULT_SIZE)
        elif self.resize == KEEP and self.size is not None:
            raise self.error("size", f"{list(self.size)}, but transform.resize is {KEEP}", "Remove size or resize.")
        if self.masks == PNG and self.preset != TF_VISION:
            raise self.error(
                "masks",
                f"{PNG}, but transform.preset: {self.preset} has its own form",
                "Remove transform.masks or transform.preset.",
            )
        if self.preset in DECODED_PRESETS and self.encoding not in ("jpeg", "png", AUTO):
            raise self.error(
                "preset",
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


def size_of_images(task: str, height: int, width: int) -> tuple[tuple[int, int], str]:
    """Returns `size` and `resize` for images of which the median has this height and width: what `init` writes.

    Masks keep the aspect of their images. Classes get a square, to which the images are cropped.
    """
    if task == "classification":
        side = _multiple(min(height, width, _LARGEST_OF_CLASSES))
        return (side, side), "fill_crop"
    scale = min(1.0, _LARGEST / max(height, width))
    return (_multiple(height * scale), _multiple(width * scale)), "stretch"


def _multiple(side: float) -> int:
    return max(_STEP, round(side / _STEP) * _STEP)
