"""`shards`, `features`, `rejects`: the files of a dataset, its stored features, and how many inputs may be rejected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.options import BYTES, Section, option

DEFAULT_TEMPLATE = "data-{index:05d}-of-{of:05d}.tfrecord"
_PLACEHOLDERS = ("split", "index", "of", "count")
_FIELD = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")
_WIDTH = re.compile(r"0?[1-9]?d")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9_]*")
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\*?\[\]{}]")
# File systems allow 255 bytes, of which the name of a temporary file in the same folder takes 40.
_LONGEST = 200
TF_VISION, TFDS, KAGGLE_FLOWERS, RLE_TEXT = "tf_vision", "tfds", "kaggle_flowers", "rle_text"
PRESETS = (TF_VISION, TFDS, KAGGLE_FLOWERS, RLE_TEXT)
# Each is a file, or more, even where there are fewer records.
_MOST_SHARDS = 1_000_000


class PatternError(ValueError):
    """A pattern names no files, or not every shard differently."""


def check_pattern(pattern: str) -> None:
    """Checks a pattern of shard names: `{split}`, `{index}`, `{of}`, `{count}`, perhaps with a width, and an extension.

    Raises:
        PatternError: two shards could get the same name, or it is not a plain file name, or it ends with .gz: readers
            would take the file for compressed.
    """
    literals = _FIELD.split(pattern)[0::3]
    fields = _FIELD.findall(pattern)
    for name, form in fields:
        if name not in _PLACEHOLDERS:
            raise PatternError(f"{{{name}}} is not one of {', '.join(f'{{{known}}}' for known in _PLACEHOLDERS)}")
        if form and (name == "split" or not _WIDTH.fullmatch(form)):
            raise PatternError(f"{{{name}:{form}}} is not a width; write for example {{index:05d}}")
    if "index" not in [name for name, _ in fields]:
        raise PatternError("without {index} every shard has the same name")
    for text in literals:
        if character := _NOT_IN_NAMES.search(text):
            raise PatternError(f"{character[0]!r} cannot be in a file's name")
    # Else {count}{index} would be 123 for 1 and 23 as well as for 12 and 3. Split and number of shards do not vary
    # within a folder; a letter and a digit replace them here.
    constant = _FIELD.sub(lambda field: {"split": "a", "of": "0"}.get(field[1], field[0]), pattern)
    if any(text == "" or text.isdigit() for text in _FIELD.split(constant)[3:-1:3]):
        raise PatternError("between {index} and {count} must be something that is not a digit")
    if pattern[:1] in (".", "_"):
        raise PatternError("readers pass over names that begin with . or _")
    if not _EXTENSION.fullmatch(re.sub(r".*(?=\.)", "", literals[-1])):
        raise PatternError("it needs an extension, for example .tfrecord")
    if pattern.lower().endswith(".gz"):
        raise PatternError("shards are not compressed, and readers take .gz for compressed")
    if len(pattern.format(split="", index=99_999, of=99_999, count=10**9).encode("utf-8")) > _LONGEST:
        raise PatternError(f"the names are longer than {_LONGEST} bytes")


@dataclass(frozen=True)
class ShardsConfig(Section):
    """Number and names of the shards of a split: by one of `target_size`, `count` and `records`."""

    PATH: ClassVar[str] = "shards"

    target_size: int | None = option(None, least=1, form=BYTES, help="Approximate size of a shard; 150 MB by default.")
    count: int | None = option(None, least=1, most=_MOST_SHARDS, help="Number of shards of a split.")
    records: int | None = option(None, least=1, help="Records of a shard.")
    hosts: int | None = option(
        None,
        least=1,
        help="Number of machines that read the dataset: each gets at least ten shards if there is enough data.",
    )
    balance: str = option(
        "none",
        choices=("none", "class"),
        help="`class` spreads every class (of masks: every set of classes) evenly over the shards.",
    )
    filename_template: str = option(
        DEFAULT_TEMPLATE, help="Names of the files, with `{split}`, `{index}` from 0, `{of}` shards, `{count}` records."
    )

    def check(self, path: str) -> None:
        """Refuses two numbers of shards, hosts beside one, and names that would not tell the shards apart."""
        super().check(path)
        sizes = {"target_size": self.target_size, "count": self.count, "records": self.records}
        stated = {name: value for name, value in sizes.items() if value is not None}
        if len(stated) > 1:
            raise self.error("", f"{' and '.join(stated)} exclude each other", "Give one of them.")
        if not stated:
            object.__setattr__(self, "target_size", 150_000_000)
        if self.hosts is not None and self.target_size is None:
            problem = f"has no effect, since shards.{' '.join(stated)} sets the number of shards"
            raise self.error("hosts", problem)
        try:
            check_pattern(self.filename_template)
        except PatternError as error:
            raise self.error(
                "filename_template", f"{self.filename_template!r}: {error}", f"The default is {DEFAULT_TEMPLATE}."
            ) from None


@dataclass(frozen=True)
class FeaturesConfig(Section):
    """Names and forms of the stored features."""

    PATH: ClassVar[str] = "features"

    preset: str = option(TF_VISION, choices=PRESETS, help="Names and forms that other readers expect.")
    map: Mapping[str, str] = option(factory=dict, help="Feature -> another name to store it under.")

    def check(self, path: str) -> None:
        """Refuses names that no feature can have."""
        super().check(path)
        for ours, theirs in self.map.items():
            if not theirs or any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in theirs):
                raise self.error(f"map.{ours}", f"{theirs!r} is not a name", "Write the name to store it under.")

    @property
    def ours(self) -> bool:
        """True if features have our own names and forms, which the pipeline needs."""
        return self == FeaturesConfig()


@dataclass(frozen=True)
class RejectsConfig(Section):
    """How many inputs may be rejected before the run fails.

    Images that `input.unlisted_images: reject` leaves out are not counted.
    """

    PATH: ClassVar[str] = "rejects"

    max_fraction: float = option(
        0.01,
        least=0,
        most=1,
        help="Share of the inputs that may be rejected, rounded down.",
    )
