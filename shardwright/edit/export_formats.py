"""The formats of other tools and trainers that `shardwright export --to FORMAT` writes.

Each format is a class that gets the images one by one. `HOLDS` states the parts of a dataset that it can hold. The
export is refused if it cannot hold the annotations themselves. Other parts are left out, and the result names them.
"""

from __future__ import annotations

from shardwright.dataset.manifest import MASKS, MULTI, NONE, SINGLE, Manifest
from shardwright.edit.export_containers import ArrayRecord, Parquet, WebDataset
from shardwright.edit.export_tools import Coco, ImageFolder, LabelMe, Voc, Yolo
from shardwright.edit.export_writer import BOXES, FURTHER, IGNORED, ExportedImage, Writer, has_boxes
from shardwright.errors import CheckFailed, UsageError

WRITERS: dict[str, type[Writer]] = {
    "arrayrecord": ArrayRecord,
    "coco": Coco,
    "imagefolder": ImageFolder,
    "labelme": LabelMe,
    "parquet": Parquet,
    "voc": Voc,
    "webdataset": WebDataset,
    "yolo": Yolo,
}
_WORDS = {MASKS: "masks", SINGLE: "one class an image", MULTI: "several classes an image", NONE: "images alone"}


def left_out(manifest: Manifest, name: str, further: bool) -> list[str]:
    """Returns the parts of a dataset that a format cannot hold.

    Args:
        manifest: of the dataset.
        name: the format, of `WRITERS`.
        further: whether it has captions or further features.

    Raises:
        UsageError: it cannot hold the annotations.
    """
    holds, boxes = WRITERS[name].HOLDS, has_boxes(manifest)
    by_boxes = boxes and BOXES in holds and manifest.labels in (MULTI, NONE)
    if manifest.labels not in holds and not by_boxes:
        others = [other for other, writer in WRITERS.items() if manifest.labels in writer.HOLDS]
        raise UsageError(
            f"--to: {name} cannot hold {_WORDS[manifest.labels]}, and the dataset has "
            f"{'no boxes' if BOXES in holds else 'nothing else'}. Use one of: {', '.join(['csv', *others])}."
        )
    if manifest.labels == MASKS and not WRITERS[name].BOXES_WITH_MASKS:
        holds = holds - {BOXES}
    parts = {BOXES: boxes, IGNORED: manifest.ignores, FURTHER: further}
    return [part for part, there in parts.items() if there and part not in holds]


def check_labels(image: ExportedImage, manifest: Manifest, name: str) -> None:
    """Checks that no class of an image is lost in a format that has classes of boxes alone.

    Raises:
        CheckFailed: one has no box.
    """
    if manifest.labels != MULTI or MULTI in WRITERS[name].HOLDS:
        return
    missing = [
        manifest.classes[label]
        for label in image.labels
        if manifest.classes[label] not in {box.name for box in image.boxes}
    ]
    if missing:
        raise CheckFailed(f"{image.key}: its class {missing[0]!r} has no box, and {name} holds boxes. Use --to csv.")
