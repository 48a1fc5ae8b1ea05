"""Base classes of the formats with a row for each annotation, and of those whose rows are in a CSV.

Rows are read twice: `survey` matches them with images and classes, `annotations` streams them.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardwright.config.input import LabelsConfig
from shardwright.dataset.ledger import MISSING_IMAGE
from shardwright.dataset.manifest import SINGLE
from shardwright.errors import CheckFailed, UsageError
from shardwright.formats.base import NO_LABEL, SHOWN_NAMES, Annotation, AnnotationFormat, FormatInput, Survey, Values
from shardwright.formats.classes import MOST_CLASSES, ClassMap, map_classes
from shardwright.formats.columns import FurtherColumns
from shardwright.formats.image_names import NameIndex
from shardwright.formats.tables import CAPTION, IMAGE, IMAGE_LABEL, JoinedTable, Table, TableRow
from shardwright.storage import Refusal
from shardwright.storage.fingerprint import canonical_json, text_number

CAPTION_FEATURE = "image/caption/text"


class RawAnnotation(NamedTuple):
    """A row, taken apart.

    Attributes:
        line: line of the file.
        name: image as the row names it.
        image: position of its key, or `None` when there is no such image.
        labels: classes as the row writes them; empty when it names none.
        text: run lengths, or `None` where the file has no masks.
        problem: what is wrong with the row, or empty.
        captions: texts about the image, not blank.
        row: the row itself, where further columns are read.
        stated_size: height and width of the image that the row states, or `None`.
    """

    line: int
    name: str
    image: int | None
    labels: tuple[str, ...] = ()
    text: str | None = None
    problem: str = ""
    captions: tuple[str, ...] = ()
    row: TableRow | None = None
    stated_size: tuple[int, int] | None = None


class RowFormat(AnnotationFormat):
    """A file of rows; see `shardwright.formats.base.AnnotationFormat`.

    Args:
        given: see `FormatInput`.
        path: the file.
        names: how rows name images.

    Attributes:
        kind: how many classes an image has, as in `Survey.labels`; known after `survey`.
    """

    kind = SINGLE
    _hint = ""

    def __init__(self, given: FormatInput, path: str, names: NameIndex) -> None:
        super().__init__(given)
        self.name = os.path.basename(path)
        self._path = path
        self._names = names
        self._map: ClassMap | None = None

    @abstractmethod
    def _raw_annotations(self) -> Iterator[RawAnnotation]:
        """Streams the rows."""

    def _conflict(self, image: int, annotation: RawAnnotation) -> str:
        """Returns how a sound row contradicts earlier rows about the image at a position; empty when it does not."""
        del image, annotation
        return ""

    def _look(self, image: int, annotation: RawAnnotation) -> None:
        """Takes in a sound row of an image that contradicts none."""
        del image, annotation

    def _features(self) -> tuple[dict[str, str], list[str]]:
        """Returns the kinds of the further features, and notes about them, after all rows."""
        return {}, []

    def _reader(self) -> Callable[[int, RawAnnotation], Values]:
        """Returns a function from an image and a row to what the row adds to its features, for one pass."""
        return lambda image, annotation: _captions(annotation)

    def _place(self, line: int) -> str:
        """Returns the place of a row in the file, for messages."""
        return f"row {line}"

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        return map_classes(values, self._classes)

    def survey(self) -> Survey:
        """See `AnnotationFormat.survey`."""
        values: dict[str, str] = {}
        survey = Survey(classes=(), listed=bytearray(len(self._images.keys)))
        missing: dict[str, int] = {}
        for annotation in self._raw_annotations():
            if len(survey.names) < SHOWN_NAMES and annotation.name and annotation.name not in survey.names:
                survey.names.append(annotation.name)
            if annotation.problem:
                self._reject(survey, annotation, "bad_row", annotation.problem)
            elif annotation.image is None:
                missing.setdefault(annotation.name, annotation.line)
            elif conflict := self._conflict(annotation.image, annotation):
                self._reject(survey, annotation, "conflicting_labels", conflict)
            else:
                self._look(annotation.image, annotation)
            if annotation.image is not None:
                survey.listed[annotation.image] = 1
            for label in annotation.labels if not annotation.problem else ():
                if label not in values:
                    values[label] = f"{self._path}, row {annotation.line}"
                    if len(values) > MOST_CLASSES:
                        raise UsageError(
                            f"{self._path}: more than {MOST_CLASSES} different classes, e.g. {label!r}. "
                            "Name the column of classes in input.labels.columns."
                        )
        survey.refused += [
            Refusal(
                name,
                MISSING_IMAGE,
                f"{self.name}, {self._place(line)} names it, but there is no such image{self._names.alike(name)}",
            )
            for name, line in missing.items()
        ]
        self._map = self._map_classes(values)
        survey.classes = self._map.names
        survey.labels = self.kind
        survey.hint = self._hint
        survey.features, notes = self._features()
        survey.notes = (*self._notes, *self._map.notes, *notes)
        return survey

    def annotations(self) -> Iterator[Annotation]:
        """See `AnnotationFormat.annotations`."""
        assert self._map is not None, "survey comes first"
        values_of = self._reader()
        for annotation in self._raw_annotations():
            if annotation.image is None or annotation.problem:
                continue
            values = values_of(annotation.image, annotation)
            labels = annotation.labels if annotation.text != "" else ()
            for i, label in enumerate(labels):
                labeled = (annotation.image, self._map.index[label], annotation.text, annotation.line)
                if values or annotation.stated_size:
                    yield Annotation(*labeled, values if i == 0 else {}, annotation.stated_size)
                else:
                    yield Annotation(*labeled)
            if (values or annotation.stated_size) and not labels:
                yield Annotation(annotation.image, NO_LABEL, None, annotation.line, values, annotation.stated_size)

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        """See `AnnotationFormat.resolved`."""
        return replace(super().resolved(options), key_regex=self._names.pattern)

    def _reject(self, survey: Survey, annotation: RawAnnotation, code: str, problem: str) -> None:
        reason = f"{self.name}, {self._place(annotation.line)}: {problem}"
        if annotation.image is None:
            survey.refused.append(Refusal(f"{self.name}:{annotation.line}", code, reason))
        elif annotation.image not in survey.rejected:
            survey.rejected[annotation.image] = Refusal(self._images.keys[annotation.image], code, reason)


def _captions(annotation: RawAnnotation) -> Values:
    return {CAPTION_FEATURE: list(annotation.captions)} if annotation.captions else {}


@dataclass(frozen=True, kw_only=True)
class TableInput(FormatInput):
    """A table and what it is read with.

    Attributes:
        table: the CSV.
        columns: role -> number of its column.
        names: how rows name images.
        further: columns that become features.
        captions: numbers of the columns of captions.
        hint: see `Survey.hint`.
    """

    table: Table
    columns: Mapping[str, int]
    names: NameIndex
    further: FurtherColumns
    captions: tuple[int, ...] = ()
    hint: str = ""


class CsvFormat(RowFormat):
    """A table of annotations."""

    def __init__(self, given: TableInput) -> None:
        super().__init__(given, given.table.path, given.names)
        self._table = given.table
        self._columns = given.columns
        self._further = given.further
        self._captions = given.captions
        self._hint = given.hint
        self._newest: array[int] | None = None

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        """See `AnnotationFormat.resolved`."""
        columns = {role: self._table.header[column] for role, column in self._columns.items()}
        if len(self._captions) == 1:
            columns[CAPTION] = self._table.header[self._captions[0]]
        return replace(super().resolved(options), columns=columns)

    @abstractmethod
    def _take_apart(self, row: TableRow) -> RawAnnotation:
        """Reads one row that has as many fields as the header."""

    @property
    def header(self) -> tuple[str, ...]:
        """Returns the names of the columns."""
        return tuple(self._table.header)

    def column(self, option: str, header: str) -> Iterator[tuple[int, str]]:
        """Yields image and field, stripped, of a column that plays no role here, for every row that names an image.

        Args:
            option: YAML path of the option that asks for it.
            header: the column's name.

        Raises:
            ConfigError: it is not there, or twice.
        """
        number = self._table.find_column(option, header)
        for row in self._rows():
            image = self._image(row) if len(row.fields) == len(self._table.header) else None
            if image is not None:
                yield image, row.fields[number].strip()

    def _look(self, image: int, annotation: RawAnnotation) -> None:
        if annotation.row is not None:
            self._further.look(image, annotation.row)

    def _features(self) -> tuple[dict[str, str], list[str]]:
        kinds, notes = self._further.resolve_types()
        return {**kinds, **({CAPTION_FEATURE: "bytes"} if self._captions else {})}, notes

    def _reader(self) -> Callable[[int, RawAnnotation], Values]:
        captions, further = super()._reader(), self._further.reader()

        def values(image: int, annotation: RawAnnotation) -> Values:
            found = captions(image, annotation)
            return found if annotation.row is None else {**found, **further(image, annotation.row)}

        return values

    def _raw_annotations(self) -> Iterator[RawAnnotation]:
        width = len(self._table.header)
        for row in self._rows():
            if len(row.fields) != width:
                problem = f"{len(row.fields)} fields, the header has {width}"
                yield RawAnnotation(row.line, "", self._image(row), problem=problem)
                continue
            annotation = self._take_apart(row)
            if self._captions:
                captions = (row.fields[column].strip() for column in self._captions)
                annotation = annotation._replace(captions=tuple(filter(None, captions)))
            if self._further.given:
                problem = annotation.problem or self._further.problem(row)
                annotation = annotation._replace(row=row, problem=problem)
            yield annotation

    def _rows(self) -> Iterator[TableRow]:
        """Yields the rows, without those of images that the table of a newer delivery names too."""
        if not isinstance(self._table, JoinedTable):
            yield from self._table.rows()
            return
        if self._newest is None:
            self._newest = self._newest_parts(self._table)
        for row in self._table.rows():
            image = self._image(row)
            if image is None or self._newest[image] == row.part:
                yield row

    def _newest_parts(self, table: JoinedTable) -> array[int]:
        """Returns the number of the newest table that names each image.

        Raises:
            CheckFailed: tables differ in the rows of an image, and they must agree.
        """
        newest = array("i", [-1]) * len(self._images.keys)
        several = bytearray(len(newest))
        rows_of: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for row in table.rows():
            image = self._image(row)
            if image is None:
                continue
            several[image] |= newest[image] not in (-1, row.part)
            newest[image] = row.part
            if table.agree:
                # The order of the rows plays no part.
                rows_of[image][row.part] += text_number(canonical_json(row.fields))
        for image, sums in rows_of.items():
            if len(set(sums.values())) > 1:
                spans = " and ".join(table.parts[part].called for part in sorted(sums))
                raise CheckFailed(
                    f"input.on_conflict: {self.name} has different rows for {self._images.keys[image]} in {spans}. "
                    "Set it to newest, or fix the tables."
                )
        if any(several):
            self._notes += (f"labels: {sum(several)} images have rows in several spans; those of the newest count",)
        return newest

    def _image(self, row: TableRow) -> int | None:
        """Returns the position of the image that a row names, whole or broken."""
        if len(row.fields) == len(self._table.header):
            return self._take_apart(row).image
        column = min(self._columns[role] for role in (IMAGE, IMAGE_LABEL) if role in self._columns)
        return self._names.find(row.fields[column]) if column < len(row.fields) else None
