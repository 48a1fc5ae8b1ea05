"""Which format the files are of: the readers of `shardwright.label_formats`, each asked about the same head.

Files of annotations that are not read are known as well: a message about missing columns does not help who has KITTI's
text files. `FOREIGN` names them, with what to do instead.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import NamedTuple

from shardwright.errors import UsageError
from shardwright.formats.base import AnnotationFormat
from shardwright.formats.head import NUMBER, Head
from shardwright.label_formats import AUTO, BY_NAME, FORMATS, LabelFormat

_BOXES_ELSEWHERE = "Write the boxes as a CSV with the header image,xmin,ymin,xmax,ymax,label, or as COCO JSON."
# What is not read: its name, and a sentence on what to do instead.
FOREIGN = {
    "Parquet with the images in it": (
        "Give the file as input.images, without annotations; or write the images as files."
    ),
    "Cityscapes' polygons": "Read the masks of the same name, *_gtFine_labelIds.png, by giving their folder.",
    "an export of Labelbox from before its JSON lines": "Export JSON lines (export v2) from Labelbox.",
    "an import file of Labelbox": "Export JSON lines (export v2) from Labelbox.",
    "Label Studio JSON-MIN": "Export 'JSON' from Label Studio.",
    "VoTT JSON": "Export CSV from VoTT.",
    "BDD100K JSON": _BOXES_ELSEWHERE,
    "CreateML JSON": "Export COCO from the tool that wrote it.",
    "KITTI text files of boxes": _BOXES_ELSEWHERE,
    "DOTA text files of boxes": _BOXES_ELSEWHERE,
    "VisDrone text files of boxes": _BOXES_ELSEWHERE,
    "an import CSV of Vertex AI or AutoML, without a header": (
        "Export JSON lines from Vertex AI, or write a table with the header image,label."
    ),
}
# Members of their JSON, and first lines of their other files; the first that fits counts.
_MEMBERS = {
    ("imgHeight", "imgWidth", "objects"): "Cityscapes' polygons",
    ("Labeled Data", "DataRow ID"): "an export of Labelbox from before its JSON lines",
    ("uuid", "dataRow"): "an import file of Labelbox",
    ("annotation_id", "annotator"): "Label Studio JSON-MIN",
    ("videoSettings", "tags"): "VoTT JSON",
    ("name", "labels", "attributes"): "BDD100K JSON",
    ("image", "annotations"): "CreateML JSON",
}
_LINES = {
    (".txt", rf"[A-Za-z_]+(?:\s+{NUMBER}){{14,15}}$"): "KITTI text files of boxes",
    (".txt", rf"imagesource:|(?:{NUMBER}\s+){{8}}[A-Za-z][\w-]*(?:\s+\d)?$"): "DOTA text files of boxes",
    (".txt", r"(?:-?\d+,){7}-?\d+,?$"): "VisDrone text files of boxes",
    (".csv", r"(?i:(?:(?:train|training|validation|validate|test|unassigned),)?gs://)"): (
        "an import CSV of Vertex AI or AutoML, without a header"
    ),
}


class Recognized(NamedTuple):
    """What files are by what only one format writes.

    Attributes:
        called: the name of the format or the tool, for messages.
        row: the format that reads them; `None` where none does.
    """

    called: str
    row: LabelFormat | None

    def check_read(self, path: str) -> LabelFormat:
        """Returns the format that reads the files.

        Raises:
            UsageError: none does; with what to export instead.
        """
        if self.row is None:
            fix = FOREIGN[self.called]
            raise UsageError(f"input.labels.path: {path}: holds {self.called}, which is not read. {fix}")
        return self.row


@cache
def reader_of(row: LabelFormat) -> type[AnnotationFormat]:
    """Returns the class that reads a format."""
    module, _, name = row.reader.partition(":")
    reader: type[AnnotationFormat] = getattr(import_module(f"shardwright.formats.{module}"), name)
    return reader


def recognize(head: Head) -> Recognized | None:
    """Returns what a file, or most files of a folder, can only be; `None` where the content or the options decide."""
    for row in FORMATS:
        if called := reader_of(row).sniff(head):
            return Recognized(called, row)
    if head.folder:
        inside = [recognize(one) for one in head.inside]
        best = max(inside, key=inside.count, default=None)
        return best if 2 * inside.count(best) > len(inside) else None
    if head.parquet is not None and any(column.image for column in head.parquet.columns):
        return Recognized("Parquet with the images in it", None)
    found = (called for names, called in _MEMBERS.items() if head.has(*names))
    lines = (called for (ending, line), called in _LINES.items() if head.ending == ending and re.match(line, head.line))
    foreign = next(found, None) or next(lines, None)
    return None if foreign is None else Recognized(foreign, None)


class Decision(NamedTuple):
    """The format of annotations.

    Attributes:
        row: the format; `None` for a table whose columns decide.
        reason: why, for the user.
        called: what the files were recognized as, or empty.
    """

    row: LabelFormat | None
    reason: str
    called: str = ""


def decide(label_format: str, head: Head) -> Decision:
    """Decides on a format.

    Args:
        label_format: `input.labels.format`.
        head: of the file or the folder.

    Raises:
        UsageError: the files are known, and not read.
    """
    if label_format != AUTO:
        row, called = BY_NAME[label_format], ""
        if not head.folder:
            called = reader_of(row).sniff(head)
        return Decision(row, "input.labels.format is set", called)
    found = recognize(head)
    if found is not None:
        row = found.check_read(head.path)
        folder = f"{head.name} is a folder that holds " if row.name == "pascal_voc" else f"{head.name} holds "
        return Decision(row, folder + found.called, found.called)
    if head.folder:
        return Decision(BY_NAME["mask_images"], f"{head.name} is a folder")
    if head.why_lines(several=True):
        return Decision(None, head.why_lines(several=True))
    if head.ending == ".json":
        return Decision(BY_NAME["coco_json"], f"{head.name} ends with .json")
    if head.text[:1] == "{":
        return Decision(BY_NAME["coco_json"], f"{head.name} begins with a brace")
    return Decision(None, "")
