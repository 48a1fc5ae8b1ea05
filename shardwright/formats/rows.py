"""Base classes of the formats with a row for each annotation, and of those whose rows are in a CSV.

Rows are read twice: `survey` matches them with images and classes, `annotations` streams them.
"""

from __future__ import annotations

import codecs
from abc import abstractmethod
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright.config.input import LabelsConfig
from shardwright.dataset.ledger import MISSING_IMAGE
from shardwright.dataset.manifest import NONE, SINGLE
from shardwright.errors import CheckFailed, UsageError
from shardwright.formats.base import NO_LABEL, SHOWN_NAMES, Annotation, AnnotationFormat, Request, Survey, Values
from shardwright.formats.classes import MOST_CLASSES, ClassMap, check_any, map_classes
from shardwright.formats.columns import FurtherColumns
from shardwright.formats.image_names import NameIndex
from shardwright.formats.table_values import OneHot
from shardwright.formats.tables import CAPTION, IMAGE, IMAGE_LABEL, JoinedTable, Table, TableRow
from shardwright.running.progress import counted
from shardwright.storage import Refusal
from shardwright.storage.fingerprint import canonical_json, text_number

CAPTION_FEATURE = "image/caption/text"
# Characters of a broken row in a message.
_SHOWN = 60
_LINE_FEED = 10
_PIECE = 1 << 20
IntArray = npt.NDArray[np.int32]


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
    """A file of rows.

    Attributes:
        kind: how many classes an image has, as in `Survey.labels`; known after `survey`.
    """

    kind = SINGLE
    _captioned = True
    _hint = ""
    _further: FurtherColumns | None = None

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self.name = given.name
        self._path = given.path
        self._bytes = given.content
        self._names = given.names()
        self._map: ClassMap | None = None
        # Image and line of each sound row, where rows can be found by them.
        self._places: tuple[array[int], array[int]] | None = None

    @abstractmethod
    def _raw_annotations(self) -> Iterator[RawAnnotation]:
        """Streams the rows."""

    def _look(self, image: int, annotation: RawAnnotation) -> str:
        """Takes in a sound row of an image; returns how it contradicts earlier ones, empty where it does not."""
        del image, annotation
        return ""

    def _place(self, line: int) -> str:
        """Returns the place of a row in the file, for messages."""
        return f"row {line}"

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        return ClassMap((), {}) if self.kind == NONE else map_classes(values, self._classes)

    def survey(self) -> Survey:
        values: dict[str, str] = {}
        survey = Survey(classes=(), listed=bytearray(len(self._images.keys)), hint=self._hint)
        missing: dict[str, int] = {}
        survey.empty = self.kind != NONE
        places = self._places = (array("i"), array("i")) if self._places is not None else None
        for annotation in self._raw_annotations():
            image, problem = annotation.image, annotation.problem
            if image is None and self.excludes([annotation.name]):
                continue
            if places is not None and image is not None and not problem:
                places[0].append(image)
                places[1].append(annotation.line)
            if len(survey.names) < SHOWN_NAMES and annotation.name and annotation.name not in survey.names:
                survey.names.append(annotation.name)
            if problem:
                self._reject_row(survey, annotation, "bad_row", problem)
            elif image is None:
                missing.setdefault(annotation.name, annotation.line)
            elif conflict := self._look(image, annotation):
                self._reject_row(survey, annotation, "conflicting_labels", conflict)
            elif self._further is not None and annotation.row is not None:
                self._further.look(image, annotation.row)
            if image is not None:
                survey.listed[image] = 1
                if annotation.labels and annotation.text != "":
                    survey.empty = False
            for label in annotation.labels if not problem else ():
                if label not in values:
                    values[label] = f"{self._path}, row {annotation.line}"
                    if len(values) > MOST_CLASSES:
                        raise UsageError(
                            f"{self._path}: more than {MOST_CLASSES} different classes, e.g. {label!r}. "
                            "Name the column of classes in input.labels.columns."
                        )
        for name, line in missing.items():
            reason = f"{self.name}, {self._place(line)} names it, but there is no such image{self._names.alike(name)}"
            survey.refused.append(Refusal(name, MISSING_IMAGE, reason))
        if self.kind != NONE:
            check_any(values, self._classes, [*survey.rejected.values(), *survey.refused])
        self._map = self._map_classes(values)
        survey.classes, survey.labels = self._map.names, self.kind
        features, notes = ({}, []) if self._further is None else self._further.resolve_types()
        survey.features = {**features, **({CAPTION_FEATURE: "bytes"} if self._captioned else {})}
        survey.notes = (*self._notes, *self._map.notes, *notes)
        return survey

    def annotations(self) -> Iterator[Annotation]:
        assert self._map is not None, "survey comes first"
        index = self._map.index
        further = self._further.reader() if self._further is not None else None
        for annotation in self._raw_annotations():
            _, _, image, labels, text, problem, captions, row, size = annotation
            if image is None or problem:
                continue
            values: Values = {CAPTION_FEATURE: list(captions)} if captions else {}
            if further is not None and row is not None:
                values = {**values, **further(image, row)}
            if text == "":
                labels = ()
            if not values and not size:
                for label in labels:
                    yield Annotation(image, index[label], text, annotation.line)
                continue
            for i, label in enumerate(labels):
                yield Annotation(image, index[label], text, annotation.line, values if i == 0 else {}, size)
            if not labels:
                yield Annotation(image, NO_LABEL, None, annotation.line, values, size)

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        return replace(super().resolved(options), key_regex=self._names.pattern)

    def _reject_row(self, survey: Survey, annotation: RawAnnotation, code: str, problem: str) -> None:
        reason = f"{self.name}, {self._place(annotation.line)}: {problem}"
        self._reject(survey, annotation.image, f"{self.name}:{annotation.line}", code, reason)


