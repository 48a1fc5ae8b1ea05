"""Statements and guesses that the files contradict stop a run before anything is published; see also `odd_sets`."""

import copy
import json

import numpy as np
import pytest
from ingesting import changed, examples, ledger, run
from layouts import image, lines
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, UsageError
from shardwright.masks.dialects import dialect_of
from shardwright.masks.rle import encode

COUNT = 12
SPLITS = ("train", "train", "val", "test")


def table(root, header, row, count=COUNT):
    """Images and a table of them; returns the configuration."""
    for number in range(count):
        image(root / f"images/i{number:02}.jpg", number)
    lines(root / "t.csv", header, *(f"i{number:02}.jpg,{row(number)}" for number in range(count)))
    labels = {"path": str(root / "t.csv"), "format": "label_csv"}
    return {"task": "classification", "input": {"images": str(root / "images"), "labels": labels}}


def folders(root, name):
    for number in range(COUNT):
        image(root / f"images/{name(number)}/i{number:02}.jpg", number)
    labels = {"format": "class_folders"}
    return {"task": "classification", "input": {"images": str(root / "images"), "labels": labels}}


def leads_on(raw, reading, out):
    """Whether an answer of a question, pasted, makes a dataset."""
    options = copy.deepcopy(raw)
    for path, value in reading.options.items():
        *sections, name = path.split(".")
        section = options
        for one in sections:
            section = section.setdefault(one, {})
        section[name] = value
    return run(options, out).totals["written"] == COUNT


def asked(raw, tmp_path, match):
    with pytest.raises(UsageError, match=match) as found:
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert found.value.readings
    for number, reading in enumerate(found.value.readings):
        assert leads_on(raw, reading, tmp_path / f"answer{number}"), reading
    return found.value.readings


# --- Classes


@pytest.mark.parametrize("names", [("train", "val"), ("Training", "Testing")])
def test_folders_of_splits_are_no_classes(tmp_path, names):
    asked(folders(tmp_path, lambda n: names[n % 2]), tmp_path, f"only classes are '{names[1]}|names of splits")


def test_a_column_of_splits_is_none_of_classes(tmp_path):
    raw = table(tmp_path, "image,label,split", lambda n: f"{'ab'[n % 2]},{SPLITS[n % 4]}")
    raw["input"]["labels"]["columns"] = {"label": "split"}
    asked(raw, tmp_path, "names of splits")


def test_what_each_image_has_for_itself_is_no_class(tmp_path):
    raw = table(tmp_path, "image,label,age", lambda n: f"{'ab'[n % 2]},{n + 20}")
    raw["input"]["labels"]["columns"] = {"label": "age"}
    asked(raw, tmp_path, "12 images have 12 classes, such as '20'")
    asked(folders(tmp_path / "f", lambda n: f"scan{n}"), tmp_path / "f", "12 images have 12 classes")


@pytest.mark.parametrize("count", [2, 9])
def test_few_images_prove_nothing(tmp_path, count):
    assert run(table(tmp_path, "image,label", lambda n: f"c{n}", count), tmp_path / "out").totals["written"] == count


def test_classes_that_are_listed_may_be_anything(tmp_path):
    raw = changed(folders(tmp_path, lambda n: ("train", "val")[n % 2]), classes=["train", "val"])
    assert run(raw, tmp_path / "out").classes == ("train", "val")


def test_the_cause_is_named_where_no_image_has_a_class(tmp_path):
    raw = folders(tmp_path, lambda n: "cat")
    raw["input"]["images"] += "/cat"
    with pytest.raises(
        UsageError, match=r"nothing names one\. The first: i00\.jpg: the image is not in a class folder"
    ):
        run(raw, tmp_path / "out")
    raw = table(tmp_path / "t", "image,label,patient", lambda n: f"{'ab'[n % 2]},p{n}")
    raw["input"]["labels"]["features"] = {"patient": "int"}
    with pytest.raises(UsageError, match="column patient: 'p0' is not a whole number"):
        run(raw, tmp_path / "t/out")


# --- Annotations that say nothing


