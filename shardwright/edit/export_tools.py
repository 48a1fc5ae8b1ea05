"""Writers for annotation tools and class folders: COCO, Pascal VOC, YOLO, LabelMe, Label Studio, CVAT, ImageFolder."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from itertools import product
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from shardwright.config.yaml_text import dump_yaml
from shardwright.dataset.manifest import MASKS, MULTI, SINGLE, Manifest
from shardwright.edit.export_writer import (
    BOXES,
    IGNORED_PIXELS,
    IMAGES,
    ExportedBox,
    ExportedImage,
    NewFile,
    Writer,
    class_folders,
    extension,
    extent,
    png,
    stem,
)
from shardwright.errors import CheckFailed, UsageError
from shardwright.formats.mask_values import special_value
from shardwright.formats.pascal_voc import VOC_CLASSES, palette_color
from shardwright.images.colors import COLOR, class_color
from shardwright.masks.dialects import compress_counts, to_counts
from shardwright.masks.outlines import outlines
from shardwright.masks.rle import Runs, area, draw, encode

_BORDER = 255


class Coco(Writer):
    """`annotations.json`: COCO's instances, masks as compressed run lengths or as polygons."""

    HOLDS = frozenset((MASKS, BOXES))
    DISPLAYED = True
    POLYGONS = True

    def __init__(self, new_file: NewFile, manifest: Manifest, *, polygons: bool = False) -> None:
        super().__init__(new_file, manifest, polygons=polygons)
        self._ids = {name: number for number, name in enumerate(self._classes, 1)}
        self._images: list[dict[str, Any]] = []
        self._annotations: list[dict[str, Any]] = []

    def add(self, image: ExportedImage) -> None:
        self._write(f"{IMAGES}/{image.key}", image.data)
        number = len(self._images) + 1
        shape = {"height": image.height, "width": image.width}
        self._images.append({"id": number, "file_name": image.key, **shape})
        by_label: dict[int, list[ExportedBox]] = {label: [] for label in image.masks}
        for box in image.boxes:
            label = self._ids.setdefault(box.name, len(self._ids) + 1) - 1
            by_label.setdefault(label, []).append(box)
        for label, boxes in by_label.items():
            whole = image.masks.get(label)
            masks = _cut(whole, boxes, image) if self._manifest.labels == MASKS else [None] * len(boxes)
            for box, runs in zip(boxes, masks, strict=True):
                sides = [box.xmin, box.ymin, box.xmax - box.xmin, box.ymax - box.ymin]
                self._annotate(number, label, image, runs, sides)
            if whole is not None and not boxes:
                self._annotate(number, label, image, whole, extent(whole, image.height))

    def _annotate(
        self, image: int, label: int, shown: ExportedImage, runs: Runs | None, sides: Sequence[float]
    ) -> None:
        row: dict[str, Any] = {"id": len(self._annotations) + 1, "image_id": image, "category_id": label + 1}
        row |= {"iscrowd": 0, "bbox": list(sides), "area": sides[2] * sides[3]}
        # Readers refuse an empty list of polygons, which an object without a pixel would have.
        if runs is not None and self._polygons and len(runs):
            parts = outlines(runs, shown.height, shown.width)
            row |= {"segmentation": [part.reshape(-1).tolist() for part in parts], "area": area(runs)}
        elif runs is not None:
            counts = compress_counts(to_counts(runs, shown.height * shown.width))
            row |= {"segmentation": {"size": [shown.height, shown.width], "counts": counts}, "area": area(runs)}
        self._annotations.append(row)

    def finish(self) -> None:
        categories = [{"id": number, "name": name} for name, number in self._ids.items()]
        document = {"images": self._images, "annotations": self._annotations, "categories": categories}
        self._write("annotations.json", json.dumps(document, ensure_ascii=False) + "\n")


def _cut(whole: Runs | None, boxes: Sequence[ExportedBox], image: ExportedImage) -> list[Runs]:
    """Returns the part of a class's mask in each of its boxes; the first one also has the pixels outside of all."""
    shape = (image.height, image.width)
    mask = np.zeros(shape, bool) if whole is None else draw(whole, *shape) > 0
    rows, columns = np.arange(image.height)[:, None] + 0.5, np.arange(image.width)[None] + 0.5
    inside = [(rows > box.ymin) & (rows < box.ymax) & (columns > box.xmin) & (columns < box.xmax) for box in boxes]
    parts = [mask & one for one in inside]
    if parts:
        parts[0] |= mask & ~np.any(inside, axis=0)
    return [encode(part) for part in parts]


