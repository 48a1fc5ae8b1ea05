"""What the formats with a row for each annotation share: two passes over the rows, matched with images and classes."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from shardwright.errors import UsageError
from shardwright.manifest import SINGLE
from shardwright.masks.rle_dialects import Dialect
from shardwright.sources.base import NO_LABEL, Annotation, Images, Survey, Values
from shardwright.sources.classes import ClassMap, map_classes
from shardwright.sources.names import NameIndex
from shardwright.sources.tables import Row
from shardwright.storage import Listing, Refusal

CAPTION_FEATURE = "image/caption/text"
_SHOWN_NAMES = 3
# More distinct values than this are no classes: the wrong column was taken.
_MOST_CLASSES = 10_000


class Statement(NamedTuple):
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
    """

    line: int
    name: str
    image: int | None
    labels: tuple[str, ...] = ()
    text: str | None = None
    problem: str = ""
    captions: tuple[str, ...] = ()
    row: Row | None = None


class RowSource(ABC):
    """A file of rows; see `shardwright.sources.base.Source`.

    Args:
        path: the file.
        images: what is listed.
        names: how rows name images.
        classes: `input.classes`.
        notes: what was told so far.

    Attributes:
        kind: how many classes an image has, as `Survey.labels` says it; known after `survey`.
    """

    unlisted = "fail"
    mask_column = ""
    dialect = Dialect()
    kind = SINGLE
    _hint = ""

    def __init__(
        self,
        path: str,
        images: Images,
        names: NameIndex,
        classes: Mapping[str, int | None] | None,
        notes: tuple[str, ...],
    ) -> None:
        self.name = os.path.basename(path)
        self._path = path
        self._images = images
        self._names = names
        self._classes = classes
        self._notes = notes
        self._map: ClassMap | None = None

    @abstractmethod
    def _statements(self) -> Iterator[Statement]:
        """Streams the rows."""

    def _conflict(self, image: int, statement: Statement) -> str:
        """How a sound row contradicts earlier rows about the image at a position; empty when it does not."""
        del image, statement
        return ""

    def _look(self, image: int, statement: Statement) -> None:
        """Takes in a sound row of an image that contradicts none."""
        del image, statement

    def _features(self) -> tuple[dict[str, str], list[str]]:
        """Kinds of the further features, and notes about them, after all rows."""
        return {}, []

    def _reader(self) -> Callable[[int, Statement], Values]:
        """A function from an image and a row to what the row adds to its features; for one pass over all rows."""
        return lambda image, statement: _captions(statement)

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        return map_classes(values, self._classes)

    def survey(self) -> Survey:
        """See `Source.survey`."""
        values: dict[str, str] = {}
        survey = Survey(classes=(), listed=bytearray(len(self._images.keys)))
        missing: dict[str, int] = {}
        for statement in self._statements():
            if len(survey.names) < _SHOWN_NAMES and statement.name and statement.name not in survey.names:
                survey.names.append(statement.name)
            if statement.problem:
                self._reject(survey, statement, "bad_row", statement.problem)
            elif statement.image is None:
                missing.setdefault(statement.name, statement.line)
            elif conflict := self._conflict(statement.image, statement):
                self._reject(survey, statement, "conflicting_labels", conflict)
            else:
                self._look(statement.image, statement)
            if statement.image is not None:
                survey.listed[statement.image] = 1
            for label in statement.labels if not statement.problem else ():
                if label not in values:
                    values[label] = f"{self._path}, row {statement.line}"
                    if len(values) > _MOST_CLASSES:
                        raise UsageError(
                            f"{self._path}: more than {_MOST_CLASSES} different classes, e.g. {label!r}. "
                            "Say which column holds them by input.labels.columns."
                        )
        survey.refused += [
            Refusal(name, "missing_image", f"{self.name}, row {line} names it, but there is no such image")
            for name, line in missing.items()
        ]
        self._map = self._map_classes(values)
        survey.classes = self._map.names
        survey.labels = self.kind
        survey.hint = self._hint
        survey.features, told = self._features()
        survey.notes = (*self._notes, *self._map.notes, *told)
        return survey

    def annotations(self) -> Iterator[Annotation]:
        """See `Source.annotations`."""
        assert self._map is not None, "survey comes first"
        values_of = self._reader()
        for statement in self._statements():
            if statement.image is None or statement.problem:
                continue
            values = values_of(statement.image, statement)
            labels = statement.labels if statement.text != "" else ()
            for i, label in enumerate(labels):
                said = (statement.image, self._map.index[label], statement.text, statement.line)
                yield Annotation(*said, values) if values and i == 0 else Annotation(*said)
            if values and not labels:
                yield Annotation(statement.image, NO_LABEL, None, statement.line, values)

    def attachments(self) -> Listing | None:
        """See `Source.attachments`."""
        return None

    def _reject(self, survey: Survey, statement: Statement, code: str, problem: str) -> None:
        reason = f"{self.name}, row {statement.line}: {problem}"
        if statement.image is None:
            survey.refused.append(Refusal(f"{self.name}:{statement.line}", code, reason))
        elif statement.image not in survey.rejected:
            survey.rejected[statement.image] = Refusal(self._images.keys[statement.image], code, reason)


def _captions(statement: Statement) -> Values:
    return {CAPTION_FEATURE: list(statement.captions)} if statement.captions else {}