def masks(root, drawn):
    for number in range(COUNT):
        image(root / f"images/i{number:02}.jpg", number)
        (root / "masks").mkdir(exist_ok=True)
        Image.fromarray(np.full((24, 40), drawn, np.uint8)).save(root / f"masks/i{number:02}.png")
    labels = {"format": "mask_images", "path": str(root / "masks")}
    return {"task": "segmentation", "input": {"images": str(root / "images"), "labels": labels}}


@pytest.mark.parametrize(
    ("drawn", "options", "error", "message"),
    [
        (0, {"classes": {"road": 1, "car": 2}}, CheckFailed, "masks: none of 12 images has a class"),
        (3, {"classes": ["road"], "labels": {"threshold": 128}}, UsageError, "masks: no pixel reaches"),
    ],
    ids=["zero", "below_the_threshold"],
)
def test_masks_without_any_pixel_of_a_class(tmp_path, drawn, options, error, message):
    raw = masks(tmp_path, drawn)
    labels = {**raw["input"]["labels"], **options.get("labels", {})}
    with pytest.raises(error, match=message):
        run(changed(raw, **{**options, "labels": labels}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_run_lengths_that_are_all_empty(tmp_path):
    """A sample of a submission, given for the annotations."""
    raw = {**table(tmp_path, "ImageId,ClassId,EncodedPixels", lambda n: "1,"), "task": "segmentation"}
    raw = changed(raw, classes=["defect"], labels={"path": str(tmp_path / "t.csv")})
    asked(raw, tmp_path, r"t\.csv: none of 12 images has a class")


def test_what_no_image_has_is_said_once(tmp_path):
    raw = changed(table(tmp_path, "image,label", lambda n: "ab"[n % 2]), classes=["a", "b", "c"])
    notes = []
    run(raw, tmp_path / "out", log=notes.append)
    assert [note for note in notes if "has c" in note] == ["split: no image of any split has c"]


# --- Boxes in fractions of the image


def yolo_lines(root, boxes):
    for number, (xmin, ymin, xmax, ymax) in enumerate(boxes):
        (root / "labels").mkdir(exist_ok=True)
        numbers = (xmin + xmax) / 2, (ymin + ymax) / 2, xmax - xmin, ymax - ymin
        (root / f"labels/i{number:02}.txt").write_text(f"0 {' '.join(map(str, numbers))}\n")
    return "labels"


def box_table(root, boxes):
    rows = (f"i{number:02}.jpg,{','.join(map(str, box))},car" for number, box in enumerate(boxes))
    lines(root / "t.csv", "image,xmin,ymin,xmax,ymax,label", *rows)
    return "t.csv"


def open_images(root, boxes):
    rows = (f"i{n:02},car,{box[0]},{box[2]},{box[1]},{box[3]}" for n, box in enumerate(boxes))
    lines(root / "boxes.csv", "ImageID,LabelName,XMin,XMax,YMin,YMax", *rows)
    return "boxes.csv"


def vertex(root, boxes):
    edges = (dict(zip(("xMin", "yMin", "xMax", "yMax"), box, strict=True)) for box in boxes)
    rows = (
        {"imageGcsUri": f"gs://b/i{n:02}.jpg", "boundingBoxAnnotations": [{"displayName": "car", **one}]}
        for n, one in enumerate(edges)
    )
    lines(root / "v.jsonl", *map(json.dumps, rows))
    return "v.jsonl"


def boxed(root, write, boxes, size=(50, 100)):
    for number in range(COUNT):
        image(root / f"images/i{number:02}.jpg", number, size)
    labels = {"path": str(root / write(root, boxes)), "boxes": True}
    return {"task": "classification", "input": {"images": str(root / "images"), "labels": labels}}


FRACTIONS = [yolo_lines, box_table, open_images, vertex]


@pytest.mark.parametrize("write", FRACTIONS)
def test_a_box_in_fractions_reaches_beyond_its_image_by_pixels(tmp_path, write):
    """Of 100 pixels: one may be beyond, which is 0.01, and not a whole image."""
    inside = [(0.02 * n, 0.1, 0.02 * n + 0.3, 0.5) for n in range(COUNT - 2)]
    run(boxed(tmp_path, write, [*inside, (-0.009, 0.1, 0.3, 0.5), (-0.03, 0.1, 0.3, 0.5)]), tmp_path / "out")
    rejected = {key: row for key, row in ledger(tmp_path / "out").items() if row.code}
    assert list(rejected) == ["i11.jpg"]
    assert any(what in rejected["i11.jpg"].reason for what in ("from x -3 to 30", "-0.03 is not a fraction"))


@pytest.mark.parametrize(
    ("meant", "numbers"),
    [
        ("edges", lambda xmin, ymin, xmax, ymax: (xmin, ymin, xmax, ymax)),
        ("corners and sizes", lambda xmin, ymin, xmax, ymax: (xmin, ymin, xmax - xmin, ymax - ymin)),
    ],
)
def test_lines_of_yolo_that_are_no_centers(tmp_path, meant, numbers):
    def write(root, boxes):
        written = [numbers(*box) for box in boxes]
        return yolo_lines(root, [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for x, y, w, h in written])

    boxes = [(0.05 * n, 0.04 * n, 0.05 * n + 0.3, 0.04 * n + 0.4) for n in range(COUNT)]
    with pytest.raises(UsageError, match=f"the center and the size, its boxes leave their images, and as {meant}"):
        run(boxed(tmp_path, write, boxes), tmp_path / "out")


@pytest.mark.parametrize(
    ("task", "match"),
    [
        ({"predictions": []}, "task 1: has predictions and no annotations"),
        ({"annotations": [{"was_cancelled": True, "result": []}]}, "all 12 tasks were skipped, or are not annotated"),
    ],
)
def test_tasks_that_nobody_has_finished(tmp_path, task, match):
    def write(root, _):
        tasks = [{"id": n, "data": {"image": f"/data/upload/1/ab12cd34-i{n:02}.jpg"}, **task} for n in range(COUNT)]
        (root / "tasks.json").write_text(json.dumps(tasks))
        return "tasks.json"

    with pytest.raises(UsageError, match=match):
        run(boxed(tmp_path, write, ()), tmp_path / "out")


# --- Run lengths


def rle(root, order, times=1, rows=24, columns=40, draw=None):
    """Discs as run lengths, and images that are so many times as large as those that the codes are of."""
    at, across = np.mgrid[:rows, :columns]
    codes = []
    for number in range(COUNT):
        disc = (at - 6 - number % 3) ** 2 + (across - 8 - 2 * number % 7) ** 2 < 30
        drawn = disc if draw is None else draw(at, across, number)
        text = dialect_of("absolute", order, 1).format(encode(drawn.astype(np.uint8)), height=rows, width=columns)
        codes.append(text)
        image(root / f"images/i{number:02}.png", number, (rows * times, columns * times))
    lines(root / "t.csv", "image,rle", *(f"i{number:02}.png,{text}" for number, text in enumerate(codes)))
    labels = {"path": str(root / "t.csv"), "columns": {"mask": "rle"}, "rle": {"order": order}}
    raw = {"task": "segmentation", "input": {"images": str(root / "images"), "classes": ["disc"], "labels": labels}}
    return raw


@pytest.mark.parametrize("order", ["column", "row"])
@pytest.mark.parametrize("times", [2, 3, 4])
def test_codes_of_smaller_images(tmp_path, order, times):
    raw = rle(tmp_path, order, times)
    with pytest.raises(UsageError, match=f"images of 24 x 40 .*first here has {24 * times} x {40 * times}"):
        run(raw, tmp_path / "out")


STRIPES = {
    "disc": None,
    "across": lambda at, across, n: (at % 4 < 2) & (across < 30 - n),
    "upright": lambda at, across, n: (across % 4 < 2) & (at < 20 - n),
    "two": lambda at, across, n: (
        ((at - 6) ** 2 + (across - 5 - n) ** 2 < 20) | ((at - 18) ** 2 + (across - 5) ** 2 < 20)
    ),
    "dots": lambda at, across, n: (at % 6 == n % 6) & (across % 5 == 0),
}


@pytest.mark.parametrize("order", ["column", "row"])
@pytest.mark.parametrize("draw", STRIPES.values(), ids=STRIPES)
def test_codes_of_the_images_that_are_there(tmp_path, order, draw):
    raw = rle(tmp_path, order, draw=draw)
    assert run(raw, tmp_path / "out").totals["written"] == COUNT


def test_an_order_that_the_outlines_contradict_is_told(tmp_path):
    """It is the answer to a question, and so it holds; but not in silence."""
    raw = rle(tmp_path, "row")
    raw["input"]["labels"]["rle"] = {"order": "column"}
    notes = []
    run(raw, tmp_path / "out", log=notes.append)
    assert any("order is set, though the outlines of 12 masks are" in note for note in notes)


# --- Splits and groups


@pytest.mark.parametrize(
    ("header", "row", "counts"),
    [
        ("is_valid", lambda n: n % 4 == 3, {"train": 9, "eval": 3, "test": 0}),
        ("is_test", lambda n: int(n % 4 == 3), {"train": 9, "eval": 0, "test": 3}),
        ("is_train", lambda n: "yes" if n % 4 else "no", {"train": 9, "eval": 0, "test": 3}),
        ("Split", lambda n: SPLITS[n % 4].upper(), {"train": 6, "eval": 3, "test": 3}),
    ],
)
@pytest.mark.parametrize("option", [{}, {"method": "predefined", "from_column": ""}])
def test_a_column_of_splits_is_used(tmp_path, header, row, counts, option):
    raw = table(tmp_path, f"image,label,{header}", lambda n: f"{'ab'[n // 2 % 2]},{row(n)}")
    run({**raw, "split": option and {**option, "from_column": header}}, tmp_path / "out")
    dataset = ImageDataset.open(tmp_path / "out")
    found = {split: sum(shard.records for shard in dataset.shards(split)) for split in dataset.splits}
    assert {split: found.get(split, 0) for split in counts} == counts


@pytest.mark.parametrize("other", ["", "held", "3"])
def test_a_column_that_states_the_split_of_some_images(tmp_path, other):
    raw = table(tmp_path, "image,label,split", lambda n: f"{'ab'[n // 2 % 2]},{(*SPLITS[1:3], other, 'train')[n % 4]}")
    readings = asked(raw, tmp_path, "states the split of 9 images .* and none of 3")
    assert {"split.method": "hash"} in [dict(reading.options) for reading in readings]


def test_a_split_that_the_ratios_do_not_name(tmp_path):
    raw = table(tmp_path, "image,label,split", lambda n: f"{'ab'[n // 2 % 2]},{SPLITS[n % 4]}")
    asked(
        {**raw, "split": {"ratios": {"train": 0.8, "eval": 0.2}}}, tmp_path, "belong to test, and split.ratios does not"
    )


@pytest.mark.parametrize("header", ["stage", "dataset", "fold"])
def test_a_column_of_other_words_is_none_of_splits(tmp_path, header):
    raw = table(tmp_path, f"image,label,{header}", lambda n: f"{'ab'[n // 2 % 2]},{('I', 'II', 'test')[n % 3]}")
    assert len(examples_of(raw, tmp_path)) == COUNT


def examples_of(raw, tmp_path):
    run(raw, tmp_path / "out")
    return examples(tmp_path / "out")


def test_a_list_without_a_name(tmp_path):
    raw = folders(tmp_path, lambda n: "ab"[n % 2])
    lines(tmp_path / "train.txt", *(f"{'ab'[n % 2]}/i{n:02}.jpg" for n in range(COUNT)))
    (tmp_path / "test.txt").write_text("\n\n")
    lists = {name: str(tmp_path / f"{name}.txt") for name in ("train", "test")}
    with pytest.raises(UsageError, match=r"split\.from_lists\.test: .*test\.txt is empty"):
        run({**raw, "split": {"method": "predefined", "from_lists": lists}}, tmp_path / "out")


@pytest.mark.parametrize("group", [{"regex": "(i)"}, {"column": "clinic"}])
def test_one_group_of_all_images(tmp_path, group):
    raw = table(tmp_path, "image,label,clinic", lambda n: f"{'ab'[n % 2]},north")
    with pytest.raises(CheckFailed, match="all 12 images have the group"):
        run({**raw, "split": {"method": "group", "group": group}}, tmp_path / "out")


@pytest.mark.parametrize("group", [{"column": "label"}, {"regex": "/?([ab])/"}])
def test_groups_that_are_the_classes(tmp_path, group):
    column = "column" in group
    raw = table(tmp_path, "image,label", lambda n: "ab"[n % 2]) if column else folders(tmp_path, lambda n: "ab"[n % 2])
    with pytest.raises(CheckFailed, match="the groups are classes, so that each class would be in one split"):
        run({**raw, "split": {"method": "group", "group": group}}, tmp_path / "out")


def test_photographs_that_are_given_for_their_own_masks(tmp_path):
    raw = masks(tmp_path, 1)
    raw["input"]["labels"]["path"] = raw["input"]["images"]
    with pytest.raises(UsageError, match="images and masks are in one folder, and no name shows which are masks"):
        run(changed(raw, classes=["road"]), tmp_path / "out")


def test_groups_that_have_names_of_classes_by_chance(tmp_path):
    raw = table(tmp_path, "image,label,clinic", lambda n: f"{n % 2},{n // 2 % 2}")
    raw["split"] = {"method": "group", "group": {"column": "clinic"}, "salt": "3"}
    assert run(raw, tmp_path / "out").totals["written"] == COUNT


def test_a_column_of_splits_that_has_the_values_of_the_classes(tmp_path):
    raw = table(tmp_path, "image,label,is_valid", lambda n: f"{n % 2},{n % 4 // 3}")
    notes = []
    run(raw, tmp_path / "out", log=notes.append)
    assert "split: 0 is train, 1 is eval" in notes


def test_columns_that_put_an_image_into_different_splits(tmp_path):
    def flags(n):
        return f"{'ab'[n // 3 % 2]},{n % 3 == 0},{n % 3 == 1},{n % 3 == 2}"

    raw = table(tmp_path, "image,label,is_train,is_valid,is_test", flags)
    readings = asked(raw, tmp_path, "'is_train', 'is_valid', 'is_test' put images into different splits")
    assert [reading.options.get("split.from_column") for reading in readings] == [
        "is_train",
        "is_valid",
        "is_test",
        None,
    ]


def test_columns_that_say_the_same_are_one(tmp_path):
    raw = table(
        tmp_path, "image,label,split,set", lambda n: f"{'ab'[n // 2 % 2]},{SPLITS[n % 4]},{SPLITS[n % 4].upper()}"
    )
    assert run(raw, tmp_path / "out").totals["written"] == COUNT


# --- Two descriptions of one object, and coordinates of other images


def confirmed(readings, fact):
    assert [reading.options for reading in readings] == [{"input.labels.confirmed": [fact]}]


def coco(root, change):
    """Rectangles with their box and their area, changed: `x, y, width, height, number -> outline, bbox, area`."""
    annotations = []
    for n in range(COUNT):
        image(root / f"images/i{n:02}.jpg", n, (48, 80))
        x, y, width, height = 4 + 3 * n, 3 + n, 12 + n, 10 + n % 5
        drawn, box, area = change(x, y, width, height, n)
        left, top, right, bottom = drawn
        outline = [[left, top, right, top, right, bottom, left, bottom]]
        annotations.append({"image_id": n, "category_id": 1, "segmentation": outline, "bbox": box, "area": area})
    images = [{"id": n, "file_name": f"i{n:02}.jpg"} for n in range(COUNT)]
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]}
    (root / "a.json").write_text(json.dumps(document))
    return {"input": {"images": str(root / "images"), "labels": {"path": str(root / "a.json")}}}


