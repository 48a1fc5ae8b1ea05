"""Boxes without masks: the size of the image that the annotations state selects their frame, and must be the file's."""

import json

import pytest
from ingesting import examples, ledger, run
from PIL import Image
from stored import check_stored

HEIGHT, WIDTH = 24, 40
LEFT, TOP, RIGHT, BOTTOM = 4, 6, 14, 18
EDGES = ("xmin", "ymin", "xmax", "ymax")
# Name -> Exif orientation, and the height and width that the annotations state.
IMAGES = {
    "upright.jpg": (1, HEIGHT, WIDTH),
    "stored.jpg": (6, HEIGHT, WIDTH),
    "displayed.jpg": (6, WIDTH, HEIGHT),
    "wrong.jpg": (1, 2 * HEIGHT, 2 * WIDTH),
    "turned.jpg": (1, WIDTH, HEIGHT),
}


def labelme(root):
    points = [[LEFT, TOP], [RIGHT, BOTTOM]]
    shape = {"label": "car", "shape_type": "rectangle", "points": points}
    for name, (_, height, width) in IMAGES.items():
        text = {"shapes": [shape], "imagePath": name, "imageHeight": height, "imageWidth": width}
        (root / name).with_suffix(".json").write_text(json.dumps(text))
    return root


def cvat_xml(root):
    box = f'<box label="car" xtl="{LEFT}" ytl="{TOP}" xbr="{RIGHT}" ybr="{BOTTOM}"/>'
    images = (f'<image id="0" name="{n}" width="{w}" height="{h}">{box}</image>' for n, (_, h, w) in IMAGES.items())
    (root / "a.xml").write_text(f"<annotations>{''.join(images)}</annotations>")
    return root / "a.xml"


def voc_boxes(root):
    edges = zip(EDGES, (LEFT + 1, TOP + 1, RIGHT, BOTTOM), strict=True)
    box = "".join(f"<{name}>{edge}</{name}>" for name, edge in edges)
    (root / "xml").mkdir()
    for name, (_, height, width) in IMAGES.items():
        size = f"<size><width>{width}</width><height>{height}</height></size>"
        text = f"<annotation>{size}<object><name>car</name><bndbox>{box}</bndbox></object></annotation>"
        (root / "xml" / name).with_suffix(".xml").write_text(text)
    return root / "xml"


def label_studio(root):
    tasks = []
    for name, (_, height, width) in IMAGES.items():
        value = {"x": 100 * LEFT / width, "y": 100 * TOP / height, "rectanglelabels": ["car"]}
        value |= {"width": 100 * (RIGHT - LEFT) / width, "height": 100 * (BOTTOM - TOP) / height}
        result = {"type": "rectanglelabels", "original_width": width, "original_height": height, "value": value}
        tasks.append({"data": {"image": name}, "annotations": [{"result": [result]}]})
    (root / "p.json").write_text(json.dumps(tasks))
    return root / "p.json"


def supervisely(root):
    (root / "d/ann").mkdir(parents=True)
    (root / "d/img").mkdir()
    corners = {"exterior": [[LEFT, TOP], [RIGHT - 1, BOTTOM - 1]], "interior": []}
    thing = {"classTitle": "car", "geometryType": "rectangle", "points": corners}
    for name, (_, height, width) in IMAGES.items():
        (root / name).rename(root / "d/img" / name)
        text = {"size": {"height": height, "width": width}, "tags": [], "objects": [thing]}
        (root / f"d/ann/{name}.json").write_text(json.dumps(text))
    (root / "meta.json").write_text('{"classes": [{"title": "car"}]}')
    return root


def coco_json(root):
    sizes = enumerate(IMAGES.items())
    images = [{"id": i, "file_name": name, "height": h, "width": w} for i, (name, (_, h, w)) in sizes]
    box = {"category_id": 1, "bbox": [LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP]}
    annotations = [{"id": i, "image_id": i, **box} for i in range(len(IMAGES))]
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "car"}]}
    (root / "c.json").write_text(json.dumps(document))
    return root / "c.json"