class Voc(Writer):
    """Pascal VOC: `JPEGImages`, `Annotations`, `SegmentationClass`, `ImageSets`."""

    HOLDS = frozenset((MASKS, IGNORED_PIXELS, BOXES))
    DISPLAYED = True

    def __init__(self, new_file: NewFile, manifest: Manifest, *, polygons: bool = False) -> None:
        super().__init__(new_file, manifest, polygons=polygons)
        self._lists: dict[str, list[str]] = {}
        if manifest.labels == MASKS and len(self._classes) >= _BORDER:
            raise UsageError(f"--to: voc has {_BORDER - 1} classes at most, and the dataset {len(self._classes)}.")
        if manifest.labels == MASKS and (lost := [name for name in self._classes if special_value(name, 1) != 0]):
            raise UsageError(
                f"--to: voc has a list of names, in which readers take {', '.join(map(repr, lost))} for the background "
                "or ignored pixels, so that the class would be lost. Use --to coco."
            )
        # With VOC's palette, readers take the values for VOC's classes.
        colors = [palette_color(value) - COLOR for value in range(256)]
        if self._classes != VOC_CLASSES:
            own = [int.from_bytes(bytes(class_color(label)[:3]), "big") for label in range(len(self._classes))]
            colors = [0, *own, *[0xE0E0C0] * (255 - len(own))]
        self._palette = [channel for color in colors for channel in color.to_bytes(3, "big")]

    def add(self, image: ExportedImage) -> None:
        name = stem(image.key).replace("/", "_")
        self._write(f"JPEGImages/{name}.{extension(image)}", image.data)
        self._lists.setdefault(image.split, []).append(name)
        if self._manifest.labels == MASKS:
            pixels = np.zeros((image.height, image.width), np.uint8)
            for label, runs in image.masks.items():
                mask = draw(runs, image.height, image.width) > 0
                if pixels[mask].any():
                    raise CheckFailed(
                        f"{image.key}: masks of two classes overlap, and voc has one class a pixel. Use --to coco."
                    )
                pixels[mask] = label + 1
            pixels[draw(image.ignored, image.height, image.width) > 0] = _BORDER
            self._write(f"SegmentationClass/{name}.png", png(pixels, self._palette))
        if image.boxes:
            self._write(f"Annotations/{name}.xml", self._xml(f"{name}.{extension(image)}", image))

    @staticmethod
    def _xml(name: str, image: ExportedImage) -> str:
        objects = "".join(
            f"<object><name>{escape(box.name)}</name><bndbox><xmin>{box.xmin + 1!r}</xmin><ymin>{box.ymin + 1!r}</ymin>"
            f"<xmax>{box.xmax!r}</xmax><ymax>{box.ymax!r}</ymax></bndbox></object>"
            for box in image.boxes
        )
        size = f"<size><width>{image.width}</width><height>{image.height}</height><depth>3</depth></size>"
        return f"<annotation><filename>{escape(name)}</filename>{size}{objects}</annotation>\n"

    def finish(self) -> None:
        for split, names in self._lists.items():
            folder = "Segmentation" if self._manifest.labels == MASKS else "Main"
            self._write(f"ImageSets/{folder}/{split}.txt", "".join(f"{name}\n" for name in names))
        # VOC has no list of classes. The background is value 0; without it, readers take names that are numbers for
        # the values, and a class called `void` for value 0.
        names = list(self._classes)
        if self._manifest.labels == MASKS:
            # A name of the background that readers know and no class has: voc has fewer classes than there are.
            spellings = map("".join, product(*zip("_background_", "_BACKGROUND_", strict=True)))
            names.insert(0, next(name for name in spellings if name not in self._classes))
        self._write("classes.txt", "".join(f"{name}\n" for name in names))


