"""Runs inside the environment of an annotation tool: lets the tool write a data set, and read it again as the truth.

    python annotation_tools_worker.py write ROW SCENE OUT     SCENE: folder with scene.json and images/
    python annotation_tools_worker.py truth ROW SCENE OUT     prints the truth as JSON

The truth is {file name: {"masks": {class: packed bits}, "boxes": [[class, x0, y0, x1, y1]], "classes": []}};
a part that the format does not hold is left out. Nothing of Shardwright is imported here.
"""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import json
import os
import shutil
import sys
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


# --- the scene


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


# --- datumaro

_DATUMARO = {
    "datumaro: COCO instances": ("coco_instances", "polygon", "mask", "box"),
    "datumaro: COCO panoptic": ("coco_panoptic", "mask"),
    "datumaro: CVAT": ("cvat", "polygon", "mask", "box", "tag"),
    "datumaro: YOLO (Darknet)": ("yolo", "box"),
    "datumaro: YOLO (Ultralytics)": ("yolo_ultralytics", "box"),
    "datumaro: Open Images": ("open_images", "box"),
    "datumaro: Open Images masks": ("open_images", "mask"),
    "datumaro: Open Images labels": ("open_images", "tag"),
    "datumaro: Pascal VOC boxes": ("voc_detection", "box"),
    "datumaro: Pascal VOC masks": ("voc_segmentation", "mask"),
    "datumaro: class folders": ("imagenet", "tag"),
}


@writes(*_DATUMARO)
def write_datumaro(row: str, scene: Scene, out: Path) -> None:
    """Exports with datumaro."""
    import datumaro as dm

    form, *kinds = _DATUMARO[row]
    labels = [*scene["classes"], *scene["tags"]] if "tag" in kinds else scene["classes"]
    items = []
    numbers = itertools.count(1)
    for image in scene["images"]:
        drawn: list[Any] = []
        for one in objects(image, *kinds):
            number = next(numbers)
            label, group = labels.index(one["class"]), {"group": number, "id": number}
            if "polygon" in one:
                drawn.append(dm.Polygon(one["polygon"], label=label, **group))
            elif "box" in one:
                left, top, right, bottom = one["box"]
                drawn.append(dm.Bbox(left, top, right - left, bottom - top, label=label, **group))
            else:
                drawn.append(dm.Mask(pixels(one, image).astype(bool), label=label, **group))
        if "tag" in kinds:
            drawn.append(dm.Label(labels.index(image["tag"])))
        media = dm.Image.from_file(path=image["path"])
        items.append(dm.DatasetItem(Path(image["name"]).stem, subset=image["split"], media=media, annotations=drawn))
    dataset = dm.Dataset.from_iterable(items, categories=labels)
    dataset.export(str(out), form, save_media=True)


@reads(*_DATUMARO)
def read_datumaro(row: str, scene: Scene, out: Path) -> Truth:
    """Reads with datumaro's own reader."""
    import datumaro as dm

    form, *kinds = _DATUMARO[row]
    if form == "coco_instances":
        read = [read_coco_file(scene, file, "masks", "boxes") for file in out.glob("annotations/*.json")]
        return {name: max((one[name] for one in read), key=lambda part: len(part["boxes"])) for name in read[0]}
    if "mask" in kinds and form == "open_images":
        return _read_png_masks(scene, out)
    # Among outlines, boxes are drawn as masks.
    parts = {"polygon": "masks", "mask": "masks", "box": "boxes", "tag": "classes"}
    found = Collected(scene, *dict.fromkeys(parts[kind] for kind in kinds))
    by_stem = {Path(image["name"]).stem: image["name"] for image in scene["images"]}
    dataset = dm.Dataset.import_from(str(out), {"yolo_ultralytics": "yolo"}.get(form, form))
    names = [label.name for label in dataset.categories()[dm.AnnotationType.label]]
    for item in dataset:
        # The reader of class folders puts the class before the name.
        name = by_stem[Path(item.id).name.rpartition(":")[2]]
        for one in item.annotations:
            label = names[one.label] if one.label is not None else ""
            if label == "background":
                continue
            if one.type == dm.AnnotationType.polygon:
                # Its points are float32.
                found.polygon(name, label, [round(float(number), 4) for number in one.points])
            elif one.type == dm.AnnotationType.mask:
                found.mask(name, label, one.image)
            elif one.type == dm.AnnotationType.bbox:
                edges = one.x, one.y, one.x + one.w, one.y + one.h
                found.box(name, label, *edges)
                left, top, right, bottom = (round(float(edge), 4) for edge in edges)
                found.polygon(name, label, [left, top, right, top, right, bottom, left, bottom])
            elif one.type == dm.AnnotationType.label:
                found.tag(name, label)
    return found.truth()