def box_csv(root):
    rows = (f"{name},{w},{h},car,{LEFT},{TOP},{RIGHT},{BOTTOM}\n" for name, (_, h, w) in IMAGES.items())
    (root / "b.csv").write_text("filename,width,height,class,xmin,ymin,xmax,ymax\n" + "".join(rows))
    return root / "b.csv"


@pytest.mark.parametrize("write", [labelme, cvat_xml, voc_boxes, label_studio, supervisely, coco_json, box_csv])
def test_the_stated_size_is_compared_with_the_image_and_selects_the_frame_of_its_boxes(tmp_path, write):
    root = tmp_path / "data"
    root.mkdir()
    for number, (name, (orientation, *_)) in enumerate(IMAGES.items()):
        exif = Image.Exif()
        exif[0x0112] = orientation
        Image.new("RGB", (WIDTH, HEIGHT), (40 * number, 0, 0)).save(root / name, exif=exif)
    labels = {"path": str(write(root)), "format": write.__name__, "boxes": True}
    run({"task": "classification", "input": {"images": str(root), "labels": labels}}, tmp_path / "out")
    check_stored(f"stated sizes: {write.__name__}", tmp_path / "out")
    found = {key.rpartition("/")[2]: example for key, example in examples(tmp_path / "out").items()}
    # A turn by 6 shows the stored row y at the column HEIGHT - y; the box was drawn on the displayed picture.
    displayed = (TOP, HEIGHT - RIGHT, BOTTOM, HEIGHT - LEFT)
    wanted = dict.fromkeys(("upright.jpg", "stored.jpg"), (LEFT, TOP, RIGHT, BOTTOM)) | {"displayed.jpg": displayed}
    assert sorted(found) == sorted(wanted)
    for name, edges in wanted.items():
        stored = [found[name][f"image/object/bbox/{edge}"].tolist()[0] for edge in EDGES]
        assert [share * side for share, side in zip(stored, (WIDTH, HEIGHT) * 2, strict=True)] == pytest.approx(edges)
    rejected = {
        key.rpartition("/")[2]: row for key, row in ledger(tmp_path / "out").items() if row.status == "rejected"
    }
    assert {name: row.code for name, row in rejected.items()} == dict.fromkeys(
        ("wrong.jpg", "turned.jpg"), "size_mismatch"
    )
    assert "the image has 48x80 (height x width) there, but the file has 24x40" in rejected["wrong.jpg"].reason
    assert rejected["turned.jpg"].reason.endswith("were the annotations drawn on the turned image?")


def further_row(file):
    file.write_text(file.read_text() + f"upright.jpg,{2 * WIDTH},{HEIGHT},car,1,1,5,5\n")


def further_image(file):
    document = json.loads(file.read_text())
    document["images"].append({"id": 9, "file_name": "./upright.jpg", "height": HEIGHT, "width": 2 * WIDTH})
    file.write_text(json.dumps(document))


def further_result(file):
    tasks = json.loads(file.read_text())
    results = tasks[0]["annotations"][0]["result"]
    results.append({**results[0], "original_width": 2 * WIDTH})
    file.write_text(json.dumps(tasks))


@pytest.mark.parametrize(
    ("write", "further", "parts"),
    [(box_csv, further_row, "rows"), (coco_json, further_image, "entries"), (label_studio, further_result, "results")],
)
def test_parts_of_an_entry_that_state_several_sizes_cost_its_image(tmp_path, write, further, parts):
    root = tmp_path / "data"
    root.mkdir()
    for number, name in enumerate(IMAGES):
        Image.new("RGB", (WIDTH, HEIGHT), (40 * number, 0, 0)).save(root / name)
    path = write(root)
    further(path)
    labels = {"path": str(path), "format": write.__name__, "boxes": True}
    raw = {"task": "classification", "input": {"images": str(root), "labels": labels}, "rejects": {"max_fraction": 1}}
    run(raw, tmp_path / "out")
    row = next(row for key, row in ledger(tmp_path / "out").items() if key.endswith("upright.jpg"))
    assert (row.status, row.code) == ("rejected", "bad_object")
    assert f"its {parts} state several sizes of the image: (24, 40) and (24, 80)" in row.reason
