"""Masks as run lengths in a table.

| set | columns |
|---|---|
| Understanding Clouds from Satellite Images | `Image_Label` = `file_Class`, `EncodedPixels` |
| Severstal Steel Defect Detection, first | `ImageId_ClassId` = `file_id`, `EncodedPixels` |
| Severstal Steel Defect Detection, later | `ImageId`, `ClassId`, `EncodedPixels`; images without defects have no row |
| Airbus ships, Data Science Bowl 2018, SIIM-ACR | `ImageId`, `EncodedPixels`; often many rows an image |
| TGS salt, Carvana | `id` or `img`, `rle_mask` |
| Sartorius | `id`, `annotation`, and columns that describe the image; a row a cell |
| UW-Madison | `id`, `class`, `segmentation` |

Any other names do as well: see `shardwright.sources.rle_layouts` for how the code is told. An empty field is an empty
mask, and where the header does not say the set, so is `-1`. Several rows of one class about one image mean their union.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from shardwright.errors import UsageError
from shardwright.manifest import IGNORED
from shardwright.sources.base import IGNORE, Survey
from shardwright.sources.classes import ClassMap, as_integer
from shardwright.sources.csv_source import CsvSource, TableInput
from shardwright.sources.export_record import RECORD_FILE, ExportRecord
from shardwright.sources.rle_layouts import Layout, Specimen, tell_layout
from shardwright.sources.row_source import Statement
from shardwright.sources.tables import IMAGE, IMAGE_LABEL, LABEL, MASK, Row, Table, reduce_header

_ONE_CLASS = "mask"
# Columns beside image and mask that hold no class of the mask: those of Data Science Bowl's and Sartorius' tables.
_DESCRIBING = frozenset(
    ("height", "width", "usage", "celltype", "platetime", "sampledate", "sampleid", "elapsedtimedelta")
)
# Enough to tell a dialect from, and read in a moment.
_SPECIMENS, _IMAGES, _TRIED_IMAGES = 256, 32, 256


class RleCsv(CsvSource):
    """See `CsvSource`. Image and class stand in one column (`image_label`), in two, or the only class is not named.

    Args:
        given: the table.
        code: `runs`, `order` and `base` as far as the configuration says them.
        record: of the export of ours that the table is.
    """

    def __init__(self, given: TableInput, code: Mapping[str, str | int], record: ExportRecord | None = None) -> None:
        super().__init__(given)
        self._ignores = record is not None and record.ignored
        table, columns = given.table, given.columns
        self.mask_column = table.header[columns[MASK]]
        self._one_class = ""
        if LABEL not in columns and IMAGE_LABEL not in columns:
            # What is named as a caption or a feature is no class.
            known = [table.header[i] for i in (*columns.values(), *given.captions)] + given.further.named
            self._one_class = _one_class(table, known, given.classes)
        headers = {role: table.header[column] for role, column in columns.items()}
        if record is not None and not code:
            layout = Layout(record.dialect, record.unlisted, f"{RECORD_FILE} says so")
        else:
            layout = tell_layout(table.path, headers, self._specimens(given.images.size_of), code)
        self.dialect, self.unlisted = layout.dialect, layout.unlisted
        reason = f", since {layout.reason}" if layout.reason else ""
        self._notes += (f"run lengths: {self.dialect}{reason} (input.labels.runs, order and base say otherwise)",)

    def survey(self) -> Survey:
        """See `Source.survey`."""
        survey = super().survey()
        survey.ignore = self._ignores
        return survey

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        if not self._ignores:
            return super()._map_classes(values)
        mapped = super()._map_classes({value: where for value, where in values.items() if value != IGNORED})
        return ClassMap(mapped.names, {**mapped.index, IGNORED: IGNORE}, mapped.notes)

    def _take_apart(self, row: Row) -> Statement:
        text = row.fields[self._columns[MASK]].strip()
        if text in self.dialect.empty:
            text = ""
        if IMAGE_LABEL in self._columns:
            name, label = self._split(row.fields[self._columns[IMAGE_LABEL]].strip())
        else:
            name = row.fields[self._columns[IMAGE]].strip()
            label = self._one_class or row.fields[self._columns[LABEL]].strip()
        problem = "names no image" if not name else "has a mask but names no class" if text and not label else ""
        return Statement(row.line, name, self._names.find(name), (label,) if label else (), text, problem)

    def _specimens(self, size_of: Callable[[int], tuple[int, int] | None]) -> list[Specimen]:
        """The first rows with a mask, of so many images that can be read."""
        sizes: dict[int, tuple[int, int] | None] = {}
        found: list[Specimen] = []
        for statement in self._statements():
            name, image, text = statement.name, statement.image, statement.text
            if image is None or not text or statement.problem:
                continue
            if image not in sizes:
                if len(sizes) == _TRIED_IMAGES or sum(size is not None for size in sizes.values()) == _IMAGES:
                    break
                sizes[image] = size_of(image)
            size = sizes[image]
            if size is not None:
                found.append(Specimen(text, self._images.keys[image].endswith(name), *size))
            if len(found) == _SPECIMENS:
                break
        return found

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
        known = self._classes is None or text in self._classes or as_integer(text) is not None
        return known or (self._ignores and text == IGNORED)


def _one_class(table: Table, known: Collection[str], classes: Mapping[str, int | None] | None) -> str:
    """The class of all masks of a table that has no column of classes.

    Args:
        table: the table.
        known: headers of columns that are something else.
        classes: `input.classes`.

    Raises:
        UsageError: several classes are configured, or another column may well hold them.
    """
    if classes is not None and len(classes) == 1:
        return next(iter(classes))
    if classes is not None:
        raise UsageError(
            f"{table.path}: no column of classes was found, and input.classes names {len(classes)}. Name the column by "
            "input.labels.columns.label, or only one class."
        )
    unknown = [name for name in table.header if name not in known and reduce_header(name) not in _DESCRIBING]
    if unknown:
        raise UsageError(
            f"{table.path}: no column of classes was found; is it {unknown[0]!r}? Name it by "
            "input.labels.columns.label, or write the only class there is into input.classes."
        )
    return _ONE_CLASS
