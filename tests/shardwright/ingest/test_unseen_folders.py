"""Folders as people have them: files next to images, missing images, two lists, boxes in tables; with the messages."""

import json

import pytest
from ingesting import examples, ledger, run
from PIL import Image

from shardwright.errors import CheckFailed, UsageError
from shardwright.formats.head import Head
from shardwright.formats.registry import recognize
from shardwright.images.boxes import XMAX, XMIN, YMAX, YMIN
from shardwright.pipelines.cli import main

STATED = {"method": "predefined", "ratios": {"train": 0.5, "eval": 0.5}}
XML = "<annotation><object><name>cat</name><bndbox><xmin>1</xmin></bndbox></object></annotation>"
LABELME = {"version": "5.0", "flags": {}, "shapes": [{"label": "cat", "points": [[0, 0]]}], "imagePath": "a.jpg"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    return tmp_path


def pictures(folder, count=4, **labels):
    for number in range(count):
        Image.new("RGB", (20, 10), (9 * number, 0, 0)).save(folder / f"images/photo{'abcdefghij'[number]}.png")
    return {
        "task": "classification",
        "input": {"images": str(folder / "images"), **({"labels": labels} if labels else {})},
    }


@pytest.mark.parametrize(
    ("ending", "content", "form"),
    [("json", json.dumps(LABELME), "labelme"), ("xml", XML, "voc_boxes"), ("txt", "0 0.5 0.5 0.2 0.25\n", "yolo")],
)
def test_annotations_next_to_images_are_named_with_the_line_to_write(folder, ending, content, form):
    raw = pictures(folder)
    for letter in "abcd":
        (folder / f"images/photo{letter}.{ending}").write_text(content)
    with pytest.raises(UsageError, match=rf"missing, and .*images holds .*{{path: .*images.?, format: {form}}}"):
        run(raw, folder / "out")


@pytest.mark.parametrize("task", ["segmentation", "classification"])
def test_a_folder_of_unknown_files_is_named_by_what_it_holds(folder, task):
    (folder / "marks").mkdir()
    for number in range(3):
        (folder / f"marks/{number}.npy").write_bytes(b"\x93NUMPY")
    (folder / "marks/notes.txt").write_text("hello")
    raw = {**pictures(folder, path=str(folder / "marks")), "task": task}
    with pytest.raises(
        UsageError, match=r"no PNG, GIF, BMP or TIFF of masks, but \.npy 3, \.txt 1, which no known tool"
    ):
        run(raw, folder / "out")


def test_files_next_to_images_are_counted_and_most_images_may_not_be_missing(folder):
    raw = pictures(folder, 10, path=str(folder / "labels.csv"))
    for ending in ("npy", "zip", "py", "mp4"):
        (folder / f"images/more.{ending}").write_bytes(b"x")
    table = "image,label\n" + "".join(f"photo{letter}.png,cat\n" for letter in "abcdefghij")
    (folder / "labels.csv").write_text(table)
    notes: list[str] = []
    assert run(raw, folder / "out", log=notes.append).totals["rejected"] == 0
    assert "images: other files are ignored: .mp4 1, .npy 1, .py 1, .zip 1" in notes
    for letter in "abcdefg":
        (folder / f"images/photo{letter}.png").unlink()
    with pytest.raises(CheckFailed, match="7 of 10 inputs were rejected, 5 are allowed"):
        run(raw, folder / "few")


def test_an_image_in_two_lists_is_named(folder):
    raw = pictures(folder, format="none")
    for split, letters in (("train", "abc"), ("eval", "cd")):
        (folder / f"{split}.txt").write_text("".join(f"photo{letter}.png\n" for letter in letters))
    lists = {split: str(folder / f"{split}.txt") for split in ("train", "eval")}
    run(
        {**raw, "split": {"method": "predefined", "ratios": {"train": 0.5, "eval": 0.5}, "from_lists": lists}},
        folder / "out",
    )
    row = ledger(folder / "out")["photoc.png"]
    assert (row.status, row.code) == ("rejected", "conflicting_splits")
    assert row.reason == "split.from_lists assigns eval and train; an image has one"


def test_equal_images_of_two_stated_splits_leak_and_are_not_called_kept_together(folder):
    raw = pictures(folder, format="none")
    for split in ("train", "eval"):
        (folder / "images" / split).mkdir()
        Image.new("RGB", (20, 10), (5, 5, 5)).save(folder / f"images/{split}/same.png")
    for letter, split in zip("abcd", ("train", "eval", "train", "eval"), strict=True):
        (folder / f"images/photo{letter}.png").rename(folder / f"images/{split}/{letter}.png")
    notes: list[str] = []
    run(
        {**raw, "split": {"method": "predefined", "ratios": {"train": 0.5, "eval": 0.5}}},
        folder / "out",
        log=notes.append,
    )
    leaking = [note for note in notes if "several splits" in note]
    assert len(leaking) == 1
    assert not any("one side of the split" in note for note in notes)


def test_run_needs_a_split_named_train(folder, capsys):
    for name in ("cat", "dog"):
        (folder / "images" / name).mkdir()
    for number, letter in enumerate("abcd"):
        place = folder / "images" / ("cat", "dog")[number % 2]
        Image.new("RGB", (20, 10), (9 * number, 0, 0)).save(place / f"{letter}.png")
    text = "name: a\ntask: classification\ninput: {images: images}\nsplit: {ratios: {eval: 0.5, test: 0.5}}\n"
    (folder / "c.yaml").write_text(text)
    assert main(["run", "c.yaml", "--root", "runs"]) == 2
    assert "split: no split named train" in capsys.readouterr().err
    assert main(["ingest", "c.yaml", "--out", "out"]) == 0


BOX = (XMIN, YMIN, XMAX, YMAX)
BOXES = [
    ("image,class,x,y,w,h\n", "photoa.png,car,2,3,10,5\n"),
    (
        "label_name,bbox_x,bbox_y,bbox_width,bbox_height,image_name,image_width,image_height\n",
        "car,2,3,10,5,photoa.png,20,10\n",
    ),
    ("image;x1;y1;x2;y2;label\n", "/home/me/photoa.png;2;3;12;8;car\n"),
    ("image,xmin,ymin,xmax,ymax,class\n", "photoa.png,0.1,0.3,0.6,0.8,car\n"),
    ("", "images/photoa.png,2,3,12,8,car\n"),
]


@pytest.mark.parametrize(("header", "row"), BOXES)
def test_boxes_are_the_same_in_every_spelling_and_come_back(folder, header, row, capsys):
    empty = row.split(",")[0].replace("photoa", "photob") + "," * row.count(",") + "\n"
    pictures(folder, 2)
    more = empty if header in ("", BOXES[0][0], BOXES[3][0]) else ""
    (folder / "boxes.csv").write_text(header + row + more)
    assert main(["init", ".", "--out", "c.yaml", "--set", "input.unlisted_images=empty"]) == 0
    assert "boxes.csv holds a CSV of boxes" in capsys.readouterr().out
    assert main(["ingest", "c.yaml", "--out", "out"]) == 0
    edges = [pytest.approx(value) for value in (0.1, 0.3, 0.6, 0.8)]
    assert [examples(folder / "out")["photoa.png"][name].tolist()[0] for name in BOX] == edges
    assert len(examples(folder / "out")) == 2
    assert main(["export", "out", "--out", "files"]) == 0
    labels = {"path": str(folder / "files/labels.csv")}
    run(
        {"task": "classification", "input": {"images": str(folder / "files/images"), "labels": labels}},
        folder / "again",
    )
    again = examples(folder / "again")["photoa.png"]
    assert [again[name].tolist()[0] for name in BOX] == edges


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("photoc.png,20,10,car,2,3,x,8", "row 4: xmax is 'x', not a number"),
        ("photoc.png,20,10,car,9,3,5,8", "has no area"),
        ("photoc.png,40,10,car,2,3,12,8", "the image has 10x40 (height x width) there, but the file has 10x20"),
        ("photoc.png,20,10,,2,3,12,8", "has no class"),
        ("photoc.png,20,10,car,2,3", "row 4: has not as many fields as the header"),
    ],
)
def test_a_broken_box_costs_its_image(folder, row, reason):
    raw = pictures(folder, 3, path=str(folder / "b.csv"), boxes=True)
    good = "".join(f"photo{letter}.png,20,10,car,2,3,12,8\n" for letter in "ab")
    (folder / "b.csv").write_text(f"filename,width,height,class,xmin,ymin,xmax,ymax\n{good}{row}\n")
    run(raw, folder / "out")
    found = ledger(folder / "out")["photoc.png"]
    assert found.status == "rejected"
    assert reason in found.reason


