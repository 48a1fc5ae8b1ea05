"""Broken and hostile files of annotation tools: one clear line each, nothing lost, no other image affected."""

import json
import re

import pytest
import tool_files
from ingesting import ledger, run
from layouts import COUNT

from shardwright.errors import ShardwrightError, UsageError
from shardwright.formats import objects

DEEP = "[" * 100_000
BOMB = '<!DOCTYPE a [<!ENTITY b "xxxx"><!ENTITY c "&b;&b;&b;&b;">]>'


def spoil(file, old, new, count=1):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, count))


def source(root, tool, **labels):
    tool_files.TOOLS[tool][0](root)
    files = [*root.glob("*.xml"), *root.glob("*.y*ml"), *root.glob("[!i]*.json"), *root.glob("*.ndjson")]
    files += [*root.glob("*.jsonl"), *root.glob("train-*.csv"), *root.glob("annotations/*.json")]
    path = files[0] if files else root
    given = {"path": str(path), **labels}
    task = "classification" if tool_files.TOOLS[tool][2] == "classes" else "segmentation"
    images = root / "images" if tool.startswith(("Open Images", "COCO")) else root
    if tool == "Open Images boxes":
        task, given = "classification", {**given, "boxes": True}
    return path, {"input": {"images": str(images), "labels": given}, "task": task}


