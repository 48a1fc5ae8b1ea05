"""Whether the label fields of a table name one class or several, and what separates those: told from all of them.

`|` and `;` are in no class's name, so they separate. Commas and spaces may be. Numbers they do separate. Of words, each
must be a label by itself elsewhere (or, between commas, recur): where that is so of all fields with several words they
are lists, where it is so of none they are names, and otherwise both fit, which is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from shardwright.errors import UsageError
from shardwright.sources.classes import as_integer
from shardwright.sources.value_types import SEPARATORS, separator_name, split_list

_NEVER_IN_NAMES = ("|", ";")
_EITHER = "Set input.labels.separator: to what is between the classes, or to '' where they are names."
# At least so many images, and that share of all, have rows of several classes where that is meant: less are mistakes.
_SEVERAL, _SHARE, _DOUBTFUL = 3, 0.2, 0.05
_SHOWN = 40


class Reading(NamedTuple):
    """How label fields are read.

    Attributes:
        multi: whether an image may have any number of classes.
        separator: what is between classes in a field; empty where a field is one class.
        reason: how that was told, or empty.
        exact: whether a field of several is a list as an export writes it: order, repeats and blanks count.
    """

    multi: bool
    separator: str = ""
    reason: str = ""
    exact: bool = False

    def split(self, field: str) -> tuple[str, ...]:
        """The classes that a field names, each once unless the field is exact."""
        if self.exact:
            return tuple(field.split(self.separator)) if field else ()
        if not self.separator:
            return (field,) if field else ()
        return tuple(dict.fromkeys(split_labels(field, self.separator)))


def split_labels(field: str, separator: str) -> list[str]:
    """The parts of a field that are not blank."""
    return [part.strip() for part in split_list(field, separator) if part.strip()]


def tell_separator(fields: Collection[str], classes: Collection[str] | None, where: str) -> tuple[str, str]:
    """Tells what separates the classes in label fields.

    Args:
        fields: different fields, not blank.
        classes: names of `input.classes`, if given.
        where: the column, for messages.

    Returns:
        The separator and why; both empty where fields are single classes.

    Raises:
        UsageError: two readings fit.
    """
    for separator in SEPARATORS:
        lists = {field: parts for field in fields if len(parts := split_labels(field, separator)) > 1}
        if not lists:
            continue
        if classes is not None:
            told = _by_classes(fields, lists, classes, where)
        elif separator in _NEVER_IN_NAMES:
            told = True
        else:
            told = _by_fields(separator, fields, lists, where)
        if told:
            return separator, f"{separator_name(separator)} is between classes, as in {next(iter(lists))[:_SHOWN]!r}"
    return "", ""


def tell_multi(images: int, several: int, where: str) -> bool:
    """Tells from rows whether an image may have several classes.

    Args:
        images: number of images with a label.
        several: number of those whose rows name different ones.
        where: the table, for messages.

    Raises:
        UsageError: they are too many for mistakes and too few to be meant.
    """
    if several < _SEVERAL or several < _DOUBTFUL * images:
        return False
    if several < _SHARE * images:
        raise UsageError(
            f"{where}: the rows of {several} of {images} images name different classes. Are those mistakes? Set "
            "input.labels.multi: false to reject these images, or true if an image has several classes."
        )
    return True


def _by_classes(fields: Collection[str], lists: Mapping[str, list[str]], classes: Collection[str], where: str) -> bool:
    """Whether `input.classes` knows all parts, and all fields that are none of several."""

    def known(name: str) -> bool:
        return name in classes or as_integer(name) is not None

    if not all(known(part) for parts in lists.values() for part in parts):
        return False
    names = [field for field in lists if field in classes]
    if names:
        raise UsageError(f"{where}: {names[0]!r} is in input.classes, and so are its parts. {_EITHER}")
    return all(known(field) for field in fields if field not in lists)


def _by_fields(separator: str, fields: Collection[str], lists: Mapping[str, list[str]], where: str) -> bool:
    counts = Counter(part for field in fields for part in set(lists.get(field, ())))
    alone = {field for field in fields if field not in lists}

    def explained(part: str) -> bool:
        return part in alone or as_integer(part) is not None or (separator == "," and counts[part] > 1)

    good = [field for field, parts in lists.items() if all(map(explained, parts))]
    if good and len(good) < len(lists):
        bad = next(field for field in lists if field not in good)
        part = next(part for part in lists[bad] if not explained(part))
        raise UsageError(
            f"{where}: {good[0][:_SHOWN]!r} may be several classes, since each is one elsewhere, but {part!r} of "
            f"{bad[:_SHOWN]!r} is not. {_EITHER}"
        )
    return bool(good)
