"""The format that `shardwright export` writes: annotations in their format, with the features of `features.jsonl`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from shardwright.config.input import LabelsConfig
from shardwright.dataset.manifest import MASKS, MULTI, NONE, SINGLE
from shardwright.errors import UsageError
from shardwright.formats.base import NO_LABEL, Annotation, AnnotationFormat, Request, Survey
from shardwright.formats.export_record import LABELS, RECORD_FILE, ExportRecord, FoundExport
from shardwright.formats.image_names import NameIndex
from shardwright.formats.tables import json_lines
from shardwright.storage import Listing

# JSON has no infinities, which are texts.
_TYPES = {"bytes": (str,), "int64": (int,), "float32": (int, float, str)}


class Exported(AnnotationFormat):
    """Annotations in their own format, and further features.

    Args:
        given: what is asked.
        inner: the annotations.
        found: the export that they belong to.
    """

    def __init__(self, given: Request, inner: AnnotationFormat, found: FoundExport) -> None:
        super().__init__(given)
        self.inner = inner
        self.unlisted = found.record.unlisted
        self.name = inner.name
        self.mask_column = inner.mask_column
        self.dialect = inner.dialect
        self._found = found

    def survey(self) -> Survey:
        survey, record = self.inner.survey(), self._found.record
        self.dialect = self.inner.dialect
        survey.features = {**survey.features, **record.features}
        survey.labels = survey.labels if record.labels == MASKS else record.labels
        survey.ordered = record.labels == MULTI
        # Masks and boxes are those of the stored pixels.
        survey.frame = "stored"
        survey.notes = (*survey.notes, f"labels: {RECORD_FILE} states how `shardwright export` wrote them")
        return survey

    def annotations(self) -> Iterator[Annotation]:
        yield from self.inner.annotations()
        path, kinds = self._found.features_path, self._found.record.features
        names = NameIndex(self._images.keys, self._images.skip, exact=True)
        for number, row in json_lines(path) if path else ():
            try:
                image, values = names.find(row["image"]), _values(row["features"], kinds)
            except (ValueError, KeyError, TypeError, AttributeError):
                problem = "is not a line of an export"
                raise UsageError(f"{path}, line {number}: {problem}. Export the dataset again.") from None
            if image is not None:
                yield Annotation(image, NO_LABEL, None, number, values)

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        return self.inner.resolved(options)

    def attachments(self) -> Listing | None:
        return self.inner.attachments()


def _values(features: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, list[Any]]:
    """Returns the values of the features that `export.json` names."""
    found = {name: values for name, values in features.items() if name in kinds}
    for name, values in found.items():
        if not isinstance(values, list) or not all(isinstance(value, _TYPES[kinds[name]]) for value in values):
            raise ValueError(name)
        for value in values if kinds[name] == "float32" else ():
            float(value)
    return found


def features_line(image: str, values: Mapping[str, Any]) -> str:
    """Returns a line of `features.jsonl`."""
    return json.dumps({"image": image, "features": values}, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def export_options(
    record: ExportRecord, options: LabelsConfig, classes: Mapping[str, int | None] | None
) -> tuple[LabelsConfig, Mapping[str, int | None] | None]:
    """Returns `input.labels` and `input.classes`, completed by the export where the configuration does not set them."""
    if classes is None and record.labels != NONE and options.format in ("auto", "rle_csv", "label_csv", "mask_images"):
        classes = dict.fromkeys(record.classes) or None
    listed = options.path is not None and record.file == LABELS and record.labels in (SINGLE, MULTI)
    if listed and options.multi_label is None and not options.separator:
        options = dataclasses.replace(options, multi_label=record.labels == MULTI)
    return options, classes
