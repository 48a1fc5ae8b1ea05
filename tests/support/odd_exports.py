"""Files of annotations that users reported, in forms of their own: JSON of names, YOLO's variants, COCO's relatives.

See `odd_sets`.
"""

import json
import re
from xml.sax.saxutils import escape

import layouts
import tool_files as tools
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, mask
from mutated_sets import STOPS
from odd_coco import coco, coco_with, of_annotations
from odd_sets import ANSWERED, BOXES, GITHUB, Odd, change_json, edit, squares
from tool_files import car, filled, names, points, rows_from_zeros, square, write

# --- JSON that states the class of each image, or of each object


def named(i):
    return {CLASSES[i % 2]: None}


def json_of(document, folder="images"):
    """A file `labels.json` beside images `i0.jpg` and so on."""

    def draw(root):
        keys = names(root, folder)
        write(root / "labels.json", document(keys))
        return {key: named(i) for i, key in enumerate(keys)}

    return draw


def name_to_class(keys):
    return {key: CLASSES[i % 2] for i, key in enumerate(keys)}


def stem_to_class(keys):
    return {key[:-4]: CLASSES[i % 2] for i, key in enumerate(keys)}


def name_to_number(keys):
    return {key: i % 2 for i, key in enumerate(keys)}


def class_to_names(keys):
    """The form of Food-101's train.json."""
    return {name: [key for i, key in enumerate(keys) if i % 2 == k] for k, name in enumerate(CLASSES)}


def json_min(keys):
    """Label Studio's JSON-MIN of choices."""
    return [
        {"image": f"/data/upload/1/0a1b2c{i}d-{key}", "id": i, "choice": CLASSES[i % 2], "annotator": 1}
        for i, key in enumerate(keys)
    ]


def pandas_columns(keys):
    """`DataFrame.to_json()`."""
    columns = {"image": keys, "label": [CLASSES[i % 2] for i in range(len(keys))]}
    return {name: {str(i): value for i, value in enumerate(values)} for name, values in columns.items()}


def pandas_split(keys):
    """`DataFrame.to_json(orient="split")`."""
    data = [[key, CLASSES[i % 2]] for i, key in enumerate(keys)]
    return {"columns": ["image", "label"], "index": list(range(len(keys))), "data": data}


def pairs(keys):
    """StyleGAN's dataset.json."""
    return {"labels": [[key, i % 2] for i, key in enumerate(keys)]}


def fiftyone(keys):
    return {"classes": list(CLASSES), "labels": {key[:-4]: i % 2 for i, key in enumerate(keys)}}


def numbers(root, document):
    truth = json_of(document)(root)
    return {key: {str(i % 2): None} for i, key in enumerate(truth)}


def fiftyone_boxes(root):
    """FiftyOneImageDetectionDataset: [x, y, width, height] in fractions, and classes by number."""
    keys = names(root)

    def listed(i):
        found = []
        for number, (left, top, right, bottom) in enumerate((car(i), square(i))):
            box = [left / WIDTH, top / HEIGHT, (right - left) / WIDTH, (bottom - top) / HEIGHT]
            found.append({"label": number, "bounding_box": box})
        return found

    write(root / "labels.json", {"classes": list(CLASSES), "labels": {k[:-4]: listed(i) for i, k in enumerate(keys)}})
    return squares(keys)


def detectron(root):
    """A list of detectron2's dicts."""
    keys = names(root)
    rows = []
    for i, key in enumerate(keys):
        things = [
            {"bbox": list(edges), "bbox_mode": 0, "category_id": k, "segmentation": []}
            for k, edges in enumerate((car(i), square(i)))
        ]
        rows.append({"file_name": key, "height": HEIGHT, "width": WIDTH, "image_id": i, "annotations": things})
    write(root / "train.json", rows)
    return squares(keys)


def mmdetection(root):
    """MMDetection's middle format."""
    keys = names(root)
    rows = [
        {
            "filename": key,
            "width": WIDTH,
            "height": HEIGHT,
            "ann": {"bboxes": [list(car(i)), list(square(i))], "labels": [0, 1]},
        }
        for i, key in enumerate(keys)
    ]
    write(root / "train.json", rows)
    return squares(keys)


# --- YOLO