DIFFERENT = {
    "shifted": lambda x, y, w, h, n: ((x + 6, y, x + w + 6, y + h), [x, y, w, h], w * h),
    "some shifted": lambda x, y, w, h, n: ((x + 9 * (n < 2), y, x + w + 9 * (n < 2), y + h), [x, y, w, h], w * h),
    "edges": lambda x, y, w, h, n: ((x, y, x + w, y + h), [x, y, x + w, y + h], w * h),
    "area alone": lambda x, y, w, h, n: ((x, y, x + w, y + h), [x, y, w, h], 4 * w * h),
    "smaller area": lambda x, y, w, h, n: ((x, y, x + w, y + h), [x, y, w, h], w * h / 4),
}
ALIKE = {
    "same": lambda x, y, w, h, n: ((x, y, x + w, y + h), [x, y, w, h], w * h),
    "rounded": lambda x, y, w, h, n: ((x, y, x + w, y + h), [x - 1, y, w, h + 1], w * h - 3),
    "hidden parts": lambda x, y, w, h, n: ((x, y, x + w - 6 * (n % 3 == 0), y + h), [x, y, w, h], 0),
    "no area": lambda x, y, w, h, n: ((x, y, x + w, y + h), [x, y, w, h], 1),
}


@pytest.mark.parametrize("change", DIFFERENT.values(), ids=DIFFERENT)
def test_descriptions_of_one_object_that_differ(tmp_path, change):
    confirmed(asked(coco(tmp_path, change), tmp_path, "the box beside it|the areas of"), "own_boxes")