class Yolo(Writer):
    """YOLO's boxes, or its segments: `images/SPLIT`, `labels/SPLIT` and `data.yaml`."""

    HOLDS = frozenset((MASKS, BOXES))
    DISPLAYED = True
    # A file has lines of one kind: Ultralytics takes the boxes of polygons from their corners.
    BOXES_WITH_MASKS = False

    def __init__(self, new_file: NewFile, manifest: Manifest, *, polygons: bool = False) -> None:
        super().__init__(new_file, manifest, polygons=polygons)
        self._names = dict.fromkeys(self._classes)

    def add(self, image: ExportedImage) -> None:
        self._write(f"{IMAGES}/{image.split}/{image.key}", image.data)
        lines = []
        for label, runs in image.masks.items():
            for part in outlines(runs, image.height, image.width):
                numbers = (part / (image.width, image.height)).reshape(-1).tolist()
                lines.append(" ".join(map(repr, (label, *numbers))) + "\n")
        for box in image.boxes if self._manifest.labels != MASKS else ():
            self._names.setdefault(box.name)
            number = list(self._names).index(box.name)
            center = (box.xmin + box.xmax) / 2 / image.width, (box.ymin + box.ymax) / 2 / image.height
            sides = (box.xmax - box.xmin) / image.width, (box.ymax - box.ymin) / image.height
            lines.append(" ".join(map(repr, (number, *center, *sides))) + "\n")
        self._write(f"labels/{image.split}/{stem(image.key)}.txt", "".join(lines))

    def finish(self) -> None:
        known = {"eval": "val"}
        splits = {known.get(split, split): f"{IMAGES}/{split}" for split in self._manifest.splits}
        names = dict(enumerate(self._names))
        self._write("data.yaml", dump_yaml({"path": ".", **splits, "names": names}))


class LabelMe(Writer):
    """LabelMe: a JSON file next to each image; masks as its shape `mask` or as polygons; labels as `flags`."""

    HOLDS = frozenset((MASKS, MULTI, BOXES))
    DISPLAYED = True
    POLYGONS = True
    BOXES_WITH_MASKS = False

    def add(self, image: ExportedImage) -> None:
        self._write(f"{IMAGES}/{image.key}", image.data)
        shapes = []
        boxes = [] if self._manifest.labels == MASKS else image.boxes
        for label, runs in image.masks.items():
            if self._polygons:
                parts = outlines(runs, image.height, image.width)
                shapes += [_shape(self._classes[label], "polygon", part.tolist(), None) for part in parts]
                continue
            left, top, width, height = extent(runs, image.height)
            part = draw(runs, image.height, image.width)[top : top + height, left : left + width]
            mask = base64.b64encode(png(np.ascontiguousarray(part) * np.uint8(255))).decode("ascii")
            corners = [[left, top], [left + width - 1, top + height - 1]]
            shapes.append(_shape(self._classes[label], "mask", corners, mask))
        shapes += [_shape(box.name, "rectangle", [[box.xmin, box.ymin], [box.xmax, box.ymax]], None) for box in boxes]
        flags = {name: label in image.labels for label, name in enumerate(self._classes)}
        document = {
            "version": "5.5.0",
            "flags": flags if self._manifest.labels == MULTI else {},
            "shapes": shapes,
            "imagePath": image.key.rpartition("/")[2],
            "imageData": None,
            "imageHeight": image.height,
            "imageWidth": image.width,
        }
        self._write(f"{IMAGES}/{stem(image.key)}.json", json.dumps(document, ensure_ascii=False, indent=1) + "\n")


class LabelStudio(Writer):
    """Label Studio: `tasks.json` and the interface of the project, `labeling.xml`; masks as polygons, or choices.

    A task names its image as that of a local storage of the exported folder.
    """

    HOLDS = frozenset((MASKS, SINGLE, MULTI))
    DISPLAYED = True

    def __init__(self, new_file: NewFile, manifest: Manifest, *, polygons: bool = False) -> None:
        super().__init__(new_file, manifest, polygons=polygons)
        self._kind = "polygonlabels" if manifest.labels == MASKS else "choices"
        self._tasks: list[dict[str, Any]] = []

    def add(self, image: ExportedImage) -> None:
        self._write(f"{IMAGES}/{image.key}", image.data)
        scale = np.array([100 / image.width, 100 / image.height])
        values: list[dict[str, Any]] = [
            {"points": (part * scale).tolist(), "closed": True, self._kind: [self._classes[label]]}
            for label, runs in image.masks.items()
            for part in outlines(runs, image.height, image.width)
        ]
        if self._manifest.labels != MASKS:
            values = [{self._kind: [self._classes[label] for label in image.labels]}]
        size = {"original_width": image.width, "original_height": image.height, "image_rotation": 0}
        common = {**size, "from_name": "label", "to_name": "image", "type": self._kind}
        results = [{**common, "id": f"{number}", "value": value} for number, value in enumerate(values)]
        address = f"/data/local-files/?d={quote(f'{IMAGES}/{image.key}')}"
        self._tasks.append({"data": {"image": address}, "annotations": [{"result": results}]})

    def finish(self) -> None:
        masks = self._kind == "polygonlabels"
        tag, row = ("PolygonLabels", "Label") if masks else ("Choices", "Choice")
        several = ' choice="multiple"' if self._manifest.labels == MULTI else ""
        names = "".join(f"<{row} value={quoteattr(name)}/>" for name in self._classes)
        control = f'<{tag} name="label" toName="image"{several}>{names}</{tag}>'
        self._write("labeling.xml", f'<View><Image name="image" value="$image"/>{control}</View>\n')
        self._write("tasks.json", json.dumps(self._tasks, ensure_ascii=False) + "\n")


