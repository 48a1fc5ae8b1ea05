"""Labels in file names: `cat_0.png` is a cat, or whatever a pattern with a group `label` finds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shardwright.limited_pattern import LimitedPattern
from shardwright.sources.key_source import KeySource

# All before the last `_<number>`.
_LABEL_NUMBER = re.compile(r"(?:^|/)(?P<label>[^/]+)_[0-9]+(?:\.[^./]*)?\Z")


class FileNames(KeySource):
    """See `KeySource`.

    Args:
        pattern: `input.labels.pattern`: a regular expression with a group `label`, searched in the key; `None` for what
            stands before the last `_<number>` of the file name.
    """

    def __init__(
        self,
        keys: Sequence[str],
        skip: frozenset[int],
        classes: Mapping[str, int | None] | None,
        notes: tuple[str, ...],
        pattern: str | None,
    ) -> None:
        super().__init__(keys, skip, classes, notes)
        self._pattern = _LABEL_NUMBER if pattern is None else LimitedPattern(pattern, "input.labels.pattern")

    def _label(self, key: str) -> str:
        return _find(self._pattern, key)

    def _place(self, key: str, label: str) -> str:
        return f"{key}, in its name"

    def _unlabelled(self) -> tuple[str, str]:
        if self._pattern is _LABEL_NUMBER:
            return "no_label", "the file's name is not label_number, as cat_0.png; see input.labels.pattern"
        return "no_label", f"input.labels.pattern {self._pattern.pattern!r} finds no label in it"


def name_label(key: str) -> str:
    """What stands before the last `_<number>` of a key's file name, or an empty text."""
    return _find(_LABEL_NUMBER, key)


def _find(pattern: re.Pattern[str] | LimitedPattern, key: str) -> str:
    match = pattern.search(key)
    return (match["label"] or "") if match else ""