@pytest.mark.parametrize("change", ALIKE.values(), ids=ALIKE)
def test_descriptions_of_one_object_that_agree(tmp_path, change):
    assert run(coco(tmp_path, change), tmp_path / "out").totals["written"] == COUNT


SIZE = (62, 98)


def in_pixels(root, boxes):
    return box_table(root, [[edge * SIZE[1 - i % 2] for i, edge in enumerate(box)] for box in boxes])


BOXES = [((3 + 5 * n) / 98, (1 + 2 * n) / 62, (30 + 5 * n) / 98, (31 + 2 * n) / 62) for n in range(COUNT)]


@pytest.mark.parametrize(
    ("write", "change", "match"),
    [
        *((write, lambda box: (box[1], box[0], box[3], box[2]), "Are x and y exchanged") for write in FRACTIONS[:1]),
        (open_images, lambda box: (box[1], box[0], box[3], box[2]), "Are x and y exchanged"),
        (vertex, lambda box: (box[1], box[0], box[3], box[2]), "Are x and y exchanged"),
        (in_pixels, lambda box: [edge / 2 for edge in box], "reaches beyond 43% of the width and 43% of the height"),
    ],
)
def test_coordinates_of_another_frame(tmp_path, write, change, match):
    run(boxed(tmp_path / "right", write, BOXES, SIZE), tmp_path / "right/out")
    confirmed(asked(boxed(tmp_path, write, list(map(change, BOXES)), SIZE), tmp_path, match), "this_frame")