class Cvat(Writer):
    """CVAT for images 1.1: `annotations.xml`; masks as run lengths within their boxes, row by row, or tags."""

    HOLDS = frozenset((MASKS, SINGLE, MULTI, BOXES))
    BOXES_WITH_MASKS = False
    DISPLAYED = True

    def __init__(self, new_file: NewFile, manifest: Manifest, *, polygons: bool = False) -> None:
        super().__init__(new_file, manifest, polygons=polygons)
        self._names = dict.fromkeys(self._classes)
        self._images: list[str] = []

    def add(self, image: ExportedImage) -> None:
        self._write(f"{IMAGES}/{image.key}", image.data)
        shapes = [self._mask(self._classes[label], runs, image) for label, runs in image.masks.items()]
        for box in () if self._manifest.labels == MASKS else image.boxes:
            self._names.setdefault(box.name)
            sides = f'xtl="{box.xmin!r}" ytl="{box.ymin!r}" xbr="{box.xmax!r}" ybr="{box.ymax!r}"'
            shapes.append(f"<box label={quoteattr(box.name)} {sides}/>")
        if self._manifest.labels in (SINGLE, MULTI) and not image.boxes:
            shapes += [f"<tag label={quoteattr(self._classes[label])}/>" for label in image.labels]
        attributes = f'id="{len(self._images)}" name={quoteattr(image.key)} subset={quoteattr(image.split)}'
        size = f'width="{image.width}" height="{image.height}"'
        self._images.append(f"<image {attributes} {size}>{''.join(shapes)}</image>\n")

    @staticmethod
    def _mask(name: str, runs: Runs, image: ExportedImage) -> str:
        left, top, width, height = extent(runs, image.height)
        inside = draw(runs, image.height, image.width)[top : top + height, left : left + width] > 0
        # The counts of the transposed pixels, column by column, are those of the pixels, row by row.
        counts = ", ".join(map(str, to_counts(encode(np.ascontiguousarray(inside.T)), inside.size)))
        place = f'left="{left}" top="{top}" width="{width}" height="{height}"'
        return f'<mask label={quoteattr(name)} source="auto" occluded="0" rle="{counts}" {place} z_order="0"/>'

    def finish(self) -> None:
        labels = "".join(f"<label><name>{escape(name)}</name></label>" for name in self._names)
        head = f"<version>1.1</version><meta><task><labels>{labels}</labels></task></meta>\n"
        text = f'<?xml version="1.0" encoding="utf-8"?>\n<annotations>{head}{"".join(self._images)}</annotations>\n'
        self._write("annotations.xml", text)


def _shape(label: str, kind: str, points: Sequence[Sequence[float]], mask: str | None) -> dict[str, Any]:
    return {
        "label": label,
        "points": points,
        "group_id": None,
        "description": "",
        "shape_type": kind,
        "flags": {},
        "mask": mask,
    }


class ImageFolder(Writer):
    """`images/SPLIT/CLASS/…`, as torchvision, Keras and Hugging Face read it."""

    HOLDS = frozenset((SINGLE,))

    def __init__(self, new_file: NewFile, manifest: Manifest, *, polygons: bool = False) -> None:
        super().__init__(new_file, manifest, polygons=polygons)
        self._folders = class_folders(manifest.classes, manifest.ignores)

    def add(self, image: ExportedImage) -> None:
        if not image.labels:
            raise CheckFailed(f"{image.key}: has no class, and imagefolder has no place for it. Use --to csv.")
        folder = self._folders[self._classes[image.labels[0]]]
        key = image.key.removeprefix(f"{image.split}/").removeprefix(f"{folder}/")
        self._write(f"{IMAGES}/{self._split_name(image.split, 'val')}/{folder}/{key}", image.data)
