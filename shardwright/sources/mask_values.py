"""From the numbers and colours in mask images to classes, the background and what is to be ignored.

0 (black, in colours) is the background unless a class has it, 255 is ignored unless a class has it or it is the only
value beside 0, or numbers above it occur. A class called `ignore` names another value to be ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shardwright.errors import ConfigError
from shardwright.manifest import IGNORED
from shardwright.masks.colours import COLOUR, show_value
from shardwright.sources.base import IGNORE
from shardwright.sources.classes import as_integer, map_classes

WHITE = 255

_ONE_CLASS = "mask"
_LARGEST = 0xFFFF
_BACKGROUNDS = frozenset(("background", "_background_", "bg", "void", "unlabeled", "unlabelled"))


class ValueMap(NamedTuple):
    """What the values of masks mean.

    Attributes:
        names: class names in the order of their indices.
        labels: value -> index of the class, `IGNORE`, or `None` for the background.
        notes: what was told from the data.
    """

    names: tuple[str, ...]
    labels: dict[int, int | None]
    notes: tuple[str, ...] = ()

    @property
    def ignore(self) -> bool:
        """Whether a value is to be ignored."""
        return IGNORE in self.labels.values()


def have_ids(classes: Mapping[str, int | None] | None) -> bool:
    """Whether `input.classes` says the values itself, so that no mask has to be looked into."""
    return classes is not None and any(number is not None for number in classes.values())


def map_ids(classes: Mapping[str, int | None]) -> ValueMap:
    """The values of a mapping `{name: id}` or `{name: "#rrggbb"}`.

    Raises:
        ConfigError: ids beyond 16 bits, numbers and colours mixed, or no class.
    """
    ids = {name: number for name, number in classes.items() if number is not None}
    for name, number in ids.items():
        if not (0 <= number <= _LARGEST or COLOUR <= number < 2 * COLOUR):
            raise ConfigError(f"input.classes.{name}", f"{number} is no value of a mask", f"Use 0 to {_LARGEST}.")
    coloured = {number >= COLOUR for number in ids.values()}
    if len(coloured) > 1:
        raise ConfigError("input.classes", "some classes have numbers and some colours", "Give one kind to all.")
    ignored = ids.pop(IGNORED, None)
    if not ids:
        raise ConfigError("input.classes", "there is nothing but what is ignored", "Name at least one class.")
    if ignored is None and coloured == {False} and WHITE not in ids.values():
        ignored = WHITE
    return _map(ids, ignored, COLOUR if coloured == {True} else 0)


def map_values(values: Mapping[int, str], classes: Mapping[str, int | None] | None, *, refuse: bool = True) -> ValueMap:
    """Tells what values mean, where `input.classes` is a plain list of names, or not given.

    Args:
        values: every number that occurs -> the first mask it stands in.
        classes: name -> `None`, or nothing to take the numbers themselves as names.
        refuse: whether a number that is no class is an error.

    Raises:
        UsageError: a number is no class, or there is none.
        ConfigError: a class without an id is called `ignore`.
    """
    if classes is not None and IGNORED in classes:
        raise ConfigError("input.classes", f"{IGNORED!r} is no class of masks", "Write {name: id}, or leave it out.")
    shown = {value: where for value, where in values.items() if value}
    if set(shown) == {WHITE} and (classes is None or len(classes) == 1):
        name = _ONE_CLASS if classes is None else next(iter(classes))
        note = f"masks: 255 is {name}, since no other value occurs beside 0; write classes: {{{name}: 1}} to ignore it"
        return _map({name: WHITE}, None, 0, (note,))
    ids, note = listed_ids(tuple(classes)) if classes is not None else ({}, "")
    ignored = WHITE if WHITE in shown and max(shown) == WHITE and WHITE not in ids.values() else None
    meant = [value for value in shown if value != ignored and (refuse or value in ids.values())]
    texts = {str(value): shown[value] for value in meant}
    mapped = map_classes(texts, ids or None)
    if classes is None:
        ids = {name: int(name) for name in mapped.names}
    notes = [note] if note else list(mapped.notes)
    if ignored is not None:
        notes.append(f"masks: {ignored} is ignored; write classes as {{name: id}} to make it a class")
    return _map(ids, ignored, 0, tuple(notes))


def listed_ids(names: tuple[str, ...]) -> tuple[dict[str, int], str]:
    """The values that a plain list of names stands for, and how they were told.

    Names that are numbers stand for themselves; others count from 1, or from 0 where the first is the background.
    """
    numbers = [as_integer(name) for name in names]
    if all(number is not None for number in numbers):
        return {name: int(name) for name in names}, ""
    base = 0 if names[0].lower() in _BACKGROUNDS else 1
    why = f"the first is {names[0]!r}" if base == 0 else "0 is the background"
    note = f"masks: values count from {base} ({why}): {base} is {names[0]}; write classes as {{name: id}} otherwise"
    return {name: base + i for i, name in enumerate(names)}, note


def _map(ids: Mapping[str, int], ignored: int | None, background: int, notes: tuple[str, ...] = ()) -> ValueMap:
    labels: dict[int, int | None] = {background: None}
    labels |= {number: i for i, number in enumerate(ids.values())}
    if ignored is not None:
        labels[ignored] = IGNORE
    return ValueMap(tuple(ids), labels, notes)


def colours_error(mask: str, colours: list[int]) -> ConfigError:
    """The error for masks of colours that nobody explained; names those that cover most pixels."""
    shown = ", ".join(map(show_value, colours))
    return ConfigError(
        "input.classes",
        f"the mask {mask} holds colours ({shown})",
        'Say which class each is, e.g. classes: {road: "#804080", car: "#00008e"}; black is the background, and a '
        "class called ignore is not counted",
    )
