"""Which format the files are of: the readers of `shardwright.label_formats`, each asked about the same head.

Files of annotations that are not read are known as well: a message about missing columns does not help who has KITTI's
text files. `_FOREIGN` names them, with what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import NamedTuple

from shardwright.errors import UsageError
from shardwright.formats.base import AnnotationFormat
from shardwright.formats.head import NUMBER, Head
from shardwright.label_formats import AUTO, BY_NAME, FORMATS, LabelFormat

_BOXES_ELSEWHERE = "Write the boxes as a CSV with the header image,xmin,ymin,xmax,ymax,label, or as COCO JSON."
_COCO = "Write the set as COCO JSON."

_PARQUET = (
    "Parquet with the images in it",
    "Give the file as input.images, without annotations; or write the images as files.",
)
_MIT = ("XML of MIT's LabelMe", "Export COCO, or JSON of the program labelme, from the tool that wrote it.")
# What is not read, by the members of its JSON, or the ending and the first line of its other files.
_FOREIGN: Mapping[tuple[str, ...], tuple[str, str]] = {
    ("imgHeight", "imgWidth", "objects"): (
        "Cityscapes' polygons",
        "Read the masks of the same name, *_gtFine_labelIds.png, by giving their folder.",
    ),
    ("Labeled Data", "DataRow ID"): (
        "an export of Labelbox from before its JSON lines",
        "Export JSON lines (export v2) from Labelbox.",
    ),
    ("uuid", "dataRow"): ("an import file of Labelbox", "Export JSON lines (export v2) from Labelbox."),
    ("annotation_id", "annotator"): ("Label Studio JSON-MIN", "Export 'JSON' from Label Studio."),
    ("videoSettings", "tags"): ("VoTT JSON", "Export CSV from VoTT."),
    ("name", "labels", "attributes"): ("BDD100K JSON", _BOXES_ELSEWHERE),
    ("image", "annotations"): ("CreateML JSON", "Export COCO from the tool that wrote it."),
    ("file_name", "image_id", "annotations"): ("detectron2's dicts of a data set", _COCO),
    ("filename", "ann"): ("MMDetection's list of images", _COCO),
    ("item", "annotations"): ("V7 Darwin JSON", "Export COCO from V7."),
}
_FOREIGN_LINES = {
    (".txt", rf"[A-Za-z_]+(?:\s+{NUMBER}){{14,15}}$"): ("KITTI text files of boxes", _BOXES_ELSEWHERE),
    (".txt", rf"imagesource:|(?:{NUMBER}\s+){{8}}[A-Za-z][\w-]*(?:\s+\d)?$"): (
        "DOTA text files of boxes",
        _BOXES_ELSEWHERE,
    ),
    (".txt", r"(?:-?\d+,){7}-?\d+,?$"): ("VisDrone text files of boxes", _BOXES_ELSEWHERE),
    (".txt", rf"\S+\.\w+(?:\s+(?:{NUMBER},){{4}}\d+)+$"): ("keras-yolo3's lines of boxes", _BOXES_ELSEWHERE),
    (".csv", r"(?i:(?:(?:train|training|validation|validate|test|unassigned),)?gs://)"): (
        "an import CSV of Vertex AI or AutoML, without a header",
        "Export JSON lines from Vertex AI, or write a table with the header image,label.",
    ),
}


class Decision(NamedTuple):
    """The format of annotations.

    Attributes:
        row: the format; `None` for a table whose columns decide, and for files that are not read.
        reason: why, for the user.
        called: the name of the format or the tool that the files were recognized by, or empty.
        fix: what to do with files that are not read.
    """

    row: LabelFormat | None
    reason: str = ""
    called: str = ""
    fix: str = ""


def decide(label_format: str, head: Head) -> Decision:
    """Decides on a format.

    Raises:
        UsageError: the files are known, and not read.
    """
    if label_format != AUTO:
        row = BY_NAME[label_format]
        return Decision(row, "input.labels.format is set", "" if head.folder else reader_of(row).sniff(head))
    found = recognize(head)
    if found is not None and found.row is None:
        problem = f"{head.path}: holds {found.called}, which is not read. {found.fix}"
        raise UsageError(f"input.labels.path: {problem}")
    if found is not None and found.row is not None:
        folder = f"{head.name} is a folder that holds " if found.row.name == "pascal_voc" else f"{head.name} holds "
        return found._replace(reason=folder + found.called)
    if head.folder:
        return Decision(BY_NAME["mask_images"], f"{head.name} is a folder")
    if head.why_lines(several=True):
        return Decision(None, head.why_lines(several=True))
    if head.ending == ".json":
        return Decision(BY_NAME["coco_json"], f"{head.name} ends with .json")
    return (
        Decision(BY_NAME["coco_json"], f"{head.name} begins with a brace") if head.text[:1] == "{" else Decision(None)
    )


def recognize(head: Head) -> Decision | None:
    """Returns what a file, or most files of a folder, can only be; `None` where the content or the options decide."""
    for row in FORMATS:
        if called := reader_of(row).sniff(head):
            return Decision(row, called=called)
    if head.folder:
        inside = [recognize(one) for one in head.inside]
        best = max(inside, key=inside.count, default=None)
        return best if 2 * inside.count(best) > len(inside) else None
    known = [_PARQUET] if head.parquet is not None and any(column.image for column in head.parquet.columns) else []
    known += [foreign for members, foreign in _FOREIGN.items() if head.has(*members)]
    known += [_MIT] if head.xml_root == "annotation" else []  # Those of Pascal VOC are recognized.
    for (ending, line), foreign in _FOREIGN_LINES.items():
        known += [foreign] if head.ending == ending and re.match(line, head.line) else []
    return Decision(None, called=known[0][0], fix=known[0][1]) if known else None


@cache
def reader_of(row: LabelFormat) -> type[AnnotationFormat]:
    """Returns the class that reads a format."""
    module, _, name = row.reader.partition(":")
    reader: type[AnnotationFormat] = getattr(import_module(f"shardwright.formats.{module}"), name)
    return reader