def test_codes_of_smaller_images_that_are_confirmed(tmp_path):
    confirmed(asked(rle(tmp_path, "column", 2), tmp_path, "the codes are those of images of"), "this_frame")


def test_a_list_of_images_that_are_not_there(tmp_path):
    raw = table(tmp_path, "image,label", lambda n: "ab"[n % 2])
    lines(tmp_path / "train.txt", *(f"i{n:02}.jpg" for n in range(8)), *(f"far{n}.jpg" for n in range(5)))
    lines(tmp_path / "test.txt", *(f"i{n:02}.jpg" for n in range(8, COUNT)), "near.jpg")
    raw["split"] = {"from_lists": {name: str(tmp_path / f"{name}.txt") for name in ("train", "test")}}
    raw["split"]["method"], raw["split"]["ratios"] = "predefined", {"train": 0.7, "test": 0.3}
    confirmed(asked(raw, tmp_path, "5 of 13 names are of no image: far0.jpg"), "absent_images")


def test_predictions_are_no_annotations(tmp_path):
    raw = coco(tmp_path, ALIKE["same"])
    document = json.loads((tmp_path / "a.json").read_text())
    for n, one in enumerate(document["annotations"]):
        one["score"] = 0.3 + n / 40
    (tmp_path / "a.json").write_text(json.dumps(document))
    confirmed(asked(raw, tmp_path, "12 objects have scores below 1"), "predictions")