# Tool, file of one image or None, what is replaced by what, the code, what the reason has.
ONE_IMAGE = [
    ("YOLO next to images", "i1.txt", "0 ", "9 ", "bad_object", "line 1: the class 9 is not one of the 2 names"),
    ("YOLO next to images", "i1.txt", "0 ", "-1 ", "bad_object", "line 1: the class is '-1', not a number from 0"),
    ("YOLO next to images", "i1.txt", "0 ", "0 7 ", "bad_object", "line 1: has 10 numbers"),
    ("YOLO next to images", "i1.txt", "0 ", "0 7 7 ", "bad_object", "line 1: 7 is not a fraction"),
    ("YOLO next to images", "i1.txt", "0 ", "0 nan 0.5 ", "bad_object", "line 1 is 'nan', not a number"),
    ("YOLO next to images", "i1.txt", "0 ", "0 1e999 0.5 ", "bad_object", "line 1 is '1e999', not a number"),
    ("YOLO next to images", "i1.txt", "0 ", "\x00", "bad_object", "line 1: the class is"),
    ("LabelMe", "i1.json", '"shapes"', '"shape"', "bad_object", "has no `shapes`"),
    ("LabelMe", "i1.json", "{", DEEP, "bad_object", "is not JSON"),
    ("LabelMe", "i1.json", '"label": "car"', '"label": 7', "bad_object", r"shapes\[0\]: label is 7, not a name"),
    ("LabelMe", "i1.json", '"label": "car"', '"label": "\\ud800"', "bad_object", "not a name"),
    ("LabelMe", "i1.json", "[[3, 3]", "[[NaN, 3]", "bad_object", "points is nan, not a number"),
    ("LabelMe", "i1.json", "[[3, 3]", '["x"', "bad_object", "has the point 'x'"),
    ("LabelMe", "i1.json", '"polygon"', '"blob"', "bad_object", "'blob' with 4 points is not a shape"),
    (
        "LabelMe",
        "i1.json",
        '"polygon"',
        '["polygon"]',
        "bad_object",
        r"shapes\[0\]: shape_type is \['polygon'\], not a",
    ),
    ("LabelMe", "i1.json", '"imageHeight": 24', '"imageHeight": 25', "size_mismatch", "25x40"),
    ("LabelMe", "i1.json", '"mask": "', '"mask": "!', "bad_segmentation", "not a PNG in base64"),
    ("LabelMe", "i1.json", '"mask": "iVBO', '"mask": "aVBO', "bad_mask", "not a PNG"),
    ("CVAT", None, 'id="1" name="i1.jpg"', 'id="1" name="none.jpg"', "missing_image", "image 1 names 'none.jpg'"),
    ("CVAT", None, ' points="3.00,3.00;', ' points="3.00;', "bad_object", "the point '3.00' is not x,y"),
    ("CVAT", None, ' points="3.00,3.00;', ' points="x,3.00;', "bad_object", "points is 'x', not a number"),
    ("CVAT", None, 'rle="', 'rle="3, ', "bad_segmentation", "the run lengths hold"),
    ("CVAT", None, 'rle="', 'rle="-2, ', "bad_object", "rle is '-2', not a whole number"),
    ("CVAT", None, 'rle="', 'rle="99999999, ', "bad_segmentation", "the run lengths hold"),
    ("CVAT", None, '<tag label="car" source="manual"></tag>', "<cone/>", "bad_object", "is not a shape of CVAT"),
    ("Datumaro", None, '"path": "i1.jpg"', '"path": "none/i9.jpg"', "missing_image", "names 'default/none/i9.jpg'"),
    (
        "Datumaro",
        None,
        '"label_id": 0',
        '"label_id": 2',
        "bad_object",
        "the label id 2 is not one of the 2 labels, from 0",
    ),
    (
        "Datumaro",
        None,
        '"label_id": 0',
        '"label_id": null',
        "bad_object",
        "the label id None is not one of the 2 labels",
    ),
    ("Datumaro", None, '"polygon"', '"rotated_bbox"', "bad_object", "'rotated_bbox' is not a shape that can be read"),
    ("Datumaro", None, '"points": [3, 3', '"points": [3', "bad_object", "the polygon has 7 numbers, not pairs"),
    ("Datumaro", None, '"size": [24, 40]}}', '"size": [25, 40]}}', "size_mismatch", "25x40"),
    (
        "Datumaro",
        None,
        '"i1.jpg", "size": [24, 40]',
        '"i1.jpg", "size": [24]',
        "bad_object",
        "image: size has 1 numbers",
    ),
    ("Datumaro", None, '"counts": "', '"counts": "~', "bad_rle", "counts"),
    ("Label Studio", None, '"rle": [', '"rle": [7, ', "bad_rle", "the brush stroke has"),
    ("Label Studio", None, '"rle": [0', '"rle": [300', "bad_rle", "not a list of bytes"),
    ("Label Studio", None, '"image_rotation": 0', '"image_rotation": 90', "bad_object", "turned by 90 degrees"),
    ("Label Studio", None, '["car"]', '"car"', "bad_object", "its classes is 'car', not a list"),
    ("Label Studio", None, '"original_width": 40', '"original_width": 0', "bad_object", "not a number of pixels"),
    ("Label Studio", None, '"annotations": [', '"annotations": [{"result": []}, ', "bad_object", "2 annotations"),
    ("labels as JSON lines", None, '{"image": "i1.jpg"', '"i1.jpg", {', "bad_object", "line 2: is not a JSON object"),
    ("labels as JSON lines", None, '"road"', "true", "bad_object", "the class is True, not a name"),
    ("Vertex AI", None, '{"displayName": "road"', '{"name": "road"', "bad_object", "displayName is None"),
    ("Vertex AI", None, '{"displayName": "road", ', '5, "x": {', "bad_object", "classificationAnnotation is 5"),
    ("Labelbox", None, '"polygon": [', '"mask": [', "bad_object", "its mask is on Labelbox's servers"),
    ("Labelbox", None, '"x": 3', '"x": null', "bad_object", "is None, not a number"),
    ("Labelbox", None, '"labels": [', '"labels": [5, ', "bad_object", "a label is 5, not an object"),
    ("Open Images boxes", None, "i1,xclick,/m/0k4j,1,0.07", "i1,xclick,/m/0k4j,1,x", "bad_object", "row 4: XMin is 'x"),
    ("Open Images boxes", None, "i1,xclick,/m/0k4j,1,", "i1,xclick,/m/0k4j,", "bad_object", "not as many fields"),
    ("Open Images masks", None, "i1_m0k4j_0a1b2c3d.png", "../x.png", "bad_object", "there is no file '../x.png'"),
    ("COCO panoptic", None, '"id": 460551', '"id": 460552', "bad_mask", "i0.png: has no pixel of the segment 460552"),
    ("COCO panoptic", None, '"id": 460551', '"id": -1', "bad_object", "segment 1: the id is -1, not a color"),
    ("COCO panoptic", None, '"category_id": 3', '"category_id": 4', "bad_object", "category id 4 is not in categories"),
    ("COCO panoptic", None, '"category_id": 3', '"category_id": [3]', "bad_object", "is not in categories"),
    ("COCO panoptic", None, '"file_name": "i1.png"', '"file_name": "x.png"', "bad_object", "there is no file 'x.png'"),
    ("VIA", None, '"circle"', '"blob"', "bad_object", "'blob' is not a shape of VIA"),
    ("VIA", None, '"kind": "car"', '"kind": ""', "bad_object", "has no 'kind'"),
    ("VIA", None, '"r": 4.5', '"r": 0', "bad_segmentation", "has no area"),
    ("VIA", None, '"all_points_x": [', '"all_points_x": [1, ', "bad_object", "5 x and 4 y"),
]


