"""What a file or a folder can be and nothing else, by its head: the formats that are read, and files that are not.

A sign holds for one format alone. Where two tools may have written a file, its content or the options decide. A message
about missing columns does not help who has KITTI's text files: files that are not read are named, with what to do.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from shardwright.formats.head import NUMBER, Head
from shardwright.formats.json_rows import is_document
from shardwright.formats.listed_boxes import OBJECTS
from shardwright.formats.table_values import find_box_columns, is_first_box
from shardwright.formats.tables import DELIMITERS, IMAGE, LABEL, choose_role
from shardwright.storage import is_folder

VOC_MASKS, VOC_OBJECTS = "SegmentationClass", "SegmentationObject"
YAML_ENDINGS = (".yaml", ".yml")
# Columns of VIA's CSV, whose first name may begin with `#`: of a file, and of a region with its name in JSON.
VIA_FILE_COLUMNS = ("filename", "file_attributes")
VIA_REGION_COLUMNS = {"region_shape_attributes": "shape_attributes", "region_attributes": "region_attributes"}
# Columns of Open Images: of all its tables, and of those of classes, masks and boxes.
OPEN_IMAGES_COLUMNS, OPEN_IMAGES_KINDS = ("ImageID", "LabelName"), ("Confidence", "MaskPath", "XMin")
_YEARS = range(2005, 2013)
_YOLO_NAMES = re.compile(r"^names\s*:", re.MULTILINE)
_BOXES = "Write the boxes as a CSV with the header image,xmin,ymin,xmax,ymax,label, or as COCO JSON."
_COCO, _LABELBOX = "Write the set as COCO JSON.", "Export JSON lines (export v2) from Labelbox."


class Sign(NamedTuple):
    """A sign.

    Attributes:
        format: name of the format; empty of files that are not read.
        called: what the files are called.
        fits: whether a head has the sign.
        fix: what to do with files that are not read.
    """

    format: str
    called: str
    fits: Callable[[Head], bool]
    fix: str = ""


def has(*names: str) -> Callable[[Head], bool]:
    """Returns whether a head is of JSON with these members."""
    return lambda head: head.has(*names)


def begins(ending: str, line: str) -> Callable[[Head], bool]:
    """Returns whether a head is of a file with this ending, whose first line begins so."""
    return lambda head: head.ending == ending and re.match(line, head.line) is not None


def voc_trees(folder: str) -> list[str]:
    """Returns the trees of years in a folder of Pascal VOC; none where it is a tree itself."""
    if is_folder(os.path.join(folder, VOC_MASKS)) or "voc" not in os.path.basename(folder.rstrip("/")).lower():
        return []
    years = [f"VOC{year}/" for year in _YEARS]
    return [year for year in years if is_folder(os.path.join(folder, year, VOC_MASKS))]


def is_via_table(header: Iterable[str]) -> bool:
    """Returns whether a CSV has the columns of VIA."""
    return {*VIA_FILE_COLUMNS, *VIA_REGION_COLUMNS} <= {name.lstrip("#") for name in header}


def _is_via(head: Head) -> bool:
    if head.members is None:
        named = '"_via_' in head.text or ('"regions"' in head.text and '"filename"' in head.text)
        return head.text[:1] in ("{", "[") and named and '"images"' not in head.text
    entries = [one for one in (head.members, *head.members.values()) if isinstance(one, dict)]
    described = any({"filename", "regions"} <= one.keys() for one in entries)
    return described or any(name.startswith("_via_") for name in head.members)


def is_open_images(header: Iterable[str]) -> bool:
    """Returns whether a CSV has the columns of Open Images."""
    return {*OPEN_IMAGES_COLUMNS} <= {*header} and not {*OPEN_IMAGES_KINDS}.isdisjoint(header)


def _is_box_table(head: Head) -> bool:
    fields = list(head.header)
    if head.ending == ".csv" and find_box_columns(fields, {}) is None:
        delimiter = max(DELIMITERS, key=head.line.count)
        with suppress(csv.Error):  # The reader of tables reports what is wrong.
            fields = [field.strip() for field in next(csv.reader([head.line], delimiter=delimiter), [])]
    return find_box_columns(fields, {}) is not None or (head.ending == ".csv" and is_first_box(fields))


def _has_labels(head: Head) -> bool:
    names = list(head.first_line or ())
    if head.parquet is not None and not head.parquet.has_images:
        names = [column.name for column in head.parquet.columns]
        nested = {column.name for column in head.parquet.columns if column.nested}
        names = names if nested & {OBJECTS, choose_role(LABEL, names, {})} else []
    return bool(choose_role(IMAGE, names, {})) and (bool(choose_role(LABEL, names, {})) or OBJECTS in names)


# The first that fits counts. A row is read as a row.
# fmt: off
SIGNS = (
    Sign("pascal_voc", VOC_MASKS, lambda head: head.holds(VOC_MASKS) or (head.folder and bool(voc_trees(head.path)))),
    Sign("captions", "COCO captions JSON", lambda head: head.has_annotations_with("caption")),
    Sign("yolo", "YOLO's data.yaml", lambda head: head.ending in YAML_ENDINGS and bool(_YOLO_NAMES.search(head.text))),
    Sign("yolo", "YOLO text files", begins(".txt", rf"\d+(?:\.0+(?:e\+00)?)?(?:\s+{NUMBER}){{4,}}$")),
    Sign("labelme", "LabelMe JSON, a file for each image", has("shapes", "imagePath")),
    Sign("cvat_xml", "CVAT XML", lambda head: head.xml_root == "annotations"),
    Sign("datumaro", "Datumaro JSON", has("items", "categories")),
    Sign("label_studio", "Label Studio JSON", has("data", "annotations")),
    Sign("label_studio", "Label Studio JSON", has("data", "predictions")),
    Sign("via_json", "a CSV of VIA (VGG Image Annotator)", lambda head: is_via_table(head.header)),
    Sign("via_json", "VIA (VGG Image Annotator) JSON", _is_via),
    # MIT's LabelMe has the same root, and outlines.
    Sign("voc_boxes", "Pascal VOC XML files of boxes",
         lambda head: head.xml_root == "annotation" and ("<polygon>" not in head.text or "<bndbox>" in head.text)),
    Sign("supervisely", "Supervisely JSON, a file for each image", has("objects", "size", "tags")),
    Sign("open_images", "a CSV of Open Images", lambda head: is_open_images(head.header)),
    Sign("box_csv", "a CSV of boxes", _is_box_table),
    Sign("panoptic", "COCO panoptic JSON", lambda head: head.has_annotations_with("segments_info")),
    Sign("vertex_jsonl", "Vertex AI JSON lines", has("imageGcsUri")),
    Sign("labelbox", "Labelbox JSON lines", has("data_row")),
    Sign("label_jsonl", "JSON with the classes of images", is_document),
    Sign("label_jsonl", "JSON lines with a class or boxes for each image", _has_labels),
    Sign("", "Parquet with the images in it", lambda head: head.parquet is not None and head.parquet.has_images,
         "Give the file as input.images, without annotations; or write the images as files."),
    Sign("", "Cityscapes' polygons", has("imgHeight", "imgWidth", "objects"),
         "Read the masks of the same name, *_gtFine_labelIds.png, by giving their folder."),
    Sign("", "an export of Labelbox from before its JSON lines", has("Labeled Data", "DataRow ID"), _LABELBOX),
    Sign("", "an import file of Labelbox", has("uuid", "dataRow"), _LABELBOX),
    Sign("", "Label Studio JSON-MIN", has("annotation_id", "annotator"), "Export 'JSON' from Label Studio."),
    Sign("", "VoTT JSON", has("videoSettings", "tags"), "Export CSV from VoTT."),
    Sign("", "BDD100K JSON", has("name", "labels", "attributes"), _BOXES),
    Sign("", "CreateML JSON", has("image", "annotations"), "Export COCO from the tool that wrote it."),
    Sign("", "detectron2's dicts of a data set", has("file_name", "image_id", "annotations"), _COCO),
    Sign("", "MMDetection's list of images", has("filename", "ann"), _COCO),
    Sign("", "V7 Darwin JSON", has("item", "annotations"), "Export COCO from V7."),
    Sign("", "XML of MIT's LabelMe", lambda head: head.xml_root == "annotation",
         "Export COCO, or JSON of the program labelme, from the tool that wrote it."),
    Sign("", "KITTI text files of boxes", begins(".txt", rf"[A-Za-z_]+(?:\s+{NUMBER}){{14,15}}$"), _BOXES),
    Sign("", "DOTA text files of boxes",
         begins(".txt", rf"imagesource:|(?:{NUMBER}\s+){{8}}[A-Za-z][\w-]*(?:\s+\d)?$"), _BOXES),
    Sign("", "VisDrone text files of boxes", begins(".txt", r"(?:-?\d+,){7}-?\d+,?$"), _BOXES),
    Sign("", "keras-yolo3's lines of boxes", begins(".txt", rf"\S+\.\w+(?:\s+(?:{NUMBER},){{4}}\d+)+$"), _BOXES),
    Sign("", "an import CSV of Vertex AI or AutoML, without a header",
         begins(".csv", r"(?i:(?:(?:train|training|validation|validate|test|unassigned),)?gs://)"),
         "Export JSON lines from Vertex AI, or write a table with the header image,label."),
)
# fmt: on