def _read_png_masks(scene: Scene, out: Path) -> Truth:
    """Reads the PNG files of Open Images, for which datumaro's reader wants the sizes of the images."""
    from PIL import Image

    found = Collected(scene, "masks")
    for file in (out / "masks").rglob("*.png"):
        stem, label, _ = file.stem.rsplit("_", 2)
        found.mask(f"{stem}.jpg", label, np.asarray(Image.open(file)) > 0)
    return found.truth()


# --- globox: boxes


_GLOBOX = {
    "globox: COCO boxes": "coco.json",
    "globox: CVAT": "annotations.xml",
    "globox: LabelMe": "",
    "globox: VIA": "via.json",
    "globox: Open Images": "boxes.csv",
    "globox: YOLO (Darknet)": "",
    "globox: YOLO v5": "labels",
    "globox: Pascal VOC": "Annotations",
}


@writes(*_GLOBOX)
def write_globox(row: str, scene: Scene, out: Path) -> None:
    """Saves boxes with globox."""
    from globox import Annotation, AnnotationSet, BoundingBox

    # Tools that write a file for each image have it next to the image, or in a folder next to that of the images.
    copy_images(scene, out if row in ("globox: LabelMe", "globox: YOLO (Darknet)") else out / "images")
    saved = AnnotationSet(
        Annotation(
            image_id=image["name"],
            image_size=(image["width"], image["height"]),
            boxes=[BoundingBox.create(label=one["class"], coords=tuple(one["box"])) for one in objects(image, "box")],
        )
        for image in scene["images"]
    )
    target, names = out / _GLOBOX[row], {name: number for number, name in enumerate(scene["classes"])}
    if row == "globox: COCO boxes":
        saved.save_coco(target, auto_ids=True)
    elif row == "globox: CVAT":
        saved.save_cvat(target)
    elif row == "globox: LabelMe":
        saved.save_labelme(target)
    elif row == "globox: VIA":
        saved.save_via_json(target, image_folder=out / "images")
    elif row == "globox: Open Images":
        saved.save_openimage(target)
    elif row == "globox: Pascal VOC":
        saved.save_pascal_voc(target)
    else:
        save = saved.save_yolo_v5 if row == "globox: YOLO v5" else saved.save_yolo_darknet
        save(target, label_to_id=names)
        lines = [f"  {number}: {name}" for name, number in names.items()]
        text = "\n".join(["path: .", "train: images", "val: images", "names:", *lines, ""])
        if row == "globox: YOLO v5":
            (out / "data.yaml").write_text(text, encoding="utf-8")
        else:
            (out / "classes.txt").write_text("\n".join([*names, ""]), encoding="utf-8")


