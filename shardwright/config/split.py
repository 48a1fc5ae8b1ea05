"""`split`: which images a model learns from, and on which it is evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.limited_pattern import groups_of
from shardwright.config.options import Section, between, one_of, option
from shardwright.errors import ConfigError

AUTO, HASH, PREDEFINED = "auto", "hash", "predefined"
METHODS = (AUTO, HASH, "group", "stratified", "kfold", PREDEFINED)
FAIL = "fail"
EVAL, TEST = "eval", "test"
# Other names of `eval` in `split.ratios` and `split.from_lists`.
NAMES_OF_EVAL = ("val", "valid", "validation")
# Words for the three splits; the first of each line is ours.
_SYNONYMS = {
    "train": ("train", "training", "trn"),
    "eval": ("eval", "evaluation", "val", "valid", "validation", "dev", "development"),
    "test": ("test", "testing", "tst"),
}
_CANONICAL = {synonym: name for name, synonyms in _SYNONYMS.items() for synonym in synonyms}
# COCO names its folders train2017, val2017, test2017; sets of Kaggle have test1 and train_v2.
_NUMBER = re.compile(r"[_-]?(?:(?:19|20)[0-9]{2}|v?[0-9])$")
# Options that only some methods take.
_METHODS_OF = {
    "group": ("group", "stratified", "kfold"),
    "num_folds": ("kfold",),
    "fold_index": ("kfold",),
    "stratify": ("kfold",),
    "from_column": ("predefined",),
    "from_lists": ("predefined",),
    "unlisted_images": ("predefined",),
}
_EXAMPLE = "Write for example ratios: {train: 0.8, eval: 0.1, test: 0.1}."


@dataclass(frozen=True)
class GroupConfig(Section):
    """The group of an image: all images of a group are in one split. Give one of the two."""

    PATH: ClassVar[str] = "split.group"

    column: str | None = option(None, help="Column of the table of labels.")
    regex: str | None = option(None, help="Regular expression on the key, with one group.")

    def check(self, path: str) -> None:
        """Refuses neither and both, and an expression that does not have one group."""
        super().check(path)
        if (self.column is None) == (self.regex is None):
            raise self.error("", "needs one of column and regex", "Write e.g. {column: patient_id}.")
        groups = 1 if self.regex is None else groups_of("split.group.regex", self.regex)
        if groups != 1:
            raise self.error("regex", f"{self.regex!r} has {groups} groups", "Give it one, e.g. '^([^/]+)/'.")


@dataclass(frozen=True)
class SplitConfig(Section):
    """Names and shares of the splits, and how images come into them."""

    PATH: ClassVar[str] = "split"

    ratios: Mapping[str, float] = option(
        factory=lambda: {"train": 0.8, "eval": 0.1, "test": 0.1},
        help="Split -> its share, for example `{train: 0.8, eval: 0.1, test: 0.1}`. A split named `val`, `valid` or "
        "`validation` is understood as `eval`.",
    )
    method: str = option(
        AUTO,
        choices=METHODS,
        help="`auto`: the splits that the input states by folders, files or a column, where it states one for every "
        "image, and `hash` where it states none. `hash`: a salted hash of the key. `group`: one of the group's "
        "name. `stratified`: every class has its share in every split. `kfold`: of the images that `test` leaves, "
        "one fold is `eval` and the others are `train`, by hash or, with `stratify`, by classes. `predefined`: "
        "the splits of the input.",
    )
    salt: str = option("", help="Salt of the hash; another one divides the images differently.")
    group: GroupConfig | None = option(None, help="Images that must be in one split.")
    num_folds: int | None = option(None, least=2, help="Number of folds of `method: kfold`.")
    fold_index: int | None = option(None, least=0, help="The fold that is `eval`, from 0.")
    stratify: bool = option(False, help="Divides the folds by classes.")
    from_column: str | None = option(
        None, help="Column of the table of labels with the split of each image, for `method: predefined`."
    )
    from_lists: Mapping[str, str] | None = option(
        None, help="Split -> file with the keys of its images, for `method: predefined`."
    )
    unlisted_images: str = option(
        FAIL, help="Split of the images that have none in the input, for `method: predefined`; `fail` stops the run."
    )
    keep_from: str | None = option(
        None,
        help="Earlier dataset, whose images stay in their splits: only new images are divided. `blessed` is the "
        "dataset of the last pushed model.",
    )

    def check(self, path: str) -> None:
        """Refuses options that the method does not take, and shares that are none; sets what the others imply."""
        super().check(path)
        if self.method == AUTO and (self.from_column is not None or self.from_lists is not None):
            object.__setattr__(self, "method", PREDEFINED)
        self._check_method()
        if self.method == "kfold":
            if self.num_folds is None or self.fold_index is None:
                missing = "num_folds" if self.num_folds is None else "fold_index"
                raise self.error(missing, "missing", "Write e.g. {method: kfold, num_folds: 5, fold_index: 0}.")
            between("split.fold_index", self.fold_index, 0, self.num_folds - 1)
            rest = {name: share for name, share in self.ratios.items() if name not in ("train", "eval")}
            left = 1 - sum(rest.values())
            if left <= 0:
                raise self.error(
                    "ratios", f"the shares leave {left:g} for the folds", "Make them add up to less than 1."
                )
            folds = {"train": left * (self.num_folds - 1) / self.num_folds, "eval": left / self.num_folds}
            object.__setattr__(self, "ratios", {**folds, **rest})
        if not self.ratios:
            raise self.error("ratios", "no splits", _EXAMPLE)
        for name, share in self.ratios.items():
            _check_name(f"split.ratios.{name}", name)
            if not 0 < share <= 1:
                raise self.error(f"ratios.{name}", f"{share!r} is not a share", "Use a number above 0, at most 1.")
        total = sum(self.ratios.values())
        if abs(total - 1) > 1e-6:
            raise self.error("ratios", f"the shares add up to {total:g}", "Make them add up to 1.")
        for name in self.from_lists or ():
            _check_name(f"split.from_lists.{name}", name)
        if self.unlisted_images != FAIL:
            one_of("split.unlisted_images", self.unlisted_images, (FAIL, *self.ratios, *(self.from_lists or ())))

    @property
    def names(self) -> tuple[str, ...]:
        """All splits there can be, sorted."""
        listed = set(self.from_lists or self.ratios)
        return tuple(sorted(listed if self.unlisted_images == FAIL else {*listed, self.unlisted_images}))

    def _check_method(self) -> None:
        for name, allowed in _METHODS_OF.items():
            value = getattr(self, name)
            if value is not None and value is not False and value != FAIL and self.method not in allowed:
                raise self.error(
                    name,
                    f"has no effect with split.method: {self.method}",
                    f"Remove split.{name}, or use split.method: {' or '.join(allowed)}.",
                )
        if self.method == "group" and self.group is None:
            raise self.error("group", "missing", "Write e.g. {column: patient_id} or {regex: '^([^/]+)/'}.")
        if self.from_lists is not None and self.from_column is not None:
            raise self.error(
                "from_lists", "split.from_column is given, too", "Remove split.from_lists or split.from_column."
            )
        if self.from_lists is not None and not self.from_lists:
            raise self.error(
                "from_lists", "empty", "Write e.g. {train: train.txt, eval: val.txt}, or remove split.from_lists."
            )
        if self.stratify and self.keep_from is not None:
            raise self.error(
                "keep_from",
                "the folds of its images in train are not known, so stratified folds cannot be continued",
                "Remove split.keep_from or split.stratify.",
            )


def split_word(text: str) -> str | None:
    """Returns which of `train`, `eval` and `test` a word means, with or without a year or a number, or `None`."""
    folded = text.strip().lower()
    return _CANONICAL.get(folded) or _CANONICAL.get(_NUMBER.sub("", folded))


def stated_split(path: str) -> str | None:
    """Returns the split that a word of a path names, the last one first; `None` where none does."""
    words = re.findall(r"[^\W_]+", path)
    return next((split for word in reversed(words) if (split := split_word(word))), None)


def split_folders(folders: Iterable[str]) -> dict[str, str]:
    """Returns what folders mean that are called after splits: `train`, and `seg_train` next to `seg_test`."""
    meant: dict[str, str] = {}
    alike: dict[str, dict[str, str]] = {}
    for folder in set(folders):
        if split := split_word(folder):
            meant[folder] = split
        elif len(found := [word for word in re.findall(r"[^\W_]+", folder) if split_word(word)]) == 1:
            alike.setdefault(folder.replace(found[0], "*"), {})[folder] = split_word(found[0]) or ""
    for group in alike.values():
        meant |= group if "train" in group.values() and len(set(group.values())) > 1 else {}
    return meant


def _check_name(path: str, name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ConfigError(path, "not a split's name", "Use lower-case letters, digits and _.")
