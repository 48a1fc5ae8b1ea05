"""Boxes of COCO files as features, with and without masks; invalid boxes are in the ledger."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingesting import examples, ledger, run
from PIL import Image
from property_tests import tries

from shardwright.errors import ConfigError, UsageError

SIDES = {"a.png": (40, 20), "b.png": (10, 30), "c.png": (8, 8)}
SQUARE = [[1, 1, 5, 1, 5, 5, 1, 5]]
BOXES = [
    {"image_id": 1, "category_id": 18, "bbox": [4, 5, 10, 2.5], "iscrowd": 0},
    {"image_id": 2, "category_id": 3, "bbox": [0, 0, 10, 30], "iscrowd": 1},
    {"image_id": 1, "category_id": 3, "bbox": [-1, 10, 42, 11]},
    {"image_id": 1, "category_id": 18, "bbox": [0, 0, 1, 1]},
]


def document(annotations, sizes=True):
    images = [
        {"id": i, "file_name": name, **({"width": width, "height": height} if sizes else {})}
        for i, (name, (width, height)) in enumerate(SIDES.items(), start=1)
    ]
    categories = [{"id": 3, "name": "car"}, {"id": 18, "name": "dog"}]
    return {"images": images, "annotations": annotations, "categories": categories}


@pytest.fixture
def given_input(tmp_path):
    """Writes three images and a document, and returns the configuration."""
    (tmp_path / "images").mkdir()
    for name, size in SIDES.items():
        Image.new("RGB", size).save(tmp_path / "images" / name)

    def write(content, task="classification", **labels):
        file = tmp_path / "boxes.json"
        file.write_text(json.dumps(content))
        section = {"images": str(tmp_path / "images"), "labels": {"path": str(file), **labels}}
        return {"task": task, "input": section}

    return write


def boxes(example):
    return {
        name.removeprefix("image/object/"): values if isinstance(values, list) else values.tolist()
        for name, values in example.items()
        if name.startswith("image/object/")
    }


WANTED = {
    "bbox/xmin": [0.1, 0, 0],
    "bbox/ymin": [0.25, 0.5, 0],
    "bbox/xmax": [0.35, 1, 0.025],
    "bbox/ymax": [0.375, 1, 0.05],
    "class/label": [2, 1, 2],
    "class/text": [b"dog", b"car", b"dog"],
    "is_crowd": [0, 0, 0],
}


@pytest.mark.parametrize("sizes", [True, False])
def test_boxes_without_masks_are_features_and_their_classes_the_image_s(tmp_path, given_input, sizes):
    manifest = run(given_input(document(BOXES, sizes), boxes=True), tmp_path / "out")
    assert (manifest.labels, manifest.classes) == ("multi", ("car", "dog"))
    assert manifest.features["image/object/bbox/xmin"] == "float32"
    found = examples(tmp_path / "out")
    for name, values in boxes(found["a.png"]).items():
        wanted = np.array(WANTED[name], np.float32).tolist() if name.startswith("bbox") else WANTED[name]
        assert values == wanted
    assert found["a.png"]["image/class/label"].tolist() == [0, 1]
    assert boxes(found["b.png"])["is_crowd"] == [1]
    assert boxes(found["b.png"])["bbox/xmax"] == [1]
    assert boxes(found["c.png"]) == {}
    assert found["c.png"]["image/class/label"].tolist() == []


def test_boxes_go_with_masks_where_asked_for_only(tmp_path, given_input):
    annotations = [{**box, "segmentation": SQUARE} for box in BOXES]
    plain = run(given_input(document(annotations), task="segmentation"), tmp_path / "plain")
    assert not [name for name in plain.features if name.startswith("image/object/")]
    run(given_input(document(annotations), task="segmentation", boxes=True), tmp_path / "boxes")
    found = examples(tmp_path / "boxes")
    assert boxes(found["a.png"])["class/label"] == [2, 1, 2]
    for key, example in examples(tmp_path / "plain").items():
        kept = {name: values for name, values in found[key].items() if not name.startswith("image/object/")}
        assert repr(kept) == repr(example)


def test_boxes_are_no_masks(tmp_path, given_input):
    message = r"holds 4 objects \(0 with an outline\).* with input\.labels\.boxes: true to ingest boxes"
    for annotations in (BOXES, [{**box, "segmentation": []} for box in BOXES]):
        for asked in (True, False):
            with pytest.raises(UsageError, match=message):
                run(given_input(document(annotations), task="segmentation", boxes=asked), tmp_path / "out")
    with pytest.raises(
        UsageError, match=r"task is classification\. Use task: segmentation, or input\.labels\.boxes: true"
    ):
        run(given_input(document(BOXES)), tmp_path / "out")


@pytest.mark.parametrize(
    ("box", "reason"),
    [
        (None, "the bbox is None, not [x, y, width, height]"),
        ([1, 2, 3], "the bbox is [1, 2, 3], not [x, y, width, height]"),
        ([1, 2, "3", 4], "the bbox is [1, 2, '3', 4], not [x, y, width, height]"),
        ([1, 2, True, 4], "the bbox is [1, 2, True, 4], not [x, y, width, height]"),
        ([1, 2, 0, 4], "the box from x 1 to 1 and y 2 to 6 has no area"),
        ([1, 2, -3, 4], "the box from x 1 to -2 and y 2 to 6 has no area"),
        ([40, 2, 1, 4], "the box from x 40 to 41 and y 2 to 6 is outside of the image, 20x40 (height x width)"),
        ([1, 2, 10**400, 4], "the box's xmax is"),
        ([float("nan"), 2, 3, 4], "the box's xmin is 'nan'"),
    ],
)
def test_what_is_no_box_rejects_its_image(tmp_path, given_input, box, reason):
    raw = given_input(document([*BOXES, {"image_id": 1, "category_id": 3, "bbox": box}]), boxes=True)
    run(raw, tmp_path / "out")
    row = ledger(tmp_path / "out")["a.png"]
    assert (row.status, row.code) == ("rejected", "bad_box")
    assert row.reason.startswith(f"boxes.json, annotations[4]: {reason}")
    assert sorted(examples(tmp_path / "out")) == ["b.png", "c.png"]


def test_a_size_that_is_not_the_file_s_rejects_the_image(tmp_path, given_input):
    content = document(BOXES)
    content["images"][0]["width"] = 41
    run(given_input(content, boxes=True), tmp_path / "out")
    row = ledger(tmp_path / "out")["a.png"]
    reason = "boxes.json: the image has 20x41 (height x width) there, but the file has 20x40"
    assert (row.code, row.reason) == ("size_mismatch", reason)


def test_boxes_are_asked_of_coco_files_only(tmp_path, given_input):
    raw = given_input({}, boxes=True)
    (tmp_path / "labels.csv").write_text("image,label\na.png,x\n")
    raw["input"]["labels"]["path"] = str(tmp_path / "labels.csv")
    with pytest.raises(ConfigError, match=r"input\.labels\.boxes: not used by label_csv \(labels\.csv"):
        run(raw, tmp_path / "out")


SIDE = st.floats(0.5, 7)


def is_beyond_the_first_pixel(box):
    """Boxes within it are taken for fractions."""
    return max(box[0] + box[2], box[1] + box[3]) > 1.1


@tries(15)
@given(st.lists(st.tuples(SIDE, SIDE, SIDE, SIDE).filter(is_beyond_the_first_pixel), min_size=1, max_size=5))
def test_shares_times_size_are_the_pixels(tmp_path_factory, sides):
    root = tmp_path_factory.mktemp("boxes")
    (root / "images").mkdir()
    Image.new("RGB", (16, 32)).save(root / "images" / "a.png")
    content = {
        "images": [{"id": "x", "file_name": "a.png", "width": 16, "height": 32}],
        "annotations": [{"image_id": "x", "category_id": 0, "bbox": box} for box in sides],
        "categories": [{"id": 0, "name": "thing"}],
    }
    (root / "b.json").write_text(json.dumps(content))
    labels = {"path": str(root / "b.json"), "boxes": True}
    run({"task": "classification", "input": {"images": str(root / "images"), "labels": labels}}, root / "out")
    found = boxes(examples(root / "out")["a.png"])
    edges = [
        np.array(found[f"bbox/{side}"]) * (16 if side[0] == "x" else 32) for side in ("xmin", "ymin", "xmax", "ymax")
    ]
    wanted = np.array([[x, y, min(x + w, 16), min(y + h, 32)] for x, y, w, h in sides])
    np.testing.assert_allclose(np.stack(edges, 1), wanted, atol=1e-5)