@reads(*_GLOBOX)
def read_globox(row: str, scene: Scene, out: Path) -> Truth:
    """Reads boxes with globox."""
    from globox import AnnotationSet

    source = out / _GLOBOX[row]
    images = out if not _GLOBOX[row] else out / "images"
    if row == "globox: COCO boxes":
        read = AnnotationSet.from_coco(source)
    elif row == "globox: CVAT":
        read = AnnotationSet.from_cvat(source)
    elif row == "globox: LabelMe":
        read = AnnotationSet.from_labelme(source)
    elif row == "globox: VIA":
        read = AnnotationSet.from_via_json(source, image_folder=images)
    elif row == "globox: Open Images":
        read = AnnotationSet.from_openimage(source, image_folder=images)
    elif row == "globox: Pascal VOC":
        read = AnnotationSet.from_pascal_voc(source)
    else:
        for listed in source.glob("classes.txt"):
            listed.rename(out.parent / "classes.txt")
        from_yolo = AnnotationSet.from_yolo_v5 if row == "globox: YOLO v5" else AnnotationSet.from_yolo_darknet
        read = from_yolo(source, image_folder=images)
        if (out.parent / "classes.txt").exists():
            (out.parent / "classes.txt").rename(source / "classes.txt")
    found, numbered = Collected(scene, "boxes"), "YOLO" in row
    for annotation in read:
        for box in annotation.boxes:
            label = scene["classes"][int(box.label)] if numbered else str(box.label)
            found.box(Path(annotation.image_id).name, label, box.xmin, box.ymin, box.xmax, box.ymax)
    return found.truth()


# --- LabelMe


@writes("labelme")
def write_labelme(scene: Scene, out: Path) -> None:
    """Saves shapes of every kind with LabelMe's own file class."""
    from labelme import LabelFile
    from labelme.utils import img_arr_to_b64

    copy_images(scene, out)
    for image in scene["images"]:
        shapes: list[dict[str, Any]] = []
        points: list[Any]
        mask: str | None
        for one in image["objects"]:
            if "polygon" in one:
                points, kind, mask = list(zip(one["polygon"][::2], one["polygon"][1::2], strict=True)), "polygon", None
            elif "box" in one:
                points, kind, mask = [one["box"][:2], one["box"][2:]], "rectangle", None
            else:
                drawn = pixels(one, image)
                rows, columns = np.flatnonzero(drawn.any(1)), np.flatnonzero(drawn.any(0))
                top, bottom, left, right = rows[0], rows[-1], columns[0], columns[-1]
                points = [[float(left), float(top)], [float(right), float(bottom)]]
                kind, mask = "mask", img_arr_to_b64(drawn[top : bottom + 1, left : right + 1])
            shape = {"label": one["class"], "points": [list(map(float, p)) for p in points], "shape_type": kind}
            shapes.append({**shape, "group_id": None, "description": "", "flags": {}, "mask": mask})
        turned = [[10.0, 8.0], [22.0, 14.0], [18.0, 22.0], [6.0, 16.0]]
        for points, kind in ((turned, "oriented_rectangle"), ([[40.0, 30.0], [46.0, 33.0]], "circle")):
            shape = {"label": scene["classes"][0], "points": points, "shape_type": kind}
            shapes.append({**shape, "group_id": 1, "description": None, "flags": {}, "mask": None})
        LabelFile().save(
            filename=str(out / f"{Path(image['name']).stem}.json"),
            shapes=shapes,
            image_path=image["name"],
            image_height=image["height"],
            image_width=image["width"],
            image_data=Path(image["path"]).read_bytes(),
            flags={tag: tag == image["tag"] for tag in scene["tags"]},
        )


@reads("labelme")
def read_labelme(scene: Scene, out: Path) -> Truth:
    """Reads with LabelMe's file class; polygons are drawn by pycocotools, circles by their equation."""
    from labelme import LabelFile

    found = Collected(scene, "masks", "classes")
    for image in scene["images"]:
        name = image["name"]
        read = LabelFile(str(out / f"{Path(name).stem}.json"))
        for shape in read.shapes:
            label, points = shape["label"], np.array(shape["points"], float)
            if shape["shape_type"] == "mask":
                whole = np.zeros((image["height"], image["width"]), bool)
                (left, top), (right, bottom) = points.astype(int)
                whole[top : bottom + 1, left : right + 1] = shape["mask"]
                found.mask(name, label, whole)
            elif shape["shape_type"] == "circle":
                y, x = np.mgrid[: image["height"], : image["width"]] + 0.5
                found.mask(
                    name, label, np.hypot(x - points[0, 0], y - points[0, 1]) < np.hypot(*(points[1] - points[0]))
                )
            else:
                if shape["shape_type"] == "rectangle":
                    (left, top), (right, bottom) = points
                    points = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
                found.polygon(name, label, points.ravel().tolist())
        for flag, value in read.flags.items():
            if value:
                found.tag(name, flag)
    return found.truth()


