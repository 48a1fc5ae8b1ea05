"""`split`: which images a model learns from, and on which it is evaluated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shardwright.config.parsing import at_least, between, one_of
from shardwright.errors import ConfigError

METHODS = ("hash", "group", "stratified", "kfold", "predefined")
FAIL = "fail"
# Words for the three splits; the first of each line is ours.
_SYNONYMS = {
    "train": ("train", "training", "trn"),
    "eval": ("eval", "evaluation", "val", "valid", "validation", "dev", "development"),
    "test": ("test", "testing", "tst"),
}
_CANONICAL = {synonym: name for name, synonyms in _SYNONYMS.items() for synonym in synonyms}
# COCO names its folders train2017, val2017, test2017.
_YEAR = re.compile(r"[_-]?(?:19|20)[0-9]{2}$")
_EXAMPLE = "Write for example {train: 0.8, eval: 0.1, test: 0.1}."


@dataclass(frozen=True)
class GroupConfig:
    """The group of an image: a column of the table of labels, or the group of a regular expression on the key."""

    PATH: ClassVar[str] = "split.group"

    column: str | None = None
    pattern: str | None = None

    def __post_init__(self) -> None:
        if (self.column is None) == (self.pattern is None):
            raise ConfigError("split.group", "needs one of column and pattern", "Write e.g. {column: patient_id}.")
        if self.pattern is None:
            return
        try:
            groups = re.compile(self.pattern).groups
        except re.error as error:
            raise ConfigError(
                "split.group.pattern", f"{self.pattern!r} is not a regular expression ({error})", "Fix it."
            ) from None
        if groups != 1:
            raise ConfigError(
                "split.group.pattern", f"{self.pattern!r} has {groups} groups", "Give it one, e.g. '^([^/]+)/'."
            )


@dataclass(frozen=True)
class SplitConfig:
    """Names and shares of the splits, and how images come into them.

    `by: hash` uses a salted hash of the key; `group` one of the group's name, so that a whole group is in one split;
    `stratified` gives every class its share in every split. `kfold` makes `fold` of `folds` the split `eval` and the
    others `train`, by hash or, with `stratify`, by classes; their shares follow from that. `predefined` uses the splits
    of the input: a `column` of the table of labels, `lists` of keys in files, or the format or the folders; an image
    without a split fails the run, or goes into `rest`.

    `previous` is an earlier dataset: its images stay in their splits, and only new images are divided. `blessed` is the
    dataset of the baseline model (`shardwright.ingest.baseline`).
    """

    PATH: ClassVar[str] = "split"

    shares: Mapping[str, float] = field(default_factory=lambda: {"train": 0.8, "eval": 0.1, "test": 0.1})
    by: str = "hash"
    salt: str = ""
    group: GroupConfig | None = None
    folds: int | None = None
    fold: int | None = None
    stratify: bool = False
    column: str | None = None
    lists: Mapping[str, str] | None = None
    rest: str = FAIL
    previous: str | None = None

    def __post_init__(self) -> None:
        one_of("split.by", self.by, METHODS)
        self._check_method()
        if self.by == "kfold":
            self._share_folds()
        if not self.shares:
            raise ConfigError("split", "no splits", _EXAMPLE)
        for name, share in self.shares.items():
            _check_name(f"split.{name}", name)
            if not 0 < share <= 1:
                raise ConfigError(f"split.{name}", f"{share!r} is not a share", "Use a number above 0, at most 1.")
        total = sum(self.shares.values())
        if abs(total - 1) > 1e-6:
            raise ConfigError("split", f"the shares add up to {total:g}", "Make them add up to 1.")
        for name in self.lists or ():
            _check_name(f"split.lists.{name}", name)
        if self.rest != FAIL:
            one_of("split.rest", self.rest, (FAIL, *self.shares, *(self.lists or ())))

    @property
    def names(self) -> tuple[str, ...]:
        """All splits there can be, sorted."""
        listed = set(self.lists or self.shares)
        return tuple(sorted(listed if self.rest == FAIL else {*listed, self.rest}))

    def _check_method(self) -> None:
        for name, allowed in _METHODS_OF.items():
            value = getattr(self, name)
            if value is not None and value is not False and value != FAIL and self.by not in allowed:
                raise ConfigError(
                    f"split.{name}",
                    f"has no effect with split.by: {self.by}",
                    f"Remove split.{name}, or use split.by: {' or '.join(allowed)}.",
                )
        if self.by == "group" and self.group is None:
            raise ConfigError("split.group", "missing", "Write e.g. {column: patient_id} or {pattern: '^([^/]+)/'}.")
        if self.lists is not None and self.column is not None:
            raise ConfigError("split.lists", "split.column is given, too", "Remove split.lists or split.column.")
        if self.lists is not None and not self.lists:
            raise ConfigError(
                "split.lists", "empty", "Write e.g. {train: train.txt, eval: val.txt}, or remove split.lists."
            )
        if self.stratify and self.previous is not None:
            raise ConfigError(
                "split.previous",
                "the folds of its images in train are not known, so stratified folds cannot be continued",
                "Remove split.previous or split.stratify.",
            )

    def _share_folds(self) -> None:
        if self.folds is None or self.fold is None:
            missing = "folds" if self.folds is None else "fold"
            raise ConfigError(f"split.{missing}", "missing", "Write e.g. {by: kfold, folds: 5, fold: 0}.")
        at_least("split.folds", self.folds, 2)
        between("split.fold", self.fold, 0, self.folds - 1)
        rest = {name: share for name, share in self.shares.items() if name not in ("train", "eval")}
        left = 1 - sum(rest.values())
        if left <= 0:
            raise ConfigError("split", f"the shares leave {left:g} for the folds", "Make them add up to less than 1.")
        folds = {"train": left * (self.folds - 1) / self.folds, "eval": left / self.folds}
        object.__setattr__(self, "shares", {**folds, **rest})


# Options that only some methods take.
_METHODS_OF = {
    "group": ("group", "stratified", "kfold"),
    "folds": ("kfold",),
    "fold": ("kfold",),
    "stratify": ("kfold",),
    "column": ("predefined",),
    "lists": ("predefined",),
    "rest": ("predefined",),
}


def split_word(text: str) -> str | None:
    """Returns which of `train`, `eval` and `test` a word means, with or without a year, or `None`."""
    folded = text.strip().lower()
    return _CANONICAL.get(folded) or _CANONICAL.get(_YEAR.sub("", folded))


def _check_name(path: str, name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ConfigError(path, "not a split's name", "Use lower-case letters, digits and _.")
