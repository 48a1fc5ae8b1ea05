"""COCO files that users reported as read wrongly by some tool; see `odd_sets`."""

import json

from layouts import HEIGHT, WIDTH
from mutated_sets import STOPS
from odd_sets import ANSWERED, BOXES, GITHUB, Odd, change_json, squares
from tool_files import COUNT, car, filled, names, points, square, write


def coco(root, boxes=False):
    """COCO with the car and the road of `tool_files`."""
    keys = names(root)
    rows = []
    for number in range(COUNT):
        for category, edges in ((3, car(number)), (5, square(number))):
            left, top, right, bottom = edges
            flat = [side for point in points(edges) for side in point]
            row = {"id": len(rows), "image_id": number, "category_id": category, "iscrowd": 0}
            row |= {"bbox": [left, top, right - left, bottom - top], "area": (right - left) * (bottom - top)}
            rows.append(row if boxes else {**row, "segmentation": [flat]})
    images = [{"id": i, "file_name": key, "height": HEIGHT, "width": WIDTH} for i, key in enumerate(keys)]
    categories = [{"id": 3, "name": "car"}, {"id": 5, "name": "road"}]
    write(root / "instances.json", {"images": images, "annotations": rows, "categories": categories})
    return squares(keys)


def coco_with(change, boxes=False, lost=False):
    def draw(root):
        truth = coco(root, boxes)
        change_json(root / "instances.json", change)
        return {} if lost else truth

    return draw


def of_annotations(change):
    def of(document):
        for row in document["annotations"]:
            change(row)

    return of


def edges_for_sizes(row):
    x, y, width, height = row["bbox"]
    row["bbox"] = [x, y, x + width, y + height]


def edges_without_area(row):
    edges_for_sizes(row)
    del row["area"]


def centers(row):
    x, y, width, height = row["bbox"]
    row["bbox"] = [x + width / 2, y + height / 2, width, height]


def fractions(row):
    row["segmentation"] = [[x / (HEIGHT if i % 2 else WIDTH) for i, x in enumerate(row["segmentation"][0])]]
    row["bbox"] = [x / (HEIGHT if i % 2 else WIDTH) for i, x in enumerate(row["bbox"])]


def box_fractions(row):
    row["bbox"] = [x / (HEIGHT if i % 2 else WIDTH) for i, x in enumerate(row["bbox"])]
    del row["area"]


def y_before_x(row):
    flat = row["segmentation"][0]
    row["segmentation"] = [[x for i in range(0, len(flat), 2) for x in (flat[i + 1], flat[i])]]


def no_outline(row):
    if row["image_id"] == 2:
        row["segmentation"] = []


def swap_sides(document):
    for image in document["images"]:
        image["height"], image["width"] = image["width"], image["height"]


def text_ids(document):
    for row in document["annotations"]:
        row |= {"image_id": str(row["image_id"]), "category_id": str(row["category_id"])}


def category_from_zero(document):
    for row in [*document["annotations"]]:
        row["category_id"] = {3: 0, 5: 7}[row["category_id"]]
    for row in document["categories"]:
        row["id"] = {3: 0, 5: 7}[row["id"]]


def roboflow_zero(document):
    document["categories"].insert(0, {"id": 0, "name": "street", "supercategory": "none"})


def off_by_one(document):
    """Categories counted from 0 in the annotations and from 1 in the list, so one has no name."""
    for row in document["annotations"]:
        row["category_id"] = {3: 0, 5: 1}[row["category_id"]]
    for number, row in enumerate(document["categories"]):
        row["id"] = number + 1


def backslashes(document):
    for image in document["images"]:
        image["file_name"] = f"..\\image\\{image['file_name']}"


def two_entries(document):
    """An image is listed twice, with some of its objects under each id."""
    document["images"].append({**document["images"][0], "id": 100})
    next(row for row in document["annotations"] if row["image_id"] == 0 and row["category_id"] == 5)["image_id"] = 100


def two_entries_of_all(document):
    for image in document["images"][:]:
        document["images"].append({**image, "id": image["id"] + 100})
        rows = [row for row in document["annotations"] if row["image_id"] == image["id"]]
        rows[1]["image_id"] += 100


def compressed(document):
    from shardwright.masks.dialects import dialect_of
    from shardwright.masks.rle import encode

    for row in document["annotations"]:
        drawn = filled(*(car if row["category_id"] == 3 else square)(row["image_id"]))
        text = dialect_of("counts", "column", 0).format(encode(drawn), height=HEIGHT, width=WIDTH)
        counts = text if not text.startswith("[") else json.loads(text)
        row["segmentation"] = {"size": [WIDTH, HEIGHT], "counts": counts}


def negative_id(document):
    document["annotations"].append({**document["annotations"][0], "id": 999, "category_id": -1})


