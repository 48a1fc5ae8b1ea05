"""From what an annotation writes for a class, a name or an id, to the index of the class."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardwright.config.parse_values import may_be_named
from shardwright.config.split import split_word
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import BACKGROUND, IGNORE, shorten
from shardwright.running.progress import counted
from shardwright.storage import Refusal

# Names of classes in a message.
SHOWN_CLASSES = 20
# From so many images on, classes are none where so large a share of the images has one for itself.
_MANY, _OWN = 10, 0.9
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
# More distinct values cannot be classes: the wrong column or feature was taken.
MOST_CLASSES = 10_000
# Names by which tools and published sets mean that a pixel belongs to no class, or is not to be counted.
BACKGROUND_NAMES = frozenset(("background", "_background_", "__background__", "bg"))
IGNORE_NAMES = frozenset(("ignore", "_ignore_", "__ignore__", "ignored", "void", "unlabeled", "unlabelled", "dontcare"))
_LINE_END = re.compile(r"\r\n|\r|\n")
_BETWEEN_WORDS = re.compile(r"[\s_-]+")
_INTEGER = re.compile(r"([+-]?[0-9]{1,18})(?:\.0+)?")


@dataclass(frozen=True)
class ClassMap:
    """The classes of a data set.

    Attributes:
        names: class names in the order of their indices.
        index: what the annotations write -> index.
        notes: what was detected in the data.
    """

    names: tuple[str, ...]
    index: Mapping[str, int]
    notes: tuple[str, ...] = ()


def as_integer(text: str) -> int | None:
    """Returns the whole number a field holds, `3` as well as `3.0`, or `None`."""
    match = _INTEGER.fullmatch(text)
    return int(match[1]) if match else None


def map_classes(values: Mapping[str, str], classes: Mapping[str, int | None] | None, counted_by: str = "") -> ClassMap:
    """Maps every value that annotations use for a class.

    Args:
        values: value -> its first position, e.g. `train.csv, row 5`.
        classes: name -> id, or name -> `None` for a plain list of names; `None` to take the names from the values.
        counted_by: the tool whose numbers count from 0 by definition, or empty.

    Returns:
        The map. Detected names are sorted, as numbers when all are. A plain list of names takes their other spellings,
        too (see `check_spellings`); with whole numbers as values it counts from 0 or from 1. Notes state which.

    Raises:
        UsageError: a value is not a class; names the position, the value and the known classes.
    """
    if classes is None:
        return _detect_classes(values)
    names = tuple(classes)
    by_name = {name: i for i, name in enumerate(names)}
    by_id = {number: i for i, number in enumerate(classes.values()) if number is not None}
    if by_id:
        pairs = [f"{number} is {name}" for name, number in classes.items()]
        note = f"ids by input.classes: {shorten(pairs, SHOWN_CLASSES)}"
        index = {value: by_id[id_] for value in values if (id_ := as_integer(value)) in by_id}
        index = {value: by_name[value] for value in values if value in by_name} | index
        if missing := {value: where for value, where in values.items() if value not in index}:
            raise _unknown(missing, [f"{name} ({known})" for name, known in classes.items()])
        return ClassMap(names, index, (note,))
    # Other spellings of one name; numbers may be ids, too.
    unknown = [value for value in values if value not in by_name and as_integer(value) is None]
    folded: dict[str, list[int]] = {}
    for name, i in by_name.items() if unknown else ():
        folded.setdefault(_fold(name), []).append(i)
    spelled = {value: found[0] for value in unknown if len(found := folded.get(_fold(value), [])) == 1}
    by_name |= spelled
    notes = tuple(f"class {names[i]!r}: also written {value!r}" for value, i in spelled.items())
    rest = [value for value in values if value not in by_name]
    numbers = {value: as_integer(value) for value in rest}
    if not rest:
        return ClassMap(names, {value: by_name[value] for value in values}, notes)
    words = [value for value, number in numbers.items() if number is None]
    if words or len(rest) < len(values):
        raise _unknown({value: values[value] for value in words or rest}, names)
    ids = {value: number for value, number in numbers.items() if number is not None}
    # From 0 where a 0 occurs or the tool counts so, else from 1.
    base = 0 if counted_by or 0 in ids.values() else 1
    beyond = {value: values[value] for value, number in ids.items() if not base <= number < base + len(names)}
    if beyond:
        raise _unknown(beyond, [f"{name} ({base + i})" for i, name in enumerate(names)])
    why = f"{counted_by} counts so" if counted_by else "0 occurs" if base == 0 else "0 does not occur"
    note = f"class ids count from {base} ({why}): {base} is {names[0]}; write classes as {{name: id}} to override this"
    return ClassMap(names, {value: number - base for value, number in ids.items()}, (note,))


def check_any(values: Collection[str], classes: Collection[str] | None, problems: Iterable[Refusal]) -> None:
    """Checks that something names a class, where the classes are to be detected.

    Args:
        values: what annotations write for classes.
        classes: `input.classes`.
        problems: why inputs are left out; the first is the cause.

    Raises:
        UsageError: all that might name a class is left out.
    """
    first = next(iter(problems), None) if not values and classes is None else None
    if first is not None:
        raise UsageError(
            f"input.classes: none are given, and nothing names one. The first: {first.key}: {first.reason}. Fix that, "
            "or write classes: [A, B]."
        )


def check_spellings(names: Iterable[str], where: str) -> None:
    """Checks that no class has two names: `car`, `Car` and `car ` are hardly three classes.

    Args:
        names: the classes that annotations name.
        where: the annotations, for messages.

    Raises:
        UsageError: some differ in case, in what is between their words, or as numbers are written; with both readings.
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(_fold(name), []).append(name)
    several = [found for found in alike.values() if len(found) > 1]
    if not several:
        return
    shown = "; ".join(", ".join(map(repr, found)) for found in several[:SHOWN_CLASSES])
    one_each = [min(found, key=lambda name: (len(name), name != name.lower(), name)) for found in alike.values()]
    raise UsageError(
        f"{where}: are these names of one class? {shown}. List the classes in input.classes: each once, and its other "
        "spellings mean it too; or all of them."
    ).with_readings(
        Reading("each is one class", {"input.classes": one_each}),
        Reading("they are different classes", {"input.classes": [name for found in alike.values() for name in found]}),
    )


