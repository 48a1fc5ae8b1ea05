"""Recognizes the files of annotation tools: the format that reads them, or what to export instead.

A file or a folder is looked into before it is called masks or a table: a message about missing columns does not help
who has YOLO's text files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shardwright.errors import UsageError
from shardwright.formats.box_csv import BoxCsv, has_box_columns, is_box_csv
from shardwright.formats.cvat import Cvat
from shardwright.formats.json_lines import Labelbox, LabelJsonl, VertexJsonl, is_label_line
from shardwright.formats.label_studio import LabelStudio
from shardwright.formats.labelme import LabelMe
from shardwright.formats.listed_boxes import OBJECTS
from shardwright.formats.objects import ObjectFormat
from shardwright.formats.open_images import OpenImages, is_open_images
from shardwright.formats.panoptic import Panoptic
from shardwright.formats.parquet import ParquetFile
from shardwright.formats.parquet_pages import is_parquet
from shardwright.formats.supervisely import Supervisely
from shardwright.formats.tables import LABEL, choose_role
from shardwright.formats.via import ViaJson, is_via_csv
from shardwright.formats.voc_xml import VocBoxes
from shardwright.formats.yolo import Yolo
from shardwright.storage import EmptyListing, is_folder, list_inputs, read_start
from shardwright.untrusted import parse_untrusted_json

# So many files of a folder are looked into, and so many bytes of each.
_LOOKED_INTO, _START = 20, 1 << 16
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE]-?\d+)?"
_VERTEX_LINE = re.compile(r"(?:(?:train|training|validation|validate|test|unassigned),)?gs://", re.IGNORECASE)
_LINES = (".jsonl", ".ndjson", ".jsonlines")
_TEXTS = (".txt", ".json", ".xml", ".yaml", ".yml")


class KnownTool(NamedTuple):
    """Files of a tool.

    Attributes:
        name: the tool or the format.
        fix: what to do instead, a sentence; empty where `format` is given.
        format: the format that reads them, or empty.
    """

    name: str
    fix: str
    format: str = ""


_BOXES_ELSEWHERE = "Write the boxes as a CSV with the header image,xmin,ymin,xmax,ymax,label, or as COCO JSON."
_VOC_BOXES = KnownTool("Pascal VOC XML files of boxes", "", "voc_boxes")
_YOLO = KnownTool("YOLO text files", "", "yolo")
_YOLO_DATA = KnownTool("YOLO's data.yaml", "", "yolo")
_LABELME = KnownTool("LabelMe JSON, a file for each image", "", "labelme")
_SUPERVISELY = KnownTool("Supervisely JSON, a file for each image", "", "supervisely")
_CVAT = KnownTool("CVAT XML", "", "cvat_xml")
_VIA = KnownTool("VIA (VGG Image Annotator) JSON", "", "via_json")
_VIA_CSV = KnownTool("a CSV of VIA (VGG Image Annotator)", "", "via_json")
_LABEL_STUDIO = KnownTool("Label Studio JSON", "", "label_studio")
_LABELBOX = KnownTool("Labelbox JSON lines", "", "labelbox")
_VERTEX = KnownTool("Vertex AI JSON lines", "", "vertex_jsonl")
_LABEL_LINES = KnownTool("JSON lines with a class or boxes for each image", "", "label_jsonl")
_PANOPTIC = KnownTool("COCO panoptic JSON", "", "panoptic")
_CAPTIONS = KnownTool("COCO captions JSON", "", "captions")
_PARQUET = KnownTool(
    "Parquet with the images in it", "Give the file as input.images, without annotations; or write the images as files."
)
_DATUMARO = KnownTool("datumaro JSON", "Export COCO or CVAT from datumaro.")
_CREATE_ML = KnownTool("CreateML JSON", "Export COCO from the tool that wrote it.")
_LABELBOX_V1 = KnownTool(
    "an export of Labelbox from before its JSON lines", "Export JSON lines (export v2) from Labelbox."
)
_LABELBOX_IMPORT = KnownTool("an import file of Labelbox", "Export JSON lines (export v2) from Labelbox.")
_LABEL_STUDIO_MIN = KnownTool("Label Studio JSON-MIN", "Export 'JSON' from Label Studio.")
_VOTT = KnownTool("VoTT JSON", "Export CSV from VoTT.")
_BDD = KnownTool("BDD100K JSON", _BOXES_ELSEWHERE)
_KITTI = KnownTool("KITTI text files of boxes", _BOXES_ELSEWHERE)
_DOTA = KnownTool("DOTA text files of boxes", _BOXES_ELSEWHERE)
_VISDRONE = KnownTool("VisDrone text files of boxes", _BOXES_ELSEWHERE)
_VERTEX_CSV = KnownTool(
    "an import CSV of Vertex AI or AutoML, without a header",
    "Export JSON lines from Vertex AI, or write a table with the header image,label.",
)
_CITYSCAPES = KnownTool(
    "Cityscapes' polygons", "Read the masks of the same name, *_gtFine_labelIds.png, by giving their folder."
)
_OPEN_IMAGES = KnownTool("a CSV of Open Images", "", "open_images")
_BOX_CSV = KnownTool("a CSV of boxes", "", "box_csv")
READERS: Mapping[str, type[ObjectFormat]] = {
    one.format: one
    for one in (
        *(Yolo, LabelMe, Cvat, LabelStudio, ViaJson, VocBoxes, Supervisely),
        *(LabelJsonl, VertexJsonl, Labelbox, OpenImages, BoxCsv, Panoptic),
    )
}
# Formats with a file for each image, which may be next to the images.
FOLDERS = ("yolo", "labelme", "voc_boxes", "supervisely")


def find_tool(path: str, images: Collection[str] = ()) -> KnownTool | None:
    """Returns the tool that a file or most files of a folder are of.

    Args:
        path: absolute path.
        images: absolute paths of images, which may be in the folder.
    """
    return name_tool_of_folder(path, images) if is_folder(path) else name_tool(path)


def name_tool(path: str) -> KnownTool | None:
    """Returns the tool that a file is of; `None` where it is unknown, or the file is plain COCO.

    Args:
        path: absolute path of a file.
    """
    try:
        start = read_start(path, _START)
    except OSError:
        return None
    if is_parquet(start):
        return _of_parquet(path)
    text = start.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    ending = os.path.splitext(path)[1].lower()
    if ending in (".yaml", ".yml"):
        return _YOLO_DATA if re.search(r"^names\s*:", text, re.MULTILINE) else None
    if text.startswith("<"):
        root = re.search(r"<(annotations?)\b", text)
        return None if root is None else _CVAT if root[1] == "annotations" else _VOC_BOXES
    if text[:1] in ("{", "["):
        found = _of_json(text, whole=len(start) < _START)
        first = _object(text.split("\n")[0]) if ending in _LINES else None
        return _LABEL_LINES if found is None and first is not None and is_label_line(first) else found
    line = text.split("\n")[0].strip()
    if ending == ".csv":
        if _VERTEX_LINE.match(line):
            return _VERTEX_CSV
        return _of_header(line.split(",")) or (_BOX_CSV if is_box_csv(line) else None)
    return next((tool for form, tool in _TEXT_LINES if ending == ".txt" and form.match(line)), None)


def name_tool_of_folder(folder: str, images: Collection[str] = ()) -> KnownTool | None:
    """Returns the tool that most files of a folder are of; `None` where they are not of one.

    Args:
        folder: absolute path.
        images: absolute paths of files of the folder that are images, and do not count.
    """
    try:
        listing = list_inputs(folder)
    except EmptyListing:
        return None
    chosen = [i for i, key in enumerate(listing.keys) if key.lower().endswith(_TEXTS)]
    others = sum(listing.path(i) not in images for i in range(len(listing.keys))) if images else len(listing.keys)
    if 2 * len(chosen) <= others:
        return None
    found = [name_tool(listing.path(i)) for i in chosen[:_LOOKED_INTO]]
    best = max(found, key=found.count, default=None)
    return best if 2 * found.count(best) > len(found) else None


def check_known(path: str, tool: KnownTool | None) -> None:
    """Refuses files of a known tool that is not read.

    Raises:
        UsageError: `tool` is one; names it, and what to export.
    """
    if tool is not None and not tool.format:
        raise UsageError(f"input.labels.path: {path}: holds {tool.name}, which is not read. {tool.fix}")


def _of_parquet(path: str) -> KnownTool | None:
    """Returns what a Parquet file contains; `None` for a table of masks, classes, captions or numbers."""
    file = ParquetFile.open(path)
    columns = file.columns
    if any(column.image for column in columns):
        return _PARQUET
    nested = {column.name: None for column in columns if column.nested}
    names = [column.name for column in columns]
    listed = OBJECTS in nested or choose_role(LABEL, names, {}) in nested
    if listed and is_label_line(dict.fromkeys(names)):
        return _LABEL_LINES
    return None if nested else _of_header(file.header)


def _of_header(header: Sequence[str]) -> KnownTool | None:
    if is_via_csv(header):
        return _VIA_CSV
    return _OPEN_IMAGES if is_open_images(header) else _BOX_CSV if has_box_columns(header) else None


def _of_json(text: str, *, whole: bool) -> KnownTool | None:
    """Looks for the members that a tool writes; of a long file only its start is known."""
    first = next(filter(None, map(_object, _documents(text))), None) if whole or "\n" in text else None
    for has, tool in _MARKS:
        if has(first if first is not None else text):
            return tool
    return None


def _documents(text: str) -> Iterator[str]:
    """Yields the whole document, and its first line: the file may be JSON lines."""
    yield text
    yield text.split("\n")[0]


def _object(text: str) -> dict[str, Any] | None:
    try:
        document = parse_untrusted_json(text)
    except ValueError:
        return None
    if isinstance(document, list):
        document = document[0] if document else None
    return document if isinstance(document, dict) else None


def _has(*names: str) -> Callable[[dict[str, Any] | str], bool]:
    def has(found: dict[str, Any] | str) -> bool:
        if isinstance(found, str):
            return '"images"' not in found and all(f'"{name}"' in found for name in names)
        return all(name in found for name in names)

    return has


def _in_annotations(name: str) -> Callable[[dict[str, Any] | str], bool]:
    def has(found: dict[str, Any] | str) -> bool:
        if isinstance(found, str):
            return '"images"' in found and f'"{name}"' in found and '"segmentation"' not in found
        rows = found.get("annotations")
        row = rows[0] if isinstance(rows, list) and rows else None
        return "images" in found and isinstance(row, dict) and name in row and "segmentation" not in row

    return has


def _is_via(found: dict[str, Any] | str) -> bool:
    if isinstance(found, str):
        via = '"_via_' in found or ('"regions"' in found and '"filename"' in found)
        return via and '"images"' not in found
    rows = [found, *found.values()]
    return any(name.startswith("_via_") for name in found) or any(
        isinstance(row, dict) and {"filename", "regions"} <= row.keys() for row in rows
    )


# First lines of a text file for each image.
_TEXT_LINES = (
    (re.compile(rf"\d+(?:\s+{_NUMBER}){{4,}}$"), _YOLO),
    (re.compile(rf"[A-Za-z_]+(?:\s+{_NUMBER}){{14,15}}$"), _KITTI),
    (re.compile(rf"imagesource:|(?:{_NUMBER}\s+){{8}}[A-Za-z][\w-]*(?:\s+\d)?$"), _DOTA),
    (re.compile(r"(?:-?\d+,){7}-?\d+,?$"), _VISDRONE),
)
_MARKS = (
    (_has("shapes", "imagePath"), _LABELME),
    (_has("objects", "size", "tags"), _SUPERVISELY),
    (_has("imgHeight", "imgWidth", "objects"), _CITYSCAPES),
    (_has("data_row"), _LABELBOX),
    (_has("imageGcsUri"), _VERTEX),
    (_is_via, _VIA),
    (_in_annotations("segments_info"), _PANOPTIC),
    (_in_annotations("caption"), _CAPTIONS),
    (_has("data", "annotations"), _LABEL_STUDIO),
    (_has("items", "categories"), _DATUMARO),
    (_has("Labeled Data", "DataRow ID"), _LABELBOX_V1),
    (_has("uuid", "dataRow"), _LABELBOX_IMPORT),
    (_has("annotation_id", "annotator"), _LABEL_STUDIO_MIN),
    (_has("videoSettings", "tags"), _VOTT),
    (_has("name", "labels", "attributes"), _BDD),
    (_has("image", "annotations"), _CREATE_ML),
)