# --- Label Studio


def _with_name(results: Iterable[dict[str, Any]], image: dict[str, Any]) -> list[dict[str, Any]]:
    size = {"original_width": image["width"], "original_height": image["height"], "image_rotation": 0}
    return [{**one, **size} for one in results]


@writes("label-studio-converter: brush")
def write_label_studio_brush(scene: Scene, out: Path) -> None:
    """Encodes masks with Label Studio's own run-length code."""
    from label_studio_converter import brush

    copy_images(scene, out / "images")
    tasks = []
    for number, image in enumerate(scene["images"]):
        results: list[dict[str, Any]] = []
        for one in objects(image, "mask"):
            value = {"format": "rle", "rle": brush.mask2rle(pixels(one, image) * 255), "brushlabels": [one["class"]]}
            results.append({"id": str(len(results)), "type": "brushlabels", "value": value, "to_name": "image"})
        choice = {"id": "c", "type": "choices", "value": {"choices": [image["tag"]]}, "to_name": "image"}
        annotation = {"id": number, "result": [*_with_name(results, image), choice], "was_cancelled": False}
        data = {"image": f"/data/upload/1/{number:08x}-{image['name']}"}
        tasks.append({"id": number, "annotations": [annotation], "data": data, "predictions": []})
    (out / "project.json").write_text(json.dumps(tasks), encoding="utf-8")


@reads("label-studio-converter: brush")
def read_label_studio_brush(scene: Scene, out: Path) -> Truth:
    """Decodes them with Label Studio's decoder."""
    from label_studio_converter import brush

    found = Collected(scene, "masks", "classes")
    for task in json.loads((out / "project.json").read_text(encoding="utf-8")):
        name = task["data"]["image"].rpartition("/")[2][9:]
        for one in task["annotations"][0]["result"]:
            if one["type"] == "choices":
                found.tag(name, one["value"]["choices"][0])
                continue
            flat = brush.decode_rle(one["value"]["rle"])
            drawn = np.reshape(flat, [one["original_height"], one["original_width"], 4])[:, :, 3]
            found.mask(name, one["value"]["brushlabels"][0], drawn > 0)
    return found.truth()


@writes("label-studio-converter: from COCO")
def write_label_studio_coco(scene: Scene, out: Path) -> None:
    """Lets the converter make tasks of a COCO file: polygons and boxes."""
    from label_studio_converter.imports.coco import convert_coco_to_ls

    copy_images(scene, out / "images")
    source = out.parent / "coco.json"
    source.write_text(json.dumps(coco_document(scene, "polygon", "box")), encoding="utf-8")
    convert_coco_to_ls(str(source), str(out / "tasks.json"))
    tasks = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
    # The server gives tasks their ids.
    numbered = [{"id": number, **task} for number, task in enumerate(tasks, 1)]
    (out / "tasks.json").write_text(json.dumps(numbered), encoding="utf-8")
    for extra in out.glob("*.label_config.xml"):
        extra.unlink()


@reads("label-studio-converter: from COCO")
def read_label_studio_coco(scene: Scene, out: Path) -> Truth:
    """Lets the converter export COCO again."""
    from label_studio_converter import Converter

    names = "".join(f'<Label value="{name}"/>' for name in scene["classes"])
    config = (
        '<View><Image name="image" value="$image"/>'
        f'<PolygonLabels name="labelpolygons" toName="image">{names}</PolygonLabels>'
        f'<RectangleLabels name="label_rectangles" toName="image">{names}</RectangleLabels></View>'
    )
    exported = out.parent / "exported"
    converter = Converter(config, str(out.parent), download_resources=False)
    converter.convert_to_coco(str(out / "tasks.json"), str(exported), is_dir=False)
    return read_coco_file(scene, exported / "result.json", "masks")


