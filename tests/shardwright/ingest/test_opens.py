"""A pass reads a file once: how often an ingest opens its table."""

import json
import os
import sys

import layouts
import pytest
import tool_files
from ingesting import run
from PIL import Image

from shardwright.formats import head
from shardwright.storage import limits

OPENED: list[str] = []
WATCHED: list[str] = []


def _note(event: str, arguments: tuple) -> None:
    # `open` with an opener is two events; that of `os.open` has no mode.
    if WATCHED and event == "open" and arguments[1] is None and arguments[0] == WATCHED[0]:
        OPENED.append(arguments[0])


sys.addaudithook(_note)


@pytest.fixture
def opens():
    def count(raw, table, out):
        OPENED.clear()
        WATCHED[:] = [os.path.abspath(table)]
        try:
            run(raw, out)
        finally:
            WATCHED.clear()
        return len(OPENED)

    return count


def tables(root):
    """A table of each kind: how it is drawn, its file, and the options that it needs."""
    layouts.severstal(root / "rle")
    layouts.label_csv(root / "label")
    tool_files.box_csv(root / "box")
    tool_files.open_images(root / "oi")
    for name, task, boxes in (("rle", "segmentation", False), ("label", "classification", False),
                              ("box", "classification", True), ("oi", "classification", True)):  # fmt: skip
        (table,) = (path for path in (root / name).glob("*.csv") if not path.name.startswith(("class", "sample")))
        images = next(path.parent for path in (root / name).rglob("*.jpg"))
        labels = {"path": str(table), **({"boxes": True} if boxes else {})}
        raw = {"task": task, "input": {"images": str(images), "labels": labels, "unlisted_images": "reject"}}
        yield name, {**raw, "rejects": {"max_fraction": 0.9}}, table


def test_a_table_is_opened_twice_to_read_it_and_to_see_that_it_has_not_changed(tmp_path, opens):
    counts = {name: opens(raw, table, tmp_path / f"out-{name}") for name, raw, table in tables(tmp_path)}
    assert counts == dict.fromkeys(("rle", "label", "box", "oi"), 2)


def coco(root):
    Image.new("RGB", (8, 8)).save(root / "a.png")
    boxes = [{"image_id": 1, "category_id": 2, "segmentation": [[1, 1, 5, 1, 5, 5]]}]
    images, categories = [{"id": 1, "file_name": "a.png"}], [{"id": 2, "name": "car"}]
    (root / "coco.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": categories}))


@pytest.mark.parametrize("tool", ["COCO", "CVAT", "Datumaro", "Label Studio", "VIA", "COCO panoptic"])
def test_a_file_of_a_tool_is_opened_as_often(tmp_path, opens, tool):
    root = tmp_path / "data"
    root.mkdir()
    (coco if tool == "COCO" else tool_files.TOOLS[tool][0])(root)
    (file,) = [*root.rglob("*.json"), *root.rglob("*.xml")]
    images = root / "images" if (root / "images").is_dir() else root
    raw = {"task": "segmentation", "input": {"images": str(images), "labels": {"path": str(file)}}}
    assert opens(raw, file, tmp_path / "out") == 2


KEYS = [f"{number}.jpg" for number in range(6)]
SMALL = {
    "one_hot.csv": "image,a,b\n" + "".join(f"{key},{i % 2},{1 - i % 2}\n" for i, key in enumerate(KEYS)),
    "numbers.csv": "image,size\n" + "".join(f"{key},{i}.5\n" for i, key in enumerate(KEYS)),
    "captions.csv": "image,caption\n" + "".join(f"{key},a cat\n" for key in KEYS),
    "captions.jsonl": "".join(json.dumps({"file_name": key, "text": "a cat"}) + "\n" for key in KEYS),
    "numbers.jsonl": "".join(json.dumps({"file_name": key, "size": 1.5}) + "\n" for key in KEYS),
    "labels.jsonl": "".join(json.dumps({"file_name": key, "label": "cat"}) + "\n" for key in KEYS),
    "captions.json": json.dumps(
        {
            "images": [{"id": i, "file_name": key} for i, key in enumerate(KEYS)],
            "annotations": [{"id": i, "image_id": i, "caption": "a cat"} for i in range(len(KEYS))],
        }
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_captions_numbers_and_json_lines_are_opened_twice_as_well(tmp_path, opens, name):
    for number, key in enumerate(KEYS):
        layouts.image(tmp_path / "images" / key, number)
    (tmp_path / name).write_text(SMALL[name])
    raw = {
        "task": "classification",
        "input": {"images": str(tmp_path / "images"), "labels": {"path": str(tmp_path / name)}},
    }
    assert opens(raw, tmp_path / name, tmp_path / "out") == 2


def test_a_table_that_is_not_kept_is_read_in_passes_with_the_same_result(tmp_path, opens, monkeypatch):
    monkeypatch.setattr(head, "HEAD_BYTES", 64)
    monkeypatch.setattr("shardwright.ingest.survey.MOST_KEPT_BYTES", 64)
    for name, raw, table in tables(tmp_path):
        kept = opens(raw, table, tmp_path / f"kept-{name}")
        monkeypatch.setattr(limits, "MOST_KEPT_BYTES", 64)
        streamed = opens(raw, table, tmp_path / f"streamed-{name}")
        monkeypatch.setattr(limits, "MOST_KEPT_BYTES", 32 << 20)
        assert streamed > kept
        shards = [sorted((tmp_path / f"{how}-{name}").rglob("*.tfrecord")) for how in ("kept", "streamed")]
        assert [file.read_bytes() for file in shards[0]] == [file.read_bytes() for file in shards[1]]
        assert shards[0]
