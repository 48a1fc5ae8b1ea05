"""Libraries that convert data sets: datumaro, globox, supervision and pylabel."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.annotation_worker.scene import (
    Collected,
    Scene,
    Truth,
    coco_document,
    copy_images,
    objects,
    pixels,
    read_coco_file,
    reads,
    writes,
)

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
        for region in objects(image, *kinds):
            number = next(numbers)
            label, group = labels.index(region["class"]), {"group": number, "id": number}
            if "polygon" in region:
                drawn.append(dm.Polygon(region["polygon"], label=label, **group))
            elif "box" in region:
                left, top, right, bottom = region["box"]
                drawn.append(dm.Bbox(left, top, right - left, bottom - top, label=label, **group))
            else:
                drawn.append(dm.Mask(pixels(region, image).astype(bool), label=label, **group))
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
        return {name: max((truth[name] for truth in read), key=lambda part: len(part["boxes"])) for name in read[0]}
    if "mask" in kinds and form == "open_images":
        return _read_png_masks(scene, out)
    # Among outlines, boxes are drawn as masks.
    parts = {"polygon": "masks", "mask": "masks", "box": "boxes", "tag": "classes"}
    collected = Collected(scene, *dict.fromkeys(parts[kind] for kind in kinds))
    by_stem = {Path(image["name"]).stem: image["name"] for image in scene["images"]}
    dataset = dm.Dataset.import_from(str(out), {"yolo_ultralytics": "yolo"}.get(form, form))
    names = [label.name for label in dataset.categories()[dm.AnnotationType.label]]
    for item in dataset:
        # The reader of class folders puts the class before the name.
        name = by_stem[Path(item.id).name.rpartition(":")[2]]
        for annotation in item.annotations:
            label = names[annotation.label] if annotation.label is not None else ""
            if label == "background":
                continue
            if annotation.type == dm.AnnotationType.polygon:
                # Its points are float32.
                collected.polygon(name, label, [round(float(number), 4) for number in annotation.points])
            elif annotation.type == dm.AnnotationType.mask:
                collected.mask(name, label, annotation.image)
            elif annotation.type == dm.AnnotationType.bbox:
                edges = annotation.x, annotation.y, annotation.x + annotation.w, annotation.y + annotation.h
                collected.box(name, label, *edges)
                left, top, right, bottom = (round(float(edge), 4) for edge in edges)
                collected.polygon(name, label, [left, top, right, top, right, bottom, left, bottom])
            elif annotation.type == dm.AnnotationType.label:
                collected.tag(name, label)
    return collected.truth()


def _read_png_masks(scene: Scene, out: Path) -> Truth:
    """Reads the PNG files of Open Images, for which datumaro's reader wants the sizes of the images."""
    from PIL import Image

    collected = Collected(scene, "masks")
    for file in (out / "masks").rglob("*.png"):
        stem, label, _ = file.stem.rsplit("_", 2)
        collected.mask(f"{stem}.jpg", label, np.asarray(Image.open(file)) > 0)
    return collected.truth()


# --- globox: boxes


# Row -> what globox calls the format, and the file or folder of it.
_GLOBOX = {
    "globox: COCO boxes": ("coco", "coco.json"),
    "globox: CVAT": ("cvat", "annotations.xml"),
    "globox: LabelMe": ("labelme", ""),
    "globox: VIA": ("via_json", "via.json"),
    "globox: Open Images": ("openimage", "boxes.csv"),
    "globox: YOLO (Darknet)": ("yolo_darknet", ""),
    "globox: YOLO v5": ("yolo_v5", "labels"),
    "globox: Pascal VOC": ("pascal_voc", "Annotations"),
}
_WITH_IMAGES = ("via_json", "openimage", "yolo_darknet", "yolo_v5")


@writes(*_GLOBOX)
def write_globox(row: str, scene: Scene, out: Path) -> None:
    """Saves boxes with globox."""
    from globox import Annotation, AnnotationSet, BoundingBox

    form, target = _GLOBOX[row]
    # Tools that write a file for each image have it next to the image, or in a folder next to that of the images.
    copy_images(scene, out / "images" if target else out)
    saved = AnnotationSet(
        Annotation(
            image_id=image["name"],
            image_size=(image["width"], image["height"]),
            boxes=[
                BoundingBox.create(label=region["class"], coords=tuple(region["box"]))
                for region in objects(image, "box")
            ],
        )
        for image in scene["images"]
    )
    numbers = {"label_to_id": {name: number for number, name in enumerate(scene["classes"])}}
    options: dict[str, dict[str, Any]] = {"coco": {"auto_ids": True}, "via_json": {"image_folder": out / "images"}}
    options |= {"yolo_v5": numbers, "yolo_darknet": numbers}
    getattr(saved, f"save_{form}")(out / target, **options.get(form, {}))
    if form == "yolo_v5":
        lines = [f"  {number}: {name}" for number, name in enumerate(scene["classes"])]
        text = "\n".join(["path: .", "train: images", "val: images", "names:", *lines, ""])
        (out / "data.yaml").write_text(text, encoding="utf-8")
    elif form == "yolo_darknet":
        (out / "classes.txt").write_text("\n".join([*scene["classes"], ""]), encoding="utf-8")


