"""Inputs that users reported as read wrongly by some tool, each with the thread and with its truth.

A draw writes the set into a folder and returns the truth as `mutated_sets` does. `Odd.allowed` says what may come of
it; a set without a truth has none in its files, and must stop.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import layouts
import tool_files as tools
from layouts import CLASSES, COUNT, HEIGHT, WIDTH
from mutated_sets import QUESTION, RIGHT, STOPS, Truth
from tool_files import car, filled, names, points, square, write

ANSWERED = frozenset((RIGHT, QUESTION))
GITHUB = "https://github.com/"


@dataclass(frozen=True)
class Odd:
    """An odd set.

    Attributes:
        thread: where it was reported.
        draw: see above.
        has: see `mutated_sets.Drawn`.
        allowed: outcomes.
        further: arguments of `init`.
        cause: what the message must name where the set is refused.
        tested: images that the set states to be for the test: no others are in that split.
    """

    thread: str
    draw: Callable[[Path], Truth]
    has: str = "masks"
    allowed: frozenset[str] = frozenset((RIGHT,))
    further: tuple[str, ...] = ()
    cause: str = ""
    tested: tuple[str, ...] = ()
    unlisted_empty: bool = False
    named: Callable[[Path], list[str]] = field(default=lambda folder: [str(folder)])


BOXES = ("--task", "classification", "--set", "input.labels.boxes=true")


def edit(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def change_json(path: Path, change: Callable[[object], object]) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(change(document) or document), encoding="utf-8")


def squares(keys):
    return tools.truth(keys, lambda number: filled(*square(number)))


# --- YOLO


def yolo_mixed(root):
    """Boxes among polygons, also in one file."""
    truth = tools.yolo(root)
    for number in (1, 4):
        file = root / f"labels/train/i{number}.txt"
        polygons, boxes = (tools.yolo_lines(number, boxes).splitlines() for boxes in (False, True))
        write(file, f"{boxes[0]}\n{polygons[1]}\n")
    return truth


def yolo_over_one(root):
    """A corner at 1.0004."""
    truth = tools.yolo(root)
    for file in root.glob("labels/*/*.txt"):
        edit(file, lambda text: re.sub(r"(?<= )1(?= )", "1.0004", text))
    return truth


def yolo_pixels(root):
    tools.yolo(root, boxes=True)
    for file in root.glob("labels/*/*.txt"):
        rows = [line.split() for line in file.read_text().splitlines()]
        sides = [WIDTH, HEIGHT, WIDTH, HEIGHT]
        scaled = [[row[0], *(f"{float(x) * side:.0f}" for x, side in zip(row[1:], sides, strict=True))] for row in rows]
        write(file, "".join(" ".join(row) + "\n" for row in scaled))
    return {}


def yolo_predictions(root):
    """A sixth number, the confidence."""
    tools.yolo(root, boxes=True)
    for file in root.glob("labels/*/*.txt"):
        edit(file, lambda text: re.sub(r"$", " 0.87", text.strip(), flags=re.MULTILINE) + "\n")
    return {}


def yolo_from_one(root):
    """Classes counted from 1."""
    truth = tools.darknet(root)
    for file in root.glob("i*.txt"):
        edit(file, lambda text: re.sub(r"^(\d)", lambda found: str(int(found[1]) + 1), text, flags=re.MULTILINE))
    return truth


def yolo_two_orders(root):
    """classes.txt in another order than data.yaml."""
    tools.yolo(root)
    write(root / "labels/classes.txt", "road\ncar\n")
    return {}


def yolo_two_lists(root):
    """classes.txt in the folder of each split, in two orders."""
    keys = []
    for folder, order in (("train", ("car", "road")), ("val", ("road", "car"))):
        write(root / f"labels/{folder}/classes.txt", "\n".join(order) + "\n")
        for number in range(6) if folder == "train" else range(6, COUNT):
            keys.append(f"{folder}/i{number}.jpg")
            layouts.image(root / "images" / keys[-1], number)
            lines = tools.yolo_lines(number)
            if folder == "val":
                lines = "\n".join(str(1 - int(line[0])) + line[1:] for line in lines.splitlines())
            write(root / f"labels/{folder}/i{number}.txt", lines)
    return squares(keys)


def yolo_count(root):
    """nc: 3 and two names."""
    truth = tools.yolo(root)
    edit(root / "data.yaml", lambda text: text.replace("nc: 2", "nc: 3"))
    return truth


def yolo_twice(root):
    tools.yolo(root)
    edit(root / "data.yaml", lambda text: text.replace("1: road", "1: car"))
    return {}


def yolo_capital(root):
    truth = tools.roboflow(root)
    for folder in ("train", "valid"):
        for name in ("images", "labels"):
            (root / folder / name).rename(root / folder / name.title())
    edit(root / "data.yaml", lambda text: text.replace("/images", "/Images"))
    return {key.replace("images", "Images"): classes for key, classes in truth.items()}


def yolo_oriented(root):
    """YOLO-OBB: four corners."""
    truth = tools.yolo(root)
    return truth


def yolo_same_stem(root):
    """a.jpg and a.png for a.txt."""
    tools.darknet(root)
    layouts.image(root / "i0.png", 99)
    return {}


# --- LabelMe


def rectangles(number):
    edges = {"car": car(number), "road": square(number)}
    return [
        {
            "label": name,
            "points": [list(p) for p in points(edge)],
            "shape_type": "polygon",
            "group_id": None,
            "flags": {},
        }
        for name, edge in edges.items()
    ]


def labelme(root, json_name="i{}.json", image_path="i{}.jpg", shapes=rectangles, folder="."):
    keys = names(root, "." if folder == "." else "images")
    for number in range(COUNT):
        document = {"version": "5.5.0", "flags": {}, "shapes": shapes(number), "imageData": None}
        document |= {"imagePath": image_path.format(number), "imageHeight": HEIGHT, "imageWidth": WIDTH}
        write(root / folder / json_name.format(number), document)
    return squares(keys)


def labelme_backslash(root):
    return labelme(root, image_path="..\\images\\i{}.jpg", folder="json")


def labelme_renamed(root):
    """Images and their files were renumbered; imagePath has the names of before, of which all but one exist."""
    labelme(root)
    for number in range(COUNT):
        change_json(root / f"i{number}.json", lambda d, n=number: {**d, "imagePath": f"i{n + 1}.jpg"})
    return squares([f"i{number}.jpg" for number in range(COUNT)])


def labelme_swapped(root):
    """The same, and every name exists."""
    labelme(root)
    for number in range(COUNT):
        change_json(root / f"i{number}.json", lambda d, n=number: {**d, "imagePath": f"i{(n + 1) % COUNT}.jpg"})
    return squares([f"i{number}.jpg" for number in range(COUNT)])


def labelme_old_names(root):
    """Renamed, and no image of before is there."""
    return labelme(root, image_path="DSC_00{}.jpg")


def labelme_flags(root):
    """Flags of the image, and no shapes."""
    keys = names(root, ".")
    for number in range(COUNT):
        flags = {"car": number % 2 == 0, "road": number % 2 == 1}
        document = {"version": "5.5.0", "flags": flags, "shapes": [], "imagePath": f"i{number}.jpg", "imageData": None}
        write(root / f"i{number}.json", {**document, "imageHeight": HEIGHT, "imageWidth": WIDTH})
    return {key: {CLASSES[i % 2]: None} for i, key in enumerate(keys)}


def labelme_parts(root):
    """An object in two parts, with one group_id: its box is around both."""

    def parts(number):
        left, top, right, bottom = car(number)
        middle = (left + right) // 2
        halves = [(left, top, middle - 1, bottom), (middle + 1, top, right, bottom)]
        rows = [{**rectangles(number)[0], "points": [list(p) for p in points(half)], "group_id": 1} for half in halves]
        return [*rows, rectangles(number)[1]]

    return labelme(root, shapes=parts)


def case_variants(root):
    """A class in three spellings."""

    def shapes(number):
        rows = rectangles(number)
        rows[0]["label"] = ("car", "Car", "car ")[number % 3]
        return rows

    return labelme(root, shapes=shapes)


# --- VOC


def voc_with(change):
    def draw(root):
        truth = tools.voc_boxes(root)
        for number in range(COUNT):
            edit(root / f"Annotations/i{number}.xml", lambda text, n=number: change(text, n))
        return truth

    return draw


def voc_from_zero(root):
    """Edges from 0, as CVAT and Roboflow write them; some boxes touch the border."""
    keys = names(root)
    for number in range(COUNT):
        things = []
        for name, (left, top, right, bottom) in (("car", (0, 0, 10 + number, 8)), ("road", square(number))):
            box = f"<xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax>"
            things.append(f"<object><name>{name}</name><bndbox>{box}</bndbox></object>")
        size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
        write(root / f"Annotations/i{number}.xml", f"<annotation>{size}{''.join(things)}</annotation>")
    return {key: {"car": filled(0, 0, 10 + i, 8), "road": filled(*square(i))} for i, key in enumerate(keys)}


def voc_reversed(text, number):
    if number != 3:
        return text
    return text.replace("xmin", "x___").replace("xmax", "xmin").replace("x___", "xmax")


def voc_one_reversed(root):
    """Its image can only be left out."""
    truth = voc_with(voc_reversed)(root)
    return {key: boxes for key, boxes in truth.items() if not key.endswith("i3.jpg")}


def voc_renamed(text, number):
    """The name of before in <filename>, which another image has now."""
    return text.replace("<annotation>", f"<annotation><filename>i{number + 1}.jpg</filename>")


def voc_float(text, number):
    return re.sub(r">(\d+)</(xmin|ymin|xmax|ymax)", r">\1.0000000762939</\2", text)


def voc_swapped_size(text, number):
    return text.replace(f"<width>{WIDTH}</width><height>{HEIGHT}<", f"<width>{HEIGHT}</width><height>{WIDTH}<")


# --- CVAT, Label Studio, VIA


def cvat_video(root):
    """CVAT for video: tracks, in which `outside` boxes are not there."""
    names(root, "images", "frame_00000{}.jpg")
    boxes = ""
    for i in range(COUNT):
        left, top, right, bottom = car(i)
        edges = f'xtl="{left}" ytl="{top}" xbr="{right}" ybr="{bottom}"'
        boxes += f'<box frame="{i}" keyframe="1" outside="{int(i > 5)}" occluded="0" {edges}></box>'
    write(root / "annotations.xml", f'<annotations><track id="0" label="car">{boxes}</track></annotations>')
    return {f"frame_00000{i}.jpg": {"car": filled(*car(i))} if i < 6 else {} for i in range(COUNT)}


def cvat_outside(root):
    """Boxes with outside="1" in a file of images."""
    truth = tools.cvat(root)
    edit(root / "annotations.xml", lambda text: text.replace("<polygon ", '<polygon outside="1" ', 1))
    first = next(iter(truth))
    return {**truth, first: {"road": truth[first]["road"]}}


def studio_with(change, lost=False):
    def draw(root):
        truth = tools.label_studio(root)
        change_json(root / "project-3.json", change)
        return {} if lost else truth

    return draw


def studio_two(tasks):
    """A second annotator."""
    for task in tasks:
        second = json.loads(json.dumps(task["annotations"][0]))
        second["result"][0]["value"]["points"][0][0] += 3
        task["annotations"].append(second)


def studio_two_of_one(tasks):
    studio_two(tasks[:1])


def studio_predictions(tasks):
    """Predictions beside annotations."""
    for task in tasks:
        task["predictions"] = [{"model_version": "m", "result": task["annotations"][0]["result"][:1], "score": 0.4}]


def studio_cancelled(tasks):
    tasks[0]["annotations"].insert(0, {"was_cancelled": True, "result": []})


def studio_turned(tasks):
    for task in tasks:
        for result in task["annotations"][0]["result"]:
            result["image_rotation"] = 90


def studio_fractions(tasks):
    """Fractions in place of percents, as scripts write predictions."""
    for task in tasks:
        value = task["annotations"][0]["result"][0]["value"]
        value["points"] = [[x / 100, y / 100] for x, y in value["points"]]


def via_with(change):
    def draw(root):
        truth = tools.via(root)
        change_json(root / "via_project.json", change)
        return truth

    return draw


def via_sizes(document):
    """-1 for the size of files that VIA did not open."""
    entries = document["_via_img_metadata"]
    for one in entries.values():
        one["size"] = -1
    document["_via_img_metadata"] = {f"{one['filename']}-1": one for one in entries.values()}


def via_checkbox(document):
    """A class as a box that is ticked."""
    for one in document["_via_img_metadata"].values():
        for region in one["regions"]:
            region["region_attributes"] = {"kind": {region["region_attributes"]["kind"]: True}}


_U = f"{GITHUB}ultralytics/"
_CVAT, _LS = f"{GITHUB}cvat-ai/cvat/issues/", f"{GITHUB}HumanSignal/label-studio/issues/"
_LM = f"{GITHUB}wkentaro/labelme/issues/"
ODD: dict[str, Odd] = {
    "YOLO boxes among polygons": Odd(f"{_U}ultralytics/issues/1008", yolo_mixed),
    "YOLO a little above 1": Odd(f"{_LS}5014", yolo_over_one),
    "YOLO in pixels": Odd(f"{_U}yolov5/issues/443", yolo_pixels, "boxes", STOPS, cause="not a fraction of the image"),
    "YOLO predictions": Odd(
        f"{GITHUB}ultralytics/yolov5/issues/2143", yolo_predictions, "boxes", STOPS, cause="confidence of a prediction"
    ),
    "YOLO classes from 1": Odd(
        f"{GITHUB}HumanSignal/labelImg/issues/707", yolo_from_one, "masks", STOPS | ANSWERED, cause="count from 1"
    ),
    "YOLO two orders of classes": Odd(f"{_LS}6416", yolo_two_orders, "masks", STOPS, cause="the class 0 is"),
    "YOLO two lists of classes": Odd(
        f"{GITHUB}HumanSignal/labelImg/issues/707", yolo_two_lists, "masks", STOPS | ANSWERED, cause="the class 0 is"
    ),
    "YOLO nc": Odd(f"{GITHUB}roboflow/roboflow-python/issues/100", yolo_count, "masks", STOPS | ANSWERED),
    "YOLO a name twice": Odd(
        f"{GITHUB}roboflow/supervision/issues/615", yolo_twice, "masks", STOPS, cause="'car' twice"
    ),
    "YOLO capitals": Odd(f"{GITHUB}roboflow/roboflow-python/pull/421", yolo_capital),
    "YOLO same stem": Odd(
        f"{GITHUB}PaddlePaddle/PaddleDetection/issues/88",
        yolo_same_stem,
        "masks",
        STOPS,
        cause="could be i0.jpg or i0.png",
    ),
    "LabelMe backslashes": Odd(f"{_LM}1725", labelme_backslash),
    "LabelMe renamed": Odd(f"{GITHUB}CVHub520/X-AnyLabeling/issues/1206", labelme_renamed, "masks", ANSWERED | STOPS),
    "LabelMe swapped": Odd(
        f"{_LM}389", labelme_swapped, "masks", ANSWERED | STOPS, cause="another image than by file name"
    ),
    "LabelMe old names": Odd(f"{GITHUB}wkentaro/labelme/pull/803", labelme_old_names),
    "LabelMe flags": Odd(f"{_LM}633", labelme_flags, "classes"),
    "LabelMe parts": Odd(f"{_LM}714", labelme_parts, "boxes", ANSWERED, BOXES),
    "LabelMe spellings": Odd(f"{GITHUB}apple/turicreate/issues/1528", case_variants, "masks", ANSWERED | STOPS),
    "VOC from 0": Odd(f"{GITHUB}umautobots/vod-converter/issues/26", voc_from_zero, "boxes", ANSWERED | STOPS, BOXES),
    "VOC reversed": Odd(
        f"{GITHUB}sovit-123/fasterrcnn-pytorch-training-pipeline/issues/44",
        voc_one_reversed,
        "boxes",
        ANSWERED | STOPS,
        BOXES,
        cause="has no area",
    ),
    "VOC renamed": Odd(
        f"{GITHUB}yatengLG/ISAT_with_segment_anything/issues/149",
        voc_with(voc_renamed),
        "boxes",
        ANSWERED | STOPS,
        BOXES,
    ),
    "VOC floats": Odd(f"{GITHUB}Tony607/voc2coco/issues/5", voc_with(voc_float), "boxes", ANSWERED, BOXES),
    "VOC swapped size": Odd(
        f"{GITHUB}yiminglin-ai/widerface-coco-convertor/issues/1",
        voc_with(voc_swapped_size),
        "boxes",
        ANSWERED | STOPS,
        BOXES,
        cause="turned by 90",
    ),
    "CVAT video": Odd(f"{_CVAT}847", cvat_video, "boxes", ANSWERED | STOPS, BOXES, cause="CVAT for video"),
    "CVAT outside": Odd(f"{_CVAT}2339", cvat_outside, "masks", ANSWERED | STOPS),
    "Label Studio two annotators": Odd(
        "https://labelstud.io/guide/export", studio_with(studio_two, True), "masks", STOPS, cause="has 2 annotations"
    ),
    "Label Studio two of one": Odd(
        "https://labelstud.io/guide/export",
        studio_with(studio_two_of_one, True),
        "masks",
        STOPS,
        cause="has 2 annotations",
    ),
    "Label Studio predictions": Odd("https://labelstud.io/guide/export", studio_with(studio_predictions)),
    "Label Studio cancelled": Odd("https://labelstud.io/guide/export", studio_with(studio_cancelled)),
    "Label Studio turned": Odd(f"{_LS}6608", studio_with(studio_turned, True), "masks", STOPS, cause="turned by 90"),
    "Label Studio fractions": Odd(
        "https://labelstud.io/guide/predictions",
        studio_with(studio_fractions, True),
        "masks",
        STOPS,
        cause="are percents",
    ),
    "VIA sizes": Odd("https://www.robots.ox.ac.uk/~vgg/software/via/", via_with(via_sizes)),
    "VIA checkboxes": Odd("https://www.robots.ox.ac.uk/~vgg/software/via/", via_with(via_checkbox)),
}
