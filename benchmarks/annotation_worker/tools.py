"""Tools that define their file formats: LabelMe, Label Studio, Supervisely, Hugging Face's datasets and Labelbox."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
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