# --- COCO, read by pycocotools


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


# --- supervision


@writes("supervision: COCO", "supervision: YOLO", "supervision: Pascal VOC", "supervision: LabelMe")
def write_supervision(row: str, scene: Scene, out: Path) -> None:
    """Exports masks or boxes with supervision."""
    import supervision as sv

    paths, detections = [], {}
    for image in scene["images"]:
        path = str(image["path"])
        paths.append(path)
        boxes, masks, labels = [], [], []
        masked = row != "supervision: Pascal VOC"
        for one in objects(image, "mask" if masked else "box"):
            labels.append(scene["classes"].index(one["class"]))
            if masked:
                drawn = pixels(one, image).astype(bool)
                rows, columns = np.flatnonzero(drawn.any(1)), np.flatnonzero(drawn.any(0))
                masks.append(drawn)
                boxes.append([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
            else:
                boxes.append(one["box"])
        whole = {"mask": np.array(masks)} if masked else {}
        detections[path] = sv.Detections(np.array(boxes, float), class_id=np.array(labels), **whole)
    dataset = sv.DetectionDataset(classes=scene["classes"], images=paths, annotations=detections)
    images = str(out / "images")
    if row == "supervision: COCO":
        dataset.as_coco(images, str(out / "annotations.json"))
    elif row == "supervision: YOLO":
        dataset.as_yolo(images, str(out / "labels"), str(out / "data.yaml"))
    elif row == "supervision: Pascal VOC":
        dataset.as_pascal_voc(images, str(out / "annotations"))
    else:
        dataset.as_labelme(images, str(out / "annotations"))


@reads("supervision: COCO", "supervision: YOLO", "supervision: Pascal VOC", "supervision: LabelMe")
def read_supervision(row: str, scene: Scene, out: Path) -> Truth:
    """Reads boxes with supervision."""
    import supervision as sv

    images = str(out / "images")
    if row == "supervision: COCO":
        read = sv.DetectionDataset.from_coco(images, str(out / "annotations.json"))
    elif row == "supervision: YOLO":
        read = sv.DetectionDataset.from_yolo(images, str(out / "labels"), str(out / "data.yaml"))
    elif row == "supervision: Pascal VOC":
        read = sv.DetectionDataset.from_pascal_voc(images, str(out / "annotations"))
    else:
        read = sv.DetectionDataset.from_labelme(images, str(out / "annotations"))
    found = Collected(scene, "boxes")
    for path, _, detections in read:
        for edges, label in zip(detections.xyxy, detections.class_id, strict=True):
            found.box(Path(path).name, read.classes[label], *edges)
    return found.truth()


# --- pylabel


@writes("pylabel: YOLO segments", "pylabel: Pascal VOC")
def write_pylabel(row: str, scene: Scene, out: Path) -> None:
    """Converts a COCO file with pylabel."""
    from pylabel import importer

    copy_images(scene, out / "images")
    source = out / "coco.json"
    source.write_text(json.dumps(coco_document(scene, "polygon")), encoding="utf-8")
    dataset = importer.ImportCoco(str(source), path_to_images="images")
    if row == "pylabel: YOLO segments":
        dataset.export.ExportToYoloV5(str(out / "labels"), yaml_file="dataset.yaml", segmentation=True, cat_id_index=0)
    else:
        dataset.export.ExportToVoc(str(out / "Annotations"))
    source.unlink()


@reads("pylabel: YOLO segments")
def read_yolo_segments(scene: Scene, out: Path) -> Truth:
    """Reads lines of YOLO as Ultralytics documents them: class x y x y ..., in fractions; pycocotools draws them."""
    found = Collected(scene, "masks")
    for image in scene["images"]:
        for line in (out / "labels" / f"{Path(image['name']).stem}.txt").read_text(encoding="utf-8").splitlines():
            number, *points = line.split()
            sides = [image["width"], image["height"]] * (len(points) // 2)
            drawn = [float(one) * side for one, side in zip(points, sides, strict=True)]
            found.polygon(image["name"], scene["classes"][int(number)], drawn)
    return found.truth()


@reads("pylabel: Pascal VOC")
def read_voc_boxes(scene: Scene, out: Path) -> Truth:
    """Reads XML files with the standard library."""
    from xml.etree import ElementTree

    found = Collected(scene, "boxes")
    for file in (out / "Annotations").glob("*.xml"):
        root = ElementTree.parse(file).getroot()  # noqa: S314 - a file that this script has just written
        for one in root.iter("object"):
            edges = [float(one.findtext(f"bndbox/{edge}", "")) for edge in ("xmin", "ymin", "xmax", "ymax")]
            found.box(root.findtext("filename", ""), one.findtext("name", ""), *edges)
    return found.truth()


# --- Supervisely


@writes("supervisely")
def write_supervisely(scene: Scene, out: Path) -> None:
    """Saves a project with Supervisely's SDK."""
    import supervisely as sly

    project = sly.Project(str(out), sly.OpenMode.CREATE)
    classes = {name: sly.ObjClass(name, sly.AnyGeometry) for name in scene["classes"]}
    tags = {name: sly.TagMeta(name, sly.TagValueType.NONE) for name in scene["tags"]}
    project.set_meta(sly.ProjectMeta(list(classes.values()), list(tags.values())))
    datasets = {name: project.create_dataset(name) for name in dict.fromkeys(one["split"] for one in scene["images"])}
    for image in scene["images"]:
        labels = []
        for one in image["objects"]:
            if "polygon" in one:
                points = [
                    sly.PointLocation(round(y), round(x))
                    for x, y in zip(one["polygon"][::2], one["polygon"][1::2], strict=True)
                ]
                drawn = sly.Polygon(points)
            elif "box" in one:
                left, top, right, bottom = map(round, one["box"])
                drawn = sly.Rectangle(top, left, bottom, right)
            else:
                drawn = sly.Bitmap(pixels(one, image).astype(bool))
            labels.append(sly.Label(drawn, classes[one["class"]]))
        annotation = sly.Annotation((image["height"], image["width"]), labels, [sly.Tag(tags[image["tag"]])])
        datasets[image["split"]].add_item_file(image["name"], image["path"], annotation)


@reads("supervisely")
def read_supervisely(scene: Scene, out: Path) -> Truth:
    """Reads it; bitmaps and boxes are drawn by the SDK, polygons by pycocotools."""
    import supervisely as sly

    project, found = sly.Project(str(out), sly.OpenMode.READ), Collected(scene, "masks", "classes")
    for dataset in project.datasets:
        for name in dataset:
            annotation = dataset.get_ann(name, project.meta)
            for label in annotation.labels:
                drawn = np.zeros((*annotation.img_size, 3), np.uint8)
                if isinstance(label.geometry, sly.Polygon):
                    points = [(point.col, point.row) for point in label.geometry.exterior]
                    found.polygon(name, label.obj_class.name, [float(one) for point in points for one in point])
                    continue
                label.draw(drawn, color=[255, 255, 255])
                found.mask(name, label.obj_class.name, drawn[:, :, 0] > 0)
            for tag in annotation.img_tags:
                found.tag(name, tag.name)
    return found.truth()


# --- Hugging Face


@writes("datasets: metadata.csv", "datasets: metadata.jsonl", "datasets: metadata.parquet")
def write_hugging_face(row: str, scene: Scene, out: Path) -> None:
    """Writes an image folder; the table is written by `datasets`."""
    from datasets import Dataset

    for image in scene["images"]:
        folder = out / image["split"]
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(image["path"], folder / image["name"])
    for split in dict.fromkeys(image["split"] for image in scene["images"]):
        images = [image for image in scene["images"] if image["split"] == split]
        table: dict[str, list[Any]] = {"file_name": [image["name"] for image in images]}
        if row == "datasets: metadata.csv":
            table["label"] = [image["tag"] for image in images]
            Dataset.from_dict(table).to_csv(out / split / "metadata.csv", index=False)
            continue
        table["objects"] = [
            {
                "bbox": [
                    [x0, y0, x1 - x0, y1 - y0] for one in objects(image, "box") for x0, y0, x1, y1 in [one["box"]]
                ],
                "categories": [one["class"] for one in objects(image, "box")],
            }
            for image in images
        ]
        if row == "datasets: metadata.parquet":
            Dataset.from_dict(table).to_parquet(out / split / "metadata.parquet")
        else:
            Dataset.from_dict(table).to_json(out / split / "metadata.jsonl")


@reads("datasets: metadata.csv", "datasets: metadata.jsonl", "datasets: metadata.parquet")
def read_hugging_face(row: str, scene: Scene, out: Path) -> Truth:
    """Reads it with `load_dataset`."""
    from datasets import load_dataset

    found = Collected(scene, "classes" if row == "datasets: metadata.csv" else "boxes")
    for split in load_dataset("imagefolder", data_dir=str(out), cache_dir=str(out.parent / "cache")).values():
        for one in split.decode(False) if hasattr(split, "decode") else split:
            name = Path(one["image"]["path"] if isinstance(one["image"], dict) else one["image"].filename).name
            if "label" in one:
                label = one["label"]
                found.tag(name, split.features["label"].int2str(label) if isinstance(label, int) else label)
                continue
            for (x, y, width, height), label in zip(one["objects"]["bbox"], one["objects"]["categories"], strict=True):
                found.box(name, label, x, y, x + width, y + height)
    return found.truth()


# --- Labelbox: written as its documentation shows, read by labelformat


@writes("labelformat reads: Labelbox")
def write_labelbox(scene: Scene, out: Path) -> None:
    """Writes boxes as lines of an export."""
    copy_images(scene, out / "images")
    lines = []
    for image in scene["images"]:
        drawn = []
        for number, one in enumerate(objects(image, "box")):
            left, top, right, bottom = one["box"]
            edges = {"left": left, "top": top, "width": right - left, "height": bottom - top}
            common = {"feature_id": f"f{number}", "name": one["class"], "value": one["class"], "classifications": []}
            drawn.append({**common, "annotation_kind": "ImageBoundingBox", "bounding_box": edges})
        label = {"label_kind": "Default", "annotations": {"objects": drawn, "classifications": [], "relationships": []}}
        size = {"height": image["height"], "width": image["width"], "mime_type": "image/jpeg", "exif_rotation": "1"}
        row = {"id": image["name"], "external_id": image["name"], "global_key": image["name"]}
        lines.append({"data_row": row, "media_attributes": size, "projects": {"p1": {"name": "p", "labels": [label]}}})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (out / "export.ndjson").write_text(text, encoding="utf-8")


@reads("labelformat reads: Labelbox")
def read_labelbox(scene: Scene, out: Path) -> Truth:
    """Reads them with labelformat."""
    from labelformat.formats import LabelboxObjectDetectionInput

    found = Collected(scene, "boxes")
    names = ",".join(scene["classes"])
    read = LabelboxObjectDetectionInput(out / "export.ndjson", category_names=names)
    for label in read.get_labels():
        for one in label.objects:
            box = one.box
            found.box(Path(label.image.filename).name, one.category.name, box.xmin, box.ymin, box.xmax, box.ymax)
    return found.truth()


def main() -> None:
    """Writes a data set, or prints its truth."""
    what, row, scene_folder, out = sys.argv[1:]
    scene = json.loads(Path(scene_folder, "scene.json").read_text(encoding="utf-8"))
    if what == "write":
        WRITERS[row](scene, Path(out))
        return
    with contextlib.redirect_stdout(io.StringIO()):
        truth = READERS[row](scene, Path(out))
    print(json.dumps(truth))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
