"""COCO JSON through the whole ingest: the masks that a table of run lengths gives; what is broken is in the ledger."""

import json

import numpy as np
import pytest
from ingesting import changed, examples, ledger, run, tree

from shardwright.dataset.reader import ImageDataset
from shardwright.edit.export_dataset import ExportOptions, export
from shardwright.errors import CheckFailed, UsageError
from shardwright.masks import rle
from shardwright.masks.dialects import compress_counts, to_counts

IDS = {"Fish": 7, "Sugar": 90}


def height(number):
    return 20 + number % 5


def objects(number):
    """Two rectangles of whole pixels a class, which may overlap; none in every third image."""
    random = np.random.default_rng([5, number])
    for name in IDS:
        for _ in range(2 if number % 3 else 0):
            left, top = int(random.integers(0, 20)), int(random.integers(0, 12))
            yield name, left, top, left + int(random.integers(1, 10)), top + int(random.integers(1, 8))


def drawn(number, name, left, top, right, bottom):
    mask = np.zeros((height(number), 30), bool)
    mask[top:bottom, left:right] = True
    return mask


def segmentation(number, form, box):
    _, left, top, right, bottom = box
    if form == 0:
        middle = (left + right) / 2
        left_half = [left, top, middle, top, middle, bottom, left, bottom]
        return [left_half, [middle, top, right, top, right, bottom, middle, bottom]]
    mask = drawn(number, *box)
    counts = to_counts(rle.encode(mask), mask.size)
    return {"size": list(mask.shape), "counts": counts if form == 1 else compress_counts(counts)}


@pytest.fixture
def coco(tmp_path, image_input):
    """24 images, annotated in all three forms, from last to first; returns configuration and the document's writer."""
    raw = image_input(tmp_path / "in")
    file = tmp_path / "in" / "instances.json"
    document = {"images": [], "annotations": [], "categories": [{"id": i, "name": n} for n, i in IDS.items()]}
    for number in reversed(range(24)):
        entry = {"id": 1000 - number, "file_name": f"{number:03d}.jpg", "height": height(number), "width": 30}
        document["images"].append(entry)
        for i, box in enumerate(objects(number)):
            annotation = {"image_id": entry["id"], "category_id": IDS[box[0]], "iscrowd": int(i == 1)}
            annotation["segmentation"] = segmentation(number, (number + i) % 3, box)
            document["annotations"].append(annotation)
    file.write_text(json.dumps(document))
    return (
        changed(raw, labels={"path": str(file)}, classes=None),
        document,
        lambda: file.write_text(json.dumps(document)),
    )


def test_all_forms_of_masks_are_written_and_joined(tmp_path, coco):
    raw, _, _ = coco
    notes = []
    manifest = run(raw, tmp_path / "out", log=notes.append)
    assert manifest.classes == tuple(IDS)
    assert manifest.totals["written"] == manifest.totals["inputs"] == 24
    assert notes[0] == "labels: coco_json, since instances.json ends with .json"
    found = examples(tmp_path / "out")
    for number in range(24):
        example = found[f"{number:03d}.jpg"]
        for name in IDS:
            masks = [drawn(number, *box) for box in objects(number) if box[0] == name]
            expected = np.any([np.zeros((height(number), 30), bool), *masks], axis=0)
            runs = rle.from_flat(example[f"image/segmentation/{name}/rle"])
            np.testing.assert_array_equal(rle.draw(runs, height(number), 30), expected)
            assert example[f"image/segmentation/{name}/area"].tolist() == [expected.sum()]
        assert example["image/class/label"].tolist() == ([0, 1] if number % 3 else [])


def test_it_is_the_dataset_that_a_table_of_the_same_masks_gives(tmp_path, coco):
    """The same records, but for the recipe; and the same bytes with any number of processes."""
    raw, _, _ = coco
    rows = ["Image_Label,EncodedPixels"]
    for number in range(24):
        boxes = list(objects(number))
        for name in IDS:
            runs = rle.union([rle.encode(drawn(number, *box)) for box in boxes if box[0] == name])
            rows.append(f"{number:03d}.jpg_{name},{rle.to_pairs(runs)}")
    table = tmp_path / "in" / "train.csv"
    table.write_text("\n".join(rows))
    run(changed(raw, labels={"path": str(table)}), tmp_path / "table")
    run(raw, tmp_path / "one", workers=1)
    run(raw, tmp_path / "two", workers=2)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    shards = [{k: v for k, v in tree(tmp_path / out).items() if k.startswith("Split-")} for out in ("one", "table")]
    assert shards[0] == shards[1]