@reads(*_GLOBOX)
def read_globox(row: str, scene: Scene, out: Path) -> Truth:
    """Reads boxes with globox."""
    from globox import AnnotationSet

    form, source = _GLOBOX[row]
    aside = out.parent / "classes.txt"
    if form == "yolo_darknet":
        (out / "classes.txt").rename(aside)  # The reader takes every text for annotations.
    images = {"image_folder": out / "images" if source else out} if form in _WITH_IMAGES else {}
    read = getattr(AnnotationSet, f"from_{form}")(out / source, **images)
    if form == "yolo_darknet":
        aside.rename(out / "classes.txt")
    collected = Collected(scene, "boxes")
    for annotation in read:
        for box in annotation.boxes:
            label = scene["classes"][int(box.label)] if form.startswith("yolo") else str(box.label)
            collected.box(Path(annotation.image_id).name, label, box.xmin, box.ymin, box.xmax, box.ymax)
    return collected.truth()


# --- supervision


# Row -> what supervision calls the format, and its files and folders besides that of the images.
_SUPERVISION = {
    "supervision: COCO": ("coco", "annotations.json"),
    "supervision: YOLO": ("yolo", "labels", "data.yaml"),
    "supervision: Pascal VOC": ("pascal_voc", "annotations"),
    "supervision: LabelMe": ("labelme", "annotations"),
}


@writes(*_SUPERVISION)
def write_supervision(row: str, scene: Scene, out: Path) -> None:
    """Exports masks or boxes with supervision."""
    import supervision as sv

    form, *places = _SUPERVISION[row]
    paths, detections = [], {}
    for image in scene["images"]:
        path = str(image["path"])
        paths.append(path)
        boxes, masks, labels = [], [], []
        masked = form != "pascal_voc"
        for region in objects(image, "mask" if masked else "box"):
            labels.append(scene["classes"].index(region["class"]))
            if masked:
                drawn = pixels(region, image).astype(bool)
                rows, columns = np.flatnonzero(drawn.any(1)), np.flatnonzero(drawn.any(0))
                masks.append(drawn)
                boxes.append([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
            else:
                boxes.append(region["box"])
        whole = {"mask": np.array(masks)} if masked else {}
        detections[path] = sv.Detections(np.array(boxes, float), class_id=np.array(labels), **whole)
    dataset = sv.DetectionDataset(classes=scene["classes"], images=paths, annotations=detections)
    getattr(dataset, f"as_{form}")(*(str(out / place) for place in ("images", *places)))


@reads(*_SUPERVISION)
def read_supervision(row: str, scene: Scene, out: Path) -> Truth:
    """Reads boxes with supervision."""
    import supervision as sv

    form, *places = _SUPERVISION[row]
    read = getattr(sv.DetectionDataset, f"from_{form}")(*(str(out / place) for place in ("images", *places)))
    collected = Collected(scene, "boxes")
    for path, _, detections in read:
        for edges, label in zip(detections.xyxy, detections.class_id, strict=True):
            collected.box(Path(path).name, read.classes[label], *edges)
    return collected.truth()


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
    collected = Collected(scene, "masks")
    for image in scene["images"]:
        for line in (out / "labels" / f"{Path(image['name']).stem}.txt").read_text(encoding="utf-8").splitlines():
            number, *points = line.split()
            sides = [image["width"], image["height"]] * (len(points) // 2)
            drawn = [float(coordinate) * side for coordinate, side in zip(points, sides, strict=True)]
            collected.polygon(image["name"], scene["classes"][int(number)], drawn)
    return collected.truth()


@reads("pylabel: Pascal VOC")
def read_voc_boxes(scene: Scene, out: Path) -> Truth:
    """Reads XML files with the standard library."""
    from xml.etree import ElementTree

    collected = Collected(scene, "boxes")
    for file in (out / "Annotations").glob("*.xml"):
        root = ElementTree.parse(file).getroot()  # noqa: S314 - a file that this script has just written
        for element in root.iter("object"):
            edges = [float(element.findtext(f"bndbox/{edge}", "")) for edge in ("xmin", "ymin", "xmax", "ymax")]
            collected.box(root.findtext("filename", ""), element.findtext("name", ""), *edges)
    return collected.truth()