def percents(row):
    row["segmentation"] = [[100 * x / (HEIGHT if i % 2 else WIDTH) for i, x in enumerate(row["segmentation"][0])]]


def twice_as_large(row):
    row["segmentation"] = [[x / 2 for x in row["segmentation"][0]]]


_LS = f"{GITHUB}HumanSignal/label-studio/issues/"
ODD: dict[str, Odd] = {
    "COCO edges for sizes": Odd(
        f"{GITHUB}Megvii-BaseDetection/YOLOX/issues/969",
        coco_with(of_annotations(edges_for_sizes), True, True),
        "boxes",
        STOPS,
        BOXES,
        cause="as edges",
    ),
    "COCO edges, no area": Odd(
        f"{GITHUB}Megvii-BaseDetection/YOLOX/issues/969",
        coco_with(of_annotations(edges_without_area), True, True),
        "boxes",
        STOPS,
        BOXES,
        cause="as edges",
    ),
    "COCO edges and outlines": Odd(
        f"{GITHUB}facebookresearch/detectron2/issues/349",
        coco_with(of_annotations(edges_for_sizes), False, True),
        "boxes",
        STOPS,
        BOXES,
        cause="as edges",
    ),
    "COCO centers": Odd(
        f"{GITHUB}Deci-AI/data-gradients/pull/112",
        coco_with(of_annotations(centers), True, True),
        "boxes",
        STOPS,
        BOXES,
        cause="as centers",
    ),
    "COCO centers and outlines": Odd(
        f"{GITHUB}Deci-AI/data-gradients/pull/112",
        coco_with(of_annotations(centers), False, True),
        "boxes",
        STOPS,
        BOXES,
        cause="as centers",
    ),
    "COCO fractions": Odd(
        f"{GITHUB}ultralytics/ultralytics/issues/3285",
        coco_with(of_annotations(fractions), False, True),
        "masks",
        STOPS,
        cause="fractions of the image",
    ),
    "COCO box fractions": Odd(
        f"{GITHUB}rafaelpadilla/review_object_detection_metrics/issues/33",
        coco_with(of_annotations(box_fractions), True, True),
        "boxes",
        STOPS,
        BOXES,
        cause="fractions of the image",
    ),
    "COCO percents": Odd(
        f"{_LS}7110",
        coco_with(of_annotations(percents), False, True),
        "masks",
        STOPS,
        cause="beyond the image|times as wide",
    ),
    "COCO half": Odd(
        f"{GITHUB}ryouchinsa/Rectlabel-support/issues/94",
        coco_with(of_annotations(twice_as_large), False, True),
        "masks",
        STOPS,
        cause="times as wide",
    ),
    "COCO y before x": Odd(
        f"{GITHUB}scalabel/scalabel/issues/527",
        coco_with(of_annotations(y_before_x), False, True),
        "masks",
        STOPS,
        cause="turned by 90|times as wide",
    ),
    "COCO no outline": Odd(
        f"{GITHUB}voxel51/fiftyone/pull/1143", coco_with(of_annotations(no_outline)), "masks", ANSWERED | STOPS
    ),
    "COCO swapped sides": Odd(
        f"{GITHUB}yiminglin-ai/widerface-coco-convertor/issues/1",
        coco_with(swap_sides),
        "masks",
        ANSWERED | STOPS,
        cause="but the file has 24x40",
    ),
    "COCO ids as text": Odd(f"{_LS}6416", coco_with(text_ids)),
    "COCO category 0": Odd(f"{GITHUB}roboflow/supervision/pull/169", coco_with(category_from_zero)),
    "COCO Roboflow's category 0": Odd(f"{GITHUB}roboflow/rf-detr/issues/413", coco_with(roboflow_zero)),
    "COCO categories from 0": Odd(
        f"{GITHUB}Tony607/voc2coco/issues/9",
        coco_with(off_by_one, False, True),
        "masks",
        STOPS,
        cause="category id '0'",
    ),
    "COCO backslashes": Odd(f"{GITHUB}eriklindernoren/PyTorch-YOLOv3/issues/582", coco_with(backslashes)),
    "COCO image twice": Odd(f"{GITHUB}Andrewsher/X-Net/issues/3", coco_with(two_entries), "masks", ANSWERED | STOPS),
    "COCO images twice": Odd(
        f"{GITHUB}Andrewsher/X-Net/issues/3", coco_with(two_entries_of_all), "masks", ANSWERED | STOPS
    ),
    "COCO size of counts swapped": Odd(
        f"{GITHUB}tier4/tier4_perception_dataset/pull/197",
        coco_with(compressed, False, True),
        "masks",
        STOPS,
        cause="but the file has 24x40",
    ),
    "COCO category -1": Odd(
        f"{GITHUB}labelflow/labelflow/pull/309",
        coco_with(negative_id, False, True),
        "masks",
        STOPS,
        cause="category id '-1'",
    ),
}