def yolo_with(change, boxes=True, truth=True):
    def draw(root):
        found = tools.yolo(root, boxes)
        for file in sorted(root.glob("labels/*/*.txt")):
            edit(file, lambda text, f=file: change(text, int(f.stem[1:])))
        return found if truth else {}

    return draw


def each_number(form):
    return lambda text, _: "\n".join(" ".join(form(float(n)) for n in line.split()) for line in text.splitlines())


def with_commas(text, _):
    return text.replace(" ", ",")


def landmarks(text, number):
    """YOLOv5-face: five points after the box."""
    rows = []
    for line in text.splitlines():
        x, y, width, height = map(float, line.split()[1:])
        spots = [(x + dx * width, y + dy * height) for dx, dy in ((-0.2, -0.2), (0.2, -0.2), (0, 0), (-0.2, 0.3))]
        spots.append((x + 0.2 * width, y + 0.3 * height))
        rows.append(" ".join([line, *(f"{side:.6f}" for spot in spots for side in spot)]))
    return "\n".join(rows) + "\n"


def visible(text, _):
    """YOLO's pose, with the visibility of each of two points, and no kpt_shape."""
    rows = []
    for line in text.splitlines():
        x, y = line.split()[1:3]
        rows.append(f"{line} {x} {y} 2 {x} {y} 2 0 0 0")
    return "\n".join(rows) + "\n"


def from_one(text, _):
    return re.sub(r"^(\d)", lambda match: str(int(match[1]) + 1), text, flags=re.MULTILINE)


def keras_yolo(root):
    """keras-yolo3, and Roboflow's "YOLO Keras": a line for each image, its boxes by edges."""
    keys = names(root)
    rows = [
        f"{key} " + " ".join(",".join(map(str, (*edges, k))) for k, edges in enumerate((car(i), square(i))))
        for i, key in enumerate(keys)
    ]
    layouts.lines(root / "_annotations.txt", *rows)
    layouts.lines(root / "_classes.txt", *CLASSES)
    return squares(keys)


# --- COCO's relatives


def roboflow_root(document):
    """Roboflow's further category, above all others and of no annotation."""
    for one in document["categories"]:
        one["supercategory"] = "traffic"
    document["categories"].insert(0, {"id": 0, "name": "traffic", "supercategory": "none"})


def lvis(document):
    """LVIS names images by their address alone."""
    for one in document["images"]:
        one["coco_url"] = f"http://images.cocodataset.org/train2017/{one.pop('file_name')}"


def cocostuff(root):
    """COCO-Stuff 10k: a list with one run length, and a list around the box."""
    truth = coco(root)

    def listed(row):
        rows = filled(*(car if row["category_id"] == 3 else square)(row["image_id"])).T
        row["segmentation"] = [{"counts": rows_from_zeros(rows), "size": [HEIGHT, WIDTH]}]

    change_json(root / "instances.json", of_annotations(listed))
    return truth


def texts(row):
    """Numbers in quotes."""
    row["segmentation"] = [list(map(str, row["segmentation"][0]))]


def text_of_json(row):
    """The outline as a text of JSON, as tables of pandas have it."""
    row["segmentation"] = json.dumps(row["segmentation"])


def box_of_texts(row):
    row["bbox"] = list(map(str, row["bbox"]))


def points_of_pairs(row):
    """[[x, y], [x, y], ...] in place of [[x, y, x, y, ...]]."""
    flat = row["segmentation"][0]
    row["segmentation"] = [list(pair) for pair in zip(flat[::2], flat[1::2], strict=True)]


# --- tools


def turned_over(root):
    """CVAT: the background was drawn last and is first in the file, above the car by its z_order."""
    truth = tools.cvat(root)

    def behind(text):
        hole = f'<polygon label="background" source="manual" occluded="0" points="{shown((4, 4, 6, 6))}" z_order="1"/>'
        text = text.replace('    <polygon label="car"', f'    {hole}\n    <polygon label="car"')
        return text.replace("</attributes></label>", "</attributes></label>", 1)

    edit(root / "annotations.xml", behind)
    return {key: {**drawn, "car": without(drawn["car"])} for key, drawn in truth.items()}


def shown(edges):
    return ";".join(f"{x:.2f},{y:.2f}" for x, y in points(edges))


