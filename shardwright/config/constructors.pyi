"""See `constructors.py`. This file is generated from `shardwright.label_formats`."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from shardwright.config.input import LabelsConfig, RleConfig

__all__ = [
    "labels_of",
    "ClassFolders",
    "FileNames",
    "LabelCsv",
    "RleCsv",
    "Coco",
    "MaskImages",
    "PascalVoc",
    "Captions",
    "Numbers",
    "Unlabeled",
    "TfRecords",
    "Yolo",
    "LabelMe",
    "Cvat",
    "Datumaro",
    "LabelStudio",
    "Via",
    "VocBoxes",
    "Supervisely",
    "OpenImages",
    "BoxCsv",
    "Panoptic",
    "VertexJsonl",
    "Labelbox",
    "LabelJsonl",
]

def labels_of(raw: Mapping[str, Any]) -> LabelsConfig: ...

def ClassFolders() -> LabelsConfig:
    """Returns labels that are the names of the folders in which the images are."""

def FileNames(regex: str | None = None) -> LabelsConfig:
    """Returns labels that are in the names of the images: before the last `_<number>`, or a regex's group `label`."""

def LabelCsv(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    features: str | Sequence[str] | Mapping[str, str] | None = None,
    key_regex: str | None = None,
    multi_label: bool | None = None,
    separator: str | None = None,
) -> LabelsConfig:
    """Returns labels that are classes in a CSV, one or several for each image."""

def RleCsv(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    encoding: str = "auto",
    order: str = "auto",
    start: int | None = None,
    columns: Mapping[str, str] | None = None,
    features: str | Sequence[str] | Mapping[str, str] | None = None,
    key_regex: str | None = None,
    rle: RleConfig | Mapping[str, Any] | None = None,
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are run lengths in a CSV, a row for each mask."""

def Coco(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are a COCO instances file: polygons, run lengths, and with `boxes=True` boxes."""

def MaskImages(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    regex: str | None = None,
    key_regex: str | None = None,
    unlisted_values: str = "refuse",
    values: str = "auto",
    threshold: int | Mapping[str, int] | None = None,
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are mask images in a folder: indices, palettes, colors, or a file for each class."""

def PascalVoc(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    unlisted_values: str = "refuse",
    values: str = "auto",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are a folder of Pascal VOC: masks, boxes and lists of splits."""

def Captions(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    features: str | Sequence[str] | Mapping[str, str] | None = None,
    key_regex: str | None = None,
) -> LabelsConfig:
    """Returns labels that are texts for each image, in a CSV, JSONL or COCO captions file."""

def Numbers(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    features: str | Sequence[str] | Mapping[str, str] | None = None,
    key_regex: str | None = None,
) -> LabelsConfig:
    """Returns labels that are numbers for each image and no classes, in a CSV or JSONL file."""

def Unlabeled() -> LabelsConfig:
    """Returns labels that are absent: every image belongs to the dataset, without a class."""

def TfRecords(
    columns: Mapping[str, str] | None = None,
    *,
    encoding: str = "auto",
    order: str = "auto",
    start: int | None = None,
    rle: RleConfig | Mapping[str, Any] | None = None,
    unlisted_values: str = "refuse",
    values: str = "auto",
    threshold: int | Mapping[str, int] | None = None,
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are in the records themselves: `images` is a folder of TFRecord, tar, Parquet or ArrayRecord files."""

def Yolo(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are YOLO's text files of boxes or polygons: their folder, or the YAML file of the set."""

def LabelMe(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are LabelMe's JSON files, one for each image, in a folder."""

def Cvat(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are one XML file, 'CVAT for images 1.1'."""

def Datumaro(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are Datumaro's JSON, which CVAT exports, too: polygons, masks, boxes, ellipses, labels."""

def LabelStudio(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are Label Studio's JSON: polygons, boxes, ellipses, brush strokes, choices."""

def Via(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are the JSON or CSV of VIA 2; `columns={"label": NAME}` names the attribute of the class."""

def VocBoxes(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are a folder of Pascal VOC's XML files, boxes without masks."""

def Supervisely(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are a project of Supervisely: bitmaps, polygons, rectangles and tags."""

def OpenImages(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are a CSV of Open Images: boxes, classes of images, or masks in PNG files next to it."""

def BoxCsv(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are a CSV with a row for each box: image, class, and four edges or a corner and a size."""

def Panoptic(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are a COCO panoptic file; its PNGs are in the folder of the same name next to it."""

def VertexJsonl(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are JSON lines of Vertex AI: classes or boxes."""

def Labelbox(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are Labelbox's export as JSON lines: polygons, boxes and classifications."""

def LabelJsonl(
    path: str | os.PathLike[str] | Sequence[str] | Mapping[str, str],
    *,
    columns: Mapping[str, str] | None = None,
    key_regex: str | None = None,
    boxes: bool = False,
    polygons: str = "coco",
    beyond_image: str = "reject",
    orientation: str = "auto",
) -> LabelsConfig:
    """Returns labels that are JSON lines with the class of each image, or with boxes, as Hugging Face writes them."""
