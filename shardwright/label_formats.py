"""The formats of annotations, a row each: name, options, what they state, and the module that reads them.

All who need to know the formats read this table: the section `input.labels` and its JSON Schema, detection, the
constructors in Python, `relabel`, `export` and the pages on formats. `shardwright.formats.registry` finds the readers.
CONTRIBUTING.md has the steps to add one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

AUTO = "auto"
# What `input.labels.path` is: nothing, as the paths of the images or the records have the annotations; a table whose
# columns decide; one file of all images; a folder with a file for each image; or a folder of mask images.
KEYS, RECORDS, TABLE, FILE, FILES, MASKS = "keys", "records", "table", "file", "files", "masks"
# Options of objects with outlines or boxes, of tables, and of the pixels of masks.
_OBJECTS = ("key_regex", "boxes", "polygons", "beyond_image")
_COLUMNS = ("columns.image", "columns.label")
_TABLE = ("features", "key_regex")
_PIXELS = ("unlisted_values", "values", "threshold")


@dataclass(frozen=True, kw_only=True)
class LabelFormat:
    """A row.

    Attributes:
        name: its name in `input.labels.format`.
        reader: module and class in `shardwright.formats`.
        constructor: name of the function in `shardwright.components`; by default that of the class.
        meaning: what the annotations are, after "labels that are".
        page: page in `docs/formats`, and the place on it.
        reads: what the path is: `KEYS`, `RECORDS`, `TABLE`, `FILE`, `FILES` or `MASKS`.
        path: what messages call the path; empty where there is none.
        options: keys of `input.labels` that it uses, besides `format`, `path`, `files` and `orientation`.
        masks: what masks are made of, or empty.
        boxes: whether it has boxes.
        classes: what states the classes of whole images, or empty.
        splits: whether it may state the splits.
        sizes: whether it may state the sizes of images.
        attached: whether masks are in further files.
        exports: values of `shardwright export --to` that write it.
    """

    name: str
    reader: str
    meaning: str
    page: str
    constructor: str = ""
    reads: str = FILE
    path: str = "file or folder of the tool"
    options: tuple[str, ...] = _OBJECTS
    masks: str = ""
    boxes: bool = False
    classes: str = ""
    splits: bool = False
    sizes: bool = False
    attached: bool = False
    exports: tuple[str, ...] = ()

    @property
    def function(self) -> str:
        """Returns the name of the function in `shardwright.components`."""
        return self.constructor or self.reader.partition(":")[2]

    def takes(self, option: str) -> bool:
        """Returns whether a key of `input.labels`, such as `columns.image`, means something to it."""
        return option in self.options or option.partition(".")[0] in self.options

    @property
    def has_masks(self) -> bool:
        """Returns whether images may have masks; boxes may be drawn as masks."""
        return bool(self.masks) or self.boxes

    @property
    def has_classes(self) -> bool:
        """Returns whether images, masks or boxes have classes."""
        return self.has_masks or bool(self.classes)

    @property
    def relabels(self) -> bool:
        """Returns whether `shardwright relabel` can read it: everything is in one file."""
        return self.reads in (TABLE, FILE) and not self.attached


# A row is read as a row.
# fmt: off
FORMATS = (
    LabelFormat(
        name="class_folders", reader="class_folders:ClassFolders",
        meaning="the names of the folders in which the images are", page="index.md#class-folders", reads=KEYS, path="",
        options=(), classes="the folder of an image", splits=True, exports=("imagefolder",),
    ),
    LabelFormat(
        name="file_name", reader="class_folders:FileNames",
        meaning="in the names of the images: before the last `_<number>`, or a regex's group `label`",
        page="index.md#classes-in-file-names", reads=KEYS, path="", options=("regex",), classes="the name of the file",
    ),
    LabelFormat(
        name="label_csv", reader="label_csv:LabelCsv", meaning="classes in a CSV, one or several for each image",
        page="tables.md#labels", reads=TABLE, path="CSV",
        options=(*_COLUMNS, "columns.caption", *_TABLE, "multi_label", "separator"),
        classes="a column, or a column for each class", exports=("csv",),
    ),
    LabelFormat(
        name="rle_csv", reader="rle_csv:RleCsv", meaning="run lengths in a CSV, a row for each mask", page="rle-csv.md",
        reads=TABLE, path="CSV",
        options=(*_COLUMNS, "columns.mask", "columns.image_label", "columns.caption", *_TABLE, "rle"),
        masks="run lengths, as in Kaggle's competitions", sizes=True, exports=("csv",),
    ),
    LabelFormat(
        name="coco_json", reader="coco:CocoJson", constructor="Coco",
        meaning="a COCO instances file: polygons, run lengths, and with `boxes=True` boxes", page="coco.md",
        path="COCO JSON file", masks="polygons, run lengths", boxes=True, sizes=True, exports=("coco",),
    ),
    LabelFormat(
        name="mask_images", reader="mask_images:MaskImages",
        meaning="mask images in a folder: indices, palettes, colors, or a file for each class", page="mask-images.md",
        reads=MASKS, path="folder", options=("regex", "key_regex", *_PIXELS), masks="image files", sizes=True,
        attached=True, exports=("csv",),
    ),
    LabelFormat(
        name="pascal_voc", reader="pascal_voc:PascalVoc",
        meaning="a folder of Pascal VOC: masks, boxes and lists of splits", page="index.md#pascal-voc", reads=MASKS,
        path="folder", options=("unlisted_values", "values", "beyond_image"), masks="image files", boxes=True,
        splits=True, sizes=True, attached=True, exports=("voc",),
    ),
    LabelFormat(
        name="captions", reader="captions:CaptionCsv", constructor="Captions",
        meaning="texts for each image, in a CSV, JSONL or COCO captions file", page="index.md#captions", reads=TABLE,
        path="CSV, JSONL or COCO JSON file", options=("columns.image", "columns.caption", *_TABLE),
    ),
    LabelFormat(
        name="numbers", reader="rows:Numbers",
        meaning="numbers for each image and no classes, in a CSV or JSONL file", page="tables.md#numbers", reads=TABLE,
        path="CSV or JSONL", options=("columns.image", *_TABLE),
    ),
    LabelFormat(
        name="none", reader="base:Unlabeled", meaning="absent: every image belongs to the dataset, without a class",
        page="index.md", reads=KEYS, path="", options=(),
    ),
    LabelFormat(
        name="tfrecord", reader="tfrecords:TFRecordFormat", constructor="TfRecords",
        meaning="in the records themselves: `images` is a folder of TFRecord, tar, Parquet or ArrayRecord files",
        page="tfrecords.md", reads=RECORDS, path="", options=("columns", "rle", *_PIXELS),
        masks="run lengths, or mask images in features", boxes=True, classes="features", splits=True,
        exports=("arrayrecord", "parquet", "webdataset"),
    ),
    LabelFormat(
        name="yolo", reader="yolo:Yolo",
        meaning="YOLO's text files of boxes or polygons: their folder, or the YAML file of the set",
        page="annotation-tools.md#yolo", reads=FILES, masks="polygons", boxes=True, exports=("yolo",),
    ),
    LabelFormat(
        name="labelme", reader="labelme:LabelMe", meaning="LabelMe's JSON files, one for each image, in a folder",
        page="annotation-tools.md#labelme", reads=FILES, masks="polygons, circles, masks", boxes=True,
        classes="`flags`", sizes=True, exports=("labelme",),
    ),
    LabelFormat(
        name="cvat_xml", reader="cvat:Cvat", meaning="one XML file, 'CVAT for images 1.1'",
        page="annotation-tools.md#cvat", masks="polygons, ellipses, masks", boxes=True, classes="`tag`", splits=True,
        sizes=True, exports=("cvat",),
    ),
    LabelFormat(
        name="datumaro", reader="datumaro:Datumaro",
        meaning="Datumaro's JSON, which CVAT exports, too: polygons, masks, boxes, ellipses, labels",
        page="annotation-tools.md#datumaro", masks="polygons, masks, ellipses", boxes=True, classes="`label`",
        sizes=True,
    ),
    LabelFormat(
        name="label_studio", reader="label_studio:LabelStudio",
        meaning="Label Studio's JSON: polygons, boxes, ellipses, brush strokes, choices",
        page="annotation-tools.md#label-studio", masks="polygons, ellipses, brush strokes", boxes=True,
        classes="`choices`", sizes=True, exports=("label_studio",),
    ),
    LabelFormat(
        name="via_json", reader="via:ViaJson", constructor="Via",
        meaning='the JSON or CSV of VIA 2; `columns={"label": NAME}` names the attribute of the class',
        page="annotation-tools.md#via", options=("columns.label", *_OBJECTS), masks="polygons, circles, ellipses",
        boxes=True, classes="file attributes",
    ),
    LabelFormat(
        name="voc_boxes", reader="voc_xml:VocBoxes", meaning="a folder of Pascal VOC's XML files, boxes without masks",
        page="annotation-tools.md#boxes-of-pascal-voc", reads=FILES, boxes=True, sizes=True,
    ),
    LabelFormat(
        name="supervisely", reader="supervisely:Supervisely",
        meaning="a project of Supervisely: bitmaps, polygons, rectangles and tags",
        page="annotation-tools.md#supervisely", reads=FILES, masks="polygons, bitmaps", boxes=True, classes="`tags`",
        sizes=True,
    ),
    LabelFormat(
        name="open_images", reader="open_images:OpenImages",
        meaning="a CSV of Open Images: boxes, classes of images, or masks in PNG files next to it",
        page="annotation-tools.md#open-images", masks="PNG files", boxes=True, classes="image labels",
    ),
    LabelFormat(
        name="box_csv", reader="box_csv:BoxCsv",
        meaning="a CSV with a row for each box: image, class, and four edges or a corner and a size",
        page="tables.md#bounding-boxes",
        options=(*_COLUMNS, *_OBJECTS), boxes=True, sizes=True,
    ),
    LabelFormat(
        name="panoptic", reader="panoptic:Panoptic",
        meaning="a COCO panoptic file; its PNGs are in the folder of the same name next to it",
        page="annotation-tools.md#coco-panoptic", masks="PNG files", boxes=True, sizes=True, attached=True,
    ),
    LabelFormat(
        name="vertex_jsonl", reader="json_lines:VertexJsonl", meaning="JSON lines of Vertex AI: classes or boxes",
        page="annotation-tools.md#json-lines", boxes=True, classes="`classificationAnnotation`", splits=True,
    ),
    LabelFormat(
        name="labelbox", reader="json_lines:Labelbox",
        meaning="Labelbox's export as JSON lines: polygons, boxes and classifications",
        page="annotation-tools.md#json-lines", masks="polygons", boxes=True, classes="classifications", sizes=True,
    ),
    LabelFormat(
        name="label_jsonl", reader="json_lines:LabelJsonl",
        meaning="JSON lines with the class of each image, or with boxes, as Hugging Face writes them",
        page="annotation-tools.md#json-lines", options=(*_COLUMNS, *_OBJECTS), boxes=True, classes="`label`",
    ),
)
# fmt: on
BY_NAME = {row.name: row for row in FORMATS}
NAMES = (AUTO, *BY_NAME)
# Those of which no file of annotations is read.
WITHOUT_PATH = tuple(row.name for row in FORMATS if not row.path)
EXPORTS = tuple(sorted({to for row in FORMATS for to in row.exports}))


def possible(name: str, *, path: bool) -> Iterator[LabelFormat]:
    """Yields the formats that `input.labels.format` may mean: with `auto` those that have a path, or those without."""
    return (row for row in FORMATS if (row.name == name if name != AUTO else bool(row.path) == path))