# --- Samples of a submission, copies, and tables that say what they do not name


def run_lengths(root, row):
    raw = {**table(root, "ImageId,ClassId,EncodedPixels", row), "task": "segmentation"}
    return changed(raw, classes=["defect"], labels={"path": str(root / "t.csv")})


@pytest.mark.parametrize("code", ["1 1", "1 2", "7 1"])
def test_one_pixel_that_all_images_have_is_no_mask(tmp_path, code):
    asked(
        run_lengths(tmp_path, lambda n: f"1,{code}"), tmp_path, f"all masks of 12 images are '{code}', as in a sample"
    )


@pytest.mark.parametrize("row", [lambda n: "1,1 3", lambda n: f"1,{n + 1} 1", lambda n: "1,1 1 5 2"])
def test_masks_that_may_be_meant_are_taken(tmp_path, row):
    assert run(run_lengths(tmp_path, row), tmp_path / "out").totals["written"] == COUNT


def test_one_class_of_all_rows_is_nothing_to_learn(tmp_path):
    raw = table(tmp_path, "image,label", lambda n: "0")
    (reading,) = asked(raw, tmp_path, "all 12 images have the class '0', as in a sample")
    assert reading.asked  # `init` does not take it by itself.


def test_a_table_with_empty_masks_says_nothing_of_images_without_a_row(tmp_path):
    raw = run_lengths(tmp_path, lambda n: f"1,{'' if n % 2 else f'{n + 1} 3'}")
    for number in range(4):
        image(tmp_path / f"images/other{number}.jpg", 90 + number)
    with pytest.raises(CheckFailed, match=r"4 of 16 images have no row"):
        run(raw, tmp_path / "out")
    assert run(changed(raw, unlisted_images="empty"), tmp_path / "out").totals["written"] == COUNT + 4


