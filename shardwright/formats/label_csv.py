"""Classes of images in a table: one or several, in one field or in rows.

The label fields of a table name one class or several. This and their separator are detected from all fields. `|` and
`;` are never part of a class's name, so they separate. Commas and spaces separate numbers. They separate words if each
word is also a label elsewhere (or, between commas, recurs). Fields in brackets are lists. If all fields with several
words pass this test, they are lists. If none does, they are names. Otherwise both fit, which is an error.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from shardwright.config.input import OTHER_FOLDERS, LabelsConfig
from shardwright.dataset.manifest import MULTI, SINGLE
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import Survey, shorten
from shardwright.formats.class_folders import CLASS_FOLDERS
from shardwright.formats.classes import SHOWN_CLASSES, ClassMap, as_integer, check_names
from shardwright.formats.columns import SEPARATORS, separator_name, split_list
from shardwright.formats.rows import CsvFormat, RawAnnotation, TableInput
from shardwright.formats.table_values import flag
from shardwright.formats.tables import IMAGE, LABEL, TableRow, label_columns, reduce_header
from shardwright.running.progress import counted
from shardwright.storage.fingerprint import text_number

_NEVER_IN_NAMES = ("|", ";")
_PLURAL = frozenset(("tags", "labels", "classes", "categories", "targets", "findinglabels"))
_EITHER = "Set input.labels.separator: to what is between the classes, or to '' where they are names."
# At least so many images, and that share of all, have rows of several classes where that is meant: less are mistakes.
_SEVERAL, _SHARE, _DOUBTFUL = 3, 0.2, 0.05
# So many images in folders of other classes are no mistake in a few rows.
_MANY = 5
_SHOWN = 40
# All 22,000 classes of ImageNet-21k by name. Two characters become an object of fifty bytes.
_LONGEST_FIELD = 1 << 20
# A table with more different fields than this is read by the first ones.
_MOST_FIELDS = 100_000


class LabelTable(CsvFormat):
    """A table of classes. An image with two is rejected if images have one; rows may repeat another."""

    format = "label_csv"

    def __init__(self, given: TableInput) -> None:
        super().__init__(given)
        # Line of the first row about each image and the number of its label: 12 bytes an image, not a string.
        self._first_line = array("q", bytes(8 * len(given.images.keys)))
        self._label_number = array("i", bytes(4 * len(given.images.keys)))
        self._labels: dict[str, int] = {}
        self._label_options = given.options

    def survey(self) -> Survey:
        survey = super().survey()
        if self.kind == SINGLE and OTHER_FOLDERS not in self._label_options.confirmed:
            self._check_folders()
        return survey

    def _check_folders(self) -> None:
        """Raises `UsageError` where folders called after the classes contradict the table."""
        in_folders, differing = 0, []
        for image, key in enumerate(self._images.keys):
            folder = self._labels.get(key.rpartition("/")[0].rpartition("/")[2]) if self._first_line[image] else None
            if folder is not None:
                in_folders += 1
                differing += [image] if folder != self._label_number[image] else []
        if len(differing) < _MANY or len(differing) <= _DOUBTFUL * in_folders:
            return
        first = differing[0]
        label = next(label for label, number in self._labels.items() if number == self._label_number[first])
        raise UsageError(
            f"{self._path}: {len(differing):,} of {in_folders:,} images that are in folders called after classes have "
            f"another class here; the first is {self._images.keys[first]}, which is {label!r} by row "
            f"{self._first_line[first]}. Give the right table, or set input.labels: {{format: {CLASS_FOLDERS}}}. If "
            f"the table is right, set input.labels.confirmed: [{OTHER_FOLDERS}]."
        ).with_readings(
            self._label_options.confirming(OTHER_FOLDERS, "the table is right"),
            Reading("the folder of an image is its class", {"input.labels": {"format": CLASS_FOLDERS}}),
        )

    def _look(self, image: int, annotation: RawAnnotation) -> str:
        if self.kind == MULTI:
            return ""
        (label,) = annotation.labels
        number = self._labels.setdefault(label, len(self._labels))
        line = self._first_line[image]
        if not line:
            self._first_line[image], self._label_number[image] = annotation.line, number
            return ""
        if self._label_number[image] == number:
            return ""
        before = next(label for label, known in self._labels.items() if known == self._label_number[image])
        return f"states {label!r}, row {line} states {before!r}; an image has one class"


class LabelCsv(LabelTable):
    """Columns for image and label."""

    def __init__(self, given: TableInput) -> None:
        super().__init__(given)
        self._record = given.record
        self._guess = SeparatorGuess(False)
        # Columns that may hold the names of the classes whose ids are read.
        ids, taken = (given.classes or {}).values(), (*given.found.roles.values(), *given.found.captions)
        self._name_columns = label_columns(given.table, taken) if any(n is not None for n in ids) else []

    def survey(self) -> Survey:
        self._guess = self._detect_separator()
        self.kind = MULTI if self._guess.multi else SINGLE
        if self._guess.reason:
            why = f"since {self._guess.reason} (input.labels.multi_label and separator override this)"
            self._notes += (f"an image may have several classes, {why}",)
        return super().survey()

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        resolved = super().resolved(options)
        if self._record is not None:
            return resolved
        several = self.kind == MULTI
        return replace(resolved, multi_label=several, separator=self._guess.separator if several else None)

    def _take_apart(self, row: TableRow) -> RawAnnotation:
        name, field = row.fields[self._columns[IMAGE]], row.fields[self._columns[LABEL]].strip()
        if len(field) > _LONGEST_FIELD:
            problem = f"its classes are a text of {len(field):,} characters; at most {_LONGEST_FIELD:,} are read"
            return RawAnnotation(row.line, name, self._names.find(name), problem=problem)
        labels = self._guess.split(field)
        problem = "" if labels or self._guess.multi else "names no class"
        for column in self._name_columns:
            self._check_name(row, column, labels)
        return RawAnnotation(row.line, name, self._names.find(name), labels, problem=problem)

    def _check_name(self, row: TableRow, column: int, labels: tuple[str, ...]) -> None:
        """Compares the name of a class next to its id with `input.classes`."""
        name, ids = row.fields[column].strip(), self._classes or {}
        number = as_integer(labels[0]) if len(labels) == 1 else None
        known = next((name for name, value in ids.items() if value == number), None)
        if number is not None and known is not None and ids.get(name) not in (None, number):
            raise UsageError(
                f"{self._path}, row {row.line}: the class {number} is {name!r} by column "
                f"{self._table.header[column]!r}, but {known!r} by input.classes. Fix the one that is wrong."
            )

    def _detect_separator(self) -> SeparatorGuess:
        """Detects how fields are read, by all of them, where it is not configured."""
        multi, separator = self._label_options.multi_label, self._label_options.separator
        if multi is False:
            return SeparatorGuess(False)
        if self._record is not None and self._record.labels == MULTI and multi and separator is None:
            return SeparatorGuess(True, self._record.separator, exact=True)
        if separator or (multi and separator is not None):
            return SeparatorGuess(True, separator or "")
        fields, images, several = self._look_through()
        reason = ""
        if separator is None:
            where = f"{self._path}, column {self._table.header[self._columns[LABEL]]!r}"
            names = None if self._classes is None else tuple(self._classes)
            separator, reason = detect_separator(fields, names, where)
            if not separator and multi is None and names is None:
                _check_blanks(fields, self._table.header[self._columns[LABEL]], where)
        if not separator and multi is None and detect_multi_label(images, several, self._path):
            reason = f"the rows of {several} of {images} images name different ones"
        return SeparatorGuess(bool(separator or reason or multi), separator, reason)

    def _look_through(self) -> tuple[Collection[str], int, int]:
        """Returns the different label fields, how many images have one, and how many of these have differing rows."""
        fields: dict[str, int] = {}
        first = array("q", bytes(8 * len(self._images.keys)))
        differs = bytearray(len(first))
        for row in self._table.rows():
            label = row.fields[self._columns[LABEL]].strip() if len(row.fields) == len(self._table.header) else ""
            if not label or len(label) > _LONGEST_FIELD:
                continue
            number = fields.get(label) or text_number(label)
            if len(fields) < _MOST_FIELDS:
                fields[label] = number
            image = self._names.find(row.fields[self._columns[IMAGE]])
            if image is not None:
                differs[image] |= first[image] not in (0, number)
                first[image] = first[image] or number
        return fields, len(first) - first.count(0), sum(differs)


class OneHotCsv(LabelTable):
    """A column for each class, see `table_values`; classes are in the order of the columns."""

    def __init__(self, given: TableInput) -> None:
        super().__init__(given)
        assert given.found.one_hot is not None, "detected"
        self._one_hot = given.found.one_hot
        self.kind = MULTI if self._one_hot.multi else SINGLE

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        return replace(super().resolved(options), multi_label=self._one_hot.multi)

    def _take_apart(self, row: TableRow) -> RawAnnotation:
        name = row.fields[self._columns[IMAGE]]
        problem = ""
        labels = []
        for i, label in self._one_hot.columns.items():
            value = flag(row.fields[i])
            if value == 1:
                labels.append(label)
            elif value != self._one_hot.zero:
                found = f"column {label} holds {row.fields[i][:_SHOWN]!r}, neither 1 nor {self._one_hot.zero}"
                problem = problem or found
        if not self._one_hot.multi and len(labels) != 1:
            problem = problem or f"names {'several classes' if labels else 'no class'}"
        return RawAnnotation(row.line, name, self._names.find(name), tuple(labels), problem=problem)

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        del values
        headers = tuple(self._one_hot.columns.values())
        check_names(dict.fromkeys(headers, f"{self._path}, header"))
        names = headers if self._classes is None else tuple(self._classes)
        shown = shorten([repr(name) for name in names], SHOWN_CLASSES)
        note = (f"{counted(len(names), 'class', 'classes')} detected, in the order of the columns: {shown}",)
        return ClassMap(names, {name: i for i, name in enumerate(names)}, note if self._classes is None else ())


class SeparatorGuess(NamedTuple):
    """How label fields are read.

    Attributes:
        multi: whether an image may have any number of classes.
        separator: what is between classes in a field; empty where a field is one class.
        reason: why it is read so, or empty.
        exact: whether a field of several is a list as an export writes it: order, repeats and blanks count.
    """

    multi: bool
    separator: str = ""
    reason: str = ""
    exact: bool = False

    def split(self, field: str) -> tuple[str, ...]:
        """Returns the classes that a field names, each once unless the field is exact."""
        if self.exact:
            return tuple(field.split(self.separator)) if field else ()
        if not self.separator:
            return (field,) if field else ()
        return tuple(dict.fromkeys(split_list(field, self.separator, blank=False)))


def detect_separator(fields: Collection[str], classes: Collection[str] | None, where: str) -> tuple[str, str]:
    """Detects the separator of the classes in label fields.

    Args:
        fields: different fields, not blank.
        classes: names of `input.classes`, if given.
        where: the column, for messages.

    Returns:
        The separator and why; both empty where fields are single classes.

    Raises:
        UsageError: two readings fit.
    """
    if fields and all(field[0] == "[" and field[-1] == "]" for field in fields):
        return ",", "each field is a list in brackets"
    for separator in SEPARATORS:
        lists = {field: parts for field in fields if len(parts := split_list(field, separator, blank=False)) > 1}
        if not lists:
            continue
        if classes is not None:
            is_list = _by_classes(separator, fields, lists, classes, where)
        elif separator in _NEVER_IN_NAMES:
            is_list = True
        else:
            is_list = _by_fields(separator, fields, lists, where)
        if is_list:
            return separator, f"{separator_name(separator)} is between classes, as in {next(iter(lists))[:_SHOWN]!r}"
    return "", ""


def detect_multi_label(images: int, several: int, where: str) -> bool:
    """Detects from rows whether an image may have several classes.

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
            "input.labels.multi_label: false to reject these images, or true if an image has several classes."
        ).with_readings(
            Reading("an image has one class, and these images are rejected", {"input.labels.multi_label": False}),
            Reading("an image may have several classes", {"input.labels.multi_label": True}),
        )
    return True


