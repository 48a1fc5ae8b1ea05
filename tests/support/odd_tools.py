"""What annotation tools write, with names and paths of other machines; see `odd_sets`."""

import json
import unicodedata
from urllib.parse import quote

import layouts
from layouts import CLASSES, COUNT, HEIGHT, WIDTH
from mutated_sets import QUESTION, STOPS
from odd_coco import coco
from odd_parts import SPLITS, classes
from odd_sets import ANSWERED, BOXES, GITHUB, Odd, change_json, labelme, squares
from tool_files import car, names, points, square, write, yolo


def roboflow_coco(root):
    """`_annotations.coco.json` in each split, with the supercategory as category 0."""
    for split, numbers in (("train", range(6)), ("valid", range(6, COUNT))):
        rows = []
        for i in numbers:
            layouts.image(root / f"{split}/i{i}_jpg.rf.0a{i}.jpg", i)
            for category, edges in ((1, car(i)), (2, square(i))):
                left, top, right, bottom = edges
                flat = [side for point in points(edges) for side in point]
                rows.append(
                    {"id": len(rows), "image_id": i, "category_id": category, "iscrowd": 0, "segmentation": [flat]}
                )
                rows[-1] |= {"bbox": [left, top, right - left, bottom - top], "area": (right - left) * (bottom - top)}
        images = [{"id": i, "file_name": f"i{i}_jpg.rf.0a{i}.jpg", "height": HEIGHT, "width": WIDTH} for i in numbers]
        categories = [
            {"id": 0, "name": "things", "supercategory": "none"},
            {"id": 1, "name": "car", "supercategory": "things"},
            {"id": 2, "name": "road", "supercategory": "things"},
        ]
        write(
            root / f"{split}/_annotations.coco.json", {"images": images, "annotations": rows, "categories": categories}
        )
    return squares([f"i{i}_jpg.rf.0a{i}.jpg" for i in range(COUNT)])


def roboflow_boxes(root):
    """`_annotations.csv` in each split."""
    for split, numbers in (("train", range(6)), ("valid", range(6, COUNT))):
        rows = []
        for i in numbers:
            layouts.image(root / f"{split}/i{i}_jpg.rf.0a{i}.jpg", i)
            for name, edges in (("car", car(i)), ("road", square(i))):
                rows.append(f"i{i}_jpg.rf.0a{i}.jpg,{WIDTH},{HEIGHT},{name},{','.join(map(str, edges))}")
        layouts.lines(root / f"{split}/_annotations.csv", "filename,width,height,class,xmin,ymin,xmax,ymax", *rows)
    return squares([f"i{i}_jpg.rf.0a{i}.jpg" for i in range(COUNT)])


def coco_folders(root, form="{split}2017/{name}"):
    """`file_name` with the folder of its split; captions and points beside the objects."""
    coco(root)
    whole = json.loads((root / "instances.json").read_text())
    (root / "instances.json").unlink()
    for split, numbers in (("train", range(6)), ("val", range(6, COUNT))):
        (root / f"images/{split}2017").mkdir()
        for i in numbers:
            (root / f"images/i{i}.jpg").rename(root / f"images/{split}2017/i{i}.jpg")
        part = {
            **whole,
            "images": [
                {**one, "file_name": form.format(split=split, name=one["file_name"])}
                for one in whole["images"]
                if one["id"] in numbers
            ],
        }
        part["annotations"] = [one for one in whole["annotations"] if one["image_id"] in numbers]
        write(root / f"annotations/instances_{split}2017.json", part)
        captions = [{"id": i, "image_id": i, "caption": "A picture."} for i in numbers]
        write(root / f"annotations/captions_{split}2017.json", {"images": part["images"], "annotations": captions})
    return squares([f"i{i}.jpg" for i in range(COUNT)])


def coco_encoded(root):
    """`file_name` as a URL has it: %20 for a blank."""
    coco(root)
    for i in range(COUNT):
        (root / f"images/i{i}.jpg").rename(root / f"images/my photo é{i}.jpg")
    change_json(
        root / "instances.json",
        lambda d: {**d, "images": [{**one, "file_name": quote(f"my photo é{one['id']}.jpg")} for one in d["images"]]},
    )
    return squares([f"my photo é{i}.jpg" for i in range(COUNT)])


def studio_local(root):
    """Label Studio's local files: `?d=` and %2F."""
    from tool_files import label_studio

    truth = label_studio(root)

    def change(tasks):
        for task in tasks:
            name = (
                task["data"]["image"].rpartition("/")[2].partition("-")[2] or task["data"]["image"].rpartition("/")[2]
            )
            task["data"]["image"] = f"/data/local-files/?d=my%20set%2Fimages%2F{quote(name)}"

    change_json(root / "project-3.json", change)
    return truth


