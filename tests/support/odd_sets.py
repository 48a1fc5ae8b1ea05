"""Inputs that users reported as read wrongly by some tool, each with the thread and with its truth.

A draw writes the set into a folder and returns the truth as `mutated_sets` does. `Odd.allowed` says what may come of
it; a set without a truth has none in its files, and must stop.
"""

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import layouts
import numpy as np
import tool_files as tools
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, mask
from mutated_sets import QUESTION, RIGHT, STOPS, Truth
from PIL import Image
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
    """

    thread: str
    draw: Callable[[Path], Truth]
    has: str = "masks"
    allowed: frozenset[str] = frozenset((RIGHT,))
    further: tuple[str, ...] = ()
    cause: str = ""
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
    tools.darknet(root)
    for file in root.glob("i*.txt"):
        edit(file, lambda text: re.sub(r"^(\d)", lambda found: str(int(found[1]) + 1), text, flags=re.MULTILINE))
    return {}


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


# --- COCO


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


def labelme_instances(root):
    """Instances as labels: car-1, car-2."""

    def shapes(number):
        left, top, right, bottom = car(number)
        middle = (left + right) // 2
        halves = {"car-1": (left, top, middle, bottom), "car-2": (middle, top, right, bottom)}
        rows = [{**rectangles(0)[0], "label": n, "points": [list(p) for p in points(h)]} for n, h in halves.items()]
        return [*rows, rectangles(number)[1]]

    return labelme(root, shapes=shapes)


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


def voc_renamed(text, number):
    """The name of before in <filename>, which another image has now."""
    return text.replace("<annotation>", f"<annotation><filename>i{number + 1}.jpg</filename>")


def voc_float(text, number):
    return re.sub(r">(\d+)</(xmin|ymin|xmax|ymax)", r">\1.0000000762939</\2", text)


def voc_swapped_size(text, number):
    return text.replace(f"<width>{WIDTH}</width><height>{HEIGHT}<", f"<width>{HEIGHT}</width><height>{WIDTH}<")


# --- tables of run lengths


def rle_rows(root, text, header="ImageId,ClassId,EncodedPixels"):
    keys = names(root)
    rows = [
        f'{key},{name},"{text(layouts.runs(i, k))}"' for i, key in enumerate(keys) for k, name in enumerate(CLASSES)
    ]
    layouts.lines(root / "train.csv", header, *rows)
    return {key: {name: mask(i, k) for k, name in enumerate(CLASSES)} for i, key in enumerate(keys)}


def pairs(text):
    numbers = text.split()
    return [" ".join(numbers[i : i + 2]) for i in range(0, len(numbers), 2)]


def rle_doubled(text):
    """A pair again, and one that overlaps the pair before."""
    found = pairs(text)
    start, length = map(int, found[0].split())
    return " ".join([*found, found[1], f"{start} {max(1, length - 1)}"])


def rle_with(change):
    return lambda root: rle_rows(root, change)


def rle_twice(root):
    """Rows that are there twice."""
    truth = rle_rows(root, str)
    edit(root / "train.csv", lambda text: text + "\n".join(text.splitlines()[1:9]) + "\n")
    return truth


def siim(root):
    """SIIM-ACR: relative positions, a blank in the header, -1 for none; column by column."""
    keys = names(root)
    rows = [f"i{i}, {layouts.runs(i, 0, 'relative') if i % 3 else -1}" for i in range(COUNT)]
    layouts.lines(root / "train-rle.csv", "ImageId, EncodedPixels", *rows)
    return {key: {"mask": mask(i, 0)} if i % 3 else {} for i, key in enumerate(keys)}


def sartorius(root):
    """Sartorius: a row for each cell, row by row, with the size of the image."""
    names(root, "train")
    rows = [
        f"i{i},{layouts.runs(i, k, 'absolute', 'row')},{WIDTH},{HEIGHT},{('cort', 'shsy5y')[i % 2]}"
        for i in range(COUNT)
        for k in range(2)
    ]
    layouts.lines(root / "train.csv", "id,annotation,width,height,cell_type", *rows)
    return {f"i{i}.jpg": {"mask": mask(i, 0) | mask(i, 1)} for i in range(COUNT)}


def carvana(root):
    """Masks as GIF files and as run lengths, which say the same."""
    (root / "train_masks").mkdir(parents=True)
    names(root, "train")
    for i in range(COUNT):
        Image.fromarray(mask(i, 0) * np.uint8(255)).save(root / f"train_masks/i{i}_mask.gif")
    layouts.lines(root / "train_masks.csv", "img,rle_mask", *(f"i{i}.jpg,{layouts.runs(i, 0)}" for i in range(COUNT)))
    return {f"i{i}.jpg": {"mask": mask(i, 0)} for i in range(COUNT)}


def salt(root):
    """TGS: images, masks, run lengths, and a table of depths."""
    names(root, "train/images", "i{}.png")
    (root / "train/masks").mkdir()
    for i in range(COUNT):
        Image.fromarray(mask(i, 0) * np.uint8(255)).save(root / f"train/masks/i{i}.png")
    layouts.lines(root / "train.csv", "id,rle_mask", *(f"i{i},{layouts.runs(i, 0)}" for i in range(COUNT)))
    layouts.lines(root / "depths.csv", "id,z", *(f"i{i},{100 + 7 * i}" for i in range(COUNT)))
    return {f"i{i}.png": {"mask": mask(i, 0)} for i in range(COUNT)}


def airbus(root):
    keys = names(root, "train_v2")
    rows = [
        f"{key},{layouts.runs(i, k) if i % 3 else ''}" for i, key in enumerate(keys) for k in range(2 if i % 3 else 1)
    ]
    layouts.lines(root / "train_ship_segmentations_v2.csv", "ImageId,EncodedPixels", *rows)
    return {key: {"mask": mask(i, 0) | mask(i, 1)} if i % 3 else {} for i, key in enumerate(keys)}


# --- tables of classes


def label_rows(root, rows, header="filename,label", images="i{}.jpg", encoding="utf-8", folder="images"):
    keys = names(root, folder, images)
    text = "\n".join([header, *rows]) + "\n"
    (root / "labels.csv").write_bytes(text.encode(encoding))
    return keys


def classes_of(keys):
    return {key: {CLASSES[i % 2]: None} for i, key in enumerate(keys)}


def simple(form="i{}.jpg,{}"):
    return [form.format(i, CLASSES[i % 2]) for i in range(COUNT)]


def table(rows=None, **options):
    return lambda root: classes_of(label_rows(root, rows or simple(), **options))


def label_cp1252(root):
    keys = label_rows(root, [f"i{i}.jpg,{('Straße', 'car')[i % 2]}" for i in range(COUNT)], encoding="cp1252")
    return {key: {("Straße", "car")[i % 2]: None} for i, key in enumerate(keys)}


def label_excel(root):
    """`sep=;` and semicolons and a byte order mark."""
    keys = label_rows(root, [], encoding="utf-8")
    rows = ["sep=;", "filename;label", *simple("i{}.jpg;{}")]
    (root / "labels.csv").write_bytes("\r\n".join(rows).encode("utf-8-sig"))
    return classes_of(keys)


def label_floats(root):
    """Ids as pandas writes them: 1.0."""
    return classes_of(label_rows(root, simple("{}.0,{}"), header="id,label", images="{}.jpg"))


def label_zeros(root):
    """Excel took the zeros off: 1 for 0001.jpg."""
    return classes_of(label_rows(root, simple("{},{}"), header="id,label", images="000{}.jpg"))


def label_powers(root):
    """Excel's 2.02E+11 for several images."""
    label_rows(root, simple("2.02111E+11,{1}"), header="id,label", images="20211100000{}.jpg")
    return {}