@dataclass(frozen=True)
class TableFormat:
    """A format, why it is that one, and its columns.

    Attributes:
        format: `rle_csv`, `label_csv`, `captions` or `numbers`.
        reason: why.
        roles: columns that have a role.
        captions: columns of captions.
        one_hot: columns of classes.
        numbers: columns of numbers, with their types.
    """

    format: str
    reason: str
    roles: Mapping[str, int]
    captions: tuple[int, ...] = ()
    one_hot: OneHot | None = None
    numbers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TableInput(Request):
    """A table, and what is asked of it.

    Attributes:
        table: the table.
        found: its format and its columns.
        by_name: how rows name images.
        further: columns that become features.
        hint: see `Survey.hint`.
    """

    table: Table
    found: TableFormat
    by_name: NameIndex
    further: FurtherColumns
    hint: str = ""

    def names(self, *, exact: bool = False) -> NameIndex:
        """Returns how rows name images, as it was detected."""
        del exact
        return self.by_name


class CsvFormat(RowFormat):
    """A table of annotations; as it is, one whose rows have an image, captions and numbers, and no class."""

    def __init__(self, given: TableInput) -> None:
        super().__init__(given)
        self._table, self._hint = given.table, given.hint
        self._columns, self._captions = given.found.roles, given.found.captions
        self._captioned = bool(self._captions)
        self._further = given.further if given.further.given else None
        self._newest: array[int] | None = None
        content = given.table.content
        # A line may end with a carriage return alone, and lines are counted by their line feeds here.
        if type(given.table) is Table and content is not None and content.count(b"\r") == content.count(b"\r\n"):
            self._places = array("i"), array("i")

    def reader(self) -> Callable[[Sequence[int]], Iterator[Annotation]] | None:
        if self._places is None or self._table.content is None:
            return None
        images, lines = (np.array(numbers, np.int32) for numbers in self._places)
        octets = np.frombuffer(self._table.content, np.uint8)
        # By pieces, since what is compared takes as many bytes again.
        pieces = ((begin, octets[begin : begin + _PIECE]) for begin in range(0, len(octets), _PIECE))
        line_begins = np.concatenate(
            [[0], *(np.flatnonzero(piece == _LINE_FEED) + begin + 1 for begin, piece in pieces)]
        )
        # What comes before the next sound row is part of one, or belongs to no image.
        begins = np.append(line_begins[lines - 1], len(self._table.content)).astype(np.int32)
        order = np.argsort(images, kind="stable").astype(np.int32)
        return partial(self._read_rows, order, images[order], np.append(lines, lines[-1:] + 1), begins)

    def _read_rows(
        self, order: IntArray, images: IntArray, lines: IntArray, begins: IntArray, of: Sequence[int]
    ) -> Iterator[Annotation]:
        """Reads the rows of some images, as a table of their lines alone.

        Args:
            order: numbers of the rows in the order of their images, int32 (n,).
            images: these images, int32 (n,).
            lines: the first line of each row, and one after the last, int32 (n + 1,).
            begins: likewise the first byte.
            of: the images to read.
        """
        content = self._table.content
        assert content is not None, "see `reader`"
        bounds = zip(np.searchsorted(images, of), np.searchsorted(images, of, "right"), strict=True)
        rows = np.sort(np.concatenate([order[:0], *(order[begin:end] for begin, end in bounds)]))
        pieces = zip(begins[rows].tolist(), begins[rows + 1].tolist(), strict=True)
        # A byte order mark at the start of a row would not be one there.
        text = b"".join([codecs.BOM_UTF8, *(content[begin:end] for begin, end in pieces)])
        counts = lines[rows + 1] - lines[rows]
        line_of = dict(zip((np.cumsum(counts) - counts + 1).tolist(), lines[rows].tolist(), strict=True))
        part = copy(self)
        part._table = replace(self._table, content=text, headless=True)
        for image, label, mask, line, values, size in part.annotations():
            yield Annotation(image, label, mask, line_of[line], values, size)

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

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        columns = {role: self._table.header[column] for role, column in self._columns.items()}
        if len(self._captions) == 1:
            columns[CAPTION] = self._table.header[self._captions[0]]
        return replace(super().resolved(options), columns=columns)

    def _take_apart(self, row: TableRow) -> RawAnnotation:
        """Reads one row that has as many fields as the header."""
        name = row.fields[self._columns[IMAGE]]
        return RawAnnotation(row.line, name, self._names.find(name))

    def _raw_annotations(self) -> Iterator[RawAnnotation]:
        width, further = len(self._table.header), self._further
        for row in self._rows():
            if len(row.fields) != width:
                problem = f"{counted(len(row.fields), 'field')}, the header has {width}"
                if row.fields:
                    problem += f" ({self._table.delimiter.join(row.fields)[:_SHOWN]!r})"
                name = self._named(row)
                yield RawAnnotation(row.line, name, self._names.find(name) if name else None, problem=problem)
                continue
            annotation = self._take_apart(row)
            if not annotation.name.strip():
                annotation = annotation._replace(problem="names no image")
            if self._captions:
                captions = (row.fields[column].strip() for column in self._captions)
                annotation = annotation._replace(captions=tuple(filter(None, captions)))
            if further is not None:
                annotation = annotation._replace(row=row, problem=annotation.problem or further.problem(row))
            yield annotation

    def _rows(self) -> Iterator[TableRow]:
        """Returns the rows, without those of images that the table of a newer delivery names too."""
        table = self._table
        if not isinstance(table, JoinedTable):
            return table.rows()
        newest = self._newest = self._newest or self._newest_parts(table)
        return (row for row in table.rows() if (image := self._image(row)) is None or newest[image] == row.part)

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
            if table.spans.agree:
                # The order of the rows plays no part.
                rows_of[image][row.part] += text_number(canonical_json(row.fields))
        for image, sums in rows_of.items():
            if len(set(sums.values())) > 1:
                spans = " and ".join(table.spans.parts[part].called for part in sorted(sums))
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
        name = self._named(row)
        return self._names.find(name) if name else None

    def _named(self, row: TableRow) -> str:
        """Returns what a broken row has where the others name their image."""
        column = min(self._columns[role] for role in (IMAGE, IMAGE_LABEL) if role in self._columns)
        return row.fields[column] if column < len(row.fields) else ""


class Numbers(CsvFormat):
    """A table of numbers about images, such as the targets of a regression: `image,head_circumference`.

    Each column becomes a feature `image/meta/<column>`, float32 unless `input.labels.features` gives its type: of whole
    numbers, too, since the next delivery may have a fraction. An image needs a number in each of these columns, and
    rows that repeat it must agree; otherwise it is rejected.
    """

    format, kind = "numbers", NONE

    def __init__(self, given: TableInput) -> None:
        super().__init__(given)
        self._wanted = given.found.numbers

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        return replace(super().resolved(options), features=dict(self._wanted))

    def _look(self, image: int, annotation: RawAnnotation) -> str:
        assert annotation.row is not None
        assert self._further is not None, "there is a column of numbers"
        header = self._further.differing(image, annotation.row)
        return f"an earlier row has another number in column {header}; an image has one" if header else ""