@pytest.mark.parametrize("form", ["box_csv", "open_images"])
def test_boxes_in_parquet_are_those_of_the_csv(folder, form):
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    images, classes, edges = ("image", "class", ("xmin", "ymin", "xmax", "ymax"))
    if form == "open_images":
        images, classes, edges = ("ImageID", "LabelName", ("XMin", "YMin", "XMax", "YMax"))
    columns = {images: ["photoa.png", "photob.png"], classes: ["car", "bus"]}
    columns |= dict(zip(edges, ([0.1, 0.2], [0.3, 0.4], [0.6, 0.7], [0.8, 0.9]), strict=True))
    rows = "".join(",".join(map(str, row)) + "\n" for row in zip(*columns.values(), strict=True))
    (folder / "b.csv").write_text(",".join(columns) + "\n" + rows)
    parquet.write_table(arrow.table(columns), folder / "b.parquet")
    found = []
    for name in ("b.csv", "b.parquet"):
        assert recognize(Head.read(str(folder / name))).row.name == form
        run(pictures(folder, 2, path=str(folder / name), boxes=True), folder / name[2:])
        found.append({key: [one[edge].tolist() for edge in BOX] for key, one in examples(folder / name[2:]).items()})
    assert found[0] == found[1]
    assert found[0]["photob.png"] == [[pytest.approx(value)] for value in (0.2, 0.4, 0.7, 0.9)]


def test_boxes_are_not_classes_alone_without_a_word(folder):
    (folder / "b.csv").write_text("image,class,xmin,ymin,xmax,ymax\nphotoa.png,car,2,3,12,8\n")
    with pytest.raises(UsageError, match=r"holds 1 box\. Use .*boxes: true, or input\.labels\.format: label_csv"):
        run(pictures(folder, 1, path=str(folder / "b.csv")), folder / "out")
