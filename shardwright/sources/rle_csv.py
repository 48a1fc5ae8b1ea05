"""Masks as run lengths in a table, in the layouts of three Kaggle competitions.

| competition | columns |
|---|---|
| Understanding Clouds from Satellite Images | `Image_Label` = `file_Class`, `EncodedPixels` |
| Severstal Steel Defect Detection, first | `ImageId_ClassId` = `file_id`, `EncodedPixels` |
| Severstal Steel Defect Detection, later | `ImageId`, `ClassId`, `EncodedPixels`; images without defects have no row |

An empty field is an empty mask. Several rows of one class about one image mean their union.
"""

from __future__ import annotations

from collections.abc import Mapping

from shardwright.sources.classes import as_integer
from shardwright.sources.csv_source import CsvSource, Statement
from shardwright.sources.tables import IMAGE, IMAGE_LABEL, LABEL, MASK, Row, Table


class RleCsv(CsvSource):
    """See `CsvSource`. Image and class stand in one column (`image_label`) or in two (`image`, `label`)."""

    def __init__(
        self,
        table: Table,
        columns: Mapping[str, int],
        keys: list[str],
        skip: frozenset[int],
        classes: Mapping[str, int | None] | None,
        notes: tuple[str, ...],
    ) -> None:
        super().__init__(table, columns, keys, skip, classes, notes)
        self.mask_column = table.header[columns[MASK]]
        self.unlisted = "fail" if IMAGE_LABEL in columns else "empty"

    def _take_apart(self, row: Row) -> Statement:
        text = row.fields[self._columns[MASK]].strip()
        if IMAGE_LABEL in self._columns:
            name, label = self._split(row.fields[self._columns[IMAGE_LABEL]].strip())
        else:
            name = row.fields[self._columns[IMAGE]].strip()
            label = row.fields[self._columns[LABEL]].strip()
        problem = "names no image" if not name else "has a mask but names no class" if text and not label else ""
        return Statement(row.line, name, self._names.find(name), label, text, problem)

    def _split(self, value: str) -> tuple[str, str]:
        """Splits `file_Class` where both may hold underscores: the shortest class whose file exists wins."""
        cuts = [i for i, c in enumerate(value) if c == "_"]
        pairs = [(value[:i], value[i + 1 :]) for i in reversed(cuts) if value[i + 1 :]]
        known = [pair for pair in pairs if self._may_be_class(pair[1])]
        for pair in known:
            if self._names.find(pair[0]) is not None:
                return pair
        if known or pairs:
            return (known or pairs)[0]
        return value, ""

    def _may_be_class(self, text: str) -> bool:
        return self._classes is None or text in self._classes or as_integer(text) is not None
