"""Data sets as annotation tools export them, each with its truth by a way of its own.

An image has a car and a road. The car is an upright rectangle (a polygon or a box). The road is a disc: a mask, an
ellipse, or a polygon of upright and level edges where the tool has nothing else.
"""

import base64
import io
import json
import zlib
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, image, mask
from PIL import Image


def car(number):
    """Edges of the car: left, top, right, bottom."""
    return 2 + number, 3, 12 + number, 11


def filled(left, top, right, bottom):
    drawn = np.zeros((HEIGHT, WIDTH), np.uint8)
    drawn[top:bottom, left:right] = 1
    return drawn


def square(number):
    """A road of level and upright edges: the last 12 columns, in some rows."""
    return 28, 2 + number, 40, 12 + number


def names(root, folder="images", name="i{}.jpg"):
    keys = [name.format(number) for number in range(COUNT)]
    for number, key in enumerate(keys):
        image(root / folder / key, number)
    return keys


def points(edges):
    left, top, right, bottom = edges
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def truth(keys, road=lambda number: mask(number, 1)):
    return {key: {"car": filled(*car(i)), "road": road(i)} for i, key in enumerate(keys)}


def write(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


# --- YOLO


def yolo_lines(number, boxes=False):
    lines = []
    for index, edges in enumerate((car(number), square(number))):
        left, top, right, bottom = (edge / side for edge, side in zip(edges, [WIDTH, HEIGHT] * 2, strict=True))
        numbers = [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]
        if not boxes:
            numbers = [c for x, y in points(edges) for c in (x / WIDTH, y / HEIGHT)]
        lines.append(" ".join([str(index), *(f"{c:.17g}" for c in numbers)]))
    return "\n".join(lines) + "\n"


def yolo(root: Path, boxes=False):
    """Ultralytics' layout: data.yaml, images/train, labels/train."""
    folders = ["train" if number < 6 else "val" for number in range(COUNT)]
    keys = [f"{folder}/i{number}.jpg" for number, folder in enumerate(folders)]
    for number, key in enumerate(keys):
        image(root / "images" / key, number)
        write(root / "labels" / f"{key[:-4]}.txt", yolo_lines(number, boxes))
    write(root / "data.yaml", "path: .\ntrain: images/train\nval: images/val\nnc: 2\nnames:\n  0: car\n  1: road\n")
    return truth(keys, lambda number: filled(*square(number)))


def yolo_boxes(root: Path):
    return yolo(root, boxes=True)


def roboflow(root: Path):
    """Roboflow's layout: a folder of images and one of labels for each split."""
    keys = [f"{'train' if number < 6 else 'valid'}/images/i{number}.jpg" for number in range(COUNT)]
    for number, key in enumerate(keys):
        image(root / key, number)
        write(root / f"{key.replace('images', 'labels')[:-4]}.txt", yolo_lines(number))
    write(root / "data.yaml", "train: ../train/images\nval: ../valid/images\n\nnc: 2\nnames: ['car', 'road']\n")
    write(root / "README.dataset.txt", "exported by a tool")
    return truth(keys, lambda number: filled(*square(number)))


def darknet(root: Path):
    """Text files next to the images, and the names in obj.names."""
    keys = names(root, ".")
    for number in range(COUNT):
        write(root / f"i{number}.txt", yolo_lines(number))
    write(root / "obj.names", "car\nroad\n")
    (root / "obj.names").rename(root / "classes.txt")
    return truth(keys, lambda number: filled(*square(number)))


# --- LabelMe


def png(values):
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "png")
    return base64.b64encode(buffer.getvalue()).decode()