def label_spellings(root):
    """A class in three spellings."""
    spelled = ("car", "Car", "car ", "road")
    keys = label_rows(root, [f"i{i}.jpg,{spelled[i % 4]}" for i in range(COUNT)])
    return {key: {"road" if i % 4 == 3 else "car": None} for i, key in enumerate(keys)}


def label_conflict(root):
    """An image has two rows with two classes, and all others one."""
    label_rows(root, [*simple(), "i0.jpg,road"])
    return {}


def label_same_twice(root):
    return classes_of(label_rows(root, [*simple(), *simple()[:3]]))


def label_nfd(root):
    """The table is NFC, the files are as macOS writes them."""
    name = unicodedata.normalize("NFD", "Übung é{}.jpg")
    keys = label_rows(root, simple(unicodedata.normalize("NFC", "Übung é{}.jpg,{}")), images=name)
    return classes_of([unicodedata.normalize("NFC", key) for key in keys])


def label_windows(root):
    return classes_of(label_rows(root, simple("D:\\Data\\Photos\\I{}.JPG,{}")))


def label_blank_end(root):
    """Blanks behind names and classes."""
    return classes_of(label_rows(root, simple("i{}.jpg ,{} ")))


def label_probabilities(root):
    """Galaxy Zoo: shares of votes in a column for each class."""
    keys = label_rows(root, [f"i{i}.jpg,{i / 10},{1 - i / 10:.1f}" for i in range(COUNT)], header="id,smooth,disk")
    return {key: {} for key in keys}