def copies(root, share):
    for number in range(COUNT * 2):
        image(root / f"images/{'ab'[number % 2]}/i{number:02}.jpg", number)
        if number < share:
            image(root / f"images/c/i{number:02}.jpg", number)
    return {"task": "classification", "input": {"images": str(root / "images"), "labels": {"format": "class_folders"}}}


def test_images_that_are_there_again_as_another_class_are_a_question(tmp_path):
    with pytest.raises(
        UsageError, match="conflicting_duplicates: 24 of 36 images are there twice with different labels"
    ) as found:
        run(copies(tmp_path, 12), tmp_path / "out")
    written = []
    for number, reading in enumerate(found.value.readings):
        conflicts = reading.options["duplicates.conflicts"]
        raw = {**copies(tmp_path, 12), "duplicates": {"conflicts": conflicts}, "rejects": {"max_fraction": 1}}
        written.append(run(raw, tmp_path / f"answer{number}").totals["written"])
    assert written == [12, 36]


def test_a_few_copies_are_told(tmp_path):
    assert run(copies(tmp_path, 3), tmp_path / "out").totals["written"] == COUNT * 2 + 3


def table_beside_folders(root, folders):
    """Images in two folders by turns, and a table in which each has the class of the other one."""
    for number in range(COUNT):
        image(root / f"images/{folders[number % 2]}/i{number:02}.jpg", number)
    lines(root / "t.csv", "image,label", *(f"i{number:02}.jpg,{'ba'[number % 2]}" for number in range(COUNT)))
    labels = {"path": str(root / "t.csv"), "format": "label_csv"}
    return {"task": "classification", "input": {"images": str(root / "images"), "labels": labels}}


def test_folders_that_contradict_a_table_of_classes_are_a_question(tmp_path):
    match = "12 of 12 images that are in folders called after classes have another class here"
    asked(table_beside_folders(tmp_path, "ab"), tmp_path, match)


@pytest.mark.parametrize("folders", ["xy", "ba"])
def test_folders_of_the_same_or_of_other_names_contradict_nothing(tmp_path, folders):
    assert run(table_beside_folders(tmp_path, folders), tmp_path / "out").totals["written"] == COUNT


@pytest.mark.parametrize(("empty", "without", "code"), [(3, 4, CheckFailed), (3, 3, None), (2, 4, None)])
def test_empty_files_of_yolo_say_that_images_without_a_file_are_not_annotated(tmp_path, empty, without, code):
    (tmp_path / "labels").mkdir()
    for number in range(COUNT):
        image(tmp_path / f"images/i{number:02}.jpg", number)
        text = "" if number < empty else f"0 0.5 0.5 0.{2 + number % 3} 0.25\n"
        if number < COUNT - without:
            (tmp_path / f"labels/i{number:02}.txt").write_text(text)
    labels = {"path": str(tmp_path / "labels"), "format": "yolo", "boxes": True}
    raw = {"task": "classification", "input": {"images": str(tmp_path / "images"), "labels": labels, "classes": ["a"]}}
    if code is None:
        assert run(raw, tmp_path / "out").totals["written"] == COUNT
        return
    with pytest.raises(code, match=f"{without} of {COUNT} images have no row"):
        run(raw, tmp_path / "out")
    assert run(changed(raw, unlisted_images="empty"), tmp_path / "out").totals["written"] == COUNT
