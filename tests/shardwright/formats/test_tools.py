"""Files of annotation tools: `init` recognizes them, and the dataset has the masks and boxes that were drawn."""

import numpy as np
import pytest
import tool_files
import yaml
from ingesting import examples, run
from layouts import CLASSES, COUNT, HEIGHT, WIDTH
from stored import check_stored

from shardwright.config import load_config
from shardwright.dataset.reader import ImageDataset
from shardwright.ingest import ingest
from shardwright.pipelines.cli import main

MASKS = [name for name, (_, _, has) in tool_files.TOOLS.items() if has == "masks"]
WITH_PNG = ("Open Images masks", "COCO panoptic")
EDGES = ("xmin", "ymin", "xmax", "ymax")


def drawn(flat):
    """Runs as pixels: start and length, column by column, from 0."""
    pixels = np.zeros(HEIGHT * WIDTH, np.uint8)
    for start, length in zip(flat[::2], flat[1::2], strict=True):
        pixels[start : start + length] = 1
    return pixels.reshape(WIDTH, HEIGHT).T


def around(mask):
    """The edges of the box around a mask, in pixels."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return columns[0], rows[0], columns[-1] + 1, rows[-1] + 1


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.mark.parametrize("tool", tool_files.TOOLS)
def test_init_recognizes_the_tool_and_its_annotations_become_what_was_drawn(here, tool, capsys):
    draw, form, has = tool_files.TOOLS[tool]
    truth = draw(here / "data")
    # Masks in a folder of that name could be read without the table, so it is named.
    named = ["data/images", path_of(here / "data")] if tool in WITH_PNG else ["data"]
    assert main(["init", *named, "--out", "c.yaml"]) == 0, capsys.readouterr().err
    written = yaml.safe_load((here / "c.yaml").read_text())
    assert written["input"]["labels"]["format"] == form
    assert list(written["input"]["classes"]) == list(CLASSES)
    config = load_config("c.yaml")
    assert config.task == ("segmentation" if has == "masks" else "classification")
    assert config.input.labels.boxes is (has == "boxes")
    printed = capsys.readouterr().out
    assert f"labels: {form}, since" in printed
    assert "of masks" not in printed
    manifest = ingest(config, here / "out", quiet=True)
    assert manifest.totals["rejected"] == 0
    check_stored(f"tool: {tool}", here / "out")
    found = {key.rpartition("/")[2]: example for key, example in examples(here / "out").items()}
    assert len(found) == COUNT
    for key, classes in truth.items():
        example = found[key.rpartition("/")[2]]
        for name, mask in classes.items() if has == "masks" else ():
            np.testing.assert_array_equal(drawn(example[f"image/segmentation/{name}/rle"]), mask, key)
        if has == "boxes":
            check_boxes(example, classes)
        elif has == "classes":
            assert [text.decode() for text in example["image/class/text"]] == list(classes)


@pytest.mark.parametrize("tool", MASKS)
def test_boxes_are_around_what_was_drawn(tmp_path, tool):
    truth = tool_files.TOOLS[tool][0](tmp_path / "data")
    images = tmp_path / ("data/images" if tool in WITH_PNG else "data")
    source = {"images": str(images), "labels": {"path": path_of(tmp_path / "data"), "boxes": True}}
    run({"task": "classification", "input": source}, tmp_path / "out")
    found = {key.rpartition("/")[2]: example for key, example in examples(tmp_path / "out").items()}
    for key, classes in truth.items():
        check_boxes(found[key.rpartition("/")[2]], classes)


def path_of(folder):
    """The annotations: the only file of the folder that is one, or the folder itself."""
    files = [*folder.glob("*.xml"), *folder.glob("*.y*ml"), *folder.glob("[!i]*.json"), *folder.glob("*.ndjson")]
    files += [*folder.glob("train-*.csv"), *folder.glob("annotations/*.json")]
    return str(files[0] if files else folder)


def check_boxes(example, classes):
    assert [text.decode() for text in example["image/object/class/text"]] == list(classes)
    edges = np.stack([example[f"image/object/bbox/{edge}"] for edge in EDGES], axis=1)
    wanted = np.array([around(mask) for mask in classes.values()])
    np.testing.assert_allclose(edges * [WIDTH, HEIGHT, WIDTH, HEIGHT], wanted, atol=0.5)


def test_splits_of_the_annotations_are_those_of_the_dataset(here):
    tool_files.roboflow(here / "data")
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    ingest(load_config("c.yaml"), here / "out", quiet=True)
    assert {split: len(dict(ImageDataset.open(here / "out").records(split))) for split in ("train", "eval")} == {
        "train": 6,
        "eval": 2,
    }