def _readings(separator: str) -> tuple[Reading, Reading]:
    return (
        Reading(f"{separator_name(separator)} is between classes", {"input.labels.separator": separator}),
        Reading("a field is one class", {"input.labels.multi_label": False}),
    )


def _by_classes(
    separator: str, fields: Collection[str], lists: Mapping[str, list[str]], classes: Collection[str], where: str
) -> bool:
    """Returns whether `input.classes` has all parts, and all fields that are not lists."""

    def known(name: str) -> bool:
        return name in classes or as_integer(name) is not None

    if not all(known(part) for parts in lists.values() for part in parts):
        return False
    names = [field for field in lists if field in classes]
    if names:
        problem = f"{names[0]!r} is in input.classes, and so are its parts"
        raise UsageError(f"{where}: {problem}. {_EITHER}").with_readings(*_readings(separator))
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
        ).with_readings(*_readings(separator))
    return bool(good)


def _check_blanks(fields: Collection[str], header: str, where: str) -> None:
    """Checks that fields of words are names of classes, where the header promises several classes.

    Raises:
        UsageError: words of one field are in another one, too; with both readings.
    """
    words = Counter(word for field in fields for word in set(field.split()))
    lists = [field for field in fields if len(field.split()) > 1]
    shared = next((field for field in lists if any(words[word] > 1 for word in field.split())), None)
    if shared is not None and reduce_header(header) in _PLURAL:
        raise UsageError(
            f"{where}: {shared[:_SHOWN]!r} may be one class or several, since words of it are in other fields, too. "
            f"{_EITHER}"
        ).with_readings(*_readings(" "))