@pytest.mark.parametrize(("tool", "name", "old", "new", "code", "reason"), ONE_IMAGE, ids=range(len(ONE_IMAGE)))
def test_a_broken_entry_costs_its_image_and_no_other(tmp_path, tool, name, old, new, code, reason):
    path, raw = source(tmp_path / "data", tool)
    spoil(path / name if name else path, old, new)
    raw["input"]["unlisted_images"] = "unlabeled" if tool_files.TOOLS[tool][2] == "classes" else "empty"
    manifest = run(raw, tmp_path / "out")
    (row,) = (row for row in ledger(tmp_path / "out").values() if row.status == "rejected")
    assert row.code == code
    assert re.search(reason, row.reason), row.reason
    # A line that cannot be read names no image.
    assert manifest.totals["written"] == COUNT - (code != "missing_image" and not reason.startswith("line 2"))


# Tool, what becomes of the file, what the message has.
WHOLE = [
    ("CVAT", lambda text: text[:-30], "is not XML"),
    ("CVAT", lambda text: text.replace("<annotations>", f"{BOMB}<annotations>"), "document type"),
    ("CVAT", lambda text: text.replace("<tag", "<a>" * 20 + "</a>" * 20 + "<tag"), "more than 16 deep"),
    ("CVAT", lambda text: text.replace("<image ", "<track ").replace("</image>", "</track>"), "is 'CVAT for video'"),
    ("Label Studio", lambda text: text[:-30], "is not JSON"),
    ("Label Studio", lambda text: text.replace("[", DEEP, 1), "is not JSON"),
    ("Label Studio", lambda text: '{"data": 1, "annotations": 2}', "is not a list of tasks"),
    ("Label Studio", lambda text: '[{"data": {"image": "a.jpg"}}, 5]', "task 1: has no annotations"),
    ("COCO panoptic", lambda text: text.replace('"categories"', '"x"'), "has no list 'categories'"),
    ("VIA", lambda text: text.replace("{", DEEP, 1), "is not JSON"),
    ("VIA", lambda text: '{"_via_img_metadata": 5}', "is not VIA's"),
    ("VIA", lambda text: text.replace('"kind": "car"', '"x": "car", "y": "z"'), "several attributes: kind, x, y"),
    ("YOLO segments", lambda text: "names: {0: a, 2: b}", "names is not a list of classes"),
    ("YOLO segments", lambda text: "names: [a, b]\nx: &a [*a]", "cannot be read as YAML|found"),
    ("YOLO segments", lambda text: "names: [a, b", "cannot be read as YAML"),
    ("YOLO segments", lambda text: "names: [a, yes]", r"data.yaml: names has the class True.*quotes: 'yes'"),
    ("YOLO segments", lambda text: "names: {0: a, 1: off}", r"data.yaml: names has the class False.*quotes: 'off'"),
    ("YOLO segments", lambda text: "names: [a, 010]", r"names has the class 8, since YAML reads 010.*quotes: '010'"),
    ("YOLO segments", lambda text: "names: [a, 12:30]", r"the class 750, since YAML reads 12:30 .*quotes: '12:30'"),
    ("YOLO segments", lambda text: "names: [a, 1.10]", r"the class 1.1, since YAML reads 1.10 .*quotes: '1.10'"),
    ("YOLO segments", lambda text: "names: [a, 2024-01-02]", r"the class 2024-01-02, .*quotes: '2024-01-02'"),
    ("YOLO segments", lambda text: "names: {1: null, 0: a}", r"the class None, since YAML reads null .*quotes: 'null'"),
    ("YOLO segments", lambda text: "names: [a, a]", r"data.yaml: names: names the class 'a' twice"),
    ("YOLO segments", lambda text: "names: [a, '']", r"data.yaml: names: has no name for class 1"),
    ("YOLO segments", lambda text: "names: [a, [b]]", r"the class of number 1 is \['b'\], not a text"),
]