def without(drawn):
    drawn = drawn.copy()
    drawn[4:6, 4:6] = 0
    return drawn


def datumaro_order(root):
    """The same in Datumaro's JSON."""
    truth = tools.datumaro(root)

    def behind(document):
        document["categories"]["label"]["labels"].append({"name": "background", "parent": "", "attributes": []})
        for item in document["items"]:
            flat = [side for point in points((4, 4, 6, 6)) for side in point]
            hole = {"id": 9, "type": "polygon", "label_id": 2, "points": flat, "z_order": 1, "attributes": {}}
            item["annotations"].insert(0, {**hole, "group": 0})

    change_json(root / "annotations/default.json", behind)
    return {key: {**drawn, "car": without(drawn["car"])} for key, drawn in truth.items()}


def labelme_xml(root):
    """The XML of MIT's LabelMe, which CVAT writes as "LabelMe 3.0"."""
    keys = names(root)
    for i, key in enumerate(keys):
        things = ""
        for name, edges in (("car", car(i)), ("road", square(i))):
            outline = "".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in points(edges))
            things += f"<object><name>{name}</name><deleted>0</deleted><polygon>{outline}</polygon></object>"
        size = f"<imagesize><nrows>{HEIGHT}</nrows><ncols>{WIDTH}</ncols></imagesize>"
        write(root / f"xml/i{i}.xml", f"<annotation><filename>{escape(key)}</filename>{things}{size}</annotation>")
    return squares(keys)


def voc_polygons(root):
    """VOC with an outline in each object, as Roboflow and RectLabel write it."""
    truth = tools.voc_boxes(root)
    for i in range(COUNT):
        sides = "".join(f"<x{n}>{x}</x{n}><y{n}>{y}</y{n}>" for n, (x, y) in enumerate(points(car(i)), 1))
        edit(
            root / f"Annotations/i{i}.xml",
            lambda text, sides=sides: text.replace("</bndbox>", f"</bndbox><polygon>{sides}</polygon>"),
        )
    return truth


def darwin(root):
    """V7 Darwin's JSON, a file for each image."""
    keys = names(root)
    for i, key in enumerate(keys):
        things = [
            {"name": name, "polygon": {"paths": [[{"x": x, "y": y} for x, y in points(edges)]]}}
            for name, edges in (("car", car(i)), ("road", square(i)))
        ]
        write(root / f"darwin/i{i}.json", {"version": "2.0", "item": {"name": key}, "annotations": things})
    return squares(keys)


def studio_cells(root):
    """Label Studio's CSV of regions: a cell is JSON."""
    keys = names(root)
    rows = []
    for i, key in enumerate(keys):
        left, top, right, _ = car(i)
        box = {"x": 100 * left / WIDTH, "y": 100 * top / HEIGHT, "rectanglelabels": ["car"], "original_width": WIDTH}
        cell = json.dumps([{**box, "width": 100 * (right - left) / WIDTH}]).replace('"', '""')
        rows.append(f'{i},1,{i},"{cell}",/data/upload/1/0a1b2c{i}d-{key}')
    layouts.lines(root / "project.csv", "annotation_id,annotator,id,label,image", *rows)
    return {}


# --- run lengths and tables


def rle_ends(text, _):
    """The last pixel of each run in place of its length."""
    found = list(map(int, text.split()))
    return " ".join(f"{start} {start + length - 1}" for start, length in zip(found[::2], found[1::2], strict=True))


def rle_colons(text, _):
    found = text.split()
    return " ".join(f"{start}:{length}" for start, length in zip(found[::2], found[1::2], strict=True))


def rle(change):
    def draw(root):
        keys = names(root)
        rows = [
            f'{key},{name},"{change(layouts.runs(i, k), i)}"'
            for i, key in enumerate(keys)
            for k, name in enumerate(CLASSES)
        ]
        layouts.lines(root / "train.csv", "ImageId,ClassId,EncodedPixels", *rows)
        return {key: {name: mask(i, k) for k, name in enumerate(CLASSES)} for i, key in enumerate(keys)}

    return draw