def studio_csv(root):
    """Label Studio's CSV of classes."""
    names(root)
    rows = [
        f"/data/upload/1/0a1b2c{i}d-i{i}.jpg,{i},{CLASSES[i % 2]},1,{i},2023-01-01T00:00:00Z,2023-01-01T00:00:00Z,3.2"
        for i in range(COUNT)
    ]
    layouts.lines(
        root / "project-1-at-2023.csv", "image,id,choice,annotator,annotation_id,created_at,updated_at,lead_time", *rows
    )
    return classes("i{}.jpg")


def via_csv(root):
    """VIA's CSV."""
    names(root)
    rows = []
    for i in range(COUNT):
        for k, (name, edges) in enumerate((("car", car(i)), ("road", square(i)))):
            xs, ys = zip(*points(edges), strict=True)
            shape = json.dumps({"name": "polygon", "all_points_x": xs, "all_points_y": ys}).replace('"', '""')
            what = json.dumps({"label": name}).replace('"', '""')
            rows.append(f'i{i}.jpg,{(root / f"images/i{i}.jpg").stat().st_size},"{{}}",2,{k},"{shape}","{what}"')
    layouts.lines(
        root / "via_export.csv",
        "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes",
        *rows,
    )
    return squares([f"i{i}.jpg" for i in range(COUNT)])


def make_sense(root):
    """makesense.ai: a CSV of boxes without a header."""
    names(root)
    rows = []
    for i in range(COUNT):
        for name, (left, top, right, bottom) in (("car", car(i)), ("road", square(i))):
            rows.append(f"{name},{left},{top},{right - left},{bottom - top},i{i}.jpg,{WIDTH},{HEIGHT}")
    layouts.lines(root / "labels_my-project_2023.csv", *rows)
    return squares([f"i{i}.jpg" for i in range(COUNT)])


def create_ml(root):
    """CreateML: boxes by their middle."""
    names(root)
    document = []
    for i in range(COUNT):
        things = []
        for name, (left, top, right, bottom) in (("car", car(i)), ("road", square(i))):
            middle = {"x": (left + right) / 2, "y": (top + bottom) / 2, "width": right - left, "height": bottom - top}
            things.append({"label": name, "coordinates": middle})
        document.append({"image": f"i{i}.jpg", "annotations": things})
    write(root / "_annotations.createml.json", document)
    return {}


def cvat_subsets(root):
    """CVAT for images of two subsets, with the folder in each name."""
    lines = []
    for i, split in enumerate(SPLITS):
        layouts.image(root / f"images/{split}/i{i}.jpg", i)
        shapes = "".join(
            f'<polygon label="{name}" points="{";".join(f"{x}.0,{y}.0" for x, y in points(edges))}" z_order="0"/>'
            for name, edges in (("car", car(i)), ("road", square(i)))
        )
        stated = f'name="{split}/i{i}.jpg" subset="{split}" width="{WIDTH}" height="{HEIGHT}"'
        lines.append(f'<image id="{i}" {stated}>{shapes}</image>')
    write(root / "annotations.xml", f"<annotations><version>1.1</version><meta></meta>{''.join(lines)}</annotations>")
    return squares([f"i{i}.jpg" for i in range(COUNT)])


def labelme_nfd(root):
    """LabelMe on macOS: files in NFD, imagePath in NFC."""
    labelme(root)
    for i in range(COUNT):
        for ending in ("jpg", "json"):
            (root / f"i{i}.{ending}").rename(root / unicodedata.normalize("NFD", f"Übung {i}.{ending}"))
        change_json(
            root / unicodedata.normalize("NFD", f"Übung {i}.json"), lambda d, n=i: {**d, "imagePath": f"Übung {n}.jpg"}
        )
    return squares([f"Übung {i}.jpg" for i in range(COUNT)])


def labelme_nfd_inside(root):
    """The other way around: files in NFC, imagePath in NFD, in folders of their own."""
    for i in range(COUNT):
        layouts.image(root / f"fotos/Übung {i}.jpg", i)
        shapes = [
            {
                "label": name,
                "points": [list(p) for p in points(edges)],
                "shape_type": "polygon",
                "group_id": None,
                "flags": {},
            }
            for name, edges in (("car", car(i)), ("road", square(i)))
        ]
        path = unicodedata.normalize("NFD", f"../fotos/Übung {i}.jpg")
        document = {"version": "5.5.0", "flags": {}, "shapes": shapes, "imagePath": path, "imageData": None}
        write(root / f"json/Übung {i}.json", {**document, "imageHeight": HEIGHT, "imageWidth": WIDTH})
    return squares([f"Übung {i}.jpg" for i in range(COUNT)])