@pytest.mark.parametrize(("tool", "change", "message"), WHOLE, ids=range(len(WHOLE)))
def test_a_broken_file_is_one_clear_line(tmp_path, tool, change, message):
    path, raw = source(tmp_path / "data", tool, format=tool_files.TOOLS[tool][1])
    path.write_text(change(path.read_text()))
    with pytest.raises(UsageError, match=message) as caught:
        run(raw, tmp_path / "out")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("car\n\nroad\n", "classes.txt, line 2: it is blank, and the number of a class is that of its line"),
        ("car\nroad\n car\n", "classes.txt, line 3: the class 'car' is there twice, and the number of a class"),
        ("\n", None),
        ("car\r\nroad\r\n\n \n", None),
    ],
)
def test_the_line_of_a_class_is_its_number(tmp_path, text, message):
    path, raw = source(tmp_path / "data", "YOLO next to images")
    (path / "classes.txt").write_text(text)
    if message:
        with pytest.raises(UsageError, match=message):
            run(raw, tmp_path / "out")
        # With numbers in the configuration, the file does not matter.
        raw["input"]["classes"] = {"car": 0, "road": 1}
    assert run(raw, tmp_path / "out").classes == (("car", "road") if len(text) > 1 else ("0", "1"))


@pytest.mark.parametrize("tool", ["YOLO next to images", "LabelMe"])
def test_a_file_that_is_too_large_is_not_read(tmp_path, tool, monkeypatch):
    path, raw = source(tmp_path / "data", tool, format=tool_files.TOOLS[tool][1])
    monkeypatch.setattr(objects, "MOST_FILE_BYTES", 2000)
    (file,) = path.glob("i1.[tj][xs]*")
    file.write_text(file.read_text() + " " * 3000)
    run(raw, tmp_path / "out")
    (row,) = (row for row in ledger(tmp_path / "out").values() if row.status == "rejected")
    assert "more than the 2,000" in row.reason


def test_a_reason_is_shown_where_every_file_is_broken(tmp_path):
    tool_files.labelme(tmp_path / "data")
    for file in (tmp_path / "data").glob("*.json"):
        file.write_text(file.read_text().replace('"polygon"', '"cuboid"'))
    raw = {
        "task": "segmentation",
        "input": {"images": str(tmp_path / "data"), "labels": {"path": str(tmp_path / "data")}},
    }
    with pytest.raises(UsageError, match="all 8 annotations cannot be used. The first, of i0.jpg: .*'cuboid'"):
        run(raw, tmp_path / "out")


def test_two_entries_of_one_image_are_not_joined(tmp_path):
    path, raw = source(tmp_path / "data", "CVAT")
    spoil(path, 'name="i1.jpg"', 'name="i2.jpg"')
    raw["input"]["unlisted_images"] = "empty"
    run(raw, tmp_path / "out")
    assert ledger(tmp_path / "out")["images/i2.jpg"].code == "annotated_twice"


def test_what_has_no_area_is_counted(tmp_path):
    _, raw = source(tmp_path / "data", "CVAT")
    notes: list[str] = []
    run(raw, tmp_path / "out", log=notes.append)
    assert {f"left out: {COUNT} {what}" for what in ("attributes of objects", "sets of points")} <= set(notes)
    assert f"left out: {COUNT} tags of images, which task: classification reads" in notes


@pytest.mark.parametrize(
    ("tool", "task", "boxes", "message"),
    [
        ("YOLO boxes", "segmentation", False, r"16 objects \(0 with an outline\).*boxes: true"),
        ("LabelMe", "classification", False, r"16 objects \(16 with an outline\).*Use task: segmentation"),
    ],
)
def test_a_task_for_which_there_is_nothing_is_refused_with_the_one_that_fits(tmp_path, tool, task, boxes, message):
    _, raw = source(tmp_path / "data", tool, boxes=boxes)
    with pytest.raises(ShardwrightError, match=message):
        run({**raw, "task": task}, tmp_path / "out")


def test_tags_are_the_classes_of_images(tmp_path):
    _, raw = source(tmp_path / "data", "CVAT")
    manifest = run({**raw, "task": "classification"}, tmp_path / "out")
    assert manifest.totals["written"] == COUNT
    assert manifest.labels == "single"


def test_boxes_next_to_outlines_are_drawn(tmp_path):
    path, raw = source(tmp_path / "data", "LabelMe")
    document = json.loads((path / "i1.json").read_text())
    document["shapes"][0] |= {"shape_type": "rectangle", "points": [[13, 11], [3, 3]]}
    (path / "i1.json").write_text(json.dumps(document))
    notes: list[str] = []
    run(raw, tmp_path / "out", log=notes.append)
    assert "1 box is drawn as a mask, since 15 other objects have an outline" in notes
