"""The scene that the tools write, the truth of a data set, and COCO files, which pycocotools reads."""

from __future__ import annotations

import base64
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Scene = dict[str, Any]
Truth = dict[str, dict[str, Any]]
Pixels = npt.NDArray[Any]
WRITERS: dict[str, Callable[[Scene, Path], None]] = {}
READERS: dict[str, Callable[[Scene, Path], Truth]] = {}


def writes(*rows: str) -> Callable[[Any], Any]:
    """Registers a function that writes data sets; it takes the row's name first where it writes several."""
    return lambda function: _register(WRITERS, rows, function)


def reads(*rows: str) -> Callable[[Any], Any]:
    """Registers a function that reads them."""
    return lambda function: _register(READERS, rows, function)


def _register(table: dict[str, Any], rows: tuple[str, ...], function: Any) -> Any:
    for row in rows:
        table[row] = (lambda scene, out, row=row: function(row, scene, out)) if len(rows) > 1 else function
    return function


def pixels(one: dict[str, Any], image: dict[str, Any]) -> Pixels:
    """Returns the pixels of an object that is a mask."""
    flat = np.unpackbits(np.frombuffer(base64.b64decode(one["mask"]), np.uint8))
    return flat[: image["height"] * image["width"]].reshape(image["height"], image["width"])


def packed(mask: Pixels) -> str:
    """Returns a mask as text."""
    return base64.b64encode(np.packbits(np.asarray(mask, bool)).tobytes()).decode()


def objects(image: dict[str, Any], *kinds: str) -> Iterable[dict[str, Any]]:
    """Returns the objects of an image that are one of `mask`, `polygon` and `box`."""
    return (one for one in image["objects"] if any(kind in one for kind in kinds))


def copy_images(scene: Scene, folder: Path) -> None:
    """Copies the images of the scene."""
    folder.mkdir(parents=True, exist_ok=True)
    for image in scene["images"]:
        shutil.copy(image["path"], folder / image["name"])


class Collected:
    """A truth that grows."""

    def __init__(self, scene: Scene, *parts: str) -> None:
        self._size = {image["name"]: (image["height"], image["width"]) for image in scene["images"]}
        self._masks: dict[str, dict[str, Pixels]] = defaultdict(dict)
        self._boxes: dict[str, list[list[Any]]] = defaultdict(list)
        self._classes: dict[str, list[str]] = defaultdict(list)
        self._parts = parts

    def mask(self, name: str, label: str, mask: Pixels) -> None:
        """Adds the mask of an object to that of its class."""
        drawn = self._masks[name].setdefault(label, np.zeros(self._size[name], bool))
        drawn |= np.asarray(mask, bool)

    def polygon(self, name: str, label: str, points: list[float]) -> None:
        """Adds a polygon, drawn by pycocotools."""
        from pycocotools import mask as coco

        height, width = self._size[name]
        self.mask(name, label, coco.decode(coco.merge(coco.frPyObjects([list(points)], height, width))))

    def box(self, name: str, label: str, *edges: float) -> None:
        """Adds a box: left, top, right, bottom."""
        self._boxes[name].append([label, *map(float, edges)])

    def tag(self, name: str, label: str) -> None:
        """Adds a class of the whole image."""
        self._classes[name].append(label)

    def truth(self) -> Truth:
        """Returns all of it."""
        found: Truth = {}
        for name in self._size:
            whole = {
                "masks": {label: packed(mask) for label, mask in self._masks[name].items()},
                "boxes": self._boxes[name],
                "classes": self._classes[name],
            }
            found[name] = {part: whole[part] for part in self._parts}
        return found


def coco_document(scene: Scene, *kinds: str) -> dict[str, Any]:
    """Returns a COCO document, from which other tools start."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, image in enumerate(scene["images"], 1):
        images.append({"id": number, "file_name": image["name"], "height": image["height"], "width": image["width"]})
        for one in objects(image, *kinds):
            category = scene["classes"].index(one["class"]) + 1
            xs, ys = (
                (one["polygon"][::2], one["polygon"][1::2]) if "polygon" in one else (one["box"][::2], one["box"][1::2])
            )
            box = [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]
            outline = {"segmentation": [one["polygon"]] if "polygon" in one else []}
            common = {"id": len(annotations) + 1, "image_id": number, "category_id": category, "iscrowd": 0}
            annotations.append({**common, **outline, "bbox": box, "area": box[2] * box[3]})
    categories = [{"id": number, "name": name} for number, name in enumerate(scene["classes"], 1)]
    return {"images": images, "annotations": annotations, "categories": categories}


def read_coco_file(scene: Scene, file: Path, *parts: str) -> Truth:
    """Reads a COCO file with pycocotools."""
    from pycocotools.coco import COCO

    found, coco = Collected(scene, *parts), COCO(str(file))
    for number, one in coco.anns.items():
        name = Path(coco.imgs[one["image_id"]]["file_name"]).name
        label = coco.cats[one["category_id"]]["name"]
        if one.get("segmentation"):
            found.mask(name, label, coco.annToMask(coco.anns[number]))
        elif "masks" in parts:
            left, top, width, height = one["bbox"]
            found.polygon(name, label, [left, top, left + width, top, left + width, top + height, left, top + height])
        left, top, width, height = one["bbox"]
        found.box(name, label, left, top, left + width, top + height)
    return found.truth()