def test_masks_that_do_not_fit_reject_their_image_with_a_code(tmp_path, coco):
    raw, document, write = coco
    annotations = document["annotations"]
    of = {number: next(a for a in annotations if a["image_id"] == 1000 - number) for number in (1, 2, 4, 5, 7)}
    of[1]["segmentation"] = [[0, 0, 4, 0, 4]]
    of[2]["segmentation"] = []
    of[4]["segmentation"] = {"size": [height(4), 30], "counts": [5]}
    of[5]["category_id"] = None
    document["images"][23 - 7]["width"] = 31
    document["images"].append({"id": 5000, "file_name": "lost.jpg"})
    annotations.append({"image_id": 6000, "category_id": 7, "segmentation": []})
    write()
    manifest = run(raw, tmp_path / "out")
    found = ledger(tmp_path / "out")
    assert {key: row.code for key, row in found.items() if row.status == "rejected"} == {
        "001.jpg": "bad_polygon",
        "002.jpg": "bad_segmentation",
        "004.jpg": "bad_rle",
        "005.jpg": "bad_row",
        "007.jpg": "size_mismatch",
        "lost.jpg": "missing_image",
        f"instances.json:annotations[{len(annotations) - 1}]": "missing_image",
    }
    place = f"instances.json, annotations[{annotations.index(of[1])}], class Fish: polygon 1 of 1 has 5 numbers"
    assert found["001.jpg"].reason.startswith(place)
    assert "has 22x31 (height x width) there, but the file has 22x30" in found["007.jpg"].reason
    assert manifest.totals["inputs"] == len(found) == 26
    assert manifest.totals["written"] == 19


def test_images_that_the_file_does_not_name_are_unlisted(tmp_path, coco):
    raw, document, write = coco
    document["images"] = [image for image in document["images"] if image["file_name"] != "000.jpg"]
    write()
    with pytest.raises(CheckFailed, match=r"1 of 24 images have no row in instances\.json: 000\.jpg"):
        run(raw, tmp_path / "fail")
    assert run(changed(raw, unlisted_images="empty"), tmp_path / "out").totals["written"] == 24


def test_classification_does_not_take_masks_for_labels(tmp_path, coco):
    raw, _, _ = coco
    with pytest.raises(UsageError, match="task is classification"):
        run({**raw, "task": "classification"}, tmp_path / "out")


def test_slashes_in_names_of_classes_are_encoded_in_names_of_features(tmp_path, coco):
    """`tv/monitor` is a class of LabelMe's own example; `%2F` may be a part of a name, too."""
    raw, document, write = coco
    names = ("tv/monitor", "100% %2F")
    for category, name in zip(document["categories"], names, strict=True):
        category["name"] = name
    write()
    manifest = run(raw, tmp_path / "out")
    assert manifest.classes == names
    features = [f"image/segmentation/{name}/rle" for name in ("tv%2Fmonitor", "100%25 %252F")]
    assert set(features) <= set(manifest.features)
    assert all(any(len(found[name]) for found in examples(tmp_path / "out").values()) for name in features)
    records = {"task": "segmentation", "input": {"images": str(tmp_path / "out")}}
    again = run(records, tmp_path / "again")
    assert set(again.classes) == set(names)
    before, after = examples(tmp_path / "out"), examples(tmp_path / "again")
    assert all(np.array_equal(before[key][name], after[key][name]) for key in before for name in features)
    export(ImageDataset.open(tmp_path / "out"), str(tmp_path / "files"), ExportOptions(masks="png"))
    labels = {"path": str(tmp_path / "files" / "masks")}
    files = {"images": str(tmp_path / "files/images"), "labels": labels}
    back = run({"task": "segmentation", "input": files}, tmp_path / "back")
    assert back.classes == names
