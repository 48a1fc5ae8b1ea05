"""File names of shards by a pattern, as `data-{index:05d}-of-{of:05d}.tfrecord` or `train{index:02d}-{count}.tfrec`.

A pattern names a shard by its split, its number (`index`, from 0), the number of shards (`of`) and the records that are
really in it (`count`), so a name is known only when its shard is finished.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_PATTERN = "data-{index:05d}-of-{of:05d}.tfrecord"

_PLACEHOLDERS = ("split", "index", "of", "count")
_FIELD = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")
_WIDTH = re.compile(r"0?[1-9]?d")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9_]*")
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\*?\[\]{}]")
# Of file systems: 255 bytes, of which the name of a temporary file beside takes 40.
_LONGEST = 200


class PatternError(ValueError):
    """A pattern names no files, or not every shard differently."""


@dataclass(frozen=True)
class ShardNames:
    """Names shards.

    Args:
        pattern: text with `{split}`, `{index}`, `{of}` and `{count}`, the numbers perhaps with a width (`{index:05d}`),
            and an extension.

    Raises:
        PatternError: two shards could get one name, or it is no plain file name, or it ends with .gz: readers would
            take the file for compressed.
    """

    pattern: str = DEFAULT_PATTERN

    def __post_init__(self) -> None:
        literals = _FIELD.split(self.pattern)[0::3]
        fields = _FIELD.findall(self.pattern)
        for name, form in fields:
            if name not in _PLACEHOLDERS:
                raise PatternError(f"{{{name}}} is none of {', '.join(f'{{{known}}}' for known in _PLACEHOLDERS)}")
            if form and (name == "split" or not _WIDTH.fullmatch(form)):
                raise PatternError(f"{{{name}:{form}}} is no width; write for example {{index:05d}}")
        if "index" not in [name for name, _ in fields]:
            raise PatternError("without {index} every shard has the same name")
        for text in literals:
            if found := _NOT_IN_NAMES.search(text):
                raise PatternError(f"{found[0]!r} cannot stand in a file's name")
        # Else {count}{index} would be 123 for 1 and 23 as well as for 12 and 3. Split and number of shards do not vary
        # within a folder; they stand here for the letter or the digit that they put between.
        constant = _FIELD.sub(lambda field: {"split": "a", "of": "0"}.get(field[1], field[0]), self.pattern)
        if any(text == "" or text.isdigit() for text in _FIELD.split(constant)[3:-1:3]):
            raise PatternError("between {index} and {count} must stand something that is no digit")
        if self.pattern[:1] in (".", "_"):
            raise PatternError("readers pass over names that begin with . or _")
        if not _EXTENSION.fullmatch(re.sub(r".*(?=\.)", "", literals[-1])):
            raise PatternError("it needs an extension, for example .tfrecord")
        if self.pattern.lower().endswith(".gz"):
            raise PatternError("shards are not compressed, and readers take .gz for compressed")
        if len(self.name("", 99_999, 99_999, 10**9).encode("utf-8")) > _LONGEST:
            raise PatternError(f"the names are longer than {_LONGEST} bytes")

    def name(self, split: str, index: int, of: int, count: int) -> str:
        """File name of a shard.

        Args:
            split: its split.
            index: its number, from 0.
            of: number of shards in the split.
            count: records in it.
        """
        return self.pattern.format(split=split, index=index, of=of, count=count)