def label_is_valid(root):
    """fastai's column is_valid."""
    rows = [f"i{i}.jpg,{CLASSES[i % 2]},{i > 5}" for i in range(COUNT)]
    return classes_of(label_rows(root, rows, header="name,label,is_valid"))


def checkpoints(root):
    """Jupyter's copies in a folder of their own, which torchvision takes for a class."""
    layouts.class_folders(root)
    layouts.image(root / ".ipynb_checkpoints/0-checkpoint.jpg", 0)
    layouts.image(root / "car/.ipynb_checkpoints/0-checkpoint.jpg", 0)
    return {f"{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


def folder_spellings(root):
    """Folders Car and car."""
    for number in range(COUNT):
        layouts.image(root / ("car", "road", "Car")[number % 3] / f"{number}.jpg", number)
    return {f"{i}.jpg": {"road" if i % 3 == 1 else "car": None} for i in range(COUNT)}


def folder_empty(root):
    layouts.class_folders(root)
    (root / "tree").mkdir()
    return {f"{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


# --- tables of boxes


def wheat(root):
    """Global Wheat: a list in one field, and no class."""
    keys = names(root, "train")
    edges = (car(i) for i in range(COUNT))
    boxes = (f"[{left}.0, {top}.0, {right - left}.0, {bottom - top}.0]" for left, top, right, bottom in edges)
    rows = (f'i{i},{WIDTH},{HEIGHT},"{box}",usask_1' for i, box in enumerate(boxes))
    layouts.lines(root / "train.csv", "image_id,width,height,bbox,source", *rows)
    return {key: {"object": filled(*car(i))} for i, key in enumerate(keys)}


def rsna(root):
    """RSNA: patientId, Target 0 and empty edges where there is nothing."""
    keys = names(root, "train", "p{}.jpg")
    rows = []
    for i in range(COUNT):
        left, top, right, bottom = car(i)
        rows.append(f"p{i},{left},{top},{right - left},{bottom - top},1" if i % 2 else f"p{i},,,,,0")
    layouts.lines(root / "stage_2_train_labels.csv", "patientId,x,y,width,height,Target", *rows)
    return {key: {"1": filled(*car(i))} if i % 2 else {} for i, key in enumerate(keys)}


def vindr(root):
    """VinBigData: 'No finding' has no edges."""
    keys = names(root, "train")
    rows = []
    for i in range(COUNT):
        edges = ",".join(map(str, car(i)))
        rows.append(f"i{i},Mass,1,R9,{edges}" if i % 2 else f"i{i},No finding,14,R9,,,,")
    layouts.lines(root / "train.csv", "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max", *rows)
    return {key: {"1": filled(*car(i))} if i % 2 else {} for i, key in enumerate(keys)}


def box_edges_as_sizes(root):
    """Headers of sizes over edges."""
    keys = names(root)
    rows = [
        f"{key},{','.join(map(str, edges))},{name}"
        for i, key in enumerate(keys)
        for name, edges in (("car", car(i)), ("road", square(i)))
    ]
    layouts.lines(root / "boxes.csv", "image,x,y,width,height,label", *rows)
    return {}


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
    "YOLO in pixels": Odd(f"{_U}yolov5/issues/443", yolo_pixels, "boxes", STOPS),
    "YOLO predictions": Odd("", yolo_predictions, "boxes", STOPS),
    "YOLO classes from 1": Odd("", yolo_from_one, "masks", STOPS),
    "YOLO two orders of classes": Odd(f"{_LS}6416", yolo_two_orders, "masks", STOPS),
    "YOLO two lists of classes": Odd(
        f"{GITHUB}HumanSignal/labelImg/issues/707", yolo_two_lists, "masks", STOPS | ANSWERED
    ),
    "YOLO nc": Odd("", yolo_count, "masks", STOPS | ANSWERED),
    "YOLO a name twice": Odd(f"{GITHUB}roboflow/supervision/issues/615", yolo_twice, "masks", STOPS),
    "YOLO capitals": Odd(f"{GITHUB}roboflow/roboflow-python/pull/421", yolo_capital),
    "YOLO same stem": Odd("", yolo_same_stem, "masks", STOPS),
    "COCO edges for sizes": Odd(
        f"{GITHUB}Megvii-BaseDetection/YOLOX/issues/969",
        coco_with(of_annotations(edges_for_sizes), True, True),
        "boxes",
        STOPS,
        BOXES,
    ),
    "COCO edges, no area": Odd("", coco_with(of_annotations(edges_without_area), True, True), "boxes", STOPS, BOXES),
    "COCO edges and outlines": Odd("", coco_with(of_annotations(edges_for_sizes), False, True), "boxes", STOPS, BOXES),
    "COCO centers": Odd("", coco_with(of_annotations(centers), True, True), "boxes", STOPS, BOXES),
    "COCO centers and outlines": Odd("", coco_with(of_annotations(centers), False, True), "boxes", STOPS, BOXES),
    "COCO fractions": Odd("", coco_with(of_annotations(fractions), False, True), "masks", STOPS),
    "COCO box fractions": Odd("", coco_with(of_annotations(box_fractions), True, True), "boxes", STOPS, BOXES),
    "COCO percents": Odd("", coco_with(of_annotations(percents), False, True), "masks", STOPS),
    "COCO half": Odd("", coco_with(of_annotations(twice_as_large), False, True), "masks", STOPS),
    "COCO y before x": Odd("", coco_with(of_annotations(y_before_x), False, True), "masks", STOPS),
    "COCO no outline": Odd("", coco_with(of_annotations(no_outline)), "masks", ANSWERED | STOPS),
    "COCO swapped sides": Odd(
        f"{GITHUB}yiminglin-ai/widerface-coco-convertor/issues/1", coco_with(swap_sides), "masks", ANSWERED | STOPS
    ),
    "COCO ids as text": Odd("", coco_with(text_ids)),
    "COCO category 0": Odd("", coco_with(category_from_zero)),
    "COCO Roboflow's category 0": Odd("", coco_with(roboflow_zero)),
    "COCO categories from 0": Odd(
        f"{GITHUB}Tony607/voc2coco/issues/9", coco_with(off_by_one, False, True), "masks", STOPS
    ),
    "COCO backslashes": Odd(f"{GITHUB}eriklindernoren/PyTorch-YOLOv3/issues/582", coco_with(backslashes)),
    "COCO image twice": Odd("", coco_with(two_entries), "masks", ANSWERED | STOPS),
    "COCO images twice": Odd("", coco_with(two_entries_of_all), "masks", ANSWERED | STOPS),
    "COCO size of counts swapped": Odd("", coco_with(compressed, False, True), "masks", STOPS),
    "COCO category -1": Odd("", coco_with(negative_id, False, True), "masks", STOPS),
    "LabelMe backslashes": Odd(f"{_LM}1725", labelme_backslash),
    "LabelMe renamed": Odd("", labelme_renamed, "masks", ANSWERED | STOPS),
    "LabelMe swapped": Odd("", labelme_swapped, "masks", ANSWERED | STOPS),
    "LabelMe old names": Odd("", labelme_old_names),
    "LabelMe flags": Odd("", labelme_flags, "classes"),
    "LabelMe parts": Odd(f"{_LM}714", labelme_parts, "boxes", ANSWERED, BOXES),
    "LabelMe instances": Odd(f"{_LM}766", labelme_instances, "masks", ANSWERED | STOPS),
    "LabelMe spellings": Odd("", case_variants, "masks", ANSWERED | STOPS),
    "VOC from 0": Odd("", voc_from_zero, "boxes", ANSWERED | STOPS, BOXES),
    "VOC reversed": Odd("", voc_with(voc_reversed), "boxes", ANSWERED | STOPS, BOXES),
    "VOC renamed": Odd("", voc_with(voc_renamed), "boxes", ANSWERED | STOPS, BOXES),
    "VOC floats": Odd(f"{GITHUB}Tony607/voc2coco/issues/5", voc_with(voc_float), "boxes", ANSWERED, BOXES),
    "VOC swapped size": Odd("", voc_with(voc_swapped_size), "boxes", ANSWERED | STOPS, BOXES),
    "runs doubled": Odd("", rle_with(rle_doubled), "masks", ANSWERED | STOPS),
    "runs unsorted": Odd("", rle_with(lambda text: " ".join(pairs(text)[::-1]))),
    "runs with blanks": Odd("", rle_with(lambda text: f" {text.replace(' ', '  ')} ")),
    "runs with commas": Odd("", rle_with(lambda text: text.replace(" ", ",")), "masks", ANSWERED | STOPS),
    "runs in brackets": Odd("", rle_with(lambda text: f"[{text.replace(' ', ', ')}]"), "masks", ANSWERED | STOPS),
    "runs in two lines": Odd("", rle_with(lambda text: text.replace(" ", "\n", 2)), "masks", ANSWERED | STOPS),
    "rows of runs twice": Odd("", rle_twice),
    "SIIM": Odd("", siim),
    "Sartorius": Odd("", sartorius, "masks", ANSWERED),
    "Carvana": Odd("", carvana, "masks", ANSWERED),
    "salt": Odd("", salt, "masks", ANSWERED),
    "Airbus": Odd("", airbus, "masks", ANSWERED),
    "classes in cp1252": Odd("", label_cp1252, "classes", ANSWERED | STOPS),
    "classes by Excel": Odd("", label_excel, "classes"),
    "classes in UTF-16": Odd("", table(encoding="utf-16"), "classes"),
    "ids as floats": Odd("", label_floats, "classes", ANSWERED | STOPS),
    "ids without zeros": Odd("", label_zeros, "classes", ANSWERED | STOPS),
    "ids as powers": Odd("", label_powers, "classes", STOPS),
    "classes in spellings": Odd("", label_spellings, "classes", ANSWERED | STOPS),
    "classes in conflict": Odd("", label_conflict, "classes", STOPS),
    "classes twice": Odd("", label_same_twice, "classes"),
    "names in NFD": Odd("", label_nfd, "classes"),
    "names of Windows": Odd("", label_windows, "classes"),
    "blanks at the end": Odd("", label_blank_end, "classes"),
    "probabilities": Odd("", label_probabilities, "classes", STOPS | {RIGHT}),
    "is_valid": Odd("", label_is_valid, "classes"),
    "checkpoints": Odd("", checkpoints, "classes"),
    "folders in spellings": Odd("", folder_spellings, "classes", ANSWERED | STOPS),
    "an empty folder": Odd("", folder_empty, "classes"),
    "Wheat": Odd("", wheat, "boxes", ANSWERED, BOXES),
    "RSNA": Odd("", rsna, "boxes", ANSWERED, BOXES),
    "VinDr": Odd("", vindr, "boxes", ANSWERED, BOXES),
    "edges as sizes": Odd("", box_edges_as_sizes, "boxes", STOPS, BOXES),
    "CVAT video": Odd("", cvat_video, "boxes", ANSWERED | STOPS, BOXES),
    "CVAT outside": Odd(f"{_CVAT}2339", cvat_outside, "masks", ANSWERED | STOPS),
    "Label Studio two annotators": Odd("", studio_with(studio_two, True), "masks", STOPS),
    "Label Studio two of one": Odd("", studio_with(studio_two_of_one, True), "masks", STOPS),
    "Label Studio predictions": Odd("", studio_with(studio_predictions)),
    "Label Studio cancelled": Odd("", studio_with(studio_cancelled)),
    "Label Studio turned": Odd("", studio_with(studio_turned, True), "masks", STOPS),
    "Label Studio fractions": Odd("", studio_with(studio_fractions, True), "masks", STOPS),
    "VIA sizes": Odd("", via_with(via_sizes)),
    "VIA checkboxes": Odd("", via_with(via_checkbox)),
}