def check_detected(names: Sequence[str], images: int, where: str) -> None:
    """Checks that what was taken for the classes of images with one class each can be classes.

    Args:
        names: the classes that annotations name.
        images: number of images that have one.
        where: the annotations, for messages.

    Raises:
        UsageError: all are names of splits, there is only one, a number, or nearly each image has one of its own.
    """
    shown = shorten(list(map(repr, names)))
    if names and all(map(split_word, names)):
        problem = f"the only classes are {shown}, which are names of splits. Name what has the classes"
    elif images >= _MANY and len(names) == 1 and _NUMBER.fullmatch(names[0]):
        problem = (
            f"all {images:,} images have the class {shown}, as in a sample submission: there is nothing to learn. Give "
            "the file with the annotations"
        )
    elif images >= _MANY and len(names) >= _OWN * images:
        problem = (
            f"{images:,} images have {len(names):,} classes, such as {shown}. Name the folder or column whose classes "
            "several images share"
        )
    else:
        return
    kept = Reading("they are the classes", {"input.classes": list(names)}, asked=True)
    error = UsageError(f"{where}: {problem}, or list these in input.classes if they are right.")
    raise error.with_readings(*([kept] if len(names) <= SHOWN_CLASSES else []))


def _fold(name: str) -> str:
    """Returns a name as spellings are compared."""
    number = as_integer(name.strip())
    text = unicodedata.normalize("NFKC", name).casefold() if number is None else str(number)
    return _BETWEEN_WORDS.sub(" ", text).strip() or name


def special_label(name: str, classes: Mapping[str, int | None] | None) -> int | None:
    """Returns `BACKGROUND` or `IGNORE` where the name of an object's class means that; else `None`.

    Args:
        name: as the tool writes it.
        classes: `input.classes`; a name that is listed there is a class.
    """
    folded = name.strip().lower()
    if classes is not None and name in classes:
        return None
    return BACKGROUND if folded in BACKGROUND_NAMES else IGNORE if folded in IGNORE_NAMES else None


def names_by_line(text: str, path: str) -> tuple[str, ...]:
    """Returns the names of classes in a file with a name in each line, where the number of a class is that of its line.

    Args:
        text: the content of the file; blank lines at its end are left out.
        path: the file, for messages.

    Raises:
        UsageError: a line before the last name is blank, or a name is there twice.
    """
    names: dict[str, None] = {}
    for number, line in enumerate(_LINE_END.split(text.rstrip()), 1) if text.strip() else ():
        name = line.strip()
        problem = "it is blank" if not name else f"the class {name!r} is there twice" if name in names else ""
        if problem:
            raise UsageError(
                f"{path}, line {number}: {problem}, and the number of a class is that of its line. Write the name of "
                "the class there, or set input.classes to {name: number}."
            )
        names[name] = None
    return tuple(names)


def check_names(names: Mapping[str, str]) -> None:
    """Checks that names of classes, each with its first position, can be part of a feature's name."""
    for name, where in names.items():
        if not may_be_named(name):
            raise UsageError(f"{where}: the class {name!r} cannot be part of a feature's name. Rename it.")


def _detect_classes(values: Mapping[str, str]) -> ClassMap:
    numbers = [as_integer(value) for value in values]
    numeric = all(number is not None for number in numbers)
    names = tuple(sorted(values, key=lambda value: (as_integer(value) or 0, value) if numeric else (0, value)))
    check_names({name: values[name] for name in names})
    if not names:
        raise UsageError(
            "input.classes: none are given, and the annotations name none. Write classes: [A, B], or give annotations "
            "that name some: a table may have no rows below its header, or an empty column."
        )
    shown = shorten(names, SHOWN_CLASSES)
    return ClassMap(
        names,
        {name: i for i, name in enumerate(names)},
        (f"{counted(len(names), 'class', 'classes')} detected: {shown}",),
    )


def _unknown(missing: Mapping[str, str], known: tuple[str, ...] | list[str]) -> UsageError:
    """Returns the error for values, each with its first position, that are not classes."""
    shown = shorten(known, SHOWN_CLASSES)
    (value, where), *others = missing.items()
    if not others:
        return UsageError(
            f"{where}: the class {value!r} is not in input.classes. Known are: {shown}. Add it or fix the row."
        )
    names = shorten([repr(name) for name in missing], SHOWN_CLASSES)
    return UsageError(
        f"{where}: {len(missing)} classes are not in input.classes: {names}. Known are: {shown}. Add them, or fix the "
        "rows."
    )