def roboflow_classes(root):
    """Roboflow's _classes.csv, whose first class means that there is none."""
    keys = names(root)
    rows = [f"{key}, {int(i > 5)}, {int(i % 2 == 0 and i < 6)}, {int(i % 2 and i < 6)}" for i, key in enumerate(keys)]
    layouts.lines(root / "_classes.csv", "filename, Unlabeled, car, road", *rows)
    return {key: named(i) if i < 6 else {} for i, key in enumerate(keys)}


def lists_of_python(root):
    """A column of lists that pandas wrote: ['car', 'road'], and [] where there is no class."""
    keys = names(root)
    rows = [f'{key},"{[name for k, name in enumerate(CLASSES) if i >> k & 1]}"' for i, key in enumerate(keys)]
    layouts.lines(root / "labels.csv", "image,labels", *rows)
    return {key: {name: None for k, name in enumerate(CLASSES) if i >> k & 1} for i, key in enumerate(keys)}


def box_row_twice(root):
    """Boxes with two sizes of one image."""
    keys = names(root)
    rows = [
        f"{key},{name},{','.join(map(str, edges))},{WIDTH if name == 'car' else 2 * WIDTH},{HEIGHT}"
        for i, key in enumerate(keys)
        for name, edges in (("car", car(i)), ("road", square(i)))
    ]
    layouts.lines(root / "boxes.csv", "filename,class,xmin,ymin,xmax,ymax,width,height", *rows)
    return {}