def within(drawn):
    """The rows and columns that a mask needs: left, top, right, bottom."""
    rows, columns = np.flatnonzero(drawn.any(1)), np.flatnonzero(drawn.any(0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def labelme(root: Path):
    """LabelMe's JSON next to the images."""
    keys = names(root, ".")
    for number, key in enumerate(keys):
        road = mask(number, 1)
        left, top, right, bottom = within(road)
        shapes = [
            {"label": "car", "points": [list(p) for p in points(car(number))], "shape_type": "polygon"},
            {
                "label": "road",
                "points": [[left, top], [right - 1, bottom - 1]],
                "shape_type": "mask",
                "mask": png(road[top:bottom, left:right]),
            },
            {"label": "car", "points": [[1.5, 2.5]], "shape_type": "point"},
        ]
        shapes = [{**one, "group_id": None, "description": "", "flags": {}} for one in shapes]
        size = {"imageHeight": HEIGHT, "imageWidth": WIDTH}
        document = {"version": "5.5.0", "flags": {}, "shapes": shapes, "imagePath": key, "imageData": None, **size}
        write(root / f"i{number}.json", document)
    return truth(keys)


# --- CVAT


def rows_from_zeros(drawn):
    """Counts of equal pixels row by row, the first of pixels that are off."""
    counts, value = [0], 0
    for pixel in drawn.reshape(-1).tolist():
        if pixel != value:
            counts.append(0)
            value = pixel
        counts[-1] += 1
    return counts


def cvat(root: Path):
    keys = names(root)
    images = []
    for number, key in enumerate(keys):
        road = mask(number, 1)
        left, top, right, bottom = within(road)
        runs = ", ".join(map(str, rows_from_zeros(road[top:bottom, left:right])))
        corners = ";".join(f"{x:.2f},{y:.2f}" for x, y in points(car(number)))
        images.append(
            f"""  <image id="{number}" name={quoteattr(key)} subset="train" width="{WIDTH}" height="{HEIGHT}">
    <polygon label="car" source="manual" occluded="0" points="{corners}" z_order="0">
      <attribute name="color">red</attribute>
    </polygon>
    <mask label="road" source="manual" occluded="0" rle="{runs}" left="{left}" top="{top}" width="{right - left}"
      height="{bottom - top}" z_order="0"></mask>
    <points label="car" source="manual" occluded="0" points="1.00,2.00" z_order="0"></points>
    <tag label="car" source="manual"></tag>
  </image>"""
        )
    labels = "".join(f"<label><name>{name}</name><attributes></attributes></label>" for name in ("car", "road"))
    head = f"<version>1.1</version><meta><task><name>t</name><labels>{labels}</labels></task></meta>"
    write(
        root / "annotations.xml", f'<?xml version="1.0" encoding="utf-8"?>\n<annotations>{head}\n' + "\n".join(images)
    )
    with (root / "annotations.xml").open("a") as file:
        file.write("\n</annotations>\n")
    return truth(keys)


# --- Datumaro


def compressed(counts):
    """COCO's compressed counts: groups of five bits, the last with a sign, each number less the one two before it."""
    text = ""
    for i, count in enumerate(counts):
        value = count - counts[i - 2] if i > 2 else count
        more = True
        while more:
            group, value = value & 31, value >> 5
            more = value != (-1 if group & 16 else 0)
            text += chr(48 + group + 32 * more)
    return text


def datumaro(root: Path):
    """CVAT's "Datumaro 1.0": images/SUBSET and annotations/SUBSET.json."""
    keys = names(root, "images/default")
    items = []
    for number, key in enumerate(keys):
        common = {"attributes": {"occluded": False}, "group": 0, "z_order": 0}
        road = {"counts": compressed(rows_from_zeros(mask(number, 1).T)), "size": [HEIGHT, WIDTH]}
        annotations = [
            {
                **common,
                "id": 0,
                "type": "polygon",
                "label_id": 0,
                "points": [c for p in points(car(number)) for c in p],
            },
            {**common, "id": 1, "type": "mask", "label_id": 1, "rle": road},
            {**common, "id": 2, "type": "points", "label_id": 0, "points": [1.0, 2.0], "visibility": [2]},
        ]
        image = {"path": key, "size": [HEIGHT, WIDTH]}
        items.append({"id": key[:-4], "annotations": annotations, "attr": {"frame": number}, "image": image})
    labels = [{"name": name, "parent": "", "attributes": []} for name in CLASSES]
    categories = {"label": {"labels": labels, "label_groups": [], "attributes": ["occluded"]}}
    head = {"dm_format_version": "1.0", "media_type": 2, "infos": {}}
    write(root / "annotations/default.json", {**head, "categories": categories, "items": items})
    return truth(keys)


# --- Label Studio


def brush(drawn):
    """Bits of rle-pack: words of 8 bits, counts of 3, 4, 8 or 16 bits; zeros as runs, other pixels as they are."""
    words = np.repeat(drawn.reshape(-1).astype(np.uint8) * 255, 4)
    words[::4] //= 2  # As if the brush were of a dark color.
    words = words.tolist()  # Python's own numbers, one by one, take a tenth of the time.
    bits = f"{len(words):032b}{7:05b}{2:04b}{3:04b}{7:04b}{15:04b}"
    place = 0
    while place < len(words):
        end = place + 1
        while end < len(words) and end - place < 1 << 16 and (words[end] == 0) == (words[place] == 0):
            end += 1
        count, plain = end - place, words[place] != 0
        bits += f"{0 if plain else 1}{3:02b}{count - 1:016b}"
        bits += "".join(f"{word:08b}" for word in (words[place:end] if plain else words[place : place + 1]))
        place = end
    bits += "0" * (-len(bits) % 8)
    return [int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)]


def label_studio(root: Path):
    keys = names(root)
    tasks = []
    for number, key in enumerate(keys):
        common = {"original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0, "to_name": "image"}
        percents = [[100 * x / WIDTH, 100 * y / HEIGHT] for x, y in points(car(number))]
        results = [
            {
                **common,
                "id": "a",
                "type": "polygonlabels",
                "value": {"points": percents, "closed": True, "polygonlabels": ["car"]},
            },
            {
                **common,
                "id": "b",
                "type": "brushlabels",
                "value": {"format": "rle", "rle": brush(mask(number, 1)), "brushlabels": ["road"]},
            },
            {**common, "id": "c", "type": "keypointlabels", "value": {"x": 1, "y": 1, "keypointlabels": ["car"]}},
        ]
        annotation = {"id": number, "was_cancelled": False, "ground_truth": False, "result": results}
        data = {"image": f"/data/upload/3/0a1b2c3d-{key}"}
        tasks.append({"id": number, "data": data, "annotations": [annotation], "predictions": []})
    write(root / "project-3.json", tasks)
    return truth(keys)


# --- VIA


def via(root: Path):
    keys = names(root)
    entries = {}
    roads = []
    for number, key in enumerate(keys):
        corners = points(car(number))
        x, y, radius = 30 - number, 14, 4.5
        rows, columns = np.mgrid[:HEIGHT, :WIDTH] + 0.5
        roads.append(((columns - x) ** 2 + (rows - y) ** 2 < radius**2).astype(np.uint8))
        size = (root / "images" / key).stat().st_size
        polygon = {"name": "polygon", "all_points_x": [x for x, _ in corners], "all_points_y": [y for _, y in corners]}
        regions = [
            {"shape_attributes": polygon, "region_attributes": {"kind": "car"}},
            {
                "shape_attributes": {"name": "circle", "cx": x, "cy": y, "r": radius},
                "region_attributes": {"kind": "road"},
            },
            {"shape_attributes": {"name": "point", "cx": 1, "cy": 2}, "region_attributes": {"kind": "road"}},
        ]
        entries[f"{key}{size}"] = {"filename": key, "size": size, "regions": regions, "file_attributes": {}}
    project = {"_via_settings": {"ui": {}}, "_via_img_metadata": entries, "_via_attributes": {"region": {}, "file": {}}}
    write(root / "via_project.json", project)
    return truth(keys, roads.__getitem__)


# --- Supervisely


def supervisely(root: Path):
    """A project of one dataset: bitmaps and polygons."""
    keys = names(root, "ds/img")
    write(root / "meta.json", {"classes": [{"title": name, "shape": "any"} for name in CLASSES], "tags": []})
    for number, key in enumerate(keys):
        road = mask(number, 1)
        left, top, right, bottom = within(road)
        packed = zlib.compress(base64.b64decode(png(road[top:bottom, left:right] * np.uint8(255))))
        bitmap = {"origin": [left, top], "data": base64.b64encode(packed).decode()}
        outline = {"exterior": [list(point) for point in points(car(number))], "interior": []}
        things = [
            {"classTitle": "car", "geometryType": "polygon", "points": outline, "tags": []},
            {"classTitle": "road", "geometryType": "bitmap", "bitmap": bitmap, "tags": []},
        ]
        size = {"height": HEIGHT, "width": WIDTH}
        write(root / f"ds/ann/{key}.json", {"description": "", "size": size, "tags": [], "objects": things})
    return truth([f"ds/img/{key}" for key in keys])


# --- boxes of Pascal VOC


def voc_boxes(root: Path):
    keys = names(root)
    for number in range(COUNT):
        things = []
        for name, (left, top, right, bottom) in (("car", car(number)), ("road", square(number))):
            box = f"<xmin>{left + 1}</xmin><ymin>{top + 1}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax>"
            things.append(f"<object><name>{name}</name><bndbox>{box}</bndbox></object>")
        size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
        write(root / f"Annotations/i{number}.xml", f"<annotation>{size}{''.join(things)}</annotation>")
    return truth(keys, lambda number: filled(*square(number)))


# --- JSON lines


def lines(file, rows):
    write(file, "".join(json.dumps(row) + "\n" for row in rows))


def labels(keys):
    return {key: {CLASSES[i % 2]: None} for i, key in enumerate(keys)}


def label_lines(root: Path):
    keys = names(root)
    lines(root / "labels.jsonl", [{"image": key, "label": CLASSES[i % 2], "age": i} for i, key in enumerate(keys)])
    return labels(keys)


def image_folder(root: Path):
    """Hugging Face's imagefolder for object detection, with a file in the folder of each split."""
    for split, numbers in (("train", range(6)), ("test", range(6, COUNT))):
        rows = []
        for number in numbers:
            image(root / split / f"i{number}.jpg", number)
            edges = (car(number), square(number))
            boxes = [[left, top, right - left, bottom - top] for left, top, right, bottom in edges]
            rows.append({"file_name": f"i{number}.jpg", "objects": {"bbox": boxes, "categories": list(CLASSES)}})
        lines(root / split / "metadata.jsonl", rows)
    return truth([f"i{number}.jpg" for number in range(COUNT)], lambda number: filled(*square(number)))


def vertex(root: Path):
    keys = names(root)
    uses = ["training"] * 6 + ["validation", "test"]
    rows = [
        {
            "imageGcsUri": f"gs://bucket/photos/{key}",
            "classificationAnnotation": {"displayName": CLASSES[i % 2], "annotationResourceLabels": {"a": "b"}},
            "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": uses[i]},
        }
        for i, key in enumerate(keys)
    ]
    lines(root / "import.jsonl", rows)
    return labels(keys)


def vertex_boxes(root: Path):
    keys = names(root)
    rows = []
    for number, key in enumerate(keys):
        boxes = []
        for name, (left, top, right, bottom) in zip(CLASSES, (car(number), square(number)), strict=True):
            x, y = {"xMin": left / WIDTH, "xMax": right / WIDTH}, {"yMin": top / HEIGHT, "yMax": bottom / HEIGHT}
            boxes.append({"displayName": name, **x, **y})
        rows.append({"imageGcsUri": f"gs://bucket/{key}", "boundingBoxAnnotations": boxes})
    lines(root / "import.jsonl", rows)
    return truth(keys, lambda number: filled(*square(number)))


def labelbox(root: Path):
    keys = names(root)
    rows = []
    for number, key in enumerate(keys):
        objects = [
            {"feature_id": "f", "name": name, "value": name, "polygon": [{"x": x, "y": y} for x, y in points(edges)]}
            for name, edges in zip(CLASSES, (car(number), square(number)), strict=True)
        ]
        objects.append({"feature_id": "g", "name": "car", "value": "car", "point": {"x": 1, "y": 2}})
        label = {"annotations": {"objects": objects, "classifications": [], "relationships": []}}
        row = {"id": "x", "external_id": key, "row_data": f"https://storage.example/{key}?token=abc"}
        size = {"height": HEIGHT, "width": WIDTH, "mime_type": "image/jpeg"}
        rows.append({"data_row": row, "media_attributes": size, "projects": {"p": {"name": "p", "labels": [label]}}})
    lines(root / "export.ndjson", rows)
    return truth(keys, lambda number: filled(*square(number)))


# --- Open Images


def described(root):
    write(root / "class-descriptions-boxable.csv", "/m/0k4j,car\n/m/06gfj,road\n")


def open_images(root: Path):
    keys = names(root)
    described(root)
    flags = "IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
    rows = [f"ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,{flags}"]
    for number in range(COUNT):
        for name, (left, top, right, bottom) in (("/m/0k4j", car(number)), ("/m/06gfj", square(number))):
            edges = f"{left / WIDTH},{right / WIDTH},{top / HEIGHT},{bottom / HEIGHT}"
            rows.append(f"i{number},xclick,{name},1,{edges},0,0,1,0,0")
    write(root / "train-annotations-bbox.csv", "\n".join(rows) + "\n")
    return truth(keys, lambda number: filled(*square(number)))


def open_images_masks(root: Path):
    keys = names(root)
    described(root)
    rows = ["MaskPath,ImageID,LabelName,BoxID,BoxXMin,BoxXMax,BoxYMin,BoxYMax,PredictedIoU,Clicks"]
    (root / "segmentation").mkdir()
    for number in range(COUNT):
        for name, drawn in (("m0k4j", filled(*car(number))), ("m06gfj", mask(number, 1))):
            left, top, right, bottom = within(drawn)
            file = f"i{number}_{name}_0a1b2c3d.png"
            Image.fromarray(drawn * 255).convert("1").save(root / "segmentation" / file)
            edges = f"{left / WIDTH},{right / WIDTH},{top / HEIGHT},{bottom / HEIGHT}"
            rows.append(f"{file},i{number},/m/{name[1:]},0a1b2c3d,{edges},0.9,")
    write(root / "train-annotations-object-segmentation.csv", "\n".join(rows) + "\n")
    return truth(keys)


# --- tables of boxes


def box_csv(root: Path):
    """As TensorFlow's Object Detection tutorials write it, with paths of another machine."""
    keys = names(root)
    rows = ["filename,width,height,class,xmin,ymin,xmax,ymax"]
    for number, key in enumerate(keys):
        for name, edges in (("car", car(number)), ("road", square(number))):
            rows.append(f"C:\\work\\{key},{WIDTH},{HEIGHT},{name}," + ",".join(map(str, edges)))
    write(root / "train_labels.csv", "\n".join(rows) + "\n")
    return truth(keys, lambda number: filled(*square(number)))


def retinanet_csv(root: Path):
    keys = names(root)
    rows = [
        f"images/{key},{','.join(map(str, edges))},{name}"
        for number, key in enumerate(keys)
        for name, edges in (("car", car(number)), ("road", square(number)))
    ]
    write(root / "annotations.csv", "\n".join(rows) + "\n")
    return truth(keys, lambda number: filled(*square(number)))


# --- COCO panoptic


def panoptic(root: Path):
    """Ids of three bytes; one is a gray, which must not be taken for a number."""
    keys = names(root)
    (root / "annotations/panoptic_val").mkdir(parents=True)
    rows = []
    for number in range(COUNT):
        segments = []
        colors = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        for category, drawn, color in (
            (3, filled(*car(number)), (7, 7, 7)),
            (5, filled(*square(number)), (1, 2, number)),
        ):
            colors[drawn == 1] = color
            left, top, right, bottom = within(drawn)
            box = [left, top, right - left, bottom - top]
            identity = color[0] + 256 * color[1] + 256**2 * color[2]
            segments.append(
                {"id": identity, "category_id": category, "bbox": box, "iscrowd": 0, "area": int(drawn.sum())}
            )
        Image.fromarray(colors).save(root / f"annotations/panoptic_val/i{number}.png")
        rows.append({"image_id": number, "file_name": f"i{number}.png", "segments_info": segments})
    images = [{"id": i, "file_name": key, "height": HEIGHT, "width": WIDTH} for i, key in enumerate(keys)]
    categories = [{"id": 5, "name": "road", "isthing": 0}, {"id": 3, "name": "car", "isthing": 1}]
    document = {"annotations": rows, "images": images, "categories": categories}
    write(root / "annotations/panoptic_val.json", document)

    def road(number):
        return filled(*square(number))

    return truth(keys, road)


# Tool -> how it is drawn, the format, what it has.
TOOLS = {
    "YOLO segments": (yolo, "yolo", "masks"),
    "YOLO boxes": (yolo_boxes, "yolo", "boxes"),
    "YOLO of Roboflow": (roboflow, "yolo", "masks"),
    "YOLO next to images": (darknet, "yolo", "masks"),
    "LabelMe": (labelme, "labelme", "masks"),
    "CVAT": (cvat, "cvat_xml", "masks"),
    "Datumaro": (datumaro, "datumaro", "masks"),
    "Label Studio": (label_studio, "label_studio", "masks"),
    "VIA": (via, "via_json", "masks"),
    "VOC boxes": (voc_boxes, "voc_boxes", "boxes"),
    "labels as JSON lines": (label_lines, "label_jsonl", "classes"),
    "imagefolder": (image_folder, "label_jsonl", "boxes"),
    "Vertex AI": (vertex, "vertex_jsonl", "classes"),
    "Vertex AI boxes": (vertex_boxes, "vertex_jsonl", "boxes"),
    "Open Images boxes": (open_images, "open_images", "boxes"),
    "Open Images masks": (open_images_masks, "open_images", "masks"),
    "boxes in a CSV": (box_csv, "box_csv", "boxes"),
    "boxes in a CSV without a header": (retinanet_csv, "box_csv", "boxes"),
    "COCO panoptic": (panoptic, "panoptic", "masks"),
    "Labelbox": (labelbox, "labelbox", "masks"),
}
