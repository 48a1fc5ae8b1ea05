"""JSON with an object for each image: label tables, Hugging Face's `metadata.jsonl`, Vertex AI and Labelbox exports.

| format | a line |
|---|---|
| `label_jsonl` | `{"file_name": "a.jpg", "label": "cat"}`; several labels are a list; `objects` holds boxes |
| `vertex_jsonl` | `{"imageGcsUri": "gs://b/a.jpg", "classificationAnnotation": {"displayName": "cat"}}` |
| `labelbox` | `{"data_row": {"external_id": "a.jpg"}, "projects": {"p": {"labels": [...]}}}` |

Members of label tables are found as columns of a table are; a Parquet file with lists is one, too, and so are the JSON
documents of `json_rows`. `objects` are those of Hugging Face's imagefolder, see `listed_boxes`. Boxes of Vertex AI are
fractions of the image; its `ml_use` is the split. Labelbox keeps masks as addresses on its servers: an image that has
one is rejected. Sources: the documentation of the three (huggingface.co/docs/datasets/image_dataset,
cloud.google.com/vertex-ai/docs/image-data, docs.labelbox.com/reference/export-image-annotations).
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardwright.errors import UsageError
from shardwright.formats.base import Request, Survey
from shardwright.formats.head import Head
from shardwright.formats.image_names import address_path
from shardwright.formats.json_rows import flat_rows, read_document
from shardwright.formats.listed_boxes import OBJECTS, BoxForm, read_boxes, read_class
from shardwright.formats.object_agreement import stated_beside
from shardwright.formats.object_content import FRACTIONS, Content, Entry, Thing, corner_box, polygon, rectangle
from shardwright.formats.object_values import Fields, ObjectError, load_json, read_points
from shardwright.formats.objects import ObjectTable
from shardwright.formats.parquet import ParquetFile
from shardwright.formats.parquet_pages import is_parquet_file
from shardwright.formats.tables import IMAGE, LABEL, choose_role, json_lines
from shardwright.images.boxes import Box

_VERTEX = ("classificationAnnotation", "classificationAnnotations", "boundingBoxAnnotations")
_SIDES = ("xMin", "yMin", "xMax", "yMax")
_ML_USE = "aiplatform.googleapis.com/ml_use"
_SHOWN = 60


class _Lines(ObjectTable):
    """JSON lines: a line is an image."""

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self._bytes = given.content

    def _entries(self) -> Iterator[Entry]:
        return (self._entry(f"line {number}", raw) for number, raw in json_lines(self._path, self._bytes))

    def _entry(self, place: str, raw: Any) -> Entry:
        where = f"{self.name}, {place}"
        if not isinstance(raw, dict):
            return Entry([], where, ObjectError("is not a JSON object"))
        return Entry(self._names_in(raw), where, raw)

    @abstractmethod
    def _names_in(self, found: Mapping[str, Any]) -> Sequence[str]:
        """Names that the image of a line may have."""


class LabelJsonl(_Lines):
    """A label table: a class, a list of classes, or boxes for each image."""

    format, tool, finds_unit = "label_jsonl", "the label table", True

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self._columns = given.options.columns
        self._form = BoxForm()
        self._fractions = False
        folder, root = os.path.dirname(given.path), given.images.root.rstrip("/") + "/"
        # Hugging Face names images from the folder of the file on.
        self._folder = folder.removeprefix(root) + "/" if folder.startswith(root) else ""

    def _entries(self) -> Iterator[Entry]:
        if is_parquet_file(self._path, self._bytes):
            file = ParquetFile.open(self._path)
            rows: Iterable[Any] = file.rows(file.header)
        elif self._path.lower().endswith(".json") and not Head.read(self._path, content=self._bytes).why_lines(
            several=True
        ):
            document = load_json(self._path, "the tool that wrote it", self._bytes)
            rows, self._fractions = read_document(document) or flat_rows(document, self._path)
        else:
            return super()._entries()
        return (self._entry(f"row {number}", row) for number, row in enumerate(rows, 1))

    def _names_in(self, found: Mapping[str, Any]) -> Sequence[str]:
        name = found.get(choose_role(IMAGE, list(found), self._columns))
        if not isinstance(name, str) or not name.strip():
            return []
        return [self._folder + name, name] if self._folder else [name]

    def _content(self, raw: Mapping[str, Any]) -> Content:
        image, label = (choose_role(role, list(raw), self._columns) for role in (IMAGE, LABEL))
        value = raw.get(label)
        tags = [read_class(one) for one in (value if isinstance(value, list) else [] if value is None else [value])]
        left = Counter({f"members {ascii(name)[:_SHOWN]}": 1 for name in raw if name not in (image, label, OBJECTS)})
        things: list[Thing] = []
        for box in read_boxes(raw[OBJECTS]) if raw.get(OBJECTS) is not None else ():
            if not self._fractions:
                self._form.add(box.numbers)
            things.append(rectangle(box.label, corner_box(*box.numbers))._replace(beside=(None, box.area)))
        return Content(things, tags, boxes_in=FRACTIONS if self._fractions else None, left_out=left)

    def survey(self) -> Survey:
        survey = super().survey()
        if self._boxes and self._form.boxes:
            survey.notes = (*survey.notes, f"{self.name}: {self._form.note()}")
        return survey

    def _check_boxes(self, survey: Survey) -> None:
        """Decides what the numbers are first."""
        form = self._form
        if form.fractions:
            raise UsageError(
                f"{self._path}: the numbers of bbox are fractions of the image, and it is unknown which. Write them as "
                "[x, y, width, height] in pixels."
            )
        for one in self._kept if form.may_be_edges else ():
            height, width = self._images.size_of(one.position) or (0, 0)
            for thing in one.content.things if height else ():
                form.compare(_numbers(thing), height=height, width=width)
        for i, (_, content) in enumerate(self._kept) if form.edges else ():
            things = [thing._replace(box=form.box(_numbers(thing))) for thing in content.things]
            self._kept[i] = self._kept[i]._replace(content=replace(content, things=things))
        super()._check_boxes(survey)


def _numbers(thing: Thing) -> tuple[float, float, float, float]:
    """Returns the numbers of a box as they were written."""
    assert thing.box is not None
    left, top, right, bottom = thing.box
    return left, top, right - left, bottom - top


class VertexJsonl(_Lines):
    """Exports of Vertex AI."""

    format, tool = "vertex_jsonl", "Vertex AI"

    def _names_in(self, found: Mapping[str, Any]) -> Sequence[str]:
        return [address_path(found.get("imageGcsUri"))]

    def _content(self, raw: Mapping[str, Any]) -> Content:
        line = Fields(raw)
        single = [line.inside("classificationAnnotation")] if raw.get("classificationAnnotation") else []
        tags = [tag.name("displayName") for tag in (*single, *line.each("classificationAnnotations", default=[]))]
        things = []
        for box in line.each("boundingBoxAnnotations", "box", []):
            # The documentation has edges as texts.
            texts = any(isinstance(box.get(side), str) for side in _SIDES)
            edges = Fields(box.members, box.where, texts=texts).numbers(*_SIDES)
            things.append(Thing(box.name("displayName"), None, Box(*edges)))
        others = [name for name in raw if name not in _VERTEX and name.endswith(("Annotation", "Annotations"))]
        if others and not (things or tags):
            raise ObjectError(f"has {others[0]}, which are not read; export masks, and give their folder")
        resources = raw.get("dataItemResourceLabels") or {}
        split = str(resources.get(_ML_USE, "")) if isinstance(resources, dict) else ""
        split = {"training": "train", "validation": "eval"}.get(split, split)
        return Content(things, tags, boxes_in=FRACTIONS, split=split)


class Labelbox(_Lines):
    """Exports of Labelbox."""

    format, tool = "labelbox", "Labelbox"

    def _names_in(self, found: Mapping[str, Any]) -> Sequence[str]:
        row = found.get("data_row")
        row = row if isinstance(row, dict) else {}
        named = [row[key] for key in ("global_key", "external_id") if isinstance(row.get(key), str)]
        return [*named, address_path(row.get("row_data"))]

    def _content(self, raw: Mapping[str, Any]) -> Content:
        line = Fields(raw)
        given = [Fields(project, "a project").listed("labels") for project in line.inside("projects").members.values()]
        labels = [Fields(label, "a label") for labels in given for label in labels]
        if len(labels) > 1:
            raise ObjectError(f"it has {len(labels)} labels, of several projects or people; export one of each image")
        content = Content(size=line.inside("media_attributes", {}).size())
        annotations = Fields((labels[0].get("annotations") if labels else None) or {}, "annotations")
        annotations.where = ""
        for one in annotations.each("objects", "object", []):
            thing = _labelbox_thing(one, content.left_out)
            content.things += [thing] if thing is not None else []
        for one in annotations.each("classifications", "classification", []):
            answers = [*one.each("checklist_answers", "answer", [])]
            answers = [one.inside("radio_answer")] if one.get("radio_answer") else answers
            content.tags += [answer.name("name") for answer in answers]
            content.left_out.update({} if answers else {"answers in words": 1})
        return content


def _labelbox_thing(one: Fields, left_out: Counter[str]) -> Thing | None:
    label = one.name("name")
    if "bounding_box" in one.members:
        return rectangle(label, corner_box(*one.inside("bounding_box").numbers("left", "top", "width", "height")))
    if "polygon" in one.members:
        corners = [(point.number("x"), point.number("y")) for point in one.each("polygon", "point")]
        thing = Thing(label, polygon(read_points(corners, one.place("polygon"))))
        return thing._replace(beside=stated_beside(one.members))
    if "mask" in one.members:
        raise ObjectError(f"{one.where}: its mask is on Labelbox's servers; download the masks, and give their folder")
    kind = next((name for name in ("point", "line") if name in one.members), "")
    if not kind:
        raise ObjectError(f"{one.where}: is neither a box nor a polygon")
    left_out[f"{kind}s"] += 1
    return None