_U = f"{GITHUB}ultralytics/"
ODD: dict[str, Odd] = {
    "JSON name to class": Odd(f"{GITHUB}huggingface/pytorch-image-models/pull/2418", json_of(name_to_class), "classes"),
    "JSON stem to class": Odd(f"{GITHUB}huggingface/pytorch-image-models/pull/2418", json_of(stem_to_class), "classes"),
    "JSON name to number": Odd(
        f"{GITHUB}huggingface/pytorch-image-models/pull/2418", lambda root: numbers(root, name_to_number), "classes"
    ),
    "JSON class to names": Odd(
        "https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101", json_of(class_to_names), "classes"
    ),
    "JSON of pandas": Odd(
        "https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.to_json.html", json_of(pandas_columns), "classes"
    ),
    "JSON of pandas, split": Odd(
        "https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.to_json.html",
        json_of(pandas_split),
        "classes",
        ANSWERED | STOPS,
        cause="pandas",
    ),
    "JSON of StyleGAN": Odd(
        f"{GITHUB}NVlabs/stylegan2-ada-pytorch", lambda root: numbers(root, pairs), "classes", ANSWERED | STOPS
    ),
    "Label Studio JSON-MIN": Odd("https://labelstud.io/guide/export", json_of(json_min), "classes"),
    "FiftyOne classes": Odd(f"{GITHUB}voxel51/fiftyone/pull/1377", json_of(fiftyone), "classes"),
    "FiftyOne boxes": Odd(
        f"{GITHUB}voxel51/fiftyone/pull/1377", fiftyone_boxes, "boxes", ANSWERED | STOPS, BOXES, cause="FiftyOne"
    ),
    "detectron2": Odd(
        f"{GITHUB}facebookresearch/detectron2/issues/349", detectron, "boxes", STOPS, BOXES, cause="detectron2"
    ),
    "MMDetection": Odd(f"{GITHUB}open-mmlab/mmdetection", mmdetection, "boxes", STOPS, BOXES, cause="MMDetection"),
    "YOLO of NumPy": Odd(
        f"{GITHUB}roboflow/supervision/pull/2580", yolo_with(each_number(lambda n: f"{n:.18e}")), "boxes", further=BOXES
    ),
    "YOLO 0.0": Odd(f"{GITHUB}roboflow/supervision/pull/2580", yolo_with(each_number(lambda n: f"{n:.6f}"), False)),
    "YOLO with commas": Odd(
        f"{_U}ultralytics/issues/7907", yolo_with(with_commas), "boxes", ANSWERED | STOPS, BOXES, cause="commas"
    ),
    "YOLO landmarks": Odd(
        f"{GITHUB}deepcam-cn/yolov5-face", yolo_with(landmarks), "boxes", STOPS, BOXES, cause="key points"
    ),
    "YOLO landmarks as masks": Odd(
        f"{GITHUB}deepcam-cn/yolov5-face", yolo_with(landmarks, truth=False), "masks", STOPS, cause="key points"
    ),
    "YOLO pose": Odd(
        f"{GITHUB}HumanSignal/label-studio/issues/6502",
        yolo_with(visible),
        "boxes",
        STOPS,
        BOXES,
        cause="key points|14 numbers",
    ),
    "YOLO from 1 in data.yaml": Odd(
        f"{GITHUB}pylabel-project/pylabel/issues/99",
        yolo_with(from_one),
        "boxes",
        ANSWERED | STOPS,
        BOXES,
        cause="from 1",
    ),
    "keras-yolo3": Odd(
        f"{GITHUB}qqwweee/keras-yolo3/issues/520", keras_yolo, "boxes", STOPS, BOXES, cause="more behind each name"
    ),
    "COCO Roboflow's root": Odd(f"{GITHUB}roboflow/rf-detr/pull/1303", coco_with(roboflow_root)),
    "COCO of LVIS": Odd(f"{GITHUB}lvis-dataset/lvis-api", coco_with(lvis)),
    "COCO-Stuff": Odd(f"{GITHUB}nightrome/cocostuff10k/issues/4", cocostuff),
    "COCO outlines of texts": Odd(
        f"{GITHUB}cocodataset/cocoapi",
        coco_with(of_annotations(texts)),
        "masks",
        ANSWERED | STOPS,
        cause="not a number",
    ),
    "COCO outlines as text": Odd(
        f"{GITHUB}cocodataset/cocoapi",
        coco_with(of_annotations(text_of_json)),
        "masks",
        ANSWERED | STOPS,
        cause="the segmentation is",
    ),
    "COCO outlines of pairs": Odd(
        f"{GITHUB}cocodataset/cocoapi/issues/135",
        coco_with(of_annotations(points_of_pairs)),
        "masks",
        ANSWERED | STOPS,
        cause="has 2 numbers",
    ),
    "COCO boxes of texts": Odd(
        f"{GITHUB}cocodataset/cocoapi",
        coco_with(of_annotations(box_of_texts), boxes=True),
        "boxes",
        ANSWERED | STOPS,
        BOXES,
        cause="the bbox is",
    ),
    "CVAT z_order": Odd(f"{GITHUB}cvat-ai/cvat/issues/9713", turned_over),
    "Datumaro z_order": Odd(f"{GITHUB}cvat-ai/cvat/issues/3665", datumaro_order),
    "LabelMe XML": Odd(
        "https://docs.cvat.ai/docs/manual/advanced/formats/format-labelme", labelme_xml, "masks", STOPS, cause="MIT"
    ),
    "LabelMe XML boxes": Odd(
        "https://docs.cvat.ai/docs/manual/advanced/formats/format-labelme",
        labelme_xml,
        "boxes",
        STOPS,
        BOXES,
        cause="MIT",
    ),
    "VOC with outlines": Odd("https://roboflow.com/formats/pascal-voc-xml", voc_polygons, "boxes", further=BOXES),
    "V7 Darwin": Odd(f"{GITHUB}v7labs/darwin-py", darwin, "masks", STOPS, cause="Darwin"),
    "Label Studio CSV of regions": Odd(
        "https://labelstud.io/guide/export", studio_cells, "classes", STOPS, cause="holds JSON"
    ),
    "runs with last pixels": Odd(
        "https://www.kaggle.com/code/stainsby/fast-tested-rle",
        rle(rle_ends),
        "masks",
        ANSWERED | STOPS,
        cause="last pixel",
    ),
    "runs with colons": Odd(
        "https://www.kaggle.com/code/stainsby/fast-tested-rle", rle(rle_colons), "masks", ANSWERED | STOPS
    ),
    "Roboflow unlabeled": Odd(
        "https://roboflow.com/formats/multi-class-classification-csv", roboflow_classes, "classes", ANSWERED
    ),
    "lists of Python": Odd(
        "https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.to_csv.html",
        lists_of_python,
        "classes",
        ANSWERED,
    ),
    "boxes with two sizes": Odd(
        f"{GITHUB}datitran/raccoon_dataset/pull/74", box_row_twice, "boxes", STOPS, BOXES, cause="several sizes"
    ),
}