def labelme_case(root):
    """Cameras write .JPG, the tool .jpg in imagePath, on a Windows machine."""
    labelme(root, image_path="I{}.jpg")
    for i in range(COUNT):
        (root / f"i{i}.jpg").rename(root / f"I{i}.JPG")
        (root / f"i{i}.json").rename(root / f"I{i}.json")
    return squares([f"I{i}.JPG" for i in range(COUNT)])


def supervisely_upper(root):
    """`IMG.JPG` and `IMG.JPG.json`."""
    from tool_files import supervisely

    truth = supervisely(root)
    for file in sorted(root.rglob("*i[0-9].jpg*")):
        file.rename(file.with_name(file.name.replace(".jpg", ".JPG")))
    return {key.replace(".jpg", ".JPG"): value for key, value in truth.items()}


def supervisely_upper_images(root):
    """`IMG.JPG` and `IMG.jpg.json`."""
    from tool_files import supervisely

    truth = supervisely(root)
    for file in sorted(root.rglob("*i[0-9].jpg")):
        file.rename(file.with_name(file.name.replace(".jpg", ".JPG")))
    return {key.replace(".jpg", ".JPG"): value for key, value in truth.items()}


def voc_upper(root):
    """VOC boxes with file names in another case of the ending, and `./`."""
    from tool_files import voc_boxes

    truth = voc_boxes(root)
    for i in range(COUNT):
        (root / f"images/i{i}.jpg").rename(root / f"images/i{i}.JPEG")
        file = root / f"Annotations/i{i}.xml"
        file.write_text(file.read_text().replace("<annotation>", f"<annotation><filename>./i{i}.jpeg</filename>", 1))
    return {key.replace(".jpg", ".JPEG"): value for key, value in truth.items()}


def labelme_results(root):
    """Pictures of results, some with files of their own, in a folder next to the images."""
    truth = labelme(root)
    for i in range(3):
        layouts.image(root / f"results/i{i}.jpg", 60 + i)
        document = json.loads((root / f"i{i}.json").read_text(encoding="utf-8"))
        write(root / f"results/i{i}.json", {**document, "shapes": document["shapes"][:1]})
    return truth


def yolo_broken(root):
    """One text of eight is cut in its first line: the others are right."""
    truth = yolo(root)
    write(root / "labels/train/i3.txt", "0 0.5 0.5\n")
    return {key: value for key, value in truth.items() if not key.endswith("i3.jpg")}


_RF = f"{GITHUB}roboflow/"
ODD = {
    "Roboflow COCO": Odd(_RF, roboflow_coco, "masks", ANSWERED),
    "Roboflow boxes": Odd(_RF, roboflow_boxes, "boxes", ANSWERED, BOXES),
    "COCO folders": Odd("https://cocodataset.org", coco_folders, "masks", ANSWERED),
    "COCO of another machine": Odd(
        "https://cocodataset.org", lambda root: coco_folders(root, "/data/coco/{split}2017/{name}"), "masks", ANSWERED
    ),
    "COCO percent": Odd(f"{GITHUB}HumanSignal/label-studio/issues/5014", coco_encoded),
    "Label Studio local files": Odd("https://labelstud.io/guide/storage", studio_local, "masks", ANSWERED),
    "Label Studio CSV": Odd("https://labelstud.io/guide/export", studio_csv, "classes", ANSWERED),
    "VIA CSV": Odd("https://www.robots.ox.ac.uk/~vgg/software/via", via_csv, "masks", ANSWERED | STOPS, cause="VIA"),
    "makesense": Odd("https://www.makesense.ai", make_sense, "boxes", ANSWERED | STOPS, BOXES, cause="header"),
    "CreateML": Odd(_RF, create_ml, "boxes", STOPS, BOXES, cause="CreateML"),
    "CVAT subsets": Odd("https://docs.cvat.ai/docs/manual/advanced/formats/format-cvat", cvat_subsets),
    "LabelMe in NFD": Odd(f"{GITHUB}wkentaro/labelme", labelme_nfd),
    "LabelMe in NFD inside": Odd(f"{GITHUB}wkentaro/labelme", labelme_nfd_inside),
    "LabelMe and .JPG": Odd(f"{GITHUB}wkentaro/labelme", labelme_case),
    "Supervisely and .JPG": Odd("https://docs.supervisely.com", supervisely_upper),
    "Supervisely and .JPG images": Odd("https://docs.supervisely.com", supervisely_upper_images),
    "VOC and .JPEG": Odd("http://host.robots.ox.ac.uk/pascal/VOC", voc_upper, "boxes", ANSWERED, BOXES),
    "LabelMe and results": Odd(f"{GITHUB}wkentaro/labelme", labelme_results, "masks", frozenset((QUESTION,))),
    "YOLO and a broken text": Odd(_RF, yolo_broken, "masks", frozenset((QUESTION,)), cause="train/i3.jpg"),
}
